//! What the cuts left, as a page of the book.

use std::fmt::Write;

use serde::Serialize;

use super::judge::Left;
use super::subject::{IMAGE_BYTES, Kind};

/// Where the page is.
pub const PAGE: &str = "docs/src/power-cuts.md";

/// All cuts in one kind of deployment.
#[derive(Debug, Serialize)]
pub struct Series {
    kind: Kind,
    sector_size: u32,
    /// Requests of a whole deployment.
    requests: usize,
    left: Vec<Left>,
    left_by_machine: Vec<Left>,
    /// How many of the disks were started by firmware.
    pub booted: u32,
}

/// A run of the command.
#[derive(Debug, Serialize)]
pub struct Report {
    pub seed: u64,
    /// Of each kind.
    pub cuts: u32,
    pub machine_cuts: u32,
    pub series: Vec<Series>,
}

impl Series {
    /// No cuts yet.
    pub fn new(kind: Kind, sector_size: u32, requests: usize) -> Self {
        Self { kind, sector_size, requests, left: Vec::new(), left_by_machine: Vec::new(), booted: 0 }
    }

    /// Counts a cut.
    pub fn add(&mut self, left: Left) {
        self.left.push(left);
    }

    /// Counts a cut that was made in the machine.
    pub fn add_from_machine(&mut self, left: Left) {
        self.left_by_machine.push(left);
    }

    /// The row of the page.
    pub fn line(&self) -> String {
        let Self { kind, sector_size, requests, left, left_by_machine, .. } = self;
        let count = |wanted: Left| left.iter().chain(left_by_machine).filter(|left| **left == wanted).count();
        let counts: Vec<_> = Left::ALL.into_iter().map(|left| count(left).to_string()).collect();
        let (cuts, by_machine) = (left.len() + left_by_machine.len(), left_by_machine.len());
        format!(
            "| {} | {sector_size} | {requests} | {cuts} | {by_machine} | {} | 0 |",
            kind.name(),
            counts.join(" | ")
        )
    }

    fn cuts(&self) -> usize {
        self.left.len() + self.left_by_machine.len()
    }
}

impl Report {
    /// The sum.
    pub fn line(&self) -> String {
        let cuts: usize = self.series.iter().map(Series::cuts).sum();
        let booted: u32 = self.series.iter().map(|series| series.booted).sum();
        format!(
            "{cuts} cuts, no half image; {booted} of the disks with all of the image were booted by UEFI firmware"
        )
    }

    /// The page.
    pub fn page(&self) -> String {
        let mut page = format!(
            "# Power cuts

This page is written by `cargo xtask power-cut --page --seed {} --cuts {} --machine-cuts {}`.

A virtual machine with the real ramdisk deploys an image of {} MiB, or a partition image, to a disk that carries
an older table and foreign data, and that records every write and flush it is asked for. A power cut at one of
these requests leaves what was flushed before it; of what the disk had taken since, each sector is on the medium
or not, by chance. That is put on a medium for cuts all over the deployment and looked at; a few cuts are made in
the machine itself. A cut must have left one of these:

- **before**: every byte of what was there before, when the power went before the old table did;
- **erasing**: the old table or file system, and nothing in its place but old content and zeros: old metadata in
  partitions is erased before the table that leads to it;
- **nothing**: libblkid sees no partition table, or, where a table stays, no file system in the root partition;
- **no drive yet**: all of the image, whose config drive is not there or not complete;
- **all**: a table, as `sgdisk` lists it, with all of its partitions, and every sector of the image. In the first
  MiB it is the image's or one that the deployment put there after it, and where the image had the backup of its
  GPT, the image's or that of the finished deployment.

With `preserve_ephemeral` every byte of the ephemeral partition and the whole table are there after each cut.
Anything else, **half**, ends the run, and no page is written.

{}.

| deployment | sectors, bytes | requests | cuts | of them in the machine | before | erasing | nothing | no drive yet | all | half |
|---|---|---|---|---|---|---|---|---|---|---|
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
        let mut series = Series::new(Kind::Gpt, 4096, 90);
        for left in [Left::Nothing, Left::Everything, Left::Everything] {
            series.add(left);
        }
        series.add_from_machine(Left::Before);
        series.booted = 1;
        let report = Report { seed: 5, cuts: 3, machine_cuts: 1, series: vec![series] };
        let page = report.page();
        for part in [
            "--seed 5 --cuts 3 --machine-cuts 1",
            "4 cuts, no half image; 1 of the disks with all of the image were booted by UEFI firmware.",
            "| raw, GPT | 4096 | 90 | 4 | 1 | 1 | 0 | 1 | 0 | 2 | 0 |",
        ] {
            assert!(page.contains(part), "{page}");
        }
    }
}
