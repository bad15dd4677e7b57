//! Orders: what operators want of a node.

use super::states::named_states;
use serde::{Deserialize, Serialize};
use std::fmt;
use time::OffsetDateTime;

named_states! {
    /// What an operator wants, or what is owed to one.
    Verb {
        /// An instance, or the instance written anew.
        Deploy = "active",
        /// The instance removed.
        Undeploy = "deleted",
        /// The machine proven to be under control.
        Manage = "manage",
        /// The machine cleaned, by hand or for the next instance.
        Clean = "clean",
        /// The machine serviced beneath its instance.
        Service = "service",
        /// A machine taken over that runs its instance.
        Adopt = "adopt",
        /// The machine looked at.
        Inspect = "inspect",
        /// What its ramdisk posted looked at.
        ContinueInspection = "continue inspection",
        /// A rescue system, to repair the instance with.
        Rescue = "rescue",
        /// The instance started again after a rescue.
        Unrescue = "unrescue",
        /// The operation under way ended.
        Abort = "abort",
        /// What an operation that failed has left put right.
        CleanUp = "clean up",
        /// The machine on.
        PowerOn = "power on",
        /// The machine off.
        PowerOff = "power off",
        /// The machine off and on.
        Reboot = "rebooting",
        /// The machine's system shut down.
        SoftPowerOff = "soft power off",
        /// The machine's system shut down, and the machine on.
        SoftReboot = "soft rebooting",
        /// The node forgotten.
        Forget = "forget",
    }
}

/// An order, which stays until it is carried out or has failed, whatever becomes of who took it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Order {
    /// What is wanted.
    pub verb: Verb,
    /// Since when.
    pub ordered_at: OffsetDateTime,
    /// How often it was taken up again: a conductor had stopped, or an agent did not say whether it was done.
    pub attempts: i64,
}

impl Order {
    /// A new order.
    pub fn new(verb: Verb, ordered_at: OffsetDateTime) -> Self {
        Self { verb, ordered_at, attempts: 0 }
    }
}
