//! `farrier-fleet`: simulated machines for any Ironic, and their lives.

use anyhow::{Context, Result, bail};
use clap::{Args, Parser, Subcommand};
use farrier_fleet::drive::{Credentials, Enrolment, NodeApi, Report, drive};
use farrier_fleet::{Fleet, FleetFile};
use serde_json::{Map, Value};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use tracing_subscriber::filter::{LevelFilter, Targets};
use tracing_subscriber::layer::SubscriberExt;
use tracing_subscriber::util::SubscriberInitExt;

/// Simulates machines with BMCs and agents for any Ironic.
#[derive(Debug, Parser)]
#[command(version)]
struct Arguments {
    /// Logs each act of a machine.
    #[arg(long, global = true)]
    verbose: bool,
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Reads a fleet file and says whether it can be used.
    Check {
        /// The fleet file.
        file: PathBuf,
    },
    /// Runs machines until it is stopped.
    Serve {
        #[command(flatten)]
        machines: Machines,
    },
    /// Runs machines, and leads each through its lives by a conductor.
    Drive {
        #[command(flatten)]
        machines: Machines,
        #[command(flatten)]
        conductor: Conductor,
        /// Writes what came of it as JSON.
        #[arg(long, value_name = "FILE")]
        json: Option<PathBuf>,
    },
}

#[derive(Debug, Args)]
struct Machines {
    /// The fleet file.
    file: PathBuf,
    /// URL of the conductor for agents that boot from the network; those that boot from media are told there.
    #[arg(long, value_name = "URL")]
    agents_api_url: Option<String>,
    /// Appends what machines are asked and do to a file, as lines of JSON.
    #[arg(long, value_name = "FILE")]
    journal: Option<PathBuf>,
}

#[derive(Debug, Args)]
struct Conductor {
    /// URL of the conductor's node API.
    #[arg(long, value_name = "URL")]
    url: String,
    /// File with the token of an administrator.
    #[arg(long, value_name = "FILE", conflicts_with = "user")]
    token_file: Option<PathBuf>,
    /// An administrator, whose password is in the variable FLEET_PASSWORD.
    #[arg(long, value_name = "NAME")]
    user: Option<String>,
    /// The boot interface of nodes.
    #[arg(long, value_name = "NAME", default_value = "redfish-virtual-media")]
    boot_interface: String,
    /// What driver_info of nodes has besides.
    #[arg(long, value_name = "KEY=VALUE", value_parser = pair)]
    driver_info: Vec<(String, String)>,
}

fn pair(text: &str) -> Result<(String, String), String> {
    let (key, value) = text.split_once('=').ok_or("give KEY=VALUE")?;
    Ok((key.to_owned(), value.to_owned()))
}

#[tokio::main]
async fn main() -> Result<()> {
    let arguments = Arguments::parse();
    let level = if arguments.verbose { LevelFilter::DEBUG } else { LevelFilter::WARN };
    let own = Targets::new().with_target("farrier_fleet", level);
    let lines = tracing_subscriber::fmt::layer().with_writer(std::io::stderr);
    tracing_subscriber::registry().with(lines).with(own).init();
    match arguments.command {
        Command::Check { file } => {
            let fleet = FleetFile::read(&file)?;
            println!("{}: {} machines, {} lives", file.display(), fleet.machines, fleet.lives.count);
            Ok(())
        }
        Command::Serve { machines } => {
            let fleet = start(&machines).await?;
            if let Some(first) = fleet.machine(0) {
                println!("{} BMCs, the first at {}", fleet.file().machines, fleet.bmc_url(first));
            }
            tokio::signal::ctrl_c().await.context("signals cannot be waited for")
        }
        Command::Drive { machines, conductor, json } => {
            let report = run(&machines, &conductor).await?;
            print!("{report}");
            write(json.as_deref(), &report)?;
            match report.unexplained {
                0 => Ok(()),
                count => bail!("{count} lives failed without an explanation that names the cause"),
            }
        }
    }
}

async fn start(machines: &Machines) -> Result<Fleet> {
    let file = FleetFile::read(&machines.file)?;
    let url = machines.agents_api_url.clone();
    Ok(Fleet::start(file, url, machines.journal.as_deref()).await?)
}

async fn run(machines: &Machines, conductor: &Conductor) -> Result<Report> {
    let api = NodeApi::new(&conductor.url, credentials(conductor)?)?;
    let pairs = conductor.driver_info.iter().map(|(key, value)| (key.clone(), Value::from(value.clone())));
    let driver_info = pairs.collect::<Map<_, _>>();
    let enrolment = Enrolment { boot_interface: conductor.boot_interface.clone(), driver_info };
    let fleet = Arc::new(start(machines).await?);
    let lives = fleet.file().lives.count;
    let mut ended = 0;
    let told = |_: &_| {
        ended += 1;
        if ended % 50 == 0 {
            eprintln!("{ended} of {lives} lives have ended");
        }
    };
    Ok(drive(&fleet, &Arc::new(api), &enrolment, told).await)
}

fn credentials(conductor: &Conductor) -> Result<Credentials> {
    if let Some(file) = &conductor.token_file {
        let token = std::fs::read_to_string(file).with_context(|| format!("{}", file.display()))?;
        return Ok(Credentials::Token(token.trim().to_owned()));
    }
    match &conductor.user {
        Some(user) => {
            let password = std::env::var("FLEET_PASSWORD").context("set FLEET_PASSWORD")?;
            Ok(Credentials::Basic(user.clone(), password))
        }
        None => Ok(Credentials::None),
    }
}

fn write(file: Option<&Path>, report: &Report) -> Result<()> {
    let Some(file) = file else { return Ok(()) };
    let text = serde_json::to_string_pretty(report)?;
    std::fs::write(file, text).with_context(|| format!("cannot write {}", file.display()))
}
