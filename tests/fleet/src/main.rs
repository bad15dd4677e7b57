//! `farrier-fleet`: simulated machines for any Ironic, and their lives.

use anyhow::{Context, Result, bail};
use clap::{Args, Parser, Subcommand};
use farrier_fleet::drive::{Credentials, Drive, Endpoint, Enrolment, NodeApi, Report, Results};
use farrier_fleet::site::{self, Site, SiteFile};
use farrier_fleet::{Fleet, FleetFile};
use serde_json::{Map, Value};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
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
        /// The site file with the conductors that faults strike.
        #[arg(long, value_name = "FILE")]
        site: Option<PathBuf>,
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
        /// Appends each life that has ended to a file. A run that was killed resumes after the lives in the file.
        #[arg(long, value_name = "FILE")]
        results: Option<PathBuf>,
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
    #[arg(long, value_name = "URL", required_unless_present = "site")]
    url: Option<String>,
    /// Starts the conductors in a site file, and strikes them by the faults of the class conductor.
    #[arg(long, value_name = "FILE", conflicts_with_all = ["url", "token_file"])]
    site: Option<PathBuf>,
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
async fn main() -> ExitCode {
    match obey(Arguments::parse()).await {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("farrier-fleet: {error:#}");
            ExitCode::FAILURE
        }
    }
}

async fn obey(arguments: Arguments) -> Result<()> {
    let level = if arguments.verbose { LevelFilter::DEBUG } else { LevelFilter::WARN };
    let own = Targets::new().with_target("farrier_fleet", level);
    let lines = tracing_subscriber::fmt::layer().with_writer(std::io::stderr);
    tracing_subscriber::registry().with(lines).with(own).init();
    match arguments.command {
        Command::Check { file, site } => {
            let fleet = FleetFile::read(&file)?;
            let site = site.map(|site| SiteFile::read(&site)).transpose()?;
            site::check(site.as_ref(), &fleet)?;
            println!("{}: {} machines, {} lives", file.display(), fleet.machines, fleet.lives.count);
            Ok(())
        }
        Command::Serve { machines } => {
            let fleet = start(&machines, FleetFile::read(&machines.file)?).await?;
            if let Some(first) = fleet.machine(0) {
                println!("{} BMCs, the first at {}", fleet.file().machines, fleet.bmc_url(first));
            }
            tokio::signal::ctrl_c().await.context("signals cannot be waited for")
        }
        Command::Drive { machines, conductor, json, results } => {
            let report = run(&machines, &conductor, results.as_deref()).await?;
            print!("{report}");
            write(json.as_deref(), &report)?;
            match report.unexplained {
                0 => Ok(()),
                count => bail!("{count} lives failed without an explanation that names the cause"),
            }
        }
    }
}

async fn start(machines: &Machines, file: FleetFile) -> Result<Fleet> {
    let url = machines.agents_api_url.clone();
    Ok(Fleet::start(file, url, machines.journal.as_deref()).await?)
}

async fn run(machines: &Machines, conductor: &Conductor, results: Option<&Path>) -> Result<Report> {
    let file = FleetFile::read(&machines.file)?;
    let site = conductor.site.as_ref().map(|site| SiteFile::read(site)).transpose()?;
    site::check(site.as_ref(), &file)?;
    let results = results.map(|results| Results::open(results, file.seed.0)).transpose()?;
    let (mut results, ended) = results.map_or((None, None), |(results, ended)| (Some(results), ended));
    let site = match &site {
        Some(site) => Some(Arc::new(Site::start(site, &file).await?)),
        None => None,
    };
    let api = Arc::new(NodeApi::new(endpoints(conductor, site.as_deref())?)?);
    let pairs = conductor.driver_info.iter().map(|(key, value)| (key.clone(), Value::from(value.clone())));
    let driver_info = pairs.collect::<Map<_, _>>();
    let enrolment = Enrolment { boot_interface: conductor.boot_interface.clone(), driver_info };
    let fleet = Arc::new(start(machines, file).await?);
    let lives = fleet.file().lives.count;
    let mut count = ended.as_ref().map_or(0, Vec::len);
    let mut failed = None;
    let told = |life: &_| {
        count += 1;
        if count % 50 == 0 {
            eprintln!("{count} of {lives} lives have ended");
        }
        if let Some(Err(error)) = results.as_mut().map(|results| results.add(life)) {
            failed.get_or_insert(error);
        }
    };
    let report = Drive { api, enrolment, site, ended }.run(&fleet, told).await;
    failed.map_or(Ok(report), |error| Err(error.into()))
}

fn endpoints(conductor: &Conductor, site: Option<&Site>) -> Result<Vec<Endpoint>> {
    let of_site = |(url, token): &(String, Option<PathBuf>)| {
        let credentials = token.as_deref().map_or_else(|| credentials(conductor), token_in)?;
        Ok(Endpoint { url: url.clone(), credentials })
    };
    match (site, &conductor.url) {
        (Some(site), _) => site.endpoints().iter().map(of_site).collect(),
        (None, url) => {
            let url = url.clone().unwrap_or_default();
            Ok(vec![Endpoint { url, credentials: credentials(conductor)? }])
        }
    }
}

fn token_in(file: &Path) -> Result<Credentials> {
    let token = std::fs::read_to_string(file).with_context(|| format!("{}", file.display()))?;
    Ok(Credentials::Token(token.trim().to_owned()))
}

fn credentials(conductor: &Conductor) -> Result<Credentials> {
    if let Some(file) = &conductor.token_file {
        return token_in(file);
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
