//! Reads the power state of machines, some of which cannot be read, and whose drivers may hang or crash.

use super::act::Call;
use crate::error::Error;
use crate::hardware_type::Hardware;
use crate::model::{InterfaceKind, Node, PowerState};
use std::time::Duration;

/// The power state of a node's machine, as its driver reads it within `limit`.
///
/// # Errors
///
/// [`Error::Unresolved`], and [`Error::Interface`], also when the driver does not answer in time.
pub async fn power_state(hardware: &Hardware, node: &Node, limit: Duration) -> Result<PowerState, Error> {
    let power = hardware.power(node)?;
    Ok(Call::of(node, InterfaceKind::Power, "power_state").answer(limit, power.power_state(node)).await?)
}
