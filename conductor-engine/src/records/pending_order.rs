//! Orders that are not carried out yet, as a store keeps them.

use farrier_conductor::model::states::named_states;
use farrier_conductor::model::states::power_action::PowerAction;
use farrier_conductor::model::steps::step::StepKind;
use serde::{Deserialize, Serialize};
use std::fmt;
use time::OffsetDateTime;

named_states! {
    /// What a worker carries out: what an [`Order`](super::Order) comes to, or what an operation leaves to be done.
    Verb {
        /// An instance, or the instance written again.
        Deploy = "active",
        /// The instance removed.
        Undeploy = "deleted",
        /// The machine proven to be under control.
        Manage = "manage",
        /// The machine cleaned, by hand or for the next instance.
        Clean = "clean",
        /// The machine serviced under its instance.
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

/// The order by which an operation begins, and goes on when its hold is lifted.
impl From<StepKind> for Verb {
    fn from(kind: StepKind) -> Self {
        match kind {
            StepKind::Clean => Self::Clean,
            StepKind::Deploy => Self::Deploy,
            StepKind::Service => Self::Service,
        }
    }
}

impl From<PowerAction> for Verb {
    fn from(action: PowerAction) -> Self {
        match action {
            PowerAction::On => Self::PowerOn,
            PowerAction::Off => Self::PowerOff,
            PowerAction::Reboot => Self::Reboot,
            PowerAction::SoftOff => Self::SoftPowerOff,
            PowerAction::SoftReboot => Self::SoftReboot,
        }
    }
}

impl Verb {
    /// The power action that it orders, where it orders one.
    pub fn power_action(self) -> Option<PowerAction> {
        PowerAction::ALL.iter().copied().find(|action| Self::from(*action) == self)
    }
}

/// An order that is not carried out yet. It stays until it is carried out or has failed, also when its conductor stops.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PendingOrder {
    /// What is wanted.
    pub verb: Verb,
    /// Since when.
    pub ordered_at: OffsetDateTime,
    /// How often it was taken up again: a conductor had stopped, or an agent did not say whether it was done.
    pub attempts: i64,
}

impl PendingOrder {
    /// A new order.
    pub fn new(verb: Verb, ordered_at: OffsetDateTime) -> Self {
        Self { verb, ordered_at, attempts: 0 }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_power_action_has_its_verb() {
        for action in PowerAction::ALL {
            let verb = Verb::from(*action);
            assert_eq!((verb.as_str(), verb.power_action()), (action.as_str(), Some(*action)));
        }
        assert_eq!(Verb::Deploy.power_action(), None);
    }
}
