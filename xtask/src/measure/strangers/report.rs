//! What was measured, as a page of the book.

use std::fmt::Write;
use std::path::Path;

use anyhow::{Result, ensure};
use farrier_tests::strangers::Row as Measure;
use farrier_tests::strangers::shape::Shape;
use serde::{Deserialize, Serialize};

use super::undone::UNDONE;
use crate::book::page::{self, Measured, machine};
use crate::book::plot::{Arrangement, Bar, Plot, Row};
use crate::host::workspace::{commit, read_json};

/// What is no cell, and why.
const LEFT_OUT: &[(&str, &str)] = &[
    (
        "JSON in the query of a request",
        "there is none; the head of a request has 32 KiB at most, and names and values of a query stay texts",
    ),
    (
        "config drives of 64 MiB in an administrator's order to deploy",
        "the order may have 96 MiB, and its text takes that; its values are counted before they are read as any other's",
    ),
    (
        "a command of 88 MiB to an agent may add its own length",
        "it may be a config drive; every holder of the token can write the disks of that machine",
    ),
    (
        "the answer to what an agent posts of its machine, and to calls of its steps",
        "they are read by the same function as the other answers to an agent; for the first, the agent would examine the host \
         that runs the test",
    ),
    (
        "the wait for an agent while its conductor answers",
        "only that conductor sends requests to an agent, and it answers before its heartbeat",
    ),
    (
        "JSON of images, of the metadata of an image, or of configuration files",
        "Farrier reads none of the first two; the last are the operator's own files",
    ),
];

/// A run of the command.
#[derive(Debug, Serialize, Deserialize)]
pub struct StrangersReport {
    machine: String,
    /// What was measured, as Git names it.
    commit: String,
    rows: Vec<Measure>,
    /// The same of a program from before.
    earlier: Vec<Measure>,
}

impl StrangersReport {
    /// What was measured of the tree at `root`, beside what was measured of an earlier one: what is given, or what the
    /// figures of the page have.
    ///
    /// # Errors
    ///
    /// Git does not tell the commit, or the earlier figures cannot be read.
    pub fn of(root: &Path, rows: Vec<Measure>, earlier: Option<Result<Vec<Measure>>>) -> Result<Self> {
        let kept = page::figures::<Self>(root);
        let earlier = match earlier {
            Some(earlier) => earlier?,
            None if kept.exists() => read_json::<Self>(&kept)?.earlier,
            None => Vec::new(),
        };
        Ok(Self { machine: machine(), commit: commit(root)?, rows, earlier })
    }

    /// What was measured, as tables.
    pub fn tables(&self) -> String {
        format!("{}\n{}", self.structures(), self.shares())
    }

    /// What is sent by how it was called, with one row for each shape of JSON.
    fn sent(&self) -> Vec<(&str, &str)> {
        let mut sent: Vec<_> = self.rows.iter().filter_map(|row| Some((&*row.process, what(row)?))).collect();
        let mut seen = Vec::new();
        sent.retain(|one| {
            !seen.contains(one) && {
                seen.push(*one);
                true
            }
        });
        sent.sort_by_key(|(process, _)| *process != "conductor");
        sent
    }

    fn structures(&self) -> String {
        let mut text = "| who | reads | may add |".to_owned();
        Shape::ALL.iter().for_each(|shape| text += &format!(" {} |", shape.name()));
        text += " nests, before | others wait |\n|---|---|---|";
        text += &"---|".repeat(Shape::ALL.len() + 2);
        text.push('\n');
        for (process, sent) in self.sent() {
            let of = |rows: &[Measure], shape: Shape| {
                let mut rows = rows.iter();
                rows.find(|row| row.process == process && what(row) == Some(sent) && is_of(row, shape))
                    .cloned()
            };
            let now: Vec<_> = Shape::ALL.iter().map(|shape| of(&self.rows, *shape)).collect();
            let allowed = now.iter().flatten().map(|row| row.allowed_kib).max().unwrap_or_default();
            write!(text, "| {process} | {sent} | {} |", mib(allowed)).ok();
            for row in now.iter().chain([&of(&self.earlier, Shape::Nests)]) {
                match row {
                    Some(row) if row.error.is_none() => {
                        write!(text, " {} → {} |", mib(row.before_kib), mib(row.after_kib)).ok();
                    }
                    Some(_) => text.push_str(" ended |"),
                    None => text.push_str(" |"),
                }
            }
            let longest = |wait: fn(&Measure) -> f64| now.iter().flatten().map(wait).fold(0.0, f64::max);
            let (alone, honest) = (longest(|row| row.alone_ms), longest(|row| row.honest_ms));
            match honest > 0.0 {
                true => writeln!(text, " {alone:.0} → {honest:.0} ms |").ok(),
                false => writeln!(text, " |").ok(),
            };
        }
        text
    }

