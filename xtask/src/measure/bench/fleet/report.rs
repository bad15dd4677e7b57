//! The figures, their bounds, and the page about them.

use anyhow::Result;
use serde::{Deserialize, Serialize};

use super::super::conductors::RIVAL;
use super::usage::Usage;
use crate::book::page::{Measured, machine};
use crate::book::plot::{Arrangement, Bar, Plot, Row};
use farrier_load::Figures;

/// By how much the cost of a node may grow from the fewest to the most.
const GROWTH: f64 = 1.2;
/// What an idle estate may take of a processor.
const IDLE: f64 = 0.1;
/// What its conductor may have of memory, in KiB.
const IDLE_KIB: u64 = 200 << 10;
/// The longest wait for the answer to a heartbeat while all machines are cleaned, in milliseconds.
const LONGEST_MS: f64 = 1000.0;

/// Heartbeats as fast as they are taken.
#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
pub(super) struct Load {
    pub(super) nodes: u64,
    pub(super) conductors: usize,
    pub(super) answers: Figures,
    pub(super) seconds: u64,
    /// What the conductors used.
    pub(super) used: Usage,
    /// Seconds of a processor that the clients used.
    pub(super) client_seconds: f64,
}

impl Load {
    /// Milliseconds of a processor for one heartbeat.
    fn cost_ms(&self) -> f64 {
        self.used.processor_seconds * 1000.0 / self.count()
    }

    /// KiB that were written for one heartbeat.
    fn written_kib(&self) -> f64 {
        self.used.written_bytes as f64 / 1024.0 / self.count()
    }

    fn count(&self) -> f64 {
        (self.answers.per_second * self.seconds as f64).max(1.0)
    }
}

/// A conductor that nobody calls.
#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
pub(super) struct Idle {
    pub(super) nodes: u64,
    pub(super) seconds: f64,
    pub(super) used: Usage,
}

impl Idle {
    fn share(&self) -> f64 {
        self.used.processor_seconds / self.seconds.max(1.0)
    }
}

/// What the simulator reports of one operation of all machines.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct Drive {
    passed_at_first: u64,
    seconds: f64,
    heartbeats: Answers,
    processor: Processor,
}

#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
struct Answers {
    count: usize,
    p50_ms: f64,
    p99_ms: f64,
    longest_ms: f64,
}

#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
struct Processor {
    simulator_seconds: f64,
    conductor_seconds: f64,
    conductor_kib: u64,
}

/// Machines that are inspected, and then cleaned at once.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct Storm {
    pub(super) machines: u32,
    pub(super) inspect: Drive,
    pub(super) clean: Drive,
}

/// All figures, as the book tells them.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct FleetReport {
    machine: String,
    loads: Vec<Load>,
    ironic: Option<Load>,
    idle: Idle,
    storm: Storm,
}

impl FleetReport {
    pub(super) fn new(loads: Vec<Load>, ironic: Option<Load>, idle: Idle, storm: Storm) -> Self {
        Self { machine: machine(), loads, ironic, idle, storm }
    }

    /// By how much a heartbeat costs more with the most nodes than with the fewest, with one conductor.
    fn growth(&self) -> f64 {
        let mut alone: Vec<_> = self.loads.iter().filter(|load| load.conductors == 1).collect();
        alone.sort_by_key(|load| load.nodes);
        match (alone.first(), alone.last()) {
            (Some(few), Some(many)) => many.cost_ms() / few.cost_ms().max(f64::MIN_POSITIVE),
            _ => 1.0,
        }
    }

