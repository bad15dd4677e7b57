//! What came of a run, and its page.

use std::collections::BTreeMap;

use anyhow::Result;
use serde::{Deserialize, Serialize};

use crate::book::page::{Measured, machine};
use crate::book::plot::{Arrangement, Bar, Plot, Row};

/// The share of lives with recoverable faults that must pass at first.
const PASSED: f64 = 0.999;
/// Faults that must take effect in each class.
const STRUCK: u64 = 250;
/// What a whole run may take, in seconds.
const LONGEST: f64 = 7200.0;
/// Lives of a whole run, of which the other bounds hold.
const WHOLE: u64 = 10_000;

/// What the simulator reports.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct Run {
    seed: u64,
    machines: u32,
    lives: u64,
    passed_at_first: u64,
    recoverable: u64,
    recoverable_passed: u64,
    explained: u64,
    unexplained: u64,
    classes: BTreeMap<String, Class>,
    done_twice: u64,
    overlaps: u64,
    failures: Vec<(u64, Vec<String>, Failure)>,
    seconds: f64,
    processor: Processor,
}

/// How often a class struck, and what came of that.
#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
struct Class {
    injected: u64,
    struck: u64,
    passed: u64,
    explained: u64,
}

/// Why a life did not reach its goal.
#[derive(Debug, Clone, Serialize, Deserialize)]
struct Failure {
    operation: Option<String>,
    said: String,
    is_explained: bool,
}

#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
struct Processor {
    simulator_seconds: f64,
    simulator_kib: u64,
    conductor_seconds: f64,
    conductor_kib: u64,
}

/// A run, as the book tells it.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct FirstPassReport {
    machine: String,
    fleet_file: String,
    rate: f64,
    /// Whether conductor and simulator were built without optimisation.
    is_debug: bool,
    run: Run,
}

impl FirstPassReport {
    pub(super) fn of(run: Run, fleet_file: String, rate: f64, is_debug: bool) -> Self {
        let mut run = run;
        // The others are counted.
        run.failures.retain(|(_, struck, failure)| !failure.is_explained || struck.is_empty());
        Self { machine: machine(), fleet_file, rate, is_debug, run }
    }

    /// The share of lives with recoverable faults, or none, that passed at first.
    fn share(&self) -> f64 {
        self.run.recoverable_passed as f64 / self.run.recoverable.max(1) as f64
    }

    /// What is outside of the budget.
    pub(super) fn faults(&self) -> Vec<String> {
        let Run { lives, unexplained, done_twice, seconds, .. } = self.run;
        let mut faults = Vec::new();
        if self.share() < PASSED {
            faults.push(format!("{:.2} % pass at first, not {} %", self.share() * 100.0, PASSED * 100.0));
        }
        if unexplained > 0 {
            faults.push(format!("{unexplained} failures are not explained"));
        }
        if done_twice > 0 {
            faults.push(format!("{done_twice} steps ran twice"));
        }
        if lives >= WHOLE {
            let few = self.run.classes.iter().filter(|(_, class)| class.struck < STRUCK);
            faults.extend(few.map(|(name, class)| format!("{name} took effect {} times", class.struck)));
            if seconds > LONGEST {
                faults.push(format!("it takes {seconds:.0} s, not {LONGEST}"));
            }
        }
        faults
    }

    /// The figures as they are printed.
    pub(super) fn summary(&self) -> String {
        let Run { lives, recoverable, recoverable_passed, explained, unexplained, seconds, .. } = self.run;
        format!(
            "{lives} lives in {seconds:.0} s: {recoverable_passed} of {recoverable} with recoverable faults or none passed \
             at first ({:.2} %), {explained} failures explained, {unexplained} not\n",
            self.share() * 100.0
        )
    }

    fn table(&self) -> String {
        let mut text =
            "| class | injected | took effect | passed | explained |\n|---|---|---|---|---|\n".to_owned();
        for (name, Class { injected, struck, passed, explained }) in &self.run.classes {
            text += &format!("| `{name}` | {injected} | {struck} | {passed} | {explained} |\n");
        }
        text
    }

    fn failures(&self) -> String {
        if self.run.failures.is_empty() {
            return "Each failure was explained by a fault that took effect.\n".to_owned();
        }
        let mut text =
            "| life | faults that took effect | failed to | the conductor says |\n|---|---|---|---|\n"
                .to_owned();
        for (life, struck, Failure { operation, said, .. }) in &self.run.failures {
            let struck = if struck.is_empty() { "none".to_owned() } else { struck.join(", ") };
            let said = said.lines().next().unwrap_or_default().replace('|', "\\|");
            text +=
                &format!("| {life} | {struck} | {} | {said} |\n", operation.as_deref().unwrap_or("enrol"));
        }
        text
    }
}

impl Measured for FirstPassReport {
    const NAME: &'static str = "first-pass";

