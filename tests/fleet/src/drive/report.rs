//! What came of a run.

use super::life::{Ended, Failure};
use crate::agent::AnswerSummary;
use crate::fault::Class;
use crate::file::FleetFile;
use crate::life::Operation;
use serde::Serialize;
use std::collections::BTreeMap;
use std::fmt;

/// Most failures that are told in full.
const MOST_TOLD: usize = 50;

/// How often a class struck, and what came of that.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct ClassFigures {
    /// Faults of lives.
    pub injected: u64,
    /// Those that took effect.
    pub struck: u64,
    /// Lives that reached their goal all the same.
    pub passed: u64,
    /// Lives whose failure was explained.
    pub explained: u64,
}

/// What simulator and conductors have used.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize)]
pub struct Usage {
    /// Seconds of a processor that the simulator has used.
    pub simulator_seconds: f64,
    /// The most memory that the simulator had, in KiB.
    pub simulator_kib: u64,
    /// Seconds of a processor that the conductors of the site have used, where they are in the fleet's hands.
    pub conductor_seconds: f64,
    /// The most memory that one conductor had, in KiB.
    pub conductor_kib: u64,
}

/// What came of a run.
#[derive(Debug, Clone, Serialize)]
pub struct Report {
    /// The seed.
    pub seed: u64,
    /// Machines of the fleet.
    pub machines: u32,
    /// Lives that have ended.
    pub lives: u64,
    /// Those that reached their goal without a person.
    pub passed_at_first: u64,
    /// Those in which no fault took effect, or only faults that pass.
    pub recoverable: u64,
    /// Those of them that reached their goal.
    pub recoverable_passed: u64,
    /// Those that did not reach their goal, and whose failure the conductor explains by its cause.
    pub explained: u64,
    /// Those whose failure it does not explain.
    pub unexplained: u64,
    /// By class.
    pub classes: BTreeMap<Class, ClassFigures>,
    /// Steps that were done twice in an operation without a fault.
    pub done_twice: u64,
    /// Acts on a machine by two at a time.
    pub overlaps: u64,
    /// The failures: those that were expected and explained come last.
    pub failures: Vec<(u64, Vec<String>, Failure)>,
    /// How long the lives took: the middle one and the longest, in seconds.
    pub life_seconds: (f64, f64),
    /// How long all of it took; of a run that was resumed, the last part.
    pub seconds: f64,
    /// What simulator and conductors have used.
    pub processor: Usage,
    /// How long conductors took to answer heartbeats.
    pub heartbeats: AnswerSummary,
    #[serde(skip)]
    lengths: Vec<f64>,
}

impl Report {
    pub(super) fn new(file: &FleetFile) -> Self {
        Self {
            seed: file.seed.0,
            machines: file.machines,
            lives: 0,
            passed_at_first: 0,
            recoverable: 0,
            recoverable_passed: 0,
            explained: 0,
            unexplained: 0,
            classes: BTreeMap::new(),
            done_twice: 0,
            overlaps: 0,
            failures: Vec::new(),
            life_seconds: (0.0, 0.0),
            seconds: 0.0,
            processor: Usage::default(),
            heartbeats: AnswerSummary::default(),
            lengths: Vec::new(),
        }
    }

    pub(super) fn add(&mut self, ended: Ended) {
        let Ended { life, faults, failure, length, twice, overlaps, .. } = ended;
        let (has_passed, is_explained) =
            (failure.is_none(), failure.as_ref().is_some_and(|failure| failure.is_explained));
        let is_recoverable = faults.iter().all(|(fault, struck)| !struck || fault.recoverable);
        self.lives += 1;
        self.passed_at_first += u64::from(has_passed);
        self.recoverable += u64::from(is_recoverable);
        self.recoverable_passed += u64::from(is_recoverable && has_passed);
        self.explained += u64::from(is_explained);
        self.unexplained += u64::from(!has_passed && !is_explained);
        self.done_twice += twice.len() as u64;
        self.overlaps += overlaps.len() as u64;
        for (fault, struck) in &faults {
            let figures = self.classes.entry(fault.class).or_default();
            figures.injected += 1;
            figures.struck += u64::from(*struck);
            figures.passed += u64::from(*struck && has_passed);
            figures.explained += u64::from(*struck && is_explained);
        }
        if let Some(failure) = failure {
            let struck = faults.iter().filter(|(_, struck)| *struck);
            let struck =
                struck.map(|(fault, _)| format!("{} {:?} in {}", fault.class, fault.kind, fault.operation));
            self.failures.push((life, struck.collect(), failure));
            self.failures.sort_by_key(|(life, struck, failure)| {
                (failure.is_explained && !struck.is_empty(), failure.is_explained, *life)
            });
            self.failures.truncate(MOST_TOLD);
        }
        self.lengths.push(length.as_secs_f64());
        self.lengths.sort_by(f64::total_cmp);
        let middle = self.lengths.get(self.lengths.len() / 2).copied().unwrap_or_default();
        self.life_seconds = (middle, self.lengths.last().copied().unwrap_or_default());
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { seed, machines, lives, seconds, passed_at_first, explained, unexplained, .. } = self;
        writeln!(f, "seed {seed}, {machines} machines, {lives} lives in {seconds:.0} s")?;
        writeln!(f, "passed at first {passed_at_first}, explained {explained}, unexplained {unexplained}")?;
        let Self { recoverable, recoverable_passed, done_twice, overlaps, .. } = self;
        writeln!(f, "of {recoverable} lives without a final fault {recoverable_passed} passed at first")?;
        writeln!(f, "done twice {done_twice}, by two at a time {overlaps}")?;
        let (middle, longest) = self.life_seconds;
        writeln!(f, "a life takes {middle:.1} s, at most {longest:.1} s")?;
        let AnswerSummary { count, p50_ms, p99_ms, longest_ms } = self.heartbeats;
        writeln!(
            f,
            "{count} heartbeats, answered within {p50_ms:.1} ms, 99 of 100 within {p99_ms:.1} ms, all within {longest_ms:.0} ms"
        )?;
        let Usage { simulator_seconds, conductor_seconds, conductor_kib, .. } = self.processor;
        writeln!(
            f,
            "processor: simulator {simulator_seconds:.0} s, conductors {conductor_seconds:.0} s; memory of a conductor \
             {} MiB",
            conductor_kib >> 10
        )?;
        writeln!(f, "{:<14}{:>9}{:>9}{:>9}{:>11}", "class", "injected", "struck", "passed", "explained")?;
        for (class, ClassFigures { injected, struck, passed, explained }) in &self.classes {
            writeln!(f, "{:<14}{injected:>9}{struck:>9}{passed:>9}{explained:>11}", class.name())?;
        }
        for (life, faults, failure) in self.failures.iter().filter(|(.., failure)| !failure.is_explained) {
            let operation = failure.operation.map_or("enrol", Operation::name);
            let faults = if faults.is_empty() { "no fault".to_owned() } else { faults.join(", ") };
            writeln!(f, "\nlife {life} ({faults}) failed to {operation}: {}", failure.said)?;
        }
        Ok(())
    }
}
