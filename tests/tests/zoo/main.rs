//! The disk zoo: whatever may live on a disk, wherever it may live, and every step of Farrier that destroys or keeps.
//!
//! A *cell* is an [occupant](occupants::OCCUPANTS) × a [placement](disks::Placement) × a [state](disks::State) of the
//! partition table × the sector size × a [step](steps::Step). Each of the four tables takes a new row as one entry.
//!
//! ```text
//! occupants ─ templates ─┐                                    ┌ nothing is left: blkid, wipefs, every mark
//! placements × states ───┴ disks ─▶ loop device ─▶ step ─▶ judge
//!                                                             └ nothing is lost: every byte, partx
//! ```
//!
//! * Debian's own programs make the occupants, once for each sector size; what needs a kernel module is written
//!   [by hand](by_hand) from its documentation. libblkid must recognise each before any step, and `wipefs --all` on a
//!   copy tells the bytes by which it does: these *marks*, and those that an entry names beside them, must be gone.
//! * [`tables`] writes partition tables byte by byte, so that they can be damaged, stale or half.
//! * The disk is a sparse file on a loop device with the sectors of the cell. Steps come to it as in the agent: by the
//!   plan and the guard. Nothing but the public API of `farrier-disk` is used, and no other disk is looked at.
//! * Afterwards `wipefs`, `blkid` and `partx` look at the whole disk and at every range in which somebody lived, each as
//!   a device of its own, and all bytes that were to stay are compared.
//!
//! `cargo xtask zoo` runs all cells and writes the page of the book; the tier `disk` of `cargo xtask test` runs some
//! hundred of them.

#![allow(clippy::unwrap_used)]

mod by_hand;
mod cells;
mod content;
mod disks;
mod judge;
mod kernel;
mod occupants;
mod stage;
mod steps;
mod tables;
mod templates;

use cells::{Cell, Verdict};
use serde_json::{Value, json};
use std::time::Instant;

/// `all`, or words that cells must have in their names; the quick part if there is none.
const FILTER: &str = "FARRIER_ZOO";
/// The file for what came of it.
const REPORT: &str = "FARRIER_ZOO_REPORT";

#[test]
fn loop_disk_zoo() {
    let filter = std::env::var(FILTER);
    let cells = match filter.as_deref() {
        Err(_) => Cell::quick(),
        Ok("all") => Cell::all(),
        Ok(words) => Cell::all().into_iter().filter(|cell| cell.is_named(words)).collect(),
    };
    assert!(!cells.is_empty(), "no cell has a name with {filter:?}");
    let start = Instant::now();
    let verdicts = cells::run(&cells).unwrap_or_else(|error| panic!("{error:#}"));
    let seconds = start.elapsed().as_secs_f64();
    let red = verdicts.iter().filter(|(_, verdict)| verdict.is_err()).count();
    println!("{} cells in {seconds:.0} s, {red} red", verdicts.len());
    if let Ok(file) = std::env::var(REPORT) {
        std::fs::write(file, serde_json::to_vec(&report(&verdicts, seconds)).unwrap()).unwrap();
    }
    assert_eq!(red, 0, "cells are red");
}

fn report(verdicts: &[(Cell, Verdict)], seconds: f64) -> Value {
    let cell = |(cell, verdict): &(Cell, Verdict)| {
        let Cell { occupant, placement, state, sector, step } = cell;
        json!({
            "occupant": occupant.name,
            "placement": placement.name(),
            "state": state.name(),
            "sector_size": sector,
            "step": step.name(),
            "red": verdict.as_ref().err(),
        })
    };
    json!({
        "seconds": seconds,
        "cells": verdicts.iter().map(cell).collect::<Vec<_>>(),
        "left_out": occupants::LEFT_OUT,
    })
}

#[test]
fn every_cell_has_a_name_of_its_own_and_the_zoo_is_large_enough() {
    let mut names: Vec<_> = Cell::all().iter().map(ToString::to_string).collect();
    let count = names.len();
    names.sort();
    names.dedup();
    assert_eq!(names.len(), count);
    println!("{count} cells");
    assert!(count >= 1500, "{count}");
    let quick = Cell::quick().len();
    assert!((70..300).contains(&quick), "{quick}");
}

/// mdadm reads what is written by hand as it reads its own.
#[test]
fn loop_arrays_that_are_written_by_hand_are_what_mdadm_says_they_are() {
    for (name, expected) in [
        ("md-0.90", "Version : 0.90"),
        ("md-1.0", "Name : stable:data"),
        ("md-1.1", "Name : stable:data"),
        ("md-1.2", "Name : stable:data"),
        ("imsm", "Intel Raid ISM Cfg Sig."),
        ("ddf", "Version : 01.02.00"),
    ] {
        let occupant = occupants::OCCUPANTS.iter().find(|occupant| occupant.name == name).unwrap();
        let template = templates::Template::make(occupant, 512).unwrap();
        let file = tempfile::NamedTempFile::new().unwrap();
        file.as_file().set_len(template.size).unwrap();
        template.content.write(file.as_file()).unwrap();
        let device = farrier_linux::loop_device::LoopDevice::attach(file.path(), 512).unwrap();
        let said = judge::tool(&["mdadm", "--examine", &device.path().display().to_string()]);
        let said = said.unwrap_or_else(|error| panic!("{name}: {error:#}"));
        assert!(said.contains(expected), "{name}: {said}");
        assert!(!said.contains("expected") && !said.contains("mismatch"), "{name}: {said}");
    }
}
