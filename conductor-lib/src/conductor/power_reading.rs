//! Reads the power state of machines, some of which cannot be read, and whose drivers may hang or crash.

use crate::error::Error;
use crate::model::{Node, PowerState};
use crate::services::Services;
use std::time::Duration;

/// Why the power state of a machine is not known.
#[derive(Debug, thiserror::Error)]
pub(super) enum Unreadable {
    /// The driver is unknown, or said so.
    #[error(transparent)]
    Driver(#[from] Error),
    /// The driver did not answer in time.
    #[error("driver {driver:?} did not answer within {} s", .limit.as_secs_f64())]
    Late {
        /// The driver.
        driver: String,
        /// Its time.
        limit: Duration,
    },
    /// The driver did not answer at all.
    #[error("driver {0:?} crashed; see the conductor's log")]
    Crashed(String),
}

/// The power state of a node's machine, as the machine tells it now.
pub(super) async fn power_state(services: &Services, node: &Node) -> Result<PowerState, Unreadable> {
    let power = services.hardware.power(node).map_err(Error::from)?;
    let limit = services.settings.power_read_timeout;
    let read = node.clone();
    // A task of its own, so that a driver that crashes takes nothing with it.
    let mut reading = tokio::spawn(async move { power.power_state(&read).await });
    match tokio::time::timeout(limit, &mut reading).await {
        Ok(Ok(read)) => Ok(read.map_err(Error::from)?),
        Ok(Err(_)) => Err(Unreadable::Crashed(node.driver.clone())),
        Err(_) => {
            reading.abort();
            Err(Unreadable::Late { driver: node.driver.clone(), limit })
        }
    }
}
