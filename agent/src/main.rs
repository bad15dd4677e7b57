//! `farrier-agent`: the bare-metal provisioning agent.
//!
//! One binary in several roles. As PID 1 of a ramdisk it is the init system ([`farrier_init`]); started by
//! that, or by hand, it is the agent itself ([`life`]). The kernel calls it as `modprobe`, the
//! DHCP client as `dhcp-event`.

mod advertise;
mod agent;
mod api;
mod bootc;
mod clock;
mod command_line;
mod commands;
mod conductor;
mod config_drive_source;
mod config_files;
mod deployment;
mod discovery;
mod doctor;
mod download;
mod erase_certificates;
mod errors;
mod extensions;
mod http;
mod inspection;
mod inventory_report;
mod life;
mod manager_report;
mod managers;
mod memory;
mod network;
mod options;
mod partitioning;
mod plan_report;
mod reference;
mod rescue;
mod revisable;
mod root_disk;
mod session;
mod settle;
mod status;
mod step_host;
mod system_logs;
mod tls;
mod vlan;

use anyhow::Context;
use clap::{Arg, ArgAction, ArgMatches, Command, value_parser};
use farrier_hardware::inventory::Request;
use farrier_init::{logging, virtual_media};
use farrier_linux::kernel_line::{self, Parameters};
use options::Options;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;
use tokio::runtime::{Builder, Runtime};

/// Time for what runs to give up when the agent ends.
const PARTING: Duration = Duration::from_secs(10);

/// Version of the agent, also in every heartbeat.
pub const VERSION: &str = env!("CARGO_PKG_VERSION");

fn main() -> ExitCode {
    let program = std::env::args_os().next().unwrap_or_default();
    let name = Path::new(&program).file_name().unwrap_or_default();
    let outcome = if name == "modprobe" {
        farrier_init::modprobe(std::env::args().skip(1))
    } else if name == "dhcp-event" {
        farrier_init::network::dhcp_event::apply(std::env::args().nth(1).as_deref())
    } else if std::process::id() == 1 {
        farrier_init::run(options::of_init);
    } else {
        dispatch(&command_line().get_matches())
    };
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("farrier-agent: {error:#}");
            ExitCode::FAILURE
        }
    }
}

fn command_line() -> Command {
    let log = Arg::new("log")
        .long("log")
        .value_name("TARGET")
        .help("Where log lines go")
        .value_parser(value_parser!(logging::Target))
        .default_value("stderr")
        .global(true);
    Command::new("farrier-agent")
        .version(VERSION)
        .about("Bare-metal provisioning agent; speaks the Ironic Python Agent contract")
        .arg(log)
        .args(command_line::arguments())
        .subcommand(Command::new("run").about("Run the agent (the default)"))
        .subcommand(inventory_command())
        .subcommand(manager_report::command())
        .subcommand(reference_command())
        .subcommand(plan_report::command())
        .subcommand(doctor::command())
        .subcommand(Command::new("init").about("Be PID 1 of a ramdisk; done by itself when it is PID 1"))
}

fn inventory_command() -> Command {
    let help = "Print the object that conductors get";
    let json = Arg::new("json").long("json").help(help).action(ArgAction::SetTrue);
    Command::new("inventory").about("Print what the machine is made of").arg(json)
}

/// For `cargo xtask reference`.
fn reference_command() -> Command {
    let folder = Arg::new("docs").required(true).value_parser(value_parser!(PathBuf));
    Command::new("reference").about("Write the reference pages").arg(folder).hide(true)
}

fn dispatch(matches: &ArgMatches) -> anyhow::Result<()> {
    if matches.subcommand_name() == Some("init") {
        anyhow::bail!("init works as PID 1 only: boot a ramdisk made by farrier-image");
    }
    if let Some(("reference", matches)) = matches.subcommand() {
        let docs = matches.get_one::<PathBuf>("docs").context("no folder is given")?;
        return reference::write(docs).with_context(|| format!("cannot write below {}", docs.display()));
    }
    if let Some(("check-manager", matches)) = matches.subcommand() {
        return manager_report::print(matches);
    }
    let target = matches.get_one::<logging::Target>("log").copied().unwrap_or(logging::Target::Stderr);
    logging::start(target);
    if let Some(("inventory", matches)) = matches.subcommand() {
        let options = load(&kernel_line::of_running_kernel(), matches);
        let request =
            Request { boot_interface: options.bootif.as_deref(), skip_bmc: false, lldp_patience: None };
        return Ok(inventory_report::print(matches.get_flag("json"), request)?);
    }
    if let Some(("plan", matches)) = matches.subcommand() {
        return plan_report::print(matches);
    }
    if let Some(("doctor", matches)) = matches.subcommand() {
        let options = load(&virtual_media::merge(kernel_line::of_running_kernel())?, matches);
        return runtime()?.block_on(doctor::print(options, matches));
    }
    let outcome = run(matches);
    if let Err(error) = &outcome {
        tracing::error!("the agent stops: {error:#}");
    }
    outcome
}

fn run(matches: &ArgMatches) -> anyhow::Result<()> {
    let parameters = virtual_media::merge(kernel_line::of_running_kernel())?;
    let options = load(&parameters, matches);
    let runtime = runtime()?;
    let outcome = runtime.block_on(life::begin(options, Path::new("/")));
    // A thread that still writes ends with the process: the next one says that its command has failed.
    runtime.shutdown_timeout(PARTING);
    Ok(outcome?)
}

/// What asynchronous parts run on, ready for TLS.
fn runtime() -> anyhow::Result<Runtime> {
    http::install_tls_provider();
    Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()
        .context("the asynchronous runtime cannot be started")
}

/// The settings. What cannot be used of them is logged.
fn load(parameters: &Parameters, matches: &ArgMatches) -> Options {
    let settings = command_line::settings(matches);
    let (options, errors) = Options::load(parameters, &settings.values);
    logging::set_debug(options.debug);
    tracing::debug!("options: {}", options.describe());
    for problem in settings.problems.into_iter().chain(errors.iter().map(ToString::to_string)) {
        tracing::warn!("{problem}");
    }
    options
}
