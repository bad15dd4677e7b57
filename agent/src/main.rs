//! `farrier-agent`: the bare-metal provisioning agent.
//!
//! One binary in several roles. As PID 1 of a ramdisk it is the init system ([`farrier_init`]); started by
//! that, or by hand, it is the agent itself. The kernel calls it as `modprobe`, the DHCP client as `dhcp-event`.
//!
//! Its rooms, in the order of a boot:
//!
//! 1. [`settings`]: what an operator has set, on the kernel command line, in files and by flags.
//! 2. [`life`]: the course of everything below, for the one [`agent`] that all share.
//! 3. [`network`]: waiting for a card and an address; [`device_settle`]: waiting for devices.
//! 4. [`conductor`]: finding it, asking who this machine is, heartbeats; [`inspection`] before it is known.
//! 5. [`identity`]: token, certificate and address, by which both know each other.
//! 6. [`api`]: the REST interface, whose [`commands`] are run one at a time.
//! 7. [`extensions`]: what can be commanded; [`steps`] of cleaning, deploying and servicing among it.
//! 8. [`deployment`]: what an image on a disk needs.
//!
//! [`status`] shows all that on the consoles, [`logs`] collects logs for later, [`doctor`] says why a
//! conductor is not reached, and [`reports`] are printed by hand.

mod agent;
mod api;
mod commands;
mod conductor;
mod deployment;
mod device_settle;
mod doctor;
mod extensions;
mod identity;
mod inspection;
mod life;
mod logs;
mod network;
mod reports;
mod settings;
mod status;
mod steps;

use anyhow::Context;
use clap::{Arg, ArgAction, ArgMatches, Command, value_parser};
use farrier_hardware::inventory::Request;
use farrier_init::{logging, virtual_media};
use farrier_linux::kernel_line::{self, Parameters};
use farrier_protocol::error_code::agent::INVALID_OPTION;
use network::http;
use reports::failure::{self, CommandFailure};
use reports::reference;
use settings::command_line as flags;
use settings::options::{self, Options};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;
use tokio::runtime::{Builder, Runtime};

/// Time for what runs to give up when the agent ends.
const PARTING: Duration = Duration::from_secs(10);

fn main() -> ExitCode {
    let program = std::env::args_os().next().unwrap_or_default();
    let name = Path::new(&program).file_name().unwrap_or_default();
    let outcome = if name == "modprobe" {
        farrier_init::modprobe(std::env::args().skip(1))
    } else if name == "dhcp-event" {
        farrier_init::network::dhcp_event::apply(std::env::args().nth(1).as_deref())
            .map_err(|error| CommandFailure::Lease(error).into())
    } else if std::process::id() == 1 {
        farrier_init::run(options::of_init);
    } else {
        match command_line().try_get_matches() {
            Ok(matches) => dispatch(&matches),
            Err(error) if error.use_stderr() => {
                eprintln!("{}", INVALID_OPTION.after(error.render().to_string().trim_end()));
                return ExitCode::from(2);
            }
            Err(help) => help.exit(),
        }
    };
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("farrier-agent: {}", failure::line(&error));
            ExitCode::FAILURE
        }
    }
}

fn command_line() -> Command {
    let log = Arg::new("log")
        .long("log")
        .value_name("TARGET")
        .help("Target of the log")
        .value_parser(value_parser!(logging::Target))
        .default_value("stderr")
        .global(true);
    Command::new("farrier-agent")
        .version(agent::VERSION)
        .about("Bare-metal provisioning agent; speaks the Ironic Python Agent contract")
        .arg(log)
        .args(flags::arguments())
        .subcommand(Command::new("run").about("Run the agent (the default)"))
        .subcommand(inventory_command())
        .subcommand(reports::manager::command())
        .subcommand(reference_command())
        .subcommand(reports::plan::command())
        .subcommand(doctor::command())
        .subcommand(Command::new("init").about("Run as PID 1 of a ramdisk (automatic if it is PID 1)"))
}

fn inventory_command() -> Command {
    let help = "Print the JSON object that conductors receive";
    let json = Arg::new("json").long("json").help(help).action(ArgAction::SetTrue);
    Command::new("inventory").about("Print the inventory of the machine").arg(json)
}

/// For `cargo xtask reference`.
fn reference_command() -> Command {
    let folder = Arg::new("docs").required(true).value_parser(value_parser!(PathBuf));
    Command::new("reference").about("Write the reference pages").arg(folder).hide(true)
}

fn dispatch(matches: &ArgMatches) -> anyhow::Result<()> {
    if matches.subcommand_name() == Some("init") {
        return Err(CommandFailure::NotInit.into());
    }
    if let Some(("reference", matches)) = matches.subcommand() {
        let docs = matches.get_one::<PathBuf>("docs").context("no folder is given")?;
        return reference::write(docs).with_context(|| format!("cannot write below {}", docs.display()));
    }
    if let Some(("check-manager", matches)) = matches.subcommand() {
        return reports::manager::print(matches);
    }
    let target = matches.get_one::<logging::Target>("log").copied().unwrap_or(logging::Target::Stderr);
    logging::start(target);
    if let Some(("inventory", matches)) = matches.subcommand() {
        let options = load(&kernel_line::of_running_kernel(), matches);
        let request =
            Request { boot_interface: options.bootif.as_deref(), skip_bmc: false, lldp_patience: None };
        return Ok(reports::inventory::print(matches.get_flag("json"), request)?);
    }
    if let Some(("plan", matches)) = matches.subcommand() {
        return reports::plan::print(matches);
    }
    if let Some(("doctor", matches)) = matches.subcommand() {
        let options = load(&virtual_media::merge(kernel_line::of_running_kernel())?, matches);
        return runtime()?.block_on(doctor::print(options, matches));
    }
    let outcome = run(matches);
    if let Err(error) = &outcome {
        tracing::error!("the agent stops: {}", failure::line(error));
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
    let settings = flags::settings(matches);
    let (options, errors) = Options::load(parameters, &settings.values);
    logging::set_debug(options.debug);
    tracing::debug!("options: {}", options.describe());
    for problem in settings.problems.into_iter().chain(errors.iter().map(ToString::to_string)) {
        tracing::warn!("{problem}");
    }
    options
}
