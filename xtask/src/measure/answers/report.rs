//! What became of the cells, as a page of the book.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;

use anyhow::{Result, ensure};
use serde::{Deserialize, Serialize};

use super::undone::UNDONE;
use crate::book::page::{Measured, machine};
use crate::book::plot::{Arrangement, Bar, Plot, Row};

/// What a program with cells writes.
#[derive(Debug, Deserialize)]
pub struct Outcome {
    seconds: u64,
    /// How many cells were green only when they were judged once more.
    again: usize,
    cells: Vec<Cell>,
    /// What is no cell, and why.
    left_out: Vec<(String, String)>,
}

#[derive(Debug, Deserialize)]
struct Cell {
    subject: String,
    operation: String,
    request: String,
    wrong: String,
    /// Whether the operation succeeds at once; else its error names the answer.
    succeeds: bool,
    red: Option<String>,
}

/// A run of the command.
#[derive(Debug, Serialize, Deserialize)]
pub struct AnswersReport {
    machine: String,
    seconds: u64,
    /// How many cells were green only when they were judged once more.
    again: usize,
    /// What was asked, what was done, how many requests that takes and how many cells there are.
    operations: Vec<(String, String, usize, usize)>,
    /// The wrong answers, in how many cells the operation succeeds, and in how many its error names them.
    wrongs: Vec<(String, usize, usize)>,
    left_out: Vec<(String, String)>,
    /// Those that are red, with what is wrong.
    pub red: Vec<String>,
}

impl AnswersReport {
    /// Counts cells.
    pub fn of(outcomes: Vec<Outcome>) -> Self {
        let (mut seconds, mut again, mut red, mut left_out) = (0, 0, Vec::new(), BTreeSet::new());
        let mut operations = BTreeMap::<_, (BTreeSet<String>, usize)>::new();
        let mut wrongs = BTreeMap::<_, (usize, usize)>::new();
        for outcome in outcomes {
            seconds += outcome.seconds;
            again += outcome.again;
            left_out.extend(outcome.left_out.into_iter().map(|(what, why)| (what, without_place(&why))));
            for Cell { subject, operation, request, wrong, succeeds, red: reason } in outcome.cells {
                if let Some(reason) = reason {
                    red.push(format!("{subject}, {operation}, {request}, {wrong}: {reason}"));
                }
                let (succeeding, naming) = wrongs.entry(wrong).or_default();
                *(if succeeds { succeeding } else { naming }) += 1;
                let (requests, count) = operations.entry((subject, operation)).or_default();
                requests.insert(request);
                *count += 1;
            }
        }
        let of_operation =
            |((subject, operation), (requests, count)): ((String, String), (BTreeSet<_>, usize))| {
                (subject, operation, requests.len(), count)
            };
        Self {
            machine: machine(),
            seconds,
            again,
            operations: operations.into_iter().map(of_operation).collect(),
            wrongs: wrongs.into_iter().map(|(wrong, (succeed, name))| (wrong, succeed, name)).collect(),
            left_out: left_out.into_iter().collect(),
            red,
        }
    }

    /// The sum.
    pub fn line(&self) -> String {
        let cells: usize = self.operations.iter().map(|(.., count)| count).sum();
        let succeed: usize = self.wrongs.iter().map(|(_, succeed, _)| succeed).sum();
        let red = self.red.len();
        format!("{cells} cells in {} s, {red} red; in {succeed} the operation succeeds at once", self.seconds)
    }

    /// What was asked: how many cells each has, and what was done.
    fn subjects(&self) -> BTreeMap<&str, (usize, Vec<&str>)> {
        let mut subjects = BTreeMap::<_, (usize, Vec<&str>)>::new();
        for (subject, operation, _, count) in &self.operations {
            let (sum, operations) = subjects.entry(subject.as_str()).or_default();
            *sum += count;
            operations.push(operation);
        }
        subjects
    }
}

/// A text without the address of a stand-in, which is another one each time.
fn without_place(text: &str) -> String {
    let mut parts = text.split("http://127.0.0.1:");
    let first = parts.next().unwrap_or_default().to_owned();
    parts.fold(first, |text, part| {
        text + "http://…" + part.trim_start_matches(|one: char| one.is_ascii_digit())
    })
}

impl Measured for AnswersReport {
    const NAME: &'static str = "wrong-answers";

    fn text(&self) -> Result<String> {
        ensure!(self.red.is_empty(), "{} cells are red", self.red.len());
        Ok(self.page())
    }

