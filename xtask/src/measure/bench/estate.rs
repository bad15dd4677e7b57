//! `cargo xtask bench estate`: what a conductor costs that has many nodes at rest and many in work.
//!
//! All are of `fake-hardware`: what is measured is the conductor and its store, and not BMCs and agents. It runs for as long
//! as several passes of power sync, which reads every machine at rest. Then it runs again with the statements of the store
//! in its log, which tells what they cost.

mod page;
mod report;
mod statements;

pub use report::EstateReport;

use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use clap::Args;
use farrier_conductor::model::{NewNode, Node, PowerState, ProvisionState};
use farrier_engine::store::NodeStore;
use farrier_engine::store::sqlite::SqliteStore;
use time::OffsetDateTime;

use super::conductors::{Farrier, address, identity};
use crate::book::page as pages;
use crate::host::workspace::{Workspace, write_json};

/// A folder in memory, where a database is filled without a flush for each node.
const IN_MEMORY: &str = "/dev/shm";
/// States of the nodes in work: each waits for its machine, as most of a long operation does.
const IN_WORK: [ProvisionState; 3] =
    [ProvisionState::CleanWait, ProvisionState::DeployWait, ProvisionState::InspectWait];
/// The conductor has started, and has a worker for each node in work.
const SETTLED: Duration = Duration::from_secs(20);

/// Measures processor time and memory of the reference conductor with many nodes of `fake-hardware`, of which most are at
/// rest, and lists the statements of its store by what they cost.
#[derive(Debug, Args)]
pub struct EstateArguments {
    /// Writes the figures as JSON.
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
    /// Writes the page of the book with the figures.
    #[arg(long)]
    page: bool,
    /// Nodes at rest.
    #[arg(long, value_name = "N", default_value_t = 100_000)]
    resting: u64,
    /// Nodes in work.
    #[arg(long, value_name = "N", default_value_t = 3000)]
    working: u64,
    /// How long it is measured; power sync makes a pass each 120 s.
    #[arg(long, value_name = "SECONDS", default_value_t = 240)]
    seconds: u64,
}

/// Runs the benchmark.
pub fn bench(arguments: &EstateArguments) -> Result<()> {
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

fn measure(workspace: &Workspace, folder: &Path, arguments: &EstateArguments) -> Result<EstateReport> {
    let program = workspace.build_released_conductor()?;
    let &EstateArguments { resting, working, seconds, .. } = arguments;
    let database = folder.join("nodes.sqlite");
    let begun = Instant::now();
    fill(&database, resting, working)?;
    println!("{} nodes were written in {:.0} s", resting + working, begun.elapsed().as_secs_f64());
    let duration = Duration::from_secs(seconds);
    let (processors, peak_kib) = {
        let farrier = Farrier::start_over(&program, folder, &database, &[], None)?;
        std::thread::sleep(SETTLED);
        let before = farrier.processor_time()?;
        std::thread::sleep(duration);
        let spent = farrier.processor_time()? - before;
        (spent.as_secs_f64() / duration.as_secs_f64(), farrier.peak_kib()?)
    };
    let statements = {
        let _farrier =
            Farrier::start_over(&program, folder, &database, &[], Some("error,sqlx::query=debug"))?;
        std::thread::sleep(SETTLED + duration);
        statements::read(&folder.join("farrier.log"))?
    };
    Ok(EstateReport {
        machine: pages::machine(),
        resting,
        working,
        seconds,
        processors,
        peak_kib,
        statements,
    })
}

/// Fills a database with nodes, in memory first.
fn fill(database: &Path, resting: u64, working: u64) -> Result<()> {
    let fast = tempfile::tempdir_in(IN_MEMORY).or_else(|_| tempfile::tempdir())?;
    let file = fast.path().join("nodes.sqlite");
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(async {
        let store = SqliteStore::open(&file).await?;
        for number in 0..resting + working {
            store.create(&node(number, resting)?).await?;
        }
        anyhow::Ok(())
    })?;
    // What is in the journal goes with the file once nobody has it open.
    drop(runtime);
    for ending in ["", "-wal"] {
        let name = format!("nodes.sqlite{ending}");
        let from = fast.path().join(&name);
        if from.exists() {
            let to = database.with_file_name(&name);
            fs::copy(&from, &to).with_context(|| format!("cannot write {}", to.display()))?;
        }
    }
    Ok(())
}

/// A node: the first ones are at rest.
fn node(number: u64, resting: u64) -> Result<Node> {
    let new = NewNode {
        name: Some(format!("n{number}")),
        driver: "fake-hardware".to_owned(),
        ports: vec![address(number).parse()?],
        ..NewNode::default()
    };
    let mut node = Node::enrol(new, OffsetDateTime::now_utc());
    node.uuid = identity(number).parse()?;
    node.power_state = Some(PowerState::On);
    node.provision_state = match number.checked_sub(resting) {
        None if number.is_multiple_of(2) => ProvisionState::Active,
        None => ProvisionState::Available,
        Some(number) => IN_WORK[number as usize % IN_WORK.len()],
    };
    Ok(node)
}
