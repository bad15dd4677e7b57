//! Options of `farrier serve` about agents: those that stay, their logs, and the passwords that they take.

use clap::{ArgAction, Args, ValueEnum};
use farrier_conductor::Settings;
use farrier_conductor::agent::{LogCollection, LogRoom};
use farrier_conductor::model::PasswordHashAlgorithm;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Agents that stay, their logs, and the passwords that they take.
#[derive(Debug, Args)]
#[command(next_help_heading = "Agents")]
pub(crate) struct Agents {
    /// Keep machines powered on after cleaning and inspection, so that the next operation needs no boot.
    /// `fast_track` in driver_info of a node overrides it.
    #[arg(long, value_name = "BOOL", default_value_t = false, action = ArgAction::Set)]
    fast_track: bool,
    /// Reboot the machine anyway if its agent has been silent for this many seconds.
    #[arg(long, value_name = "SECONDS", default_value_t = 300, value_parser = clap::value_parser!(u64).range(1..=300))]
    fast_track_timeout: u64,
    /// Collect the logs of ramdisks: on_failure (of an operation), always (after each deployment too) or never.
    #[arg(long, value_enum, value_name = "WHEN", default_value_t = Logs::OnFailure)]
    deploy_logs_collect: Logs,
    /// Folder for the logs of ramdisks [default: STATE_DIR/deploy-logs].
    #[arg(long, value_name = "DIR")]
    deploy_logs_local_path: Option<PathBuf>,
    /// Size limit for the logs and screenshots of one node, in MiB; the oldest are removed.
    #[arg(long, value_name = "MIB", default_value_t = 128, value_parser = clap::value_parser!(u64).range(1..))]
    deploy_logs_node_limit: u64,
    /// Size limit for the logs and screenshots of all nodes, in MiB; the oldest are removed.
    #[arg(long, value_name = "MIB", default_value_t = 2048, value_parser = clap::value_parser!(u64).range(1..))]
    deploy_logs_limit: u64,
    /// Hash algorithm for rescue passwords.
    #[arg(long, value_enum, value_name = "NAME", default_value_t = Hash::Sha256)]
    rescue_password_hash_algorithm: Hash,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Logs {
    #[value(name = "on_failure")]
    OnFailure,
    Always,
    Never,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Hash {
    Sha256,
    Sha512,
}

impl Agents {
    /// Puts the options into the settings of a conductor.
    pub(crate) fn apply(self, settings: &mut Settings, state_dir: &Path) {
        settings.fast_track = self.fast_track;
        settings.fast_track_timeout = Duration::from_secs(self.fast_track_timeout);
        settings.agent.deploy_logs_collect = match self.deploy_logs_collect {
            Logs::OnFailure => LogCollection::OnFailure,
            Logs::Always => LogCollection::Always,
            Logs::Never => LogCollection::Never,
        };
        let folder = self.deploy_logs_local_path.unwrap_or_else(|| state_dir.join("deploy-logs"));
        settings.agent.deploy_logs_local_path = Some(folder);
        settings.agent.deploy_logs_room = LogRoom {
            bytes_per_node: self.deploy_logs_node_limit << 20,
            bytes: self.deploy_logs_limit << 20,
            ..LogRoom::default()
        };
        settings.rescue_password_hash_algorithm = match self.rescue_password_hash_algorithm {
            Hash::Sha256 => PasswordHashAlgorithm::Sha256,
            Hash::Sha512 => PasswordHashAlgorithm::Sha512,
        };
    }
}
