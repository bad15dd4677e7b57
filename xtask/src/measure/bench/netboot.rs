//! `cargo xtask bench netboot`: boots from the network, and the servers behind them, beside Ironic and what serves its files.
//!
//! A machine is switched on once a conductor waits for it, and the clock runs until its agent says that the first heartbeat
//! was answered. Then many clients load one file at once. In a round everybody has one turn, and of the rounds the median
//! counts.

mod clients;
mod page;
mod report;
mod servers;
mod serving;
mod tftp;
mod way;

pub use report::NetbootReport;

use std::fs;
use std::path::{Path, PathBuf};
use std::thread;

use anyhow::{Context, Result, anyhow, ensure};
use clap::Args;

use self::report::{Boot, Load};
use self::serving::{Round, Sent};
use self::way::{Parts, Way, Went};
use super::conductors::RIVAL;
use crate::build::{dist, ironic_environment};
use crate::host::requirements::{self, Purpose};
use crate::host::workspace::{Workspace, write_json};

/// What the second half is called among the names of ways.
const SERVING: &str = "serving";
/// Who sends files in that, by HTTP and by TFTP.
const OWN: [&str; 2] = ["farrier serve", "farrier serve"];
const BESIDE: [&str; 2] = ["nginx", "dnsmasq"];
const PROTOCOLS: [&str; 2] = ["HTTP", "TFTP"];

/// Boots a machine from the network by each boot interface, beside Ironic's iPXE: time from power on to the first heartbeat,
/// and bytes. Then has many clients load one file at once, beside nginx and dnsmasq.
#[derive(Debug, Args)]
pub struct NetbootArguments {
    /// Writes the figures as JSON.
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
    /// Writes the page of the book with the figures.
    #[arg(long, conflicts_with = "filter")]
    page: bool,
    /// How many rounds there are; the median is reported.
    #[arg(long, value_name = "N", default_value_t = 2, value_parser = clap::value_parser!(u32).range(1..))]
    runs: u32,
    /// How many clients load one file at once.
    #[arg(long, value_name = "N", default_value_t = 200, value_parser = clap::value_parser!(u16).range(1..=5000))]
    clients: u16,
    /// Only what has all these parts, separated by commas, in its name, such as ipxe-bios-ironic or serving.
    #[arg(long, value_name = "PARTS", value_delimiter = ',')]
    filter: Vec<String>,
    /// Folder of a ramdisk that was built already: vmlinuz and initramfs.img.
    #[arg(long, value_name = "FOLDER")]
    dist: Option<PathBuf>,
    /// A reference conductor that was built already.
    #[arg(long, value_name = "FILE")]
    conductor: Option<PathBuf>,
    /// Only names packages that are missing.
    #[arg(long)]
    no_install: bool,
}

impl NetbootArguments {
    fn wants(&self, name: &str) -> bool {
        self.filter.iter().all(|part| name.split('-').any(|word| word == part))
    }
}

/// Runs the benchmark.
pub fn bench(arguments: &NetbootArguments) -> Result<()> {
    let mut purposes = vec![Purpose::Machine, Purpose::NetbootBench, Purpose::Python];
    if arguments.dist.is_none() {
        purposes.push(Purpose::Dist);
    }
    requirements::ensure(&purposes, !arguments.no_install)?;
    let workspace = Workspace::find()?;
    let dist = match &arguments.dist {
        Some(folder) => std::path::absolute(folder)?,
        None => dist::build(&workspace, "x86_64", dist::Firmware::None)?.folder,
    };
    let farrier = match &arguments.conductor {
        Some(file) => std::path::absolute(file)?,
        None => workspace.build_released_conductor()?,
    };
    let ironic = ironic_environment::cached_version(&workspace, RIVAL)?;
    let parts = Parts { farrier: &farrier, ironic: &ironic, dist: &dist };
    let report = workspace.in_scratch_folder(|folder| measure(arguments, &parts, folder))?;
    print!("{}", report.table());
    write_json(arguments.json.as_deref(), &report)?;
    match arguments.page {
        true => crate::book::page::write(&workspace, &report),
        false => Ok(()),
    }
}

fn measure(arguments: &NetbootArguments, parts: &Parts<'_>, folder: &Path) -> Result<NetbootReport> {
    let sent = Sent::read(parts.dist)?;
    let ways: Vec<_> = Way::ALL.into_iter().filter(|way| arguments.wants(&way.to_string())).collect();
    let mut went: Vec<Vec<Went>> = vec![Vec::new(); ways.len()];
    let mut rounds: [Vec<Round>; 4] = Default::default();
    for run in 1..=arguments.runs {
        for (way, went) in ways.iter().zip(&mut went) {
            let run_folder = folder.join(format!("{way}-{run}"));
            let one = apart(|| way.go(parts, &run_folder))?;
            println!("{way}, run {run}: {:.1} s to the first heartbeat", one.to_heartbeat.as_secs_f64());
            went.push(one);
        }
        if arguments.wants(SERVING) {
            let round = serve(arguments.clients, parts, &sent, &folder.join(format!("serving-{run}")))?;
            rounds.iter_mut().zip(round).for_each(|(rounds, round)| rounds.push(round));
        }
    }
    ensure!(
        !ways.is_empty() || arguments.wants(SERVING),
        "nothing has all of {:?} in its name",
        arguments.filter
    );
    let boots = ways.iter().zip(went).map(|(way, went)| Boot::median(*way, went));
    let servers = PROTOCOLS.into_iter().zip(OWN).chain(PROTOCOLS.into_iter().zip(BESIDE));
    let loads =
        servers.zip(rounds).filter_map(|((protocol, server), rounds)| Load::median(protocol, server, rounds));
    Ok(NetbootReport {
        machine: crate::book::page::machine(),
        ironic: RIVAL.to_owned(),
        runs: arguments.runs,
        clients: arguments.clients,
        vmlinuz_bytes: fs::metadata(parts.dist.join("vmlinuz"))?.len(),
        ramdisk_bytes: sent.ramdisk_bytes(),
        loader_bytes: sent.loader_bytes(),
        boots: boots.collect::<Option<_>>().context("a way was not gone")?,
        loads: loads.collect(),
    })
}

/// One round of the second half: by HTTP and by TFTP, by `farrier serve` and then by those beside it.
fn serve(clients: u16, parts: &Parts<'_>, sent: &Sent, folder: &Path) -> Result<[Round; 4]> {
    let (own_http, own_tftp) =
        apart(|| serving::farrier(parts.farrier, parts.dist, sent, clients, &folder.join("farrier")))?;
    let (http, tftp) = apart(|| serving::beside(parts.dist, sent, clients, &folder.join("beside")))?;
    let round = [own_http, own_tftp, http, tftp];
    let servers = OWN.into_iter().chain(BESIDE);
    for (server, round) in servers.zip(round) {
        println!("{server}: {:.0} MiB/s", round.figures.mib_per_second);
    }
    Ok(round)
}

/// In a thread of its own, since that has its network.
fn apart<T: Send>(run: impl FnOnce() -> Result<T> + Send) -> Result<T> {
    thread::scope(|scope| scope.spawn(run).join().unwrap_or_else(|_| Err(anyhow!("a run panicked"))))
}