    /// What is outside of the budget.
    pub(super) fn faults(&self) -> Vec<String> {
        let mut faults = Vec::new();
        if self.growth() > GROWTH {
            faults.push(format!("a heartbeat costs {:.2} times as much with the most nodes", self.growth()));
        }
        if self.idle.share() > IDLE {
            faults.push(format!("an idle estate takes {:.2} of a processor", self.idle.share()));
        }
        if self.idle.used.resident_kib > IDLE_KIB {
            faults.push(format!("an idle conductor has {} MiB", self.idle.used.resident_kib >> 10));
        }
        let Storm { machines, inspect, clean } = &self.storm;
        for (operation, drive) in [("inspected", inspect), ("cleaned", clean)] {
            if drive.passed_at_first < u64::from(*machines) {
                faults.push(format!("{} of {machines} machines are {operation}", drive.passed_at_first));
            }
            let longest = drive.heartbeats.longest_ms;
            if longest > LONGEST_MS {
                faults
                    .push(format!("a heartbeat is answered after {longest:.0} ms while all are {operation}"));
            }
        }
        faults
    }

    /// The figures as they are printed.
    pub(super) fn summary(&self) -> String {
        format!("{}\n{}\n{}", self.load_table(), self.idle_line(), self.storm_table())
    }

    fn load_table(&self) -> String {
        let mut text = "| conductors | nodes | heartbeats per second | p50 | p99 | processor time of one | written for one | \
            memory | processor of the clients |\n|---|---|---|---|---|---|---|---|---|\n"
            .to_owned();
        let own = self.loads.iter().map(|load| (format!("{} × Farrier", load.conductors), load));
        let rival = self.ironic.iter().map(|load| (format!("Ironic {RIVAL}"), load));
        for (name, load) in own.chain(rival) {
            let Figures { per_second, p50_ms, p99_ms, .. } = load.answers;
            text += &format!(
                "| {name} | {} | {per_second:.0} | {p50_ms:.1} ms | {p99_ms:.1} ms | {:.2} ms | {:.1} KiB | {} MiB | \
                 {:.1} s |\n",
                load.nodes,
                load.cost_ms(),
                load.written_kib(),
                load.used.resident_kib >> 10,
                load.client_seconds,
            );
        }
        text
    }

    fn idle_line(&self) -> String {
        format!(
            "An idle conductor with {} nodes took {:.3} of a processor in {:.0} s, with its database, and had {} MiB.\n",
            self.idle.nodes,
            self.idle.share(),
            self.idle.seconds,
            self.idle.used.resident_kib >> 10
        )
    }

    fn storm_table(&self) -> String {
        let mut text = "| operation | machines | duration | heartbeats | p50 | p99 | longest | processor of the conductor | \
            processor of the simulator | memory of the conductor |\n|---|---|---|---|---|---|---|---|---|---|\n"
            .to_owned();
        for (name, drive) in [("inspection", &self.storm.inspect), ("cleaning", &self.storm.clean)] {
            let Drive { passed_at_first, seconds, heartbeats, processor } = drive;
            let Answers { count, p50_ms, p99_ms, longest_ms } = heartbeats;
            let Processor { simulator_seconds, conductor_seconds, conductor_kib } = processor;
            text += &format!(
                "| {name} | {passed_at_first} | {seconds:.0} s | {count} | {p50_ms:.1} ms | {p99_ms:.1} ms | {longest_ms:.0} ms \
                 | {conductor_seconds:.0} s | {simulator_seconds:.0} s | {} MiB |\n",
                conductor_kib >> 10
            );
        }
        text
    }
}

impl Measured for FleetReport {
    const NAME: &'static str = "fleet-benchmark";

    fn text(&self) -> Result<String> {
        let (loads, idle, storm, machine) =
            (self.load_table(), self.idle_line(), self.storm_table(), &self.machine);
        let (growth, machines) = (self.growth(), self.storm.machines);
        Ok(format!(
            "# Fleet benchmark

This page is written by `cargo xtask bench fleet --page`. Its figures are in [fleet-benchmark.json](fleet-benchmark.json).
[Limits of scale](limits.md) has the limits.

Measured on {machine}.

## Heartbeats

16 clients send heartbeats as fast as they are answered. All conductors keep the same nodes on SQLite, without power sync.
A heartbeat costs {growth:.2} times as much processor time with the most nodes as with the fewest.

{loads}
![Heartbeats per second](fleet-benchmark.svg)

## Idle estate

{idle}
## {machines} machines at once

The machines are [simulated](fleet.md), with durations shortened ten times. All are enrolled and inspected at once in one run, and
enrolled and cleaned at once in another. The conductor is one process over SQLite.

{storm}
## Public figures

- NVIDIA's infra-controller ingests 3,000 simulated machines (1,000 hosts with two DPUs each) in about 25 minutes. The row
  *inspection* has the same: enrolment and inspection of each machine.
- Its sizing guide recommends five servers for about 5,000 hosts, each with 48 cores and 512 GiB.
"
        ))
    }

