//! Reads the power state of machines, some of which cannot be read, and whose drivers may hang or crash.

use crate::error::Error;
use crate::hardware_type::Hardware;
use crate::interfaces::base::InterfaceError;
use crate::model::{Node, PowerState};
use std::time::Duration;

/// Why a driver told nothing.
#[derive(Debug, thiserror::Error)]
enum NoAnswer {
    /// It hangs.
    #[error("driver {driver:?} did not tell the power state within {} s; look at the machine's BMC", .limit.as_secs_f64())]
    Late {
        /// The driver.
        driver: String,
        /// Its time.
        limit: Duration,
    },
    /// It is broken.
    #[error("driver {0:?} crashed; see the conductor's log")]
    Crashed(String),
}

/// The power state of a node's machine, as its driver reads it within `limit`.
///
/// # Errors
///
/// [`Error::Unresolved`], and [`Error::Interface`], when it is not told in time too.
pub async fn power_state(hardware: &Hardware, node: &Node, limit: Duration) -> Result<PowerState, Error> {
    let (power, driver) = (hardware.power(node)?, node.driver.clone());
    let read = node.clone();
    // A task of its own, so that a driver that crashes takes nothing with it.
    let mut reading = tokio::spawn(async move { power.power_state(&read).await });
    let no_answer = match tokio::time::timeout(limit, &mut reading).await {
        Ok(Ok(read)) => return Ok(read?),
        Ok(Err(_)) => NoAnswer::Crashed(driver),
        Err(_) => {
            reading.abort();
            NoAnswer::Late { driver, limit }
        }
    };
    Err(InterfaceError::driver(no_answer).into())
}