    fn shares(&self) -> String {
        let mut text = "| who takes what | MiB before → after | others wait without | others wait meanwhile | may wait |\n|---|---|---|---|---|\n".to_owned();
        for row in self.rows.iter().filter(|row| what(row).is_none()) {
            writeln!(
                text,
                "| {} | {} → {} | {:.0} ms | {:.0} ms | {:.0} ms |",
                row.stranger,
                mib(row.before_kib),
                mib(row.after_kib),
                row.alone_ms,
                row.honest_ms,
                row.honest_limit_ms
            )
            .ok();
        }
        text
    }
}

impl Measured for StrangersReport {
    const NAME: &'static str = "strangers";

    fn text(&self) -> Result<String> {
        let faults: Vec<_> = self.rows.iter().filter_map(Measure::fault).collect();
        ensure!(faults.is_empty(), "strangers take too much: {faults:?}");
        let mut page = format!(
            "# Strangers

This page is written by `cargo xtask strangers --page`.

Every host that reaches the ramdisk API can send requests, every machine of the site has the token of its agent, and
conductor, agent and operators ask services that others may hold. This page measures the resources that each can take, with `farrier serve`, `farrier-agent` and `farrier node list` as processes (debug builds), and with clients in network namespaces.

![Memory of a process after nested JSON, before the limit of values and now](strangers.svg)

## JSON that is small as text and large as values

Each text has the maximum length: nested objects, a long list of numbers or of empty lists, an object with many keys,
the same key repeated, or four very long keys. The table has the most memory of the process (`VmHWM`)
before and after, in MiB. Without credentials a stranger may add 16 MiB; with the token of an agent, or as a configured service of the conductor, 64 MiB. *Before* is commit 451e8c1, which limited bytes alone. The last column is the longest time
that another client waited: before the stranger came, and meanwhile.

{}
## What clients share

One address, or all addresses of a /64 network, take all that they can get and hold it; forged senders ask by TFTP and never
answer. Sixteen honest clients, each with an address of its own, ask for the same four times each. The figures are the longest
wait of any of them, without the stranger and with it.

{}
Measured at commit {} on {}.

## Left out

| what | why |
|---|---|
",
            self.structures(),
            self.shares(),
            self.commit,
            self.machine,
        );
        // Writing to a string cannot fail.
        for (what, why) in LEFT_OUT {
            writeln!(page, "| {what} | {why} |").ok();
        }
        page.push_str("\n## What undoing a fix turns red\n\nEach was undone on its own, and the row was run.\n\n| undone | row | what was seen |\n|---|---|---|\n");
        for undone in UNDONE {
            writeln!(page, "| {} | {} | {} |", undone.what, undone.row, undone.seen).ok();
        }
        Ok(page)
    }

    fn plots(&self) -> Vec<(String, Plot)> {
        let added = |rows: &[Measure], process: &str, sent: &str| {
            let mut rows = rows.iter();
            let row = rows.find(|row| {
                row.process == process
                    && what(row) == Some(sent)
                    && is_of(row, Shape::Nests)
                    && row.error.is_none()
            })?;
            Some(Bar::of(row.added_kib() as f64 / 1024.0, 1))
        };
        let row = |(process, sent): &(&str, &str)| Row {
            name: format!("{process}: {sent}"),
            bars: vec![added(&self.earlier, process, sent), added(&self.rows, process, sent)],
        };
        let plot = Plot {
            title: "Memory that nested JSON adds to a process".to_owned(),
            axis: "MiB".to_owned(),
            series: vec!["before values were limited", "now"],
            arrangement: Arrangement::Grouped,
            rows: self.sent().iter().map(row).collect(),
        };
        vec![(Self::NAME.to_owned(), plot)]
    }
}

/// What was sent, where it has one of the shapes of JSON.
fn what(row: &Measure) -> Option<&str> {
    let (what, shape) = row.stranger.rsplit_once(": ")?;
    Shape::ALL.iter().any(|one| one.name() == shape).then_some(what)
}

fn is_of(row: &Measure, shape: Shape) -> bool {
    row.stranger.rsplit_once(": ").is_some_and(|(_, name)| name == shape.name())
}

fn mib(kib: u64) -> String {
    format!("{:.0}", kib as f64 / 1024.0)
}
