//! What the cuts left, as a page of the book.

use std::collections::BTreeMap;
use std::fmt::Write;

use anyhow::Result;
use serde::{Deserialize, Serialize};

use super::judge::Left;
use super::subject::{IMAGE_BYTES, Kind, Subject};
use super::writer::Writer;
use crate::book::page::Measured;
use crate::book::plot::{Arrangement, Bar, Plot, Row};

/// All cuts in one kind of deployment.
#[derive(Debug, Serialize, Deserialize)]
pub struct Series {
    kind: Kind,
    writer: Writer,
    sector_size: u32,
    /// Requests of a whole deployment.
    requests: usize,
    /// How many cuts have left what.
    left: BTreeMap<Left, usize>,
    /// How many of them were made in the machine.
    by_machine: usize,
}

/// A run of the command.
#[derive(Debug, Serialize, Deserialize)]
pub struct PowerCutReport {
    pub seed: u64,
    /// Of each kind.
    pub cuts: u32,
    pub machine_cuts: u32,
    /// How many of the disks with all of the image were started by firmware.
    pub booted: u32,
    pub series: Vec<Series>,
}

impl Measured for PowerCutReport {
    const NAME: &'static str = "power-cuts";

    fn text(&self) -> Result<String> {
        Ok(self.page())
    }

    fn plots(&self) -> Vec<(String, Plot)> {
        let plot = Plot {
            title: "Contents of the disk after the cuts".to_owned(),
            axis: "cuts; behind each deployment the bytes of a sector".to_owned(),
            series: Left::ALL.map(Left::name).to_vec(),
            arrangement: Arrangement::Stacked,
            rows: self.series.iter().map(Series::row).collect(),
        };
        vec![(Self::NAME.to_owned(), plot)]
    }
}

impl Series {
    /// No cuts yet.
    pub fn new(subject: &Subject, requests: usize) -> Self {
        let Subject { kind, writer, sector_size, .. } = *subject;
        Self { kind, writer, sector_size, requests, left: BTreeMap::new(), by_machine: 0 }
    }

    /// Counts a cut.
    pub fn add(&mut self, left: Left) {
        *self.left.entry(left).or_default() += 1;
    }

    /// Counts a cut that was made in the machine.
    pub fn add_from_machine(&mut self, left: Left) {
        self.add(left);
        self.by_machine += 1;
    }

    fn count(&self, left: Left) -> usize {
        self.left.get(&left).copied().unwrap_or_default()
    }

    /// The row of the plot.
    fn row(&self) -> Row {
        let mut name = self.kind.name().replace('`', "");
        if self.writer == Writer::Conductor {
            name.push_str(", iSCSI");
        }
        let bar =
            |left| Some(self.count(left)).filter(|count| *count > 0).map(|count| Bar::of(count as f64, 0));
        Row { name: format!("{name}, {}", self.sector_size), bars: Left::ALL.map(bar).to_vec() }
    }

    /// The row of the page.
    pub fn line(&self) -> String {
        let Self { kind, writer, sector_size, requests, by_machine, .. } = self;
        let counts = Left::ALL.map(|left| self.count(left).to_string()).join(" | ");
        format!(
            "| {} | {} | {sector_size} | {requests} | {} | {by_machine} | {counts} | 0 |",
            kind.name(),
            writer.name(),
            self.cuts()
        )
    }

    fn cuts(&self) -> usize {
        self.left.values().sum()
    }
}

impl PowerCutReport {
    /// The sum.
    pub fn line(&self) -> String {
        let cuts: usize = self.series.iter().map(Series::cuts).sum();
        let booted = self.booted;
        format!(
            "{cuts} cuts, no half image; {booted} of the disks with all of the image were booted by UEFI firmware"
        )
    }

    fn page(&self) -> String {
        let mut page = format!(
            "# Power cuts

This page is written by `cargo xtask power-cut --page --seed {} --cuts {} --machine-cuts {}`.

A virtual machine with the real ramdisk deploys an image of {} MiB, or a partition image, to a disk with an older table and
foreign data. The disk records every write and flush. In other runs its agent exports the disk, and the conductor writes it by [iSCSI](iscsi.md#deployed-by-the-conductor). A power cut at one of
these requests keeps all flushed data; of the later data, each sector is on the medium or not, at random. The test builds and
examines such media for cuts all over the deployment, and makes a few cuts in the machine itself. A cut must have left one of these:

- **before**: every byte of what was there before, when the power went before the old table did;
- **erasing**: the old table or file system, and nothing in its place but old content and zeros: old metadata in
  partitions is erased before the table that leads to it;
- **nothing**: libblkid sees no partition table, or, where a table stays, no file system in the root partition;
- **no drive yet**: all of the image, whose config drive is not there or not complete;
- **all**: a table, as `sgdisk` lists it, with all of its partitions, and every sector of the image. A sector of the first MiB may also be a later one of the deployment. So may a sector at the position of the image's backup GPT.

With `preserve_ephemeral` every byte of the ephemeral partition and the whole table are there after each cut.
Anything else, **half**, ends the run, and no page is written.

{}.

![Results of the cuts, for each kind of deployment](power-cuts.svg)

| deployment | written by the | sectors, bytes | requests | cuts | of them in the machine | before | erasing | nothing | no drive yet | all | half |
|---|---|---|---|---|---|---|---|---|---|---|---|
",
            self.seed,
            self.cuts,
            self.machine_cuts,
            IMAGE_BYTES >> 20,
            self.line()
        );
        for series in &self.series {
            // Writing to a string cannot fail.
            writeln!(page, "{}", series.line()).ok();
        }
        page
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn x33_the_page_counts_what_is_left_by_kind_and_sector_size() {
        let (kind, writer, left) = (Kind::Gpt, Writer::Conductor, BTreeMap::new());
        let mut series = Series { kind, writer, sector_size: 4096, requests: 90, left, by_machine: 0 };
        for left in [Left::Nothing, Left::Everything, Left::Everything] {
            series.add(left);
        }
        series.add_from_machine(Left::Before);
        let report = PowerCutReport { seed: 5, cuts: 3, machine_cuts: 1, booted: 1, series: vec![series] };
        let page = report.page();
        for part in [
            "--seed 5 --cuts 3 --machine-cuts 1",
            "4 cuts, no half image; 1 of the disks with all of the image were booted by UEFI firmware.",
            "| raw, GPT | conductor, by iSCSI | 4096 | 90 | 4 | 1 | 1 | 0 | 1 | 0 | 2 | 0 |",
        ] {
            assert!(page.contains(part), "{page}");
        }
    }
}
