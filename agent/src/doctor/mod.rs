//! `farrier-agent doctor`: why this machine does not reach its conductor.
//!
//! It also runs by itself beside a wait for the network or for the conductor that takes too long
//! ([`beside`]); the verdicts then go to every console and into the log, and the first failure to places
//! where a conductor can still see it ([`report`]).

mod dhcp_name;
mod examination;
mod links;
mod report;
mod sel;
mod servers;
mod switch;
mod target;
mod tls;
mod verdict;

use crate::options::Options;
use clap::{Arg, ArgAction, ArgMatches, Command};
use examination::Patient;
use std::io::{self, Write};
use std::path::Path;
use tokio::time::sleep;
use verdict::{Report, State};

/// The subcommand.
pub fn command() -> Command {
    let json = Arg::new("json").long("json").help("Print an object").action(ArgAction::SetTrue);
    let help = "Also leave the first failure where farrier-doctor-report says";
    let report = Arg::new("report").long("report").help(help).action(ArgAction::SetTrue);
    Command::new("doctor").about("Find out why the conductor is not reached").arg(json).arg(report)
}

/// Prints the verdicts on standard output: as lines, or as an object.
///
/// # Errors
///
/// The conductor does not know this machine, or is not reached.
pub async fn print(options: Options, matches: &ArgMatches) -> anyhow::Result<()> {
    let patient = Patient::here(options);
    let found = patient.examine().await;
    let text =
        if matches.get_flag("json") { serde_json::to_string_pretty(&found)? + "\n" } else { found.text() };
    io::stdout().write_all(text.as_bytes())?;
    if let (true, Some(cause)) = (matches.get_flag("report"), found.cause()) {
        report::deliver(&patient, cause).await;
    }
    anyhow::ensure!(found.is_healthy, "this machine does not reach a conductor that knows it");
    Ok(())
}

/// Waits for something that needs network or conductor. When it takes too long the reason is looked
/// for, while the wait goes on.
pub async fn beside<T>(options: &Options, wait: impl Future<Output = T>) -> T {
    let patience = options.doctor_after.duration();
    if patience.is_zero() {
        return wait.await;
    }
    let options = options.clone();
    let visit = tokio::spawn(async move {
        sleep(patience).await;
        tracing::warn!("no conductor for {} s: looking for the reason", patience.as_secs());
        visit(options).await;
    });
    let outcome = wait.await;
    visit.abort();
    outcome
}

/// An examination whose outcome is logged, and reported once for each cause.
async fn visit(options: Options) {
    let patient = Patient::here(options);
    let found = patient.examine().await;
    log(&found);
    match found.cause() {
        Some(cause) if report::is_new(Path::new(report::REPORTED), cause) => {
            report::deliver(&patient, cause).await;
        }
        Some(_) => {}
        None => tracing::info!("doctor: nothing is wrong any more"),
    }
}

fn log(report: &Report) {
    for verdict in &report.verdicts {
        match verdict.state {
            State::Failed => tracing::error!("doctor: {verdict}"),
            State::Doubtful => tracing::warn!("doctor: {verdict}"),
            State::Good | State::Unused | State::NotTried => tracing::info!("doctor: {verdict}"),
        }
    }
}
