//! Each operation, each of its requests in turn, each kind of wrong answer.
//!
//! A cell is green when the operation succeeds or its error names the answer, when it then succeeds without help, when what
//! succeeded is done, and when nothing is left that should not be there.

use farrier_conductor::interfaces::InterfaceError;
use futures_util::StreamExt;
use futures_util::stream::iter;
use serde_json::json;
use std::fmt::Debug;
use std::sync::Mutex;
use std::thread::{available_parallelism, scope};
use std::time::Instant;
use tokio::runtime;

/// Says that all operations are to be tried, and where the result is to be written, for `cargo xtask answers`.
const REPORT: &str = "FARRIER_ANSWERS_REPORT";

/// Whose answers alone are to be wrong, separated by commas.
const ONLY: &str = "FARRIER_ANSWERS_ONLY";

/// Cells at a time on each processor: of those that compute, and of those that wait.
const AT_ONCE: [usize; 2] = [2, 24];

/// Fewest cells that show anything.
const FEWEST: usize = 50;

/// An answer that is another one than it should be.
pub trait WrongAnswer: Copy + Debug + Send + 'static {
    fn all() -> Vec<Self>;

    /// What the page of the book calls it.
    fn name(self) -> String;

    /// Whether clients wait for it.
    fn waits(self) -> bool;
}

/// Something that is done, with what is needed before and what must be so then.
pub trait Operation: Copy + Send {
    /// What is asked, and what asks.
    type Stage;
    type Wrong: WrongAnswer;

    /// What is asked.
    fn subject(self) -> &'static str;

    fn name(self) -> &'static str;

    /// A new stage, on which everything is where the operation is begun.
    async fn prepare(self) -> Result<Self::Stage, InterfaceError>;

    async fn run(self, stage: &mut Self::Stage) -> Result<(), InterfaceError>;

    /// Does the same another time, whatever came of the first.
    async fn run_again(self, stage: &mut Self::Stage) -> Result<(), InterfaceError> {
        self.run(stage).await
    }

    /// Whether the operation may fail with right answers too, since the machine lacks something, and is left out then.
    fn may_fail_with_right_answers(self) -> bool {
        false
    }

    /// Why a wrong answer to a request is not tried, where it is not.
    fn why_left_out(self, _request: &str, _wrong: Self::Wrong) -> Option<&'static str> {
        None
    }

    /// The requests so far.
    fn asked(stage: &Self::Stage) -> Vec<String>;

    /// Has the next answer but so many be a wrong one, or all of them be right.
    fn spoil(stage: &Self::Stage, wrong: Option<(usize, Self::Wrong)>);

    /// Whether an error names a wrong answer to a request.
    fn names(wrong: Self::Wrong, request: &str, error: &str) -> bool;

    /// What is not as it must be after a success, or after a failure.
    async fn check(self, stage: &mut Self::Stage, has_succeeded: bool) -> Result<(), String>;

    /// What is left at the end.
    async fn left(self, stage: Self::Stage, wrong: Self::Wrong, request: &str) -> Result<(), String>;
}

/// One wrong answer to one request of an operation.
#[derive(Debug, Clone)]
struct Cell<O: Operation> {
    operation: O,
    /// How many requests of the operation come before.
    before: usize,
    /// What that request is where all answers are right.
    request: String,
    wrong: O::Wrong,
}

impl<O: Operation> Cell<O> {
    /// The cells of an operation.
    ///
    /// # Errors
    ///
    /// Why the operation fails with right answers too.
    async fn all(operation: O) -> Result<Vec<Self>, InterfaceError> {
        let mut stage = operation.prepare().await?;
        let before = O::asked(&stage).len();
        operation.run(&mut stage).await?;
        let requests = O::asked(&stage).into_iter().skip(before).enumerate();
        let each = |(before, request): (usize, String)| {
            let of = move |wrong| Self { operation, before, request: request.clone(), wrong };
            O::Wrong::all().into_iter().map(of)
        };
        Ok(requests.flat_map(each).collect())
    }

    /// What is asked, what is done, the request and the wrong answer.
    fn name(&self) -> [String; 4] {
        let (subject, name) = (self.operation.subject(), self.operation.name());
        [subject.to_owned(), name.to_owned(), self.request.clone(), self.wrong.name()]
    }