    fn text(&self) -> Result<String> {
        let Run { seed, machines, lives, recoverable, recoverable_passed, passed_at_first, .. } = self.run;
        let Run { explained, unexplained, done_twice, overlaps, seconds, .. } = self.run;
        let Processor { simulator_seconds, simulator_kib, conductor_seconds, conductor_kib } =
            self.run.processor;
        let (share, rate) = (self.share() * 100.0, self.rate * 100.0);
        let (table, failures, machine, file) =
            (self.table(), self.failures(), &self.machine, &self.fleet_file);
        let builds = if self.is_debug { "debug builds" } else { "release builds" };
        let (simulator_mib, conductor_mib) = (simulator_kib >> 10, conductor_kib >> 10);
        Ok(format!(
            "# First pass

This page is written by `cargo xtask bench first-pass --page`. Its figures are in [first-pass.json](first-pass.json).

A life is inspection, cleaning, deployment, rebuild and undeployment of one machine. A life passes at first when all five
reach their goal without a person. The machines are [simulated](fleet.md); conductors, database and network are real: two
processes of `farrier serve` over one SQLite file, each in a network namespace of its own.

The run had {lives} lives on {machines} machines, seed {seed}, and each class of faults struck {rate} % of the lives.

| | |
|---|---|
| lives | {lives} |
| passed at first | {passed_at_first} |
| lives with recoverable faults, or none | {recoverable} |
| of these, passed at first | {recoverable_passed} ({share:.2} %) |
| failures explained by a fault that took effect | {explained} |
| failures not explained | {unexplained} |
| steps that ran twice without a fault in their operation | {done_twice} |
| acts of two conductors on one machine in turn | {overlaps} |
| duration | {seconds:.0} s |
| processor time of the simulator | {simulator_seconds:.0} s, {simulator_mib} MiB |
| processor time of both conductors | {conductor_seconds:.0} s, {conductor_mib} MiB at most |

Measured with {builds} on {machine}. The whole run has 10,000 lives, each class at 3 %.

![Faults that took effect, by class](first-pass.svg)

## Faults by class

{table}
A wrong digest, a power failure in a step, and a machine that starts something else are final: Ironic does not repeat the
operation, and neither does Farrier by default. The tenth class of the fault model, `database`, strikes PostgreSQL. This
site has SQLite, so the simulator refuses that class, and this page has nine classes.

## Failures that should not be

{failures}
## What changed to get there

- A BMC that takes a change of media and forgets it gets the order again.
- The error of a machine that started something else differs from that of lost DHCP: the error says that no read of its medium is recorded.
  The trace of the boot is in the database, so the conductor that takes a node over knows it too.
- Two conductors that start at the same time over a new database make its tables once. Before, one of them ended.
- A database that is locked by a conductor that stands still is answered with 503 and `Retry-After`, not with 500.
- The explanation of a node reads the power now, and the record of a machine that went off says so.
- A client with more connections than the listener allows gets 503 with `Retry-After`, and is not cut off.
- Requests to agents and BMCs name the conductor, so the journal distinguishes two conductors.

## The fleet file

```toml
{file}```
"
        ))
    }

    fn plots(&self) -> Vec<(String, Plot)> {
        let row = |(name, class): (&String, &Class)| Row {
            name: name.clone(),
            bars: [class.struck, class.passed, class.explained]
                .map(|count| Some(Bar::of(count as f64, 0)))
                .to_vec(),
        };
        let plot = Plot {
            title: "Faults that took effect, and what came of their lives".to_owned(),
            axis: "lives".to_owned(),
            series: vec!["took effect", "passed", "failed and explained"],
            arrangement: Arrangement::Grouped,
            rows: self.run.classes.iter().map(row).collect(),
        };
        vec![(Self::NAME.to_owned(), plot)]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn report(lives: u64, passed: u64, unexplained: u64, struck: u64) -> FirstPassReport {
        let class = Class { injected: 300, struck, passed: 1, explained: 2 };
        let failure = |is_explained| Failure {
            operation: Some("deploy".into()),
            said: "no a|b\nc".into(),
            is_explained,
        };
        let run = Run {
            seed: 1,
            machines: 4,
            lives,
            passed_at_first: passed,
            recoverable: lives,
            recoverable_passed: passed,
            explained: 0,
            unexplained,
            classes: BTreeMap::from([("bmc".to_owned(), class)]),
            done_twice: 0,
            overlaps: 0,
            failures: vec![
                (3, vec!["bmc Hangs in deploy".into()], failure(true)),
                (4, vec![], failure(false)),
            ],
            seconds: 10.0,
            processor: Processor {
                simulator_seconds: 1.0,
                simulator_kib: 2048,
                conductor_seconds: 2.0,
                conductor_kib: 4096,
            },
        };
        FirstPassReport::of(run, "seed = 1\n".to_owned(), 0.03, false)
    }

    #[test]
    fn every_bound_can_be_missed() {
        assert_eq!(
            report(1000, 999, 0, 1).faults(),
            Vec::<String>::new(),
            "a part of a run has fewer faults"
        );
        assert_eq!(report(10_000, 9990, 0, 250).faults(), Vec::<String>::new());
        let missed = report(10_000, 9989, 1, 249).faults();
        assert_eq!(missed.len(), 3, "{missed:?}");
        assert!(missed[0].starts_with("99.89 % pass at first"), "{missed:?}");
    }

    #[test]
    fn the_page_tells_figures_file_and_failures() {
        let report = report(1000, 999, 1, 260);
        let text = report.text().unwrap();
        for part in [
            "| `bmc` | 300 | 260 | 1 | 2 |",
            "| 4 | none | deploy | no a\\|b |",
            "(99.90 %)",
            "```toml\nseed = 1\n```",
        ] {
            assert!(text.contains(part), "{part}: {text}");
        }
        assert!(!text.contains("| 3 |"), "explained failures are counted alone");
        assert_eq!(report.plots().len(), 1);
    }
}
