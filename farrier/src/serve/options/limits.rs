//! Options of `farrier serve` about how much it does at once, and how it ends.

use clap::Args;
use farrier_conductor::Settings;
use farrier_conductor::settings::OperationLimits;
use std::time::Duration;

fn defaults() -> OperationLimits {
    OperationLimits::default()
}

/// Limits of operations.
#[derive(Debug, Args)]
#[command(next_help_heading = "Limits")]
pub(crate) struct Limits {
    /// Maximum number of deployments at a time on this conductor. More wait in a queue, first come, first served. With 0,
    /// here and in the limits below, there is no limit.
    #[arg(long, value_name = "COUNT", default_value_t = defaults().max_concurrent_deploy)]
    max_concurrent_deploy: usize,
    /// Maximum number of cleanings at a time.
    #[arg(long, value_name = "COUNT", default_value_t = defaults().max_concurrent_clean)]
    max_concurrent_clean: usize,
    /// Maximum number of inspections at a time.
    #[arg(long, value_name = "COUNT", default_value_t = defaults().max_concurrent_inspect)]
    max_concurrent_inspect: usize,
    /// Maximum number of rescues at a time.
    #[arg(long, value_name = "COUNT", default_value_t = defaults().max_concurrent_rescue)]
    max_concurrent_rescue: usize,
    /// Maximum number of services at a time.
    #[arg(long, value_name = "COUNT", default_value_t = defaults().max_concurrent_service)]
    max_concurrent_service: usize,
    /// Seconds to wait at SIGTERM for the work under way. Longer work is interrupted, and continued by another conductor or
    /// after the next start.
    #[arg(long, value_name = "SECONDS", default_value_t = Settings::new("").graceful_shutdown_timeout.as_secs())]
    graceful_shutdown_timeout: u64,
}

impl Limits {
    pub(crate) fn apply(&self, settings: &mut Settings) {
        settings.operations = OperationLimits {
            max_concurrent_deploy: self.max_concurrent_deploy,
            max_concurrent_clean: self.max_concurrent_clean,
            max_concurrent_inspect: self.max_concurrent_inspect,
            max_concurrent_rescue: self.max_concurrent_rescue,
            max_concurrent_service: self.max_concurrent_service,
        };
        settings.graceful_shutdown_timeout = Duration::from_secs(self.graceful_shutdown_timeout);
    }
}