    /// Whether the operation succeeds at once.
    ///
    /// # Errors
    ///
    /// What is wrong with how it ends.
    async fn judge(&self) -> Result<bool, String> {
        let Self { operation, before, request, wrong } = self;
        let mut stage = operation.prepare().await.map_err(|error| format!("it could not begin: {error}"))?;
        O::spoil(&stage, Some((*before, *wrong)));
        let first = operation.run(&mut stage).await.map_err(|error| error.to_string());
        O::spoil(&stage, None);
        let failure = first.as_ref().err();
        if let Some(error) = failure.filter(|error| !O::names(*wrong, request, error)) {
            return Err(format!("the error does not name the answer: {error}"));
        }
        let ended = failure.map_or("it succeeds".to_owned(), |error| format!("it fails ({error})"));
        let checked = operation.check(&mut stage, first.is_ok()).await;
        checked.map_err(|what| format!("{ended}, and {what}"))?;
        let again = operation.run_again(&mut stage).await;
        again.map_err(|error| format!("it does not succeed afterwards: {error}"))?;
        let checked = operation.check(&mut stage, true).await;
        checked.map_err(|what| format!("it succeeds afterwards, and {what}"))?;
        operation.left(stage, *wrong, request).await?;
        Ok(first.is_ok())
    }
}

/// A cell, and whether the operation succeeds at once, or what is wrong.
type Judged<O> = (Cell<O>, Result<bool, String>);

/// Judges cells. Each processor has a thread of its own, and as many of them at a time.
fn judged<O: Operation>(cells: Vec<Cell<O>>, at_once: usize) -> Vec<Judged<O>> {
    let cells = Mutex::new(cells.into_iter());
    let some = || {
        let each = iter(std::iter::from_fn(|| cells.lock().unwrap().next()));
        let judged = each.map(async |cell: Cell<O>| {
            let judged = cell.judge().await;
            (cell, judged)
        });
        let runtime = runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(judged.buffer_unordered(at_once).collect::<Vec<_>>())
    };
    scope(|scope| {
        let processors = available_parallelism().map_or(1, usize::from);
        let threads: Vec<_> = (0..processors).map(|_| scope.spawn(some)).collect();
        threads.into_iter().flat_map(|thread| thread.join().unwrap()).collect()
    })
}

/// Tries all cells of operations where a report is wanted, and else those of the usual ones.
pub async fn one_answer_is_wrong<O: Operation>(all: Vec<O>, usual: Vec<O>) {
    let (report, only, begun) = (std::env::var_os(REPORT), std::env::var(ONLY), Instant::now());
    let is_wanted = |operation: &O| {
        only.as_ref().map_or(true, |only| only.split(',').any(|one| one == operation.subject()))
    };
    let operations = if report.is_some() { all } else { usual };
    let (mut cells, mut left_out) = (Vec::new(), Vec::new());
    for operation in operations.into_iter().filter(is_wanted) {
        match Cell::all(operation).await {
            Ok(of) => cells.extend(of),
            Err(error) => {
                assert!(
                    operation.may_fail_with_right_answers(),
                    "{} fails with right answers: {error}",
                    operation.name()
                );
                left_out.push(([operation.subject(), operation.name()].join(", "), error.to_string()))
            }
        }
    }
    cells.retain(|cell| match cell.operation.why_left_out(&cell.request, cell.wrong) {
        None => true,
        Some(why) => {
            left_out.push((cell.name().join(", "), why.to_owned()));
            false
        }
    });
    let count = cells.len();
    let (wait, compute): (Vec<_>, Vec<_>) = cells.into_iter().partition(|cell| cell.wrong.waits());
    let [compute, wait] =
        [(compute, AT_ONCE[0]), (wait, AT_ONCE[1])].map(|(cells, at_once)| judged(cells, at_once));
    let (green, red): (Vec<_>, Vec<_>) =
        compute.into_iter().chain(wait).partition(|(_, judged)| judged.is_ok());
    // Where other work stops this process for seconds, right answers come too late: a cell is red that is so twice.
    let again = judged(red.into_iter().map(|(cell, _)| cell).collect(), 1);
    let again_green = again.iter().filter(|(_, judged)| judged.is_ok()).count();
    let all = green.into_iter().chain(again);
    let mut judged: Vec<_> = all.map(|(cell, judged)| (cell.name(), judged)).collect();
    judged.sort();
    let red: Vec<_> =
        judged.iter().filter_map(|(name, judged)| Some((name, judged.as_ref().err()?))).collect();
    if let Some(report) = report {
        let cell = |([subject, operation, request, wrong], judged): &([String; 4], Result<bool, String>)| {
            let succeeds = *judged.as_ref().unwrap_or(&false);
            json!({"subject": subject, "operation": operation, "request": request, "wrong": wrong,
                "succeeds": succeeds, "red": judged.as_ref().err()})
        };
        let cells: Vec<_> = judged.iter().map(cell).collect();
        let seconds = begun.elapsed().as_secs();
        let summary = json!({"seconds": seconds, "again": again_green, "cells": cells, "left_out": left_out});
        std::fs::write(report, summary.to_string()).unwrap();
    }
    let lines: Vec<_> = red.iter().map(|(name, why)| format!("{}: {why}", name.join(", "))).collect();
    assert!(lines.is_empty(), "{} of {count} cells are red:\n{}", lines.len(), lines.join("\n"));
    assert!(count >= FEWEST || only.is_ok(), "there are {count} cells; left out: {left_out:?}");
}
