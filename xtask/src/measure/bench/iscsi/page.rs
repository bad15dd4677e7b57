//! The page of the book with the figures.

use anyhow::Result;

use super::report::IscsiReport;
use crate::book::page::Measured;
use crate::book::plot::{Arrangement, Bar, Plot, Row};

impl Measured for IscsiReport {
    const NAME: &'static str = "iscsi-benchmark";

    fn text(&self) -> Result<String> {
        Ok(text(self))
    }

    fn plots(&self) -> Vec<(String, Plot)> {
        vec![(Self::NAME.to_owned(), plot(self))]
    }
}

fn plot(report: &IscsiReport) -> Plot {
    let row = |name: &str, (direct, exported): (f64, f64)| {
        let bar = |seconds| Some(Bar::of(report.throughput(seconds), 1));
        Row { name: name.to_owned(), bars: vec![bar(direct), bar(exported)] }
    };
    Plot {
        title: format!("An image of {} MiB to the disk of an emulated machine", report.image_mib),
        axis: "MiB/s, from the first order to the last answer".to_owned(),
        series: vec!["by the agent", "by the conductor"],
        arrangement: Arrangement::Grouped,
        rows: vec![
            row("LIO", (report.kernel.direct_s, report.kernel.exported_s)),
            row("tgtd", (report.tgtd.direct_s, report.tgtd.exported_s)),
        ],
    }
}

fn text(report: &IscsiReport) -> String {
    format!(
        "# Disks by iSCSI, measured

This page is written by `cargo xtask bench iscsi --page --rounds {rounds} --image-mib {mebibytes}`.

Machine: {machine}.

Two emulated machines (one processor, a virtio disk and a virtio card on QEMU's user network) have booted the same ramdisk,
with tgtd in it. The first has the kernel's target (LIO); the kernel of the second has none (`module_blacklist=target_core_mod`), so its agent exports with tgtd. In a round each machine's agent writes a raw image of
{mebibytes} MiB without a zero or a repetition itself, and then exports the disk to the code of
[the deploy interface `iscsi`](iscsi.md#deployed-by-the-conductor), which logs in by QEMU's initiator and writes the same image.
Both prove it by its SHA-256. The clock runs from the first order to the last answer: wiping, export, login, and their ends are
within. Of {rounds} rounds the median is shown, with the least and the most.

![MiB a second, by the agent and by the conductor](iscsi-benchmark.svg)

{table}
The budget is 0.8 of what the agent reaches, and LIO at least as fast as tgtd. **The emulated processor dominates**: an agent
that writes has to hash and copy each byte on it; an agent that exports has the conductor's processor for that, and copies
alone. On a real machine neither is busy with an image: disk and network decide.

```console
$ cargo xtask bench iscsi
```
",
        rounds = report.rounds,
        mebibytes = report.image_mib,
        machine = report.machine,
        table = report.table(),
    )
}
