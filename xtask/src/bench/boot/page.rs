//! The page of the book with the figures of both ramdisks.

use anyhow::{Context, Result};

use super::report::BootReport;
use crate::workspace::Workspace;

const PAGE: &str = "docs/src/boot-benchmark.md";

/// Writes the page.
///
/// # Errors
///
/// The rival was not measured, or the page cannot be written.
pub fn write(workspace: &Workspace, report: &BootReport) -> Result<()> {
    workspace.write_page(PAGE, &text(report)?)
}

fn text(report: &BootReport) -> Result<String> {
    let table = report.comparison_table().context("the Python agent was not measured")?;
    Ok(format!(
        "# Beside the Python agent

This page is written by `cargo xtask bench boot --page --runs {}`.

`cargo xtask bench boot` boots Farrier's ramdisk and one with the Python agent (ironic-python-agent 13.0.0
from PyPI, on Debian 12) in the same emulated machine: UEFI, one processor, a virtio disk and a virtio network
card, the same kernel. Both run until the conductor has their first heartbeat.

| what | how it is measured |
|---|---|
| size | kernel and compressed ramdisk |
| memory | the smallest machine that sends a heartbeat, found by booting in steps of 32 to 128 MiB |
| time | from the kernel's first line on the console to the arrival of the heartbeat, by a clock outside of the machine, in a machine with {} MiB; the second figure counts from the start of the first process, since both spend the same time in the kernel before |

The budget is ten times faster, a fifth of the size and a fifth of the memory, one second of user space and 16 MiB
for the idle agent; over it, the command fails and writes no page.

The rival follows ironic-python-agent-builder for Debian: systemd, the same packages and the whole module
tree of the kernel, packed with gzip. Where the two differ, it is in the rival's favour: its Python files are
compiled beforehand, and there is no compiler, SSH server or firmware in it. `xtask/src/python_ramdisk.rs` has
the whole recipe.

```console
$ cargo xtask bench boot                # builds both; needs root for debootstrap
$ cargo xtask bench boot --alone        # Farrier alone
$ cargo xtask bench boot --dist DIR     # a ramdisk that was built before
```

The last page was written by the median of {} boots:

{table}",
        report.runs, report.memory_mib, report.runs
    ))
}
