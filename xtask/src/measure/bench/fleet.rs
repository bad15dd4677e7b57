//! `cargo xtask bench fleet`: what a conductor uses as the number of its nodes grows.
//!
//! Heartbeats come as fast as they are taken, from one process of clients to one conductor or two over one SQLite file,
//! and to Ironic beside them. Then nobody calls, and the idle conductor is watched. At last the fleet simulator inspects its
//! machines, and has all of them cleaned at once.

mod report;
mod usage;

pub use self::report::FleetReport;

use std::fs;
use std::path::{Path, PathBuf};
use std::thread;
use std::time::Duration;

use anyhow::{Context, Result, bail};
use clap::Args;
use farrier_conductor::model::ProvisionState;
use serde_json::json;

use self::report::{Idle, Load, Storm};
use self::usage::Usage;
use super::conductors::{CALLBACK_URL, Farrier, Nodes, RIVAL, Rival, TOKEN, fill, identity};
use crate::book::page;
use crate::host::command::run;
use crate::host::requirements::{self, Purpose};
use crate::host::workspace::{Workspace, cargo, read_json, write_json};
use farrier_load::{Method, Request, StatusCode, load_several};
use farrier_tests::machine::free_port;

/// Agents that call at the same time.
const CLIENTS: usize = 16;
/// Nodes that Ironic is given: it lists them page by page when it starts.
const NODES_OF_RIVAL: u64 = 1000;
/// Options of all conductors here: what power sync costs is measured by `bench bmcs`.
const OPTIONS: [&str; 2] = ["--sync-power-state-interval", "0"];

/// Measures heartbeats, memory, processor time and database writes of the reference conductor at several numbers of nodes.
#[derive(Debug, Args)]
pub struct FleetArguments {
    /// Numbers of nodes.
    #[arg(long, value_name = "N", value_delimiter = ',', default_values_t = [1000, 10_000, 50_000])]
    nodes: Vec<u64>,
    /// How long heartbeats are sent, for each number of nodes and conductors.
    #[arg(long, value_name = "SECONDS", default_value_t = 20)]
    seconds: u64,
    /// How long the idle conductor is watched.
    #[arg(long, value_name = "SECONDS", default_value_t = 120)]
    idle_seconds: u64,
    /// Simulated machines that are inspected, and then cleaned at once.
    #[arg(long, value_name = "N", default_value_t = 3000)]
    machines: u32,
    /// Leaves Ironic out.
    #[arg(long)]
    alone: bool,
    /// Runs debug builds.
    #[arg(long, conflicts_with = "page")]
    debug: bool,
    /// Only names packages that are missing.
    #[arg(long)]
    no_install: bool,
    /// Writes the figures as JSON.
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
    /// Writes the page of the book with the figures.
    #[arg(long)]
    page: bool,
}

/// Runs the benchmark.
pub fn bench(arguments: &FleetArguments) -> Result<()> {
    let purposes: &[Purpose] = if arguments.alone { &[] } else { &[Purpose::Ironic, Purpose::Python] };
    requirements::ensure(purposes, !arguments.no_install)?;
    let workspace = Workspace::find()?;
    let report = workspace.in_scratch_folder(|folder| measure(&workspace, folder, arguments))?;
    print!("{}", report.summary());
    write_json(arguments.json.as_deref(), &report)?;
    if arguments.page {
        page::write(&workspace, &report)?;
    }
    match report.faults()[..] {
        [] => Ok(()),
        ref faults => bail!("outside of the budget: {}", faults.join("; ")),
    }
}

fn measure(workspace: &Workspace, folder: &Path, arguments: &FleetArguments) -> Result<FleetReport> {
    let (options, profile) =
        if arguments.debug { (&[][..], "debug") } else { (&["--release"][..], "release") };
    let mut build = cargo();
    build.args(["build", "-p", "farrier", "-p", "farrier-fleet"]).args(options);
    run(build.current_dir(&workspace.root))?;
    let built = workspace.target.join(profile);
    let (farrier, fleet) = (built.join("farrier"), built.join("farrier-fleet"));
    let (mut loads, mut idle) = (Vec::new(), None);
    for nodes in arguments.nodes.iter().copied() {
        let site = Site { program: &farrier, folder: &folder.join(nodes.to_string()), nodes };
        site.fill()?;
        for conductors in [1, 2] {
            loads.push(site.load(conductors, arguments.seconds)?);
        }
        idle = Some(site.idle(Duration::from_secs(arguments.idle_seconds))?);
    }
    let ironic = match arguments.alone {
        true => None,
        false => Some(load_of_ironic(workspace, &folder.join("ironic"), arguments.seconds)?),
    };
    let idle = idle.context("give at least one number of nodes")?;
    let storm = storm(&farrier, &fleet, &folder.join("storm"), arguments.machines)?;
    Ok(FleetReport::new(loads, ironic, idle, storm))
}

/// A database with nodes, and the folder in which it is.
struct Site<'a> {
    program: &'a Path,
    folder: &'a Path,
    nodes: u64,
}

