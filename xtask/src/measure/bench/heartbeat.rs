//! `cargo xtask bench heartbeat`: how many agents a conductor can hear, beside Ironic on the same machine.
//!
//! Both know the same nodes and keep them in SQLite. Clients on the same machine send heartbeats, look up nodes that
//! there are, and look up one that there is not; the time is that from the request to the whole answer.

use std::fs;
use std::path::PathBuf;
use std::time::Duration;

use anyhow::{Result, bail};
use clap::Args;
use farrier_conductor::model::ProvisionState;
use serde::Serialize;
use serde_json::json;

use super::conductors::{CALLBACK_URL, Farrier, Nodes, Rival, TOKEN, address, identity};
use crate::host::requirements::{self, Purpose};
use crate::host::workspace::{Workspace, write_json};
use farrier_load::{Figures, Method, Request, StatusCode, load};

/// How many times as many requests Farrier must take.
const TIMES: f64 = 20.0;
/// What 99 of 100 requests must keep to, in milliseconds.
const P99_MS: f64 = 50.0;
/// What the conductor may take of memory, in KiB, and for each node beside that.
const MEMORY_KIB: (u64, u64) = (64 << 10, 2);

/// Measures how many heartbeats and lookups the reference conductor takes in a second, beside Ironic, both with the
/// same nodes on SQLite.
#[derive(Debug, Args)]
pub struct HeartbeatArguments {
    /// Writes the figures as JSON.
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
    /// Nodes that each conductor knows.
    #[arg(long, value_name = "N", default_value_t = 10_000, value_parser = clap::value_parser!(u64).range(2..))]
    nodes: u64,
    /// Agents that call at the same time.
    #[arg(long, value_name = "N", default_value_t = 16)]
    clients: usize,
    /// How long each kind of request is sent.
    #[arg(long, value_name = "SECONDS", default_value_t = 20)]
    seconds: u64,
    /// Leaves Ironic out.
    #[arg(long)]
    alone: bool,
    /// Only names packages that are missing.
    #[arg(long)]
    no_install: bool,
}

/// How one conductor did.
#[derive(Debug, Clone, Copy, Serialize)]
struct Course {
    heartbeats: Figures,
    lookups: Figures,
    misses: Figures,
    peak_kib: u64,
}

