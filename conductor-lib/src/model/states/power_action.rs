//! What operators want from the power of a machine (section 9.1).

use crate::model::states::PowerState;
use std::fmt;

/// What an operator wants from the power of a machine.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PowerAction {
    /// Power on.
    On,
    /// Power off at once.
    Off,
    /// Power off and on.
    Reboot,
    /// Have the machine's system shut down.
    SoftOff,
    /// Have the machine's system shut down, and power on.
    SoftReboot,
}

impl PowerAction {
    /// Every one.
    pub const ALL: &'static [Self] = &[Self::On, Self::Off, Self::Reboot, Self::SoftOff, Self::SoftReboot];

    /// The one with this text on the wire.
    pub fn named(text: &str) -> Option<Self> {
        Self::ALL.iter().copied().find(|action| action.as_str() == text)
    }

    /// The text on the wire.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::On => "power on",
            Self::Off => "power off",
            Self::Reboot => "rebooting",
            Self::SoftOff => "soft power off",
            Self::SoftReboot => "soft rebooting",
        }
    }

    /// The power state that it leads to.
    pub fn target(self) -> PowerState {
        match self {
            Self::On | Self::Reboot | Self::SoftReboot => PowerState::On,
            Self::Off | Self::SoftOff => PowerState::Off,
        }
    }

    /// Whether there is nothing to do where the machine is in that state already.
    pub fn is_done_in_its_target(self) -> bool {
        matches!(self, Self::On | Self::Off | Self::SoftOff)
    }

    /// Whether it is for the machine's system to shut down.
    pub fn is_soft(self) -> bool {
        matches!(self, Self::SoftOff | Self::SoftReboot)
    }
}

impl fmt::Display for PowerAction {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn actions_read_as_in_the_contract() {
        let texts: Vec<_> = PowerAction::ALL.iter().map(|action| action.as_str()).collect();
        assert_eq!(texts, ["power on", "power off", "rebooting", "soft power off", "soft rebooting"]);
        for action in PowerAction::ALL {
            assert_eq!(PowerAction::named(action.as_str()), Some(*action));
        }
        assert_eq!(PowerAction::named("sideways"), None);
    }
}