    fn plots(&self) -> Vec<(String, Plot)> {
        let row =
            |name: String, load: &Load| Row { name, bars: vec![Some(Bar::of(load.answers.per_second, 0))] };
        let own = self.loads.iter().map(|load| {
            let plural = if load.conductors == 1 { "" } else { "s" };
            row(format!("{} conductor{plural}, {} nodes", load.conductors, load.nodes), load)
        });
        let rival = self.ironic.iter().map(|load| row(format!("Ironic {RIVAL}, {} nodes", load.nodes), load));
        let plot = Plot {
            title: "Heartbeats per second".to_owned(),
            axis: "heartbeats per second".to_owned(),
            series: vec!["answered"],
            arrangement: Arrangement::Grouped,
            rows: own.chain(rival).collect(),
        };
        vec![(Self::NAME.to_owned(), plot)]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn load(nodes: u64, conductors: usize, processor_seconds: f64) -> Load {
        let answers = Figures { per_second: 100.0, mean_ms: 1.0, p50_ms: 1.0, p99_ms: 2.0, turned_away: 0 };
        let used = Usage { processor_seconds, written_bytes: 1 << 20, resident_kib: 50 << 10 };
        Load { nodes, conductors, answers, seconds: 10, used, client_seconds: 1.0 }
    }

    fn report(many: f64, idle: f64, kib: u64, longest_ms: f64, passed: u64) -> FleetReport {
        let heartbeats = Answers { count: 5, p50_ms: 1.0, p99_ms: 2.0, longest_ms };
        let processor = Processor { simulator_seconds: 1.0, conductor_seconds: 2.0, conductor_kib: 3 << 10 };
        let drive = Drive { passed_at_first: passed, seconds: 60.0, heartbeats, processor };
        let used = Usage { processor_seconds: idle, written_bytes: 0, resident_kib: kib };
        let idle = Idle { nodes: 50_000, seconds: 10.0, used };
        let storm = Storm { machines: 3, inspect: drive.clone(), clean: drive };
        FleetReport::new(
            vec![load(1000, 1, 1.0), load(1000, 2, 9.0), load(50_000, 1, many)],
            None,
            idle,
            storm,
        )
    }

    #[test]
    fn every_bound_can_be_missed() {
        assert_eq!(report(1.19, 0.9, 200 << 10, 1000.0, 3).faults(), Vec::<String>::new());
        let missed = report(1.21, 1.1, (200 << 10) + 1, 1001.0, 2).faults();
        assert_eq!(missed.len(), 7, "{missed:?}");
        assert!(missed[0].contains("1.21 times"), "{missed:?}");
    }

    #[test]
    fn the_page_has_a_row_for_each_load_and_operation() {
        let report = report(1.0, 0.1, 1, 1.0, 3);
        let text = report.text().unwrap();
        for part in [
            "| 2 × Farrier | 1000 | 100 | 1.0 ms | 2.0 ms | 9.00 ms | 1.0 KiB | 50 MiB | 1.0 s |",
            "| cleaning | 3 | 60 s | 5 | 1.0 ms | 2.0 ms | 1 ms | 2 s | 1 s | 3 MiB |",
            "with 50000 nodes took 0.010 of a processor",
        ] {
            assert!(text.contains(part), "{part}: {text}");
        }
        assert_eq!(report.plots()[0].1.rows.len(), 3);
    }
}
