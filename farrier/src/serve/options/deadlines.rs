//! Options of `farrier serve` about time: how long agents, conductors and machines are waited for.

use clap::builder::RangedU64ValueParser;
use clap::{ArgAction, Args};
use farrier_conductor::Settings;
use farrier_conductor::settings::PowerSyncSettings;
use std::time::Duration;

/// The longest time that can be meant, in seconds.
const YEAR: u64 = 365 * 24 * 60 * 60;

fn seconds(least: u64) -> RangedU64ValueParser {
    RangedU64ValueParser::new().range(least..=YEAR)
}

/// What holds where nothing is given.
fn defaults() -> Settings {
    Settings::new("")
}

/// How long agents and conductors may be silent.
#[derive(Debug, Args)]
#[command(next_help_heading = "Deadlines")]
pub(crate) struct Deadlines {
    /// Longest silence of an agent before its deployment fails, in seconds. With 0, here and below, it is waited for
    /// until an operator ends that.
    #[arg(long, value_name = "SECONDS", default_value_t = defaults().deploy_callback_timeout.as_secs(),
        value_parser = seconds(0))]
    deploy_callback_timeout: u64,
    /// The same for cleaning.
    #[arg(long, value_name = "SECONDS", default_value_t = defaults().clean_callback_timeout.as_secs(),
        value_parser = seconds(0))]
    clean_callback_timeout: u64,
    /// The same for service.
    #[arg(long, value_name = "SECONDS", default_value_t = defaults().service_callback_timeout.as_secs(),
        value_parser = seconds(0))]
    service_callback_timeout: u64,
    /// The same for rescue.
    #[arg(long, value_name = "SECONDS", default_value_t = defaults().rescue_callback_timeout.as_secs(),
        value_parser = seconds(0))]
    rescue_callback_timeout: u64,
    /// The same for inspection.
    #[arg(long, value_name = "SECONDS", default_value_t = defaults().inspect_wait_timeout.as_secs(),
        value_parser = seconds(0))]
    inspect_wait_timeout: u64,
    /// How long no agent may call after a boot before the next boot interface of driver_info boot_fallback is tried, in
    /// seconds; no less than the slowest machine needs.
    #[arg(long, value_name = "SECONDS", default_value_t = defaults().boot_retry_timeout.as_secs(),
        value_parser = seconds(60))]
    boot_retry_timeout: u64,
    /// How long a driver may take to power a machine on, or off, in seconds.
    #[arg(long, value_name = "SECONDS", default_value_t = defaults().power_state_change_timeout.as_secs(),
        value_parser = seconds(1))]
    power_state_change_timeout: u64,
    /// How long the system of a machine may take to shut down.
    #[arg(long, value_name = "SECONDS", default_value_t = defaults().soft_power_off_timeout.as_secs(),
        value_parser = seconds(1))]
    soft_power_off_timeout: u64,
    /// After so many seconds without a sign of life, another conductor over the same database goes on with the nodes of
    /// this one. It is the same for all of them, and the clocks of their hosts differ by much less.
    #[arg(long, value_name = "SECONDS", default_value_t = defaults().lease.as_secs(),
        value_parser = seconds(1))]
    lease: u64,
}

impl Deadlines {
    pub(crate) fn apply(&self, settings: &mut Settings) {
        settings.deploy_callback_timeout = Duration::from_secs(self.deploy_callback_timeout);
        settings.clean_callback_timeout = Duration::from_secs(self.clean_callback_timeout);
        settings.service_callback_timeout = Duration::from_secs(self.service_callback_timeout);
        settings.rescue_callback_timeout = Duration::from_secs(self.rescue_callback_timeout);
        settings.inspect_wait_timeout = Duration::from_secs(self.inspect_wait_timeout);
        settings.boot_retry_timeout = Duration::from_secs(self.boot_retry_timeout);
        settings.power_state_change_timeout = Duration::from_secs(self.power_state_change_timeout);
        settings.soft_power_off_timeout = Duration::from_secs(self.soft_power_off_timeout);
        settings.lease = Duration::from_secs(self.lease);
    }
}

/// How recorded power states are kept true.
#[derive(Debug, Args)]
#[command(next_help_heading = "Power")]
pub(crate) struct PowerSync {
    /// Compare the power of all machines with their records each so many seconds; 0 never does.
    #[arg(long, value_name = "SECONDS",
        default_value_t = PowerSyncSettings::default().sync_power_state_interval.as_secs(),
        value_parser = seconds(0))]
    sync_power_state_interval: u64,
    /// Power a machine on or off that is not as recorded; with false, the record follows the machine.
    #[arg(long, value_name = "BOOL", action = ArgAction::Set,
        default_value_t = PowerSyncSettings::default().force_power_state_during_sync)]
    force_power_state_during_sync: bool,
    /// Put a node into maintenance whose machine could not be read, or did not follow, so often in a row.
    #[arg(long, value_name = "COUNT", value_parser = clap::value_parser!(u32).range(1..),
        default_value_t = PowerSyncSettings::default().power_state_sync_max_retries)]
    power_state_sync_max_retries: u32,
    /// Look each so many seconds whether such a machine can be read again, which ends its maintenance; 0 leaves that
    /// to operators.
    #[arg(long, value_name = "SECONDS",
        default_value_t = PowerSyncSettings::default().power_failure_recovery_interval.as_secs(),
        value_parser = seconds(0))]
    power_failure_recovery_interval: u64,
}

impl PowerSync {
    pub(crate) fn apply(&self, settings: &mut Settings) {
        settings.power_sync = PowerSyncSettings {
            sync_power_state_interval: Duration::from_secs(self.sync_power_state_interval),
            power_state_sync_max_retries: self.power_state_sync_max_retries,
            force_power_state_during_sync: self.force_power_state_during_sync,
            power_failure_recovery_interval: Duration::from_secs(self.power_failure_recovery_interval),
            ..PowerSyncSettings::default()
        };
    }
}
