//! `cargo xtask bench api`: how long an operator waits for a conductor, beside Ironic on the same machine.
//!
//! Both know the same nodes, keep them in SQLite, and serve them without TLS. One client asks one request after the
//! other; the time is that from the request to the whole answer. Then Farrier alone serves a list of many more nodes,
//! page by page, and its memory is looked at; and many clients together ask a mix of requests.

mod mix;
mod page;
mod report;

pub use report::ApiReport;

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Result, bail};
use clap::Args;
use farrier_conductor::model::ProvisionState;
use serde_json::json;

use self::report::{Kind, LISTED, MANY};
use super::conductors::{Farrier, Nodes, Rival, identity};
use crate::book::page as pages;
use crate::host::requirements::{self, Purpose};
use crate::host::workspace::{Workspace, write_json};
use farrier_load::{Figures, Method, Request, StatusCode, load};

/// Measures how long the reference conductor takes to show, change and list nodes, beside Ironic, both with the same
/// nodes on SQLite, and how long 20 clients wait that ask 200 requests a second.
#[derive(Debug, Args)]
pub struct ApiArguments {
    /// Writes the figures as JSON.
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
    /// Writes the page of the book with the figures.
    #[arg(long, conflicts_with = "alone")]
    page: bool,
    /// How long each kind of request is sent, and a third of the time of the mix.
    #[arg(long, value_name = "SECONDS", default_value_t = 10)]
    seconds: u64,
    /// Leaves Ironic out.
    #[arg(long)]
    alone: bool,
    /// Only names packages that are missing.
    #[arg(long)]
    no_install: bool,
}

/// Runs the benchmark.
pub fn bench(arguments: &ApiArguments) -> Result<()> {
    let purposes: &[Purpose] = if arguments.alone { &[] } else { &[Purpose::Ironic, Purpose::Python] };
    requirements::ensure(purposes, !arguments.no_install)?;
    let workspace = Workspace::find()?;
    let report = workspace.in_scratch_folder(|folder| measure(&workspace, folder, arguments))?;
    print!("{}", report.table());
    write_json(arguments.json.as_deref(), &report)?;
    if arguments.page {
        pages::write(&workspace, &report)?;
    }
    match report.faults()[..] {
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
    let farrier = {
        let farrier = Farrier::start(&program, &inner("farrier")?, active(LISTED))?;
        course(farrier.admin_port, duration, || farrier.processor_time())?
    };
    let ironic = match arguments.alone {
        true => None,
        false => {
            let rival = Rival::start(workspace, &inner("ironic")?, active(LISTED))?;
            Some(course(rival.port, duration, || Ok(Duration::ZERO))?)
        }
    };
    let kinds = farrier.into_iter().enumerate().map(|(index, (name, farrier, processor_ms))| {
        let ironic = ironic.as_ref().map(|kinds| kinds[index].1);
        Kind { name: name.to_owned(), farrier, processor_ms, ironic }
    });
    Ok(ApiReport {
        machine: pages::machine(),
        kinds: kinds.collect(),
        peak_kib: long_list(&program, &inner("many")?)?,
        mix: mix::measure(&program, &inner("mix")?, duration * 3)?,
    })
}

/// The figures of each kind of request, and the processor time of the conductor for each request, in milliseconds.
fn course(
    port: u16,
    duration: Duration,
    processor_time: impl Fn() -> Result<Duration>,
) -> Result<Vec<(&'static str, Figures, f64)>> {
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
    let measured = |name: &'static str, request: &(dyn Fn(u64) -> Request + Sync)| -> Result<_> {
        let before = processor_time()?;
        let figures = load(port, 1, duration, request)?;
        let spent = (processor_time()? - before).as_secs_f64() * 1000.0;
        let requests = figures.per_second * duration.as_secs_f64();
        anyhow::Ok((name, figures, spent / requests.max(1.0)))
    };
    Ok(vec![
        measured("show a node", &|number| get(format!("/v1/nodes/{}", node(number))))?,
        measured("change a node", &patch)?,
        measured(report::FOUR_FIELDS, &|_| get(fields.clone()))?,
        measured(report::IN_DETAIL, &|_| get(detail.clone()))?,
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
    load(farrier.admin_port, 1, Duration::from_secs(5), &page)?;
    farrier.peak_kib()
}
