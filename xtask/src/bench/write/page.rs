//! The page of the book with the figures.

use std::fmt::Write;
use std::fs;

use anyhow::Result;

use super::{MIB, Ratios, Report};
use crate::workspace::Workspace;

const PAGE: &str = "docs/src/write-benchmark.md";

/// Writes the page.
pub fn write(workspace: &Workspace, report: &Report) -> Result<()> {
    workspace.write_page(PAGE, &text(report, &machine())?)
}

/// Processor and kernel of this machine, in words.
fn machine() -> String {
    let read = |file: &str| fs::read_to_string(file).unwrap_or_default();
    let processors = read("/proc/cpuinfo");
    let model = processors.lines().find_map(|line| line.strip_prefix("model name")?.split_once(": "));
    let count = processors.lines().filter(|line| line.starts_with("processor")).count();
    let model = model.map_or("unknown", |(_, model)| model);
    format!("{count} processors ({model}), Linux {}", read("/proc/sys/kernel/osrelease").trim())
}

fn text(report: &Report, machine: &str) -> Result<String> {
    let mut page = String::new();
    writeln!(
        page,
        "# The write path, measured

This page is written by `cargo xtask bench write --page --size-mib {} --runs {}`.

Machine: {machine}. Images of {} MiB, from a server on the same machine, to a loop device with direct I/O:
once as fast as the disk below it is, and once held at a fixed speed. `sparse` images have data in every
fifth MiB; data packs to about half. Each run has a plain direct write (`dd oflag=direct bs=1M`) of the same
size beside it, in turns before and after; of {} runs the one with the median ratio is shown. `curl | dd`
proves no digest. `download, convert` does as the Python agent does: Python receives the image, hashes it and
keeps it in memory, then `qemu-img convert` writes it.

The first two rows tell how much of a disk's time is used, so they have to hold on the disk of fixed speed: a
file in the memory of a virtual machine's host takes data faster than anybody computes a digest of it. The
other two tell how much work is saved, so they have to hold where the disk does not set the pace.
",
        report.size_mib, report.runs, report.size_mib, report.runs
    )?;
    writeln!(page, "| Farrier | wanted | {} |", columns(report, |ratios| ratios.disk.name()))?;
    writeln!(page, "|---|---|{}", "---|".repeat(report.ratios.len()))?;
    for (name, wanted, value) in RATIOS {
        writeln!(
            page,
            "| {name} | {wanted} | {} |",
            columns(report, |ratios| format!("{:.2}", value(ratios)))
        )?;
    }
    writeln!(
        page,
        "\nFarrier's largest resident memory was {:.0} MiB; 64 are allowed.\n",
        report.largest_rss_mib
    )?;
    writeln!(
        page,
        "| disk | image | writer | seconds | of plain | MiB written | MiB memory | processor s |"
    )?;
    writeln!(page, "|---|---|---|---|---|---|---|---|")?;
    for one in &report.figures {
        writeln!(
            page,
            "| {} | {} | {} | {:.2} | {:.2} | {} | {:.1} | {:.2} |",
            one.disk.name(),
            one.image,
            one.writer.name().replace('|', "\\|"),
            one.seconds,
            one.slowness(),
            one.bytes_written / MIB,
            one.peak_rss_bytes as f64 / MIB as f64,
            one.cpu_seconds
        )?;
    }
    Ok(page)
}

/// A row of the first table: what it tells, what is wanted, and where it stands.
type Row = (&'static str, &'static str, fn(&Ratios) -> f64);

const RATIOS: &[Row] = &[
    ("dense raw, speed in units of a plain write's", "≥ 0.9", |ratios| ratios.dense_to_plain),
    ("raw with 80 % zeros, time in units of the dense one's", "≤ 0.35", |ratios| ratios.sparse_to_dense),
    ("dense qcow2, speed in units of download and convert's", "≥ 2", |ratios| {
        ratios.dense_qcow2_to_convert
    }),
    ("sparse qcow2, the same", "≥ 2", |ratios| ratios.sparse_qcow2_to_convert),
];

fn columns(report: &Report, cell: impl Fn(&Ratios) -> String) -> String {
    report.ratios.iter().map(cell).collect::<Vec<_>>().join(" | ")
}

#[cfg(test)]
mod tests {
    use super::super::{Disk, Figures, Writer};
    use super::*;

    #[test]
    fn every_figure_is_a_row() {
        let disk = Disk { mib_per_second: Some(300) };
        let figures = Figures {
            disk,
            image: "dense.raw",
            writer: Writer::CurlDd,
            seconds: 2.0,
            plain_seconds: 4.0,
            bytes_written: 3 * MIB,
            peak_rss_bytes: 5 * MIB,
            cpu_seconds: 0.5,
        };
        let ratios = Ratios {
            disk,
            dense_to_plain: 0.97,
            sparse_to_dense: 0.3,
            dense_qcow2_to_convert: 4.0,
            sparse_qcow2_to_convert: 5.0,
        };
        let report = Report {
            size_mib: 64,
            runs: 1,
            ratios: vec![ratios],
            largest_rss_mib: 17.0,
            figures: vec![figures],
        };
        let page = text(&report, "one machine").unwrap();
        for row in [
            "| Farrier | wanted | disk of 300 MiB/s |",
            "| raw with 80 % zeros, time in units of the dense one's | ≤ 0.35 | 0.30 |",
            "| disk of 300 MiB/s | dense.raw | curl \\| dd | 2.00 | 0.50 | 3 | 5.0 | 0.50 |",
        ] {
            assert!(page.contains(row), "{page}");
        }
    }
}
