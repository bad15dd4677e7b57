//! Lookup: finding out which node this machine is, with a retry after every failure, backoff and jitter (section 2.3).

use super::client::ConductorClient;
use super::error::ApiError;
use crate::network::wait;
use crate::settings::options::Options;
use farrier_protocol::lookup::LookupReply;
use rand::Rng;
use std::time::Duration;
use tokio::time::Instant;
use uuid::Uuid;

/// Longest pause between two lookups, in seconds.
const MAX_PAUSE: f64 = 60.0;
/// Pauses while the node is locked, in seconds; the last one repeats (F34).
const CONFLICT_PAUSES: [u64; 3] = [5, 10, 30];

/// The lookup did not succeed in time.
#[derive(Debug, thiserror::Error)]
#[error("no node was found for {addresses} in {seconds} s; the last answer was: {last}")]
pub struct LookupError {
    addresses: String,
    seconds: u64,
    last: ApiError,
}

/// Asks for the owner of the network cards that are there, or for a node that is known already. Repeats the
/// lookup until it succeeds; every failure is logged and tried again (F35), at once when another card has
/// appeared: that one may be the one that is enrolled. `meet` hears of the cards before each attempt, and may know
/// the node by then.
///
/// # Errors
///
/// [`LookupError`] after `lookup_timeout`.
pub async fn lookup<M: Future<Output = Option<Uuid>>>(
    client: &ConductorClient,
    options: &Options,
    node: Option<Uuid>,
    meet: impl Fn(Vec<String>) -> M,
) -> Result<LookupReply, LookupError> {
    lookup_with(client, options, node, wait::hardware_addresses, meet, wait::rest).await
}

/// [`lookup`] that finds cards, and rests between two attempts, in another way.
async fn lookup_with<M: Future<Output = Option<Uuid>>>(
    client: &ConductorClient,
    options: &Options,
    mut node: Option<Uuid>,
    cards: impl Fn() -> Vec<String>,
    meet: impl Fn(Vec<String>) -> M,
    rest: impl AsyncFn(Duration, &[String]),
) -> Result<LookupReply, LookupError> {
    let started = Instant::now();
    let deadline = started + options.lookup_timeout.duration();
    let least = options.lookup_interval.duration();
    let mut conflicts = 0;
    let mut attempt = 1;
    loop {
        let addresses = cards();
        node = meet(addresses.clone()).await.or(node);
        let error = match client.lookup(&addresses, node).await {
            Ok(reply) => return Ok(reply),
            Err(error) => error,
        };
        tracing::warn!(%error, attempt, "lookup failed, trying again");
        let mut pause = backoff(attempt, least);
        if error.is_conflict() {
            pause += Duration::from_secs(CONFLICT_PAUSES[conflicts.min(CONFLICT_PAUSES.len() - 1)]);
            conflicts += 1;
        }
        if Instant::now() + pause >= deadline {
            let seconds = started.elapsed().as_secs();
            return Err(LookupError { addresses: addresses.join(", "), seconds, last: error });
        }
        rest(pause, &addresses).await;
        attempt += 1;
    }
}

/// Pause after the given attempt, counted from 1: random between the least pause and a bound that
/// doubles.
fn backoff(attempt: u32, least: Duration) -> Duration {
    let bound = 2f64.powi(attempt.saturating_sub(1).min(16) as i32).min(MAX_PAUSE);
    let least = least.as_secs_f64().min(MAX_PAUSE);
    Duration::from_secs_f64(rand::rng().random_range(least..=bound.max(least)))
}

#[cfg(test)]
mod tests;
