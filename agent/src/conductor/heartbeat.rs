//! Heartbeats: telling the conductor, again and again, that the agent is there, with a retry when one fails (section
//! 2.4).

use crate::agent::Agent;
use crate::doctor::{self, Watch};
use farrier_linux::sysfs;
use farrier_protocol::heartbeat::Heartbeat;
use rand::Rng;
use std::sync::Arc;
use std::time::Duration;
use tokio::time::{Instant, sleep_until};

/// Seconds between a failed heartbeat and the next, before jitter.
const ERROR_INTERVAL: f64 = 5.0;
/// Least seconds between two attempts, forced ones included.
const COALESCE: Duration = Duration::from_secs(5);

/// What every heartbeat of a boot says; it must not change while the machine is up.
#[derive(Clone)]
pub struct Callback {
    /// Node the machine is.
    pub node: String,
    /// Where the agent listens.
    pub url: String,
    /// Its certificate as PEM text, when the agent made it.
    pub certificate_pem: Option<String>,
    /// Base of the interval.
    pub timeout: Duration,
}

/// Sends heartbeats for ever.
pub async fn run(agent: Arc<Agent>, callback: Callback) {
    let Some(client) = &agent.conductor else { return };
    let mut is_first = true;
    let mut watch = Watch::default();
    loop {
        let attempted = Instant::now();
        let heartbeat = Heartbeat {
            callback_url: callback.url.clone(),
            agent_token: agent.token(),
            agent_version: Some(crate::agent::VERSION.to_owned()),
            agent_verify_ca: callback.certificate_pem.clone(),
            ..Heartbeat::default()
        };
        let pause = match client.heartbeat(&callback.node, heartbeat).await {
            Ok(()) => {
                watch.answered();
                if std::mem::take(&mut is_first) {
                    log_first();
                    tokio::task::spawn_blocking(doctor::forget);
                }
                jitter(callback.timeout.as_secs_f64(), 0.3..0.6)
            }
            Err(error) => {
                tracing::warn!(%error, "heartbeat failed, trying again");
                watch.missed(&agent.options);
                jitter(ERROR_INTERVAL, 1.0..2.0)
            }
        };
        tokio::select! {
            () = sleep_until(attempted + pause) => {}
            () = agent.heartbeat_wanted.notified() => sleep_until(attempted + COALESCE.min(pause)).await,
        }
    }
}

/// The figures by which the start of a ramdisk is measured.
fn log_first() {
    let uptime = sysfs::uptime().as_secs_f64();
    let rss_bytes = sysfs::resident_bytes().unwrap_or_default();
    tracing::info!("first heartbeat accepted uptime={uptime:.2} rss_bytes={rss_bytes}");
}

fn jitter(seconds: f64, range: std::ops::Range<f64>) -> Duration {
    Duration::from_secs_f64(seconds * rand::rng().random_range(range))
}
