//! How a driver reaches a machine, and what it boots there (section 1.10).

use super::typed_map::{BadValue, typed_map};

typed_map! {
    /// How the driver reaches the machine, and what it boots there. Keys that belong to one driver are read by it.
    DriverInfo = "driver_info"
}

impl DriverInfo {
    /// Whether the agent may stay between operations; nothing where the conductor's setting holds.
    ///
    /// # Errors
    ///
    /// The value stands for no boolean.
    pub fn fast_track(&self) -> Result<Option<bool>, BadValue> {
        self.flag("fast_track")
    }

    /// Whether the machine is reset by its BMC when a deployment ends, in place of a shutdown by the agent.
    ///
    /// # Errors
    ///
    /// The value stands for no boolean.
    pub fn deploy_forces_oob_reboot(&self) -> Result<bool, BadValue> {
        Ok(self.flag("deploy_forces_oob_reboot")?.unwrap_or(false))
    }
}
