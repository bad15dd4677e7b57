//! The page of the book with the figures.

use std::fmt::Write;

use anyhow::Result;

use super::class::{Class, Measured};
use super::{Figures, MEMORY_MIB, MIB, WriteReport, Writer};
use crate::book::page;
use crate::book::plot::{Arrangement, Bar, Plot, Row};

impl page::Measured for WriteReport {
    const NAME: &'static str = "write-benchmark";

    fn text(&self) -> Result<String> {
        text(self)
    }

    fn plots(&self) -> Vec<(String, Plot)> {
        self.classes.iter().map(|class| (plot_name(*class), plot(self, *class))).collect()
    }
}

fn plot_name(class: Class) -> String {
    format!("write-benchmark-{}", class.name().to_lowercase().replace(' ', "-"))
}

/// Seconds of every writer, for each image and what proves it.
fn plot(report: &WriteReport, class: Class) -> Plot {
    const WRITERS: [Writer; 3] = [Writer::Farrier, Writer::CurlDd, Writer::DownloadConvert];
    let figures = || report.figures.iter().filter(|one| one.class == class);
    let mut rows: Vec<Row> = Vec::new();
    for one in figures() {
        let name = format!("{}, {}", one.image, one.digest.name());
        if rows.iter().any(|row| row.name == name) {
            continue;
        }
        let is_of_row = |other: &&Figures| (&other.image, other.digest) == (&one.image, one.digest);
        let bar = |writer| {
            let found = figures().filter(is_of_row).find(|other| other.writer == writer);
            found.map(|found| Bar::of(found.seconds, 2))
        };
        rows.push(Row { name, bars: WRITERS.map(bar).to_vec() });
    }
    Plot {
        title: format!("An image of {} MiB to a {}", report.size_mib, class.name()),
        axis: "seconds; curl | dd proves no digest".to_owned(),
        series: WRITERS.map(Writer::name).to_vec(),
        arrangement: Arrangement::Grouped,
        rows,
    }
}

fn text(report: &WriteReport) -> Result<String> {
    let machine = &report.machine;
    let mut page = String::new();
    writeln!(
        page,
        "# The write path, measured

This page is written by `cargo xtask bench write --page --size-mib {} --runs {}`.

Machine: {machine}. Images of {} MiB, from a server on the same machine, to a loop device with direct I/O that
is as fast as a class of real disks. `sparse` images have data in every fifth MiB; data packs to about half. In a round every program writes every image once, and there is a plain direct write (`dd oflag=direct bs=1M`) of the
same size; of {} rounds the one with the median of seconds is shown. `curl | dd` proves no digest. `download, convert` does as the Python
agent does: Python receives the image, hashes it and keeps it in memory, then `qemu-img convert` writes it.

The agent does not transfer ranges that the disk fills with zeros by a command, and the speed limit of a disk does not
count them. SSDs have such a command, and some hard disks. On a hard disk without one the kernel writes the
zeros, and an image with holes takes as long as one without.

Over any of these budgets the command fails, and writes no page.
",
        report.size_mib, report.runs, report.size_mib, report.runs
    )?;
    for class in &report.classes {
        class_table(&mut page, report, *class)?;
    }
    writeln!(
        page,
        "Farrier's largest resident memory was {:.0} MiB; {MEMORY_MIB:.0} are allowed.\n",
        report.largest_rss_mib
    )?;
    writeln!(
        page,
        "| disk | digest | image | writer | seconds | of plain | MiB written | MiB memory | processor s |"
    )?;
    writeln!(page, "|---|---|---|---|---|---|---|---|---|")?;
    for one in &report.figures {
        let digest = if one.writer == Writer::CurlDd { "none" } else { one.digest.name() };
        writeln!(
            page,
            "| {} | {digest} | {} | {} | {:.2} | {:.2} | {} | {:.1} | {:.2} |",
            one.class.name(),
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

/// What has a budget on the disks of a class.
fn class_table(page: &mut String, report: &WriteReport, class: Class) -> Result<()> {
    writeln!(page, "## {}\n\n{}\n", capitalized(class.name()), class.limit())?;
    writeln!(page, "![Seconds of every writer]({}.svg)\n", plot_name(class))?;
    writeln!(page, "| Farrier | digest | wanted | reached |\n|---|---|---|---|")?;
    for Measured { digest, measure, wanted, value, .. } in
        report.measured.iter().filter(|measured| measured.class == class)
    {
        writeln!(page, "| {} | {} | {wanted} | {value:.2} |", measure.name(), digest.name())?;
    }
    Ok(writeln!(page)?)
}

fn capitalized(name: &str) -> String {
    let (first, rest) = name.split_at(1);
    first.to_uppercase() + rest
}

#[cfg(test)]
mod tests {
    use super::super::Figures;
    use super::super::class::{Digest, Measure, Wanted};
    use super::*;

    #[test]
    fn x31_every_figure_is_a_row_and_every_class_a_table() {
        let figures = Figures {
            class: Class::HardDisk,
            digest: Digest::Sha512,
            image: "dense.raw".to_owned(),
            writer: Writer::DownloadConvert,
            seconds: 2.0,
            plain_seconds: 4.0,
            bytes_written: 3 * MIB,
            peak_rss_bytes: 5 * MIB,
            cpu_seconds: 0.5,
        };
        let measured = Measured {
            class: Class::HardDisk,
            digest: Digest::Sha512,
            measure: Measure::SparseToDense,
            wanted: Wanted::AtMost(0.45),
            value: 0.3,
        };
        let report = WriteReport {
            machine: "one machine".to_owned(),
            size_mib: 64,
            runs: 1,
            classes: Class::ALL.to_vec(),
            measured: vec![measured],
            largest_rss_mib: 17.0,
            figures: vec![figures],
        };
        let page = text(&report).unwrap();
        for row in [
            "## Hard disk\n",
            "## Fast disk\n",
            "](write-benchmark-sata-ssd.svg)",
            "Machine: one machine.",
            "the speed limit of a disk does not",
            "| raw with 80 % zeros, time in units of the dense one's | SHA-512 | ≤ 0.45 | 0.30 |",
            "| hard disk | SHA-512 | dense.raw | download, convert | 2.00 | 0.50 | 3 | 5.0 | 0.50 |",
        ] {
            assert!(page.contains(row), "{row}: {page}");
        }
    }
}
