//! The page of the book with the figures of both ramdisks.

use anyhow::{Context, Result};

use super::report::{BootReport, Figures};
use crate::book::page::Measured;
use crate::book::plot::{Arrangement, Bar, Plot, Row};

impl Measured for BootReport {
    const NAME: &'static str = "boot-benchmark";

    fn text(&self) -> Result<String> {
        text(self)
    }

    fn plots(&self) -> Vec<(String, Plot)> {
        vec![(Self::NAME.to_owned(), plot(self))]
    }
}

/// Both in units of the Python agent, so that sizes, memory and times stand beside each other.
fn plot(report: &BootReport) -> Plot {
    type Figure = (&'static str, fn(&Figures) -> f64, fn(f64) -> String);
    let rows: [Figure; 4] = [
        (
            "kernel + ramdisk",
            |figures| figures.bytes() as f64 / f64::from(1 << 20),
            |value| format!("{value:.1} MiB"),
        ),
        (
            "smallest machine",
            |figures| f64::from(figures.smallest_memory_mib),
            |value| format!("{value:.0} MiB"),
        ),
        (
            "kernel's start to first heartbeat",
            |figures| figures.kernel_to_heartbeat_s,
            |value| format!("{value:.2} s"),
        ),
        (
            "first process to first heartbeat",
            |figures| figures.init_to_heartbeat_s,
            |value| format!("{value:.2} s"),
        ),
    ];
    let row = |(name, figure, shown): Figure| {
        let rival = report.python_agent.as_ref();
        let unit = rival.map_or(1.0, figure);
        let bar = |figures: &Figures| Bar { length: figure(figures) / unit, label: shown(figure(figures)) };
        Row { name: name.to_owned(), bars: vec![Some(bar(&report.farrier)), rival.map(bar)] }
    };
    Plot {
        title: "The ramdisk until its first heartbeat".to_owned(),
        axis: "in units of what the Python agent takes".to_owned(),
        series: vec!["Farrier", "Python agent"],
        arrangement: Arrangement::Grouped,
        rows: rows.into_iter().map(row).collect(),
    }
}

fn text(report: &BootReport) -> Result<String> {
    let table = report.comparison_table().context("the Python agent was not measured")?;
    Ok(format!(
        "# Beside the Python agent

This page is written by `cargo xtask bench boot --page --runs {}`.

`cargo xtask bench boot` boots Farrier's ramdisk and one with the Python agent (ironic-python-agent 13.0.0
from PyPI, on Debian 12) in the same emulated machine: UEFI, one processor, a virtio disk and a virtio network
card, the same kernel. Both run until the conductor has their first heartbeat.

![Size, memory and time of Farrier beside the Python agent](boot-benchmark.svg)

| what | how it is measured |
|---|---|
| size | kernel and compressed ramdisk |
| memory | the smallest machine that sends a heartbeat, found by booting in steps of 32 to 128 MiB |
| time | from the kernel's first line on the console to the heartbeat, by a clock outside of the machine with {} MiB. The second figure counts from the start of the first process, because the kernel takes the same time in both |

The budget is ten times the speed, a fifth of the size and a fifth of the memory, one second of user space and 16 MiB
for the idle agent. Over the budget the command fails and writes no page.

The rival follows ironic-python-agent-builder for Debian: systemd, the same packages and the whole module
tree of the kernel, packed with gzip. Each remaining difference favours the rival: its Python files are
compiled beforehand, and there is no compiler, SSH server or firmware in it. `xtask/src/build/python_ramdisk.rs` has
the whole recipe.

```console
$ cargo xtask bench boot                # builds both; needs root for debootstrap
$ cargo xtask bench boot --alone        # Farrier alone
$ cargo xtask bench boot --dist DIR     # a ramdisk that was built before
```

The medians of the last run, of {} boots each:

{table}",
        report.runs, report.memory_mib, report.runs
    ))
}