impl Site<'_> {
    fn database(&self) -> PathBuf {
        self.folder.join("nodes.sqlite")
    }

    fn fill(&self) -> Result<()> {
        fs::create_dir_all(self.folder)?;
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        // Held: a heartbeat is written down, and sets nothing off.
        let nodes = Nodes { count: self.nodes, state: ProvisionState::DeployHold };
        runtime.block_on(fill(&self.database(), nodes))
    }

    fn conductor(&self, number: usize) -> Result<Farrier> {
        let (name, folder) = (format!("conductor-{number}"), self.folder.join(number.to_string()));
        fs::create_dir_all(&folder)?;
        let options = [&OPTIONS[..], &["--conductor-name", &name]].concat();
        Farrier::start_over(self.program, &folder, &self.database(), &options, None)
    }

    /// Heartbeats to so many conductors, as fast as they are taken.
    fn load(&self, conductors: usize, seconds: u64) -> Result<Load> {
        let running = (0..conductors).map(|number| self.conductor(number)).collect::<Result<Vec<_>>>()?;
        let ports: Vec<_> = running.iter().map(|one| one.port).collect();
        let processes: Vec<_> = running.iter().map(Farrier::process_id).collect();
        heartbeats(&ports, &processes, self.nodes, seconds)
    }

    /// What one conductor uses while nobody calls it.
    fn idle(&self, duration: Duration) -> Result<Idle> {
        let conductor = self.conductor(0)?;
        let process = [conductor.process_id()];
        let before = Usage::of(&process)?;
        thread::sleep(duration);
        let used = Usage::of(&process)?.since(before);
        Ok(Idle { nodes: self.nodes, seconds: duration.as_secs_f64(), used })
    }
}

fn heartbeats(ports: &[u16], processes: &[u32], nodes: u64, seconds: u64) -> Result<Load> {
    let body =
        json!({"callback_url": CALLBACK_URL, "agent_version": "0.1.0", "agent_token": TOKEN}).to_string();
    let before = (Usage::of(processes)?, Usage::of(&[std::process::id()])?);
    // In Ironic the even ones are held.
    let answers = load_several(ports, CLIENTS, Duration::from_secs(seconds), &|number| Request {
        method: Method::POST,
        path: format!("/v1/heartbeat/{}", identity(number * 2 % nodes)),
        body: body.clone(),
        status: StatusCode::ACCEPTED,
    })?;
    let used = Usage::of(processes)?.since(before.0);
    let clients = Usage::of(&[std::process::id()])?.since(before.1);
    let conductors = ports.len();
    Ok(Load { nodes, conductors, answers, seconds, used, client_seconds: clients.processor_seconds })
}

fn load_of_ironic(workspace: &Workspace, folder: &Path, seconds: u64) -> Result<Load> {
    fs::create_dir_all(folder)?;
    let held = Nodes { count: NODES_OF_RIVAL, state: ProvisionState::DeployHold };
    let rival = Rival::start(workspace, folder, held).with_context(|| format!("Ironic {RIVAL}"))?;
    heartbeats(&[rival.port], &[rival.process_id()], NODES_OF_RIVAL, seconds)
}

/// Machines of the simulator: all are inspected, and then ordered to clean at once.
fn storm(farrier: &Path, fleet: &Path, folder: &Path, machines: u32) -> Result<Storm> {
    let inspect = drive(farrier, fleet, &folder.join("inspect"), machines, "inspect")?;
    let clean = drive(farrier, fleet, &folder.join("clean"), machines, "clean")?;
    Ok(Storm { machines, inspect, clean })
}

/// One operation of all machines of a fleet, at once.
fn drive(
    farrier: &Path,
    fleet: &Path,
    folder: &Path,
    machines: u32,
    operation: &str,
) -> Result<report::Drive> {
    fs::create_dir_all(folder)?;
    let [api, admin, bmc, agent] = [free_port()?, free_port()?, free_port()?, free_port()?];
    let fleet_file = folder.join("fleet.toml");
    let text = format!(
        "seed = 1\nmachines = {machines}\nshorten = 10\n[network]\nbmc-port = {bmc}\nagent-port = {agent}\n[agents]\n\
         certificates = \"shared-key\"\n[lives]\ncount = {machines}\nat-once = {machines}\ntogether = true\noperations = \
         [\"{operation}\"]\n"
    );
    fs::write(&fleet_file, text)?;
    let loaders = ["bootx64.efi", "gcdx64.efi"].map(|name| (name, folder.join(name)));
    for (_, file) in &loaders {
        fs::write(file, "a boot loader")?;
    }
    let loaders = loaders.map(|(name, file)| format!("{name}:{}", file.display())).join(",");
    let (url, state) = (format!("http://127.0.0.1:{api}"), folder.join("state").display().to_string());
    let (listen, admin_listen) = (format!("127.0.0.1:{api}"), format!("127.0.0.1:{admin}"));
    let program = farrier.display().to_string();
    let command = [
        [program.as_str(), "serve"],
        ["--listen", &listen],
        ["--admin-listen", &admin_listen],
        ["--state-dir", &state],
        ["--api-url", &url],
        ["--virtual-media-url", &url],
        ["--loader-file-paths", &loaders],
        ["--enabled-hardware-types", "redfish"],
        ["--auth-strategy", "noauth"],
        OPTIONS,
    ];
    let command = [command.as_flattened(), &["--admin-plain-http"]].concat();
    let site_file = folder.join("site.toml");
    let log = folder.join("conductor.log");
    let site = format!(
        "[[conductor]]\ncommand = {command:?}\napi-port = {admin}\nplain-http = true\nlog = {log:?}\n"
    );
    fs::write(&site_file, site)?;
    let report = folder.join("report.json");
    let mut driver = crate::host::command::command(fleet);
    driver.arg("drive").arg(&fleet_file).arg("--site").arg(&site_file).arg("--json").arg(&report);
    run(driver.env("RUST_MIN_STACK", "8388608"))?;
    read_json(&report)
}
