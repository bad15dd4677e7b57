//! One wrong answer: each sequence, each of its requests in turn, each kind of wrong answer.
//!
//! A cell is green when the sequence succeeds or its error names the answer, when it then succeeds without help, and when
//! neither a session nor a medium is left.

use super::sequence::{Sequence, has_medium, line, stage};
use crate::stand_in::wrong::Wrong;
use farrier_conductor::interfaces::{InterfaceError, PowerInterface};
use futures_util::StreamExt;
use futures_util::stream::iter;
use serde_json::json;
use std::time::Instant;

/// Says that all sequences and all BMCs are to be tried, and where the result is to be written, for `cargo xtask answers`.
const REPORT: &str = "FARRIER_ANSWERS_REPORT";

/// Cells at a time: of those that compute, and of those that wait.
const AT_ONCE: [usize; 2] = [4, 48];

/// The BMCs whose replies were recorded or published.
const MOCKUPS: [&str; 14] = [
    "dell-idrac10",
    "dell-idrac9",
    "dmtf-rackmount1",
    "fujitsu-irmc",
    "hpe-cray-ex235a",
    "hpe-ilo5",
    "hpe-ilo6",
    "hpe-ilo7",
    "lenovo-se450",
    "lenovo-xcc",
    "nokia-ami",
    "openbmc-gb300",
    "supermicro-x10",
    "supermicro-x12",
];

/// One wrong answer to one request of a sequence.
#[derive(Debug, Clone)]
struct Cell {
    mockup: Option<&'static str>,
    sequence: Sequence,
    /// How many requests of the sequence come before.
    before: usize,
    /// What that request is where all answers are right.
    request: String,
    wrong: Wrong,
}

/// The cells of a sequence; none where the machine cannot do that.
async fn cells(mockup: Option<&'static str>, sequence: Sequence) -> Vec<Cell> {
    let stage = stage(mockup).await;
    if sequence.prepare(&stage).await.is_err() {
        return Vec::new();
    }
    stage.power.shut_down().await;
    let before = stage.bmc.asked().len();
    if sequence.run(&stage).await.is_err() {
        return Vec::new();
    }
    let requests: Vec<_> = stage.bmc.asked().into_iter().skip(before).enumerate().collect();
    let each = |(before, request): (usize, String)| {
        Wrong::ALL.map(|wrong| Cell { mockup, sequence, before, request: request.clone(), wrong })
    };
    requests.into_iter().flat_map(each).collect()
}

/// Whether an error names an answer.
fn is_named(wrong: Wrong, request: &str, error: &InterfaceError) -> bool {
    let text = error.to_string();
    let says = |parts: &[&str]| parts.iter().any(|part| text.contains(part));
    let path = request.rsplit(' ').next().unwrap_or_default();
    match wrong {
        Wrong::Status(401) => says(&["401", "refuses user"]),
        Wrong::Status(status) => says(&[&status.to_string()]),
        Wrong::Silence | Wrong::Late => says(&["not within"]) && says(&[path]),
        Wrong::Closed => says(&["does not answer"]) && says(&[path]),
        Wrong::Page | Wrong::Half => {
            says(&["what is no JSON", "what is no resource", "a session that has no token"])
        }
        Wrong::Empty => says(&["what is no resource", "a session that has no token"]),
        Wrong::Packed => false,
    }
}

/// What is wrong with how a cell ended.
async fn judge(cell: &Cell) -> Result<(), String> {
    let stage = stage(cell.mockup).await;
    cell.sequence.prepare(&stage).await.map_err(|error| format!("it could not begin: {error}"))?;
    stage.power.shut_down().await;
    stage.bmc.inner().wrongs.after(cell.before, cell.wrong);
    if let Err(error) = cell.sequence.run(&stage).await
        && !is_named(cell.wrong, &cell.request, &error)
    {
        return Err(format!("the error does not name the answer: {error}"));
    }
    stage.bmc.inner().wrongs.at = None;
    let again = cell.sequence.run(&stage).await;
    again.map_err(|error| format!("it does not succeed afterwards: {error}"))?;
    if cell.sequence == Sequence::Media && has_medium(&stage).await {
        return Err("a medium is left in its drive".to_owned());
    }
    stage.power.shut_down().await;
    // Nobody knows of a session whose beginning was answered too late.
    let unknown = usize::from(cell.wrong == Wrong::Late && cell.request.ends_with("/Sessions"));
    match stage.bmc.inner().open_sessions() {
        open if open <= unknown => Ok(()),
        open => Err(format!("{open} sessions are left")),
    }
}

#[tokio::test]
async fn one_answer_is_wrong() {
    let report = std::env::var_os(REPORT);
    let begun = Instant::now();
    let others = MOCKUPS.iter().filter(|_| report.is_some()).copied().map(Some);
    let mut all = Vec::new();
    for mockup in [None].into_iter().chain(others) {
        let sequences = if report.is_some() { &Sequence::ALL[..] } else { &Sequence::USUAL };
        for sequence in sequences {
            all.extend(cells(mockup, *sequence).await);
        }
    }
    let count = all.len();
    let (wait, compute): (Vec<_>, Vec<_>) = all.into_iter().partition(|cell| cell.wrong.waits());
    let mut judged = Vec::new();
    for (cells, at_once) in [compute, wait].into_iter().zip(AT_ONCE) {
        let cells = iter(cells).map(async |cell| {
            let subject = cell.mockup.unwrap_or("own");
            let judged = judge(&cell).await;
            (line(subject, cell.sequence, &cell.request, cell.wrong), judged)
        });
        judged.extend(cells.buffer_unordered(at_once).collect::<Vec<_>>().await);
    }
    let red: Vec<_> =
        judged.iter().filter_map(|(line, judged)| Some((line, judged.as_ref().err()?))).collect();
    if let Some(report) = report {
        let cells: Vec<_> = judged.iter().map(|(line, _)| line).collect();
        let told = json!({"seconds": begun.elapsed().as_secs(), "cells": cells, "red": red});
        std::fs::write(report, told.to_string()).unwrap();
    }
    let lines: Vec<_> = red.iter().map(|(line, why)| format!("{line}: {why}")).collect();
    assert!(red.is_empty() && count > 50, "{} of {count} cells are red:\n{}", red.len(), lines.join("\n"));
}