    fn plots(&self) -> Vec<(String, Plot)> {
        let row = |(wrong, succeed, name): &(String, usize, usize)| {
            let bar = |count: usize| (count > 0).then(|| Bar::of(count as f64, 0));
            Row { name: wrong.clone(), bars: vec![bar(*succeed), bar(*name)] }
        };
        let plot = Plot {
            title: "Outcome of an operation with one wrong answer".to_owned(),
            axis: "cells, all of them green".to_owned(),
            series: vec!["it succeeds", "its error names the answer"],
            arrangement: Arrangement::Stacked,
            rows: self.wrongs.iter().map(row).collect(),
        };
        vec![(Self::NAME.to_owned(), plot)]
    }
}

impl AnswersReport {
    fn page(&self) -> String {
        let mut page = format!(
            "# One wrong answer

This page is written by `cargo xtask answers --page`.

A cell is an operation on a machine, one of its requests, and a wrong answer to that request. With HTTP (Redfish, Keystone, Neutron) it is a status 401, 403, 404, 409, 412, 429, 500 or 503, silence, a closed
connection, or HTML. It may also be a half answer, one without its body, one packed with gzip, or one after twice the
timeout. With IPMI it is an error of ipmitool: a wrong password or missing rights, a completion code, no session, no
such cipher suite, or an answer lost after the order. It may also be no output, or a garbled, half, empty or late one. Between the
real ipmitool and OpenIPMI's simulator it is a datagram that is lost, spoilt, cut off, empty, late, or there twice.

- The operation succeeds, or its error names the answer. Done again, it succeeds without help.
- After a success the machine is on or off, its boot device is set, its port is bound, its options are set. An order that
  starts something (reset, NMI) is carried out once.
- Neither a session nor a medium nor a port of Neutron is left, and no note of one after a failure.
- No node goes into maintenance by one wrong answer: that takes three readings of the power in a row that were made and failed, and
  here the second one succeeds.

Times are shortened by settings: requests have 2 s, commands of ipmitool 1 s.

The Redfish BMCs are a stand-in (`own`) and those whose [replies were recorded](bmcs.md#recorded-replies); Keystone and Neutron are stand-ins too. For `IPMI` a program replaces ipmitool.

{}, on {}. {} were green only when they were judged once more: other work may stop a machine for seconds, and right answers
are too late then.

![Outcome of the operation for each wrong answer](wrong-answers.svg)

| cells | what is asked | what is done |
|---|---|---|
",
            self.line(),
            self.machine,
            self.again,
        );
        // Writing to a string cannot fail.
        for (subject, (count, operations)) in self.subjects() {
            writeln!(page, "| {count} | {subject} | {} |", operations.join("; ")).ok();
        }
        page.push_str("\n## Left out\n\n| what | why |\n|---|---|\n");
        for (what, why) in LEFT_OUT
            .iter()
            .map(|(what, why)| (*what, *why))
            .chain(self.left_out.iter().map(|(what, why)| (what.as_str(), why.as_str())))
        {
            writeln!(page, "| {what} | {why} |").ok();
        }
        page.push_str("\n## What undoing a fix turns red\n\nEach was undone on its own, and the tests that are named were run.\n\n| undone | tests | failed |\n|---|---|---|\n");
        for undone in UNDONE {
            writeln!(page, "| {} | {}: {} | {} |", undone.what, undone.count, undone.run, undone.red).ok();
        }
        page
    }
}

/// What no cell of any program could show.
const LEFT_OUT: [(&str, &str); 4] = [
    (
        "Redfish, the session whose beginning is answered too late",
        "its token and its path are unknown; the BMC ends it after its own timeout",
    ),
    ("IPMI, gzip", "answers are never packed"),
    ("IPMI, sensors", "the management interface `ipmitool` has none"),
    ("IPMI and Redfish, validate", "only `driver_info` is checked, without a request"),
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cells_are_counted_by_what_is_done_and_by_what_is_wrong() {
        let cell = |request: &str, wrong: &str, succeeds: bool, red: Option<&str>| Cell {
            subject: "own".into(),
            operation: "power on".into(),
            request: request.into(),
            wrong: wrong.into(),
            succeeds,
            red: red.map(str::to_owned),
        };
        let cells = vec![
            cell("GET /", "401", true, None),
            cell("GET /", "403", false, None),
            cell("POST /", "401", false, Some("why")),
        ];
        let left_out = vec![("x".to_owned(), "http://127.0.0.1:4711/v1 has none".to_owned())];
        let report = AnswersReport::of(vec![Outcome { seconds: 7, again: 0, cells, left_out }]);
        assert_eq!(report.operations, [("own".into(), "power on".into(), 2, 3)]);
        assert_eq!(report.wrongs, [("401".into(), 1, 1), ("403".into(), 0, 1)]);
        assert_eq!(report.red, ["own, power on, POST /, 401: why"]);
        assert_eq!(report.left_out[0].1, "http://…/v1 has none");
        assert_eq!(report.line(), "3 cells in 7 s, 1 red; in 1 the operation succeeds at once");
        assert!(report.text().is_err());
    }
}
