//! `cargo xtask bench api`: how long an operator waits for a conductor, beside Ironic on the same machine.
//!
//! Both know the same nodes, keep them in SQLite, and serve them without TLS. One client asks one request after the
//! other; the time is that from the request to the whole answer. Then Farrier alone serves a list of many more nodes,
//! page by page, and its memory is looked at.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Result, bail};
use clap::Args;
use farrier_conductor::model::ProvisionState;
use hyper::{Method, StatusCode};
use serde::Serialize;
use serde_json::json;

use super::conductors::{Farrier, Nodes, Rival, identity};
use super::load::{Figures, Request, load};
use crate::host::requirements::{self, Purpose};
use crate::host::workspace::{Workspace, write_json};

/// How many times as fast Farrier must be.
const TIMES: f64 = 20.0;
/// Nodes of a list, which are as many as both give in one answer.
const LISTED: u64 = 1000;
/// Nodes of the list that is served page by page.
const MANY: u64 = 10_000;
/// What the conductor may take of memory for that, in KiB.
const MEMORY_KIB: u64 = 64 << 10;

/// Measures how long the reference conductor takes to show, change and list nodes, beside Ironic, both with the same
/// nodes on SQLite.
#[derive(Debug, Args)]
pub struct ApiArguments {
    /// Writes the figures as JSON.
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
    /// How long each kind of request is sent.
    #[arg(long, value_name = "SECONDS", default_value_t = 10)]
    seconds: u64,
    /// Leaves Ironic out.
    #[arg(long)]
    alone: bool,
    /// Only names packages that are missing.
    #[arg(long)]
    no_install: bool,
}

/// How one kind of request was answered.
#[derive(Debug, Serialize)]
struct Kind {
    name: &'static str,
    farrier: Figures,
    ironic: Option<Figures>,
}

impl Kind {
    /// How many times as fast Farrier is.
    fn times(&self) -> Option<f64> {
        self.ironic.map(|ironic| ironic.mean_ms / self.farrier.mean_ms)
    }
}

#[derive(Debug, Serialize)]
struct ApiReport {
    kinds: Vec<Kind>,
    /// The most memory of Farrier while it served the long list, in KiB.
    peak_kib: u64,
}

/// Runs the benchmark.
pub fn bench(arguments: &ApiArguments) -> Result<()> {
    let purposes: &[Purpose] = if arguments.alone { &[] } else { &[Purpose::Ironic, Purpose::Python] };
    requirements::ensure(purposes, !arguments.no_install)?;
    let workspace = Workspace::find()?;
    let folder = workspace.cache().join(format!("bench-{}", std::process::id()));
    fs::create_dir_all(&folder)?;
    let report = measure(&workspace, &folder, arguments);
    fs::remove_dir_all(&folder)?;
    let report = report?;
    print!("{}", table(&report));
    write_json(arguments.json.as_deref(), &report)?;
    match faults(&report)[..] {
        [] => Ok(()),
        ref faults => bail!("outside of the budget: {}", faults.join("; ")),
    }
}

/// Nodes that no operation holds, so that their records may be changed.
fn active(count: u64) -> Nodes {
    Nodes { count, state: ProvisionState::Active }
}

fn measure(workspace: &Workspace, folder: &Path, arguments: &ApiArguments) -> Result<ApiReport> {
    let program = workspace.build_released_conductor()?;
    let inner = |name: &str| -> Result<PathBuf> {
        let inner = folder.join(name);
        fs::create_dir(&inner)?;
        Ok(inner)
    };
    let duration = Duration::from_secs(arguments.seconds);
    let farrier = course(Farrier::start(&program, &inner("farrier")?, active(LISTED))?.admin_port, duration);
    let ironic = match arguments.alone {
        true => None,
        false => Some(course(Rival::start(workspace, &inner("ironic")?, active(LISTED))?.port, duration)?),
    };
    let kinds = farrier?.into_iter().enumerate().map(|(index, (name, farrier))| {
        let ironic = ironic.as_ref().map(|kinds| kinds[index].1);
        Kind { name, farrier, ironic }
    });
    Ok(ApiReport { kinds: kinds.collect(), peak_kib: long_list(&program, &inner("many")?)? })
}

