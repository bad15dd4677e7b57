//! What became of the cells, as a page of the book.

use std::collections::BTreeMap;
use std::fmt::Write;

use anyhow::{Result, ensure};
use serde::{Deserialize, Serialize};

use super::undone::UNDONE;
use crate::book::page::{Measured, machine};
use crate::book::plot::{Arrangement, Bar, Plot, Row};

/// What the program with the cells writes.
#[derive(Debug, Deserialize)]
pub struct Outcome {
    seconds: f64,
    cells: Vec<Cell>,
    left_out: Vec<(String, String)>,
}

#[derive(Debug, Deserialize)]
struct Cell {
    occupant: String,
    placement: String,
    state: String,
    sector_size: u32,
    step: String,
    red: Option<String>,
}

/// Cells of one kind: how many there are.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
struct Kind {
    step: String,
    placement: String,
    state: String,
}

/// A run of the command.
#[derive(Debug, Serialize, Deserialize)]
pub struct ZooReport {
    machine: String,
    /// What was tried, as git names it.
    #[serde(default)]
    commit: String,
    seconds: f64,
    occupants: Vec<String>,
    /// Cells by step, placement and state of the table, and how many of them have sectors of 4096 bytes.
    cells: Vec<(Kind, usize, usize)>,
    /// Those that are red, with what is wrong.
    pub red: Vec<String>,
    /// What is no cell, and why.
    left_out: Vec<(String, String)>,
}

impl ZooReport {
    /// Counts cells.
    pub fn of(outcome: Outcome, commit: String) -> Self {
        let Outcome { seconds, cells, left_out } = outcome;
        let (mut counts, mut occupants, mut red) = (BTreeMap::new(), Vec::new(), Vec::new());
        for cell in cells {
            let Cell { occupant, placement, state, sector_size, step, red: reason } = cell;
            if let Some(reason) = reason {
                red.push(format!("{occupant}.{placement}.{state}.{sector_size}.{step}: {reason}"));
            }
            if !occupants.contains(&occupant) {
                occupants.push(occupant);
            }
            let (all, large) = counts.entry(Kind { step, placement, state }).or_insert((0, 0));
            *all += 1;
            *large += usize::from(sector_size == 4096);
        }
        let cells = counts.into_iter().map(|(kind, (all, large))| (kind, all, large)).collect();
        Self { machine: machine(), commit, seconds, occupants, cells, red, left_out }
    }

    /// The sum.
    pub fn line(&self) -> String {
        let cells: usize = self.cells.iter().map(|(_, all, _)| all).sum();
        format!(
            "{cells} cells of {} occupants in {:.0} s, {} red",
            self.occupants.len(),
            self.seconds,
            self.red.len()
        )
    }

    /// The values of one part of a kind, in order, without repetition.
    fn names(&self, part: fn(&Kind) -> &String) -> Vec<&str> {
        let mut names: Vec<_> = self.cells.iter().map(|(kind, ..)| part(kind).as_str()).collect();
        names.sort_unstable();
        names.dedup();
        names
    }

    fn count(&self, is_meant: impl Fn(&Kind) -> bool) -> usize {
        self.cells.iter().filter(|(kind, ..)| is_meant(kind)).map(|(_, all, _)| all).sum()
    }
}

/// Where an occupant lives, in the order of the page.
const PLACEMENTS: [&str; 6] = ["whole", "gpt", "mbr", "logical", "bare", "ephemeral"];

/// The same as the plot has them.
const SERIES: [&str; 5] = ["whole", "gpt", "mbr", "logical", "bare, ephemeral"];

impl Measured for ZooReport {
    const NAME: &'static str = "disk-zoo";

    fn text(&self) -> Result<String> {
        ensure!(self.red.is_empty(), "{} cells are red", self.red.len());
        Ok(self.page())
    }

    fn plots(&self) -> Vec<(String, Plot)> {
        let row = |step: &&str| {
            let count = |series: &'static str| {
                self.count(|kind| kind.step == **step && series.split(", ").any(|one| kind.placement == one))
            };
            let bar =
                |series| Some(count(series)).filter(|count| *count > 0).map(|count| Bar::of(count as f64, 0));
            Row { name: (*step).to_owned(), bars: SERIES.map(bar).to_vec() }
        };
        let plot = Plot {
            title: "Cells by step and by where the occupant lives".to_owned(),
            axis: "cells, all of them green".to_owned(),
            series: SERIES.to_vec(),
            arrangement: Arrangement::Stacked,
            rows: self.names(|kind| &kind.step).iter().map(row).collect(),
        };
        vec![(Self::NAME.to_owned(), plot)]
    }
}

impl ZooReport {
    fn page(&self) -> String {
        let large: usize = self.cells.iter().map(|(.., large)| large).sum();
        let mut page = format!(
            "# The disk zoo

This page is written by `cargo xtask zoo --page`.

A cell is one occupant of a disk in one place, behind one state of the partition table, on sectors of 512 or 4096
bytes, and one step of Farrier that destroys or keeps it. Debian's own programs create the occupants; those that need
a kernel module are written from their documentation. Before the step, libblkid must recognise each occupant.

- After a step that destroys, `wipefs` and `blkid` find nothing on the disk and in each former range, examined as a
separate device. None of the identifying bytes of an occupant is left. These are the bytes
  that `wipefs --all` removes from a copy, and those that libblkid does not know: mirrors of superblocks, labels at 1,
  10, 100 and 1000 GiB.
- After a step that keeps, every byte that was to stay is compared, and `partx` sees every partition that it saw.
- Steps on another disk (`erase-beside`, `deploy-beside`) change no byte of the occupant's, and a deployment warns of
  settings there (A17).
- A shared file system is refused by its name, and every byte stays.
- With an unreliable, damaged table a step that keeps something may refuse, before it writes anything.

{}, {large} of them with sectors of 4096 bytes, at commit {}, on {}.

![Number of cells of each step, by the place of the occupant](disk-zoo.svg)

Occupants: {}.

| cells | step | placement | table |
|---|---|---|---|
",
            self.line(),
            self.commit,
            self.machine,
            self.occupants.iter().map(|name| format!("`{name}`")).collect::<Vec<_>>().join(", "),
        );
        // Writing to a string cannot fail.
        for step in self.names(|kind| &kind.step) {
            for placement in PLACEMENTS {
                let is_meant = |kind: &Kind| kind.step == step && kind.placement == placement;
                let states = self
                    .cells
                    .iter()
                    .filter(|(kind, ..)| is_meant(kind))
                    .map(|(kind, ..)| kind.state.as_str());
                let states = states.collect::<Vec<_>>().join(", ");
                if !states.is_empty() {
                    writeln!(page, "| {} | {step} | {placement} | {states} |", self.count(is_meant)).ok();
                }
            }
        }
        page.push_str("\n## Left out\n\n| what | why |\n|---|---|\n");
        for (what, why) in &self.left_out {
            writeln!(page, "| {what} | {why} |").ok();
        }
        page.push_str("\n## What undoing a fix turns red\n\nEach was undone on its own, and the cells were run.\n\n| undone | cells run | red |\n|---|---|---|\n");
        for undone in UNDONE {
            writeln!(page, "| {} | {}, `{}` | {} |", undone.what, undone.cells, undone.only, undone.red).ok();
        }
        page
    }
}
