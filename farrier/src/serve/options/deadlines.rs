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

/// Timeouts for agents and conductors.
#[derive(Debug, Args)]
#[command(next_help_heading = "Deadlines")]
pub(crate) struct Deadlines {
    /// Timeout for an agent that is silent during a deployment, in seconds. With 0, here and in the timeouts below,
    /// the conductor waits until an operator aborts.
    #[arg(long, value_name = "SECONDS", default_value_t = defaults().deploy_callback_timeout.as_secs(),
        value_parser = seconds(0))]
    deploy_callback_timeout: u64,
    /// Timeout for an agent that is silent during cleaning, in seconds.
    #[arg(long, value_name = "SECONDS", default_value_t = defaults().clean_callback_timeout.as_secs(),
        value_parser = seconds(0))]
    clean_callback_timeout: u64,
    /// Timeout for an agent that is silent during a service, in seconds.
    #[arg(long, value_name = "SECONDS", default_value_t = defaults().service_callback_timeout.as_secs(),
        value_parser = seconds(0))]
    service_callback_timeout: u64,
    /// Timeout for an agent that is silent during a rescue, in seconds.
    #[arg(long, value_name = "SECONDS", default_value_t = defaults().rescue_callback_timeout.as_secs(),
        value_parser = seconds(0))]
    rescue_callback_timeout: u64,
    /// Timeout for an inspection, in seconds.
    #[arg(long, value_name = "SECONDS", default_value_t = defaults().inspect_wait_timeout.as_secs(),
        value_parser = seconds(0))]
    inspect_wait_timeout: u64,
    /// Seconds to wait for the agent after a boot before trying the next interface in driver_info boot_fallback.
    /// Must exceed your slowest machine's boot time.
    #[arg(long, value_name = "SECONDS", default_value_t = defaults().boot_retry_timeout.as_secs(),
        value_parser = seconds(60))]
    boot_retry_timeout: u64,
    /// Timeout for powering a machine on or off, in seconds.
    #[arg(long, value_name = "SECONDS", default_value_t = defaults().power_state_change_timeout.as_secs(),
        value_parser = seconds(1))]
    power_state_change_timeout: u64,
    /// Timeout for a soft power off, in seconds.
    #[arg(long, value_name = "SECONDS", default_value_t = defaults().soft_power_off_timeout.as_secs(),
        value_parser = seconds(1))]
    soft_power_off_timeout: u64,
    /// Lease duration in seconds. If this conductor stops renewing its leases, another one takes over its nodes
    /// after this time. Must be equal on all conductors.
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

/// Options of the power state sync.
#[derive(Debug, Args)]
#[command(next_help_heading = "Power")]
pub(crate) struct PowerSync {
    /// Interval between power state syncs, in seconds (0 disables them).
    #[arg(long, value_name = "SECONDS",
        default_value_t = PowerSyncSettings::default().sync_power_state_interval.as_secs(),
        value_parser = seconds(0))]
    sync_power_state_interval: u64,
    /// Power a machine on or off if its power state differs from the record. With `false`, the record is updated
    /// instead.
    #[arg(long, value_name = "BOOL", action = ArgAction::Set,
        default_value_t = PowerSyncSettings::default().force_power_state_during_sync)]
    force_power_state_during_sync: bool,
    /// Number of failed power syncs in a row after which a node is put into maintenance.
    #[arg(long, value_name = "COUNT", value_parser = clap::value_parser!(u32).range(1..),
        default_value_t = PowerSyncSettings::default().power_state_sync_max_retries)]
    power_state_sync_max_retries: u32,
    /// Interval at which nodes in maintenance after a power failure are retried, in seconds (0: operators end
    /// maintenance by hand).
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