impl Course {
    fn kinds(&self) -> [(&'static str, Figures); 3] {
        [("heartbeats", self.heartbeats), ("lookups", self.lookups), ("lookups that miss", self.misses)]
    }
}

#[derive(Debug, Serialize)]
struct HeartbeatReport {
    nodes: u64,
    clients: usize,
    seconds: u64,
    farrier: Course,
    ironic: Option<Course>,
}

/// Runs the benchmark.
pub fn bench(arguments: &HeartbeatArguments) -> Result<()> {
    let purposes: &[Purpose] = if arguments.alone { &[] } else { &[Purpose::Ironic, Purpose::Python] };
    requirements::ensure(purposes, !arguments.no_install)?;
    let workspace = Workspace::find()?;
    let report = workspace.in_scratch_folder(|folder| measure(&workspace, folder, arguments))?;
    print!("{}", table(&report));
    write_json(arguments.json.as_deref(), &report)?;
    match faults(&report)[..] {
        [] => Ok(()),
        ref faults => bail!("outside of the budget: {}", faults.join("; ")),
    }
}

fn measure(
    workspace: &Workspace,
    folder: &std::path::Path,
    arguments: &HeartbeatArguments,
) -> Result<HeartbeatReport> {
    let program = workspace.build_released_conductor()?;
    let held = Nodes { count: arguments.nodes, state: ProvisionState::DeployHold };
    let farrier = {
        let folder = folder.join("farrier");
        fs::create_dir(&folder)?;
        let farrier = Farrier::start(&program, &folder, held)?;
        course(farrier.port, arguments, || farrier.peak_kib())?
    };
    let ironic = if arguments.alone {
        None
    } else {
        let folder = folder.join("ironic");
        fs::create_dir(&folder)?;
        let rival = Rival::start(workspace, &folder, held)?;
        Some(course(rival.port, arguments, || rival.peak_kib())?)
    };
    let &HeartbeatArguments { nodes, clients, seconds, .. } = arguments;
    Ok(HeartbeatReport { nodes, clients, seconds, farrier, ironic })
}

fn course(port: u16, arguments: &HeartbeatArguments, peak_kib: impl Fn() -> Result<u64>) -> Result<Course> {
    let &HeartbeatArguments { nodes, clients, seconds, .. } = arguments;
    let duration = Duration::from_secs(seconds);
    let body =
        json!({"callback_url": CALLBACK_URL, "agent_version": "0.1.0", "agent_token": TOKEN}).to_string();
    // In Ironic the even ones are held, and the odd ones wait.
    let heartbeats = load(port, clients, duration, &|number| Request {
        method: Method::POST,
        path: format!("/v1/heartbeat/{}", identity(number * 2 % nodes)),
        body: body.clone(),
        status: StatusCode::ACCEPTED,
    })?;
    let lookup = |number, status| Request::get(format!("/v1/lookup?addresses={}", address(number)), status);
    let lookups = load(port, clients, duration, &|number| lookup((number * 2 + 1) % nodes, StatusCode::OK))?;
    let misses = load(port, clients, duration, &|number| lookup(nodes + number, StatusCode::NOT_FOUND))?;
    Ok(Course { heartbeats, lookups, misses, peak_kib: peak_kib()? })
}

fn faults(report: &HeartbeatReport) -> Vec<String> {
    let mut faults = Vec::new();
    let rivals = report.ironic.iter().flat_map(Course::kinds).map(|(_, figures)| Some(figures));
    for ((kind, figures), rival) in report.farrier.kinds().into_iter().zip(rivals.chain([None; 3])) {
        if figures.turned_away > 0 {
            faults.push(format!("{} {kind} are turned away", figures.turned_away));
        }
        if figures.p99_ms >= P99_MS {
            faults.push(format!("99 of 100 {kind} take up to {:.1} ms, not {P99_MS}", figures.p99_ms));
        }
        let times = rival.map(|rival| figures.per_second / rival.per_second);
        if let Some(times) = times.filter(|times| *times < TIMES) {
            faults.push(format!("{kind} are taken {times:.1} times as fast, not {TIMES}"));
        }
    }
    let (base, each) = MEMORY_KIB;
    let allowed = base + each * report.nodes;
    if report.farrier.peak_kib > allowed {
        faults.push(format!("it takes {} KiB of memory, not {allowed}", report.farrier.peak_kib));
    }
    faults
}

fn table(report: &HeartbeatReport) -> String {
    let mut text = format!(
        "{} nodes, {} agents at a time, {} s for each kind\n{:<20}{:>40}{:>50}\n",
        report.nodes, report.clients, report.seconds, "", "Farrier", "Ironic"
    );
    let shown = |figures: Figures| {
        let Figures { per_second, mean_ms, p99_ms, turned_away, .. } = figures;
        let turned_away = if turned_away > 0 { format!(", {turned_away} not") } else { String::new() };
        format!("{per_second:.0}/s{turned_away}, {mean_ms:.1} ms, p99 {p99_ms:.1} ms")
    };
    let mut row = |label: &str, farrier: String, ironic: Option<String>, times: Option<f64>| {
        let times = times.map_or_else(String::new, |times| format!("  {times:.1} times"));
        text += &format!("{label:<20}{farrier:>40}{:>50}{times}\n", ironic.unwrap_or_default());
    };
    for (index, (kind, figures)) in report.farrier.kinds().into_iter().enumerate() {
        let rival = report.ironic.map(|ironic| ironic.kinds()[index].1);
        let times = rival.map(|rival| figures.per_second / rival.per_second);
        row(kind, shown(figures), rival.map(shown), times);
    }
    let memory = |course: Course| format!("{} KiB", course.peak_kib);
    let times = report.ironic.map(|ironic| ironic.peak_kib as f64 / report.farrier.peak_kib as f64);
    row("memory at most", memory(report.farrier), report.ironic.map(memory), times);
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    fn course(per_second: f64, p99_ms: f64, peak_kib: u64) -> Course {
        let figures = Figures { per_second, mean_ms: 1.0, p50_ms: 1.0, p99_ms, turned_away: 0 };
        Course { heartbeats: figures, lookups: figures, misses: figures, peak_kib }
    }

    fn report(farrier: Course, ironic: Option<Course>) -> HeartbeatReport {
        HeartbeatReport { nodes: 1024, clients: 1, seconds: 1, farrier, ironic }
    }

    #[test]
    fn every_budget_can_be_missed() {
        let rival = || Some(course(100.0, 500.0, 300_000));
        assert_eq!(faults(&report(course(2000.0, 49.0, 66 << 10), rival())), Vec::<String>::new());
        assert_eq!(faults(&report(course(1.0, 49.0, 1), None)), Vec::<String>::new());
        let missed = faults(&report(course(1990.0, 51.0, (66 << 10) + 1), rival()));
        assert_eq!(missed.len(), 7, "{missed:?}");
        assert_eq!(missed[1], "heartbeats are taken 19.9 times as fast, not 20");
    }
}
