//! `farrier-agent doctor`: why this machine does not reach its conductor.
//!
//! It also runs by itself beside a wait for the network or for the conductor that takes too long
//! ([`beside`]); the verdicts then go to every console and into the log, and the first failure to places
//! where a conductor can still see it ([`report`]).

mod devices;
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

use crate::settings::options::Options;
use clap::{Arg, ArgAction, ArgMatches, Command};
use examination::Host;
use farrier_linux::efivars::EfiVariables;
use farrier_protocol::doctor::ALL_CHECKS_PASSED;
use std::io::{self, Write};
use std::path::Path;
use tokio::task::JoinHandle;
use tokio::time::sleep;
use verdict::{Report, State};

/// The subcommand.
pub fn command() -> Command {
    let json = Arg::new("json").long("json").help("Print an object").action(ArgAction::SetTrue);
    let help = "Report the first failure to the places in farrier-doctor-report";
    let report = Arg::new("report").long("report").help(help).action(ArgAction::SetTrue);
    Command::new("doctor")
        .about("Check the connection to the conductor, and name the fault")
        .arg(json)
        .arg(report)
}

/// No conductor that knows this machine is reached.
#[derive(Debug, thiserror::Error)]
#[error("this machine does not reach a conductor that has its node; correct the first check that failed")]
pub struct NotReached;

/// Prints the verdicts on standard output: as lines, or as an object.
///
/// # Errors
///
/// [`NotReached`], or standard output cannot be written.
pub async fn print(options: Options, matches: &ArgMatches) -> anyhow::Result<()> {
    let host = Host::here(options);
    let found = host.examine().await;
    let text =
        if matches.get_flag("json") { serde_json::to_string_pretty(&found)? + "\n" } else { found.text() };
    io::stdout().write_all(text.as_bytes())?;
    if let (true, Some(cause)) = (matches.get_flag("report"), found.cause()) {
        report::deliver(&host, cause).await;
    }
    match found.is_healthy {
        true => Ok(()),
        false => Err(NotReached.into()),
    }
}

/// Waits for something that needs network or conductor. When it takes too long the reason is looked
/// for, while the wait continues.
pub async fn beside<T>(options: &Options, wait: impl Future<Output = T>) -> T {
    let mut watch = Watch::default();
    watch.missed(options);
    wait.await
}

/// Removes what an earlier examination left in the firmware. A conductor is there now, and the next user of the
/// machine need not know where.
pub fn forget() {
    report::forget(EfiVariables::system().as_ref(), Path::new(report::REPORTED));
}

/// Runs after the configured time without an answer, once until an answer comes.
/// Dropping it calls that off.
#[derive(Debug, Default)]
pub struct Watch(Option<JoinHandle<()>>);

impl Watch {
    /// No answer came.
    pub fn missed(&mut self, options: &Options) {
        let patience = options.doctor_after.duration();
        if self.0.is_some() || patience.is_zero() {
            return;
        }
        let options = options.clone();
        self.0 = Some(tokio::spawn(async move {
            sleep(patience).await;
            tracing::warn!("no conductor for {} s: running the doctor", patience.as_secs());
            visit(options).await;
        }));
    }

    /// An answer came.
    pub fn answered(&mut self) {
        if let Some(visit) = self.0.take() {
            visit.abort();
        }
    }
}

impl Drop for Watch {
    fn drop(&mut self) {
        self.answered();
    }
}

/// An examination whose outcome is logged, and reported once for each cause.
async fn visit(options: Options) {
    let host = Host::here(options);
    let found = host.examine().await;
    log(&found);
    match found.cause() {
        Some(cause) if report::is_new(Path::new(report::REPORTED), cause) => {
            report::deliver(&host, cause).await;
        }
        Some(_) => {}
        None => tracing::info!("doctor: {ALL_CHECKS_PASSED}"),
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

#[cfg(test)]
mod tests {
    use super::*;
    use farrier_linux::kernel_line;

    fn options(line: &str) -> Options {
        Options::load(&kernel_line::parse(line), &Default::default()).0
    }

    #[tokio::test]
    async fn a_visit_is_called_off_when_somebody_answers() {
        let mut watch = Watch::default();
        watch.missed(&options("farrier-doctor-after=0"));
        assert!(watch.0.is_none(), "0 means never");
        watch.missed(&options("farrier-doctor-after=3600"));
        let first = watch.0.as_ref().map(JoinHandle::id);
        watch.missed(&options("farrier-doctor-after=3600"));
        assert!(first.is_some() && watch.0.as_ref().map(JoinHandle::id) == first, "one at a time");
        watch.answered();
        assert!(watch.0.is_none());
        assert_eq!(beside(&options(""), async { 7 }).await, 7);
    }
}