/// The figures of each kind of request.
fn course(port: u16, duration: Duration) -> Result<Vec<(&'static str, Figures)>> {
    // In Ironic the odd ones wait, and belong to their agents.
    let node = |number: u64| identity(number * 2 % LISTED);
    let get = |path| Request::get(path, StatusCode::OK);
    let fields = format!("/v1/nodes?fields=uuid,name,provision_state,power_state&limit={LISTED}");
    let detail = format!("/v1/nodes/detail?limit={LISTED}");
    let patch = |number: u64| {
        let change = json!([{"op": "add", "path": "/extra/number", "value": number}]);
        let path = format!("/v1/nodes/{}", node(number));
        Request { method: Method::PATCH, path, body: change.to_string(), status: StatusCode::OK }
    };
    Ok(vec![
        ("show a node", load(port, 1, duration, |number| get(format!("/v1/nodes/{}", node(number))))?),
        ("change a node", load(port, 1, duration, patch)?),
        ("list 1,000 with four fields", load(port, 1, duration, |_| get(fields.clone()))?),
        ("list 1,000 in detail", load(port, 1, duration, |_| get(detail.clone()))?),
    ])
}

/// The most memory that a conductor has when somebody lists very many nodes in detail, page by page, in KiB.
fn long_list(program: &Path, folder: &Path) -> Result<u64> {
    let farrier = Farrier::start(program, folder, active(MANY))?;
    let page = |number: u64| {
        // Nodes are listed as they were made.
        let marker = match number % (MANY / LISTED) {
            0 => String::new(),
            page => format!("&marker={}", identity(page * LISTED - 1)),
        };
        Request::get(format!("/v1/nodes/detail?limit={LISTED}{marker}"), StatusCode::OK)
    };
    load(farrier.admin_port, 1, Duration::from_secs(5), page)?;
    farrier.peak_kib()
}

fn faults(report: &ApiReport) -> Vec<String> {
    let slow = report.kinds.iter().filter_map(|kind| Some((kind.name, kind.times()?)));
    let slow = slow.filter(|(_, times)| *times < TIMES);
    let mut faults: Vec<_> =
        slow.map(|(name, times)| format!("{name}: {times:.1} times as fast, not {TIMES}")).collect();
    if report.peak_kib > MEMORY_KIB {
        faults.push(format!("a list of {MANY} takes {} KiB of memory, not {MEMORY_KIB}", report.peak_kib));
    }
    faults
}

fn table(report: &ApiReport) -> String {
    let mut text = format!("{:<30}{:>26}{:>26}\n", "one client", "Farrier", "Ironic");
    let shown = |figures: Figures| format!("{:.2} ms, p99 {:.2} ms", figures.mean_ms, figures.p99_ms);
    for kind in &report.kinds {
        let times = kind.times().map_or_else(String::new, |times| format!("  {times:.1} times"));
        let ironic = kind.ironic.map_or_else(String::new, shown);
        text += &format!("{:<30}{:>26}{ironic:>26}{times}\n", kind.name, shown(kind.farrier));
    }
    text + &format!("a list of {MANY} in detail, page by page: {} KiB of memory at most\n", report.peak_kib)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn report(farrier: f64, ironic: Option<f64>, peak_kib: u64) -> ApiReport {
        let figures =
            |mean_ms| Figures { per_second: 1.0, mean_ms, p50_ms: mean_ms, p99_ms: mean_ms, turned_away: 0 };
        let kind = |name| Kind { name, farrier: figures(farrier), ironic: ironic.map(figures) };
        ApiReport { kinds: vec![kind("show"), kind("list")], peak_kib }
    }

    #[test]
    fn every_budget_can_be_missed() {
        assert_eq!(faults(&report(1.0, Some(20.0), 64 << 10)), Vec::<String>::new());
        assert_eq!(faults(&report(1.0, None, 1)), Vec::<String>::new());
        let missed = faults(&report(1.0, Some(19.9), (64 << 10) + 1));
        assert_eq!(missed.len(), 3, "{missed:?}");
        assert_eq!(missed[0], "show: 19.9 times as fast, not 20");
    }

    #[test]
    fn the_table_shows_both_and_how_they_differ() {
        let table = table(&report(2.0, Some(50.0), 7));
        let row = "2.00 ms, p99 2.00 ms    50.00 ms, p99 50.00 ms  25.0 times\n";
        assert!(table.lines().nth(1).is_some_and(|line| line.starts_with("show ")), "{table}");
        assert!(table.contains(row), "{table}");
    }
}
