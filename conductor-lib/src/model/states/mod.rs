//! Provision states, and the families of operations that they belong to (sections 1.1 and 1.5).

pub mod boot_device;
pub mod faults;
pub mod power_action;
pub mod transitions;

use serde::{Deserialize, Serialize};
use std::fmt;

/// An enum whose variants have names on the wire and in the store.
#[macro_export]
#[doc(hidden)]
macro_rules! named_states {
    ($(#[$meta:meta])* $name:ident { $($(#[$doc:meta])* $variant:ident = $text:literal,)* }) => {
        $(#[$meta])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
        pub enum $name {
            $($(#[$doc])* #[serde(rename = $text)] $variant,)*
        }

        impl $name {
            /// Every one, in the order of the contract.
            pub const ALL: &'static [Self] = &[$(Self::$variant),*];

            /// The text on the wire and in the store.
            pub fn as_str(self) -> &'static str {
                match self { $(Self::$variant => $text,)* }
            }

            /// The one with this text.
            pub fn named(text: &str) -> Option<Self> {
                Self::ALL.iter().copied().find(|one| one.as_str() == text)
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(self.as_str())
            }
        }
    };
}
pub use named_states;

named_states! {
    /// Where a node is in its life.
    ProvisionState {
        /// Known, and not yet proven to be controllable.
        Enroll = "enroll",
        /// The conductor looks whether it can control the machine.
        Verifying = "verifying",
        /// Under control, and not offered for instances.
        Manageable = "manageable",
        /// Ready to be deployed.
        Available = "available",
        /// The conductor works on a deployment.
        Deploying = "deploying",
        /// A deployment waits for the agent (DEPLOYWAIT).
        DeployWait = "wait call-back",
        /// A deployment waits for an operator.
        DeployHold = "deploy hold",
        /// The last deployment failed.
        DeployFailed = "deploy failed",
        /// An instance runs.
        Active = "active",
        /// The instance is being removed.
        Deleting = "deleting",
        /// Removing the instance failed.
        Error = "error",
        /// The conductor works on cleaning.
        Cleaning = "cleaning",
        /// Cleaning waits for the agent (CLEANWAIT).
        CleanWait = "clean wait",
        /// Cleaning waits for an operator.
        CleanHold = "clean hold",
        /// The last cleaning failed.
        CleanFailed = "clean failed",
        /// The conductor works on an inspection.
        Inspecting = "inspecting",
        /// An inspection waits for the ramdisk (INSPECTWAIT).
        InspectWait = "inspect wait",
        /// The last inspection failed.
        InspectFailed = "inspect failed",
        /// An instance that runs already is being taken over.
        Adopting = "adopting",
        /// Taking an instance over failed.
        AdoptFailed = "adopt failed",
        /// The conductor works on a rescue.
        Rescuing = "rescuing",
        /// A rescue waits for the agent (RESCUEWAIT).
        RescueWait = "rescue wait",
        /// The rescue system runs.
        Rescue = "rescue",
        /// The last rescue failed.
        RescueFailed = "rescue failed",
        /// The instance is being started again.
        Unrescuing = "unrescuing",
        /// Starting the instance again failed.
        UnrescueFailed = "unrescue failed",
        /// The conductor works on a service of the instance's machine.
        Servicing = "servicing",
        /// A service waits for the agent (SERVICEWAIT).
        ServiceWait = "service wait",
        /// A service waits for an operator.
        ServiceHold = "service hold",
        /// The last service failed.
        ServiceFailed = "service failed",
    }
}

named_states! {
    /// Whether a machine is powered.
    PowerState {
        /// Powered.
        On = "power on",
        /// Not powered.
        Off = "power off",
    }
}

/// The operation that a node is in, or that failed last.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Family {
    /// Becoming manageable.
    Verify,
    /// Getting an instance.
    Deploy,
    /// Losing its instance.
    Delete,
    /// Being made ready for the next instance, or cleaned by hand.
    Clean,
    /// Telling what it is made of.
    Inspect,
    /// Being taken over with its instance.
    Adopt,
    /// Getting a rescue system.
    Rescue,
    /// Getting its instance back.
    Unrescue,
    /// Being serviced under its instance.
    Service,
}

/// What a node does in a state, and who moves it on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Activity {
    /// Nothing: an operator orders what is next.
    Rest,
    /// A conductor works on it.
    Work,
    /// The ramdisk must call.
    Wait,
    /// An operator must let it continue.
    Hold,
    /// The operation failed: an operator decides.
    Failed,
}

use Activity::{Failed, Hold, Rest, Wait, Work};
use ProvisionState::*;

impl ProvisionState {
    /// The operation it belongs to; nothing in a state of rest.
    pub fn family(self) -> Option<Family> {
        self.place().0
    }

    /// What happens in it.
    pub fn activity(self) -> Activity {
        self.place().1
    }

    fn place(self) -> (Option<Family>, Activity) {
        let (family, activity) = match self {
            Enroll | Manageable | Available | Active | Rescue => return (None, Rest),
            Verifying => (Family::Verify, Work),
            Deploying => (Family::Deploy, Work),
            DeployWait => (Family::Deploy, Wait),
            DeployHold => (Family::Deploy, Hold),
            DeployFailed => (Family::Deploy, Failed),
            Deleting => (Family::Delete, Work),
            Error => (Family::Delete, Failed),
            Cleaning => (Family::Clean, Work),
            CleanWait => (Family::Clean, Wait),
            CleanHold => (Family::Clean, Hold),
            CleanFailed => (Family::Clean, Failed),
            Inspecting => (Family::Inspect, Work),
            InspectWait => (Family::Inspect, Wait),
            InspectFailed => (Family::Inspect, Failed),
            Adopting => (Family::Adopt, Work),
            AdoptFailed => (Family::Adopt, Failed),
            Rescuing => (Family::Rescue, Work),
            RescueWait => (Family::Rescue, Wait),
            RescueFailed => (Family::Rescue, Failed),
            Unrescuing => (Family::Unrescue, Work),
            UnrescueFailed => (Family::Unrescue, Failed),
            Servicing => (Family::Service, Work),
            ServiceWait => (Family::Service, Wait),
            ServiceHold => (Family::Service, Hold),
            ServiceFailed => (Family::Service, Failed),
        };
        (Some(family), activity)
    }

    /// Whether an operator must act before anything happens to a node in this state, with or without maintenance. A node
    /// at rest needs none otherwise, and one that waits has a deadline.
    pub fn needs_operator(self, maintenance: bool) -> bool {
        maintenance || matches!(self.activity(), Hold | Failed)
    }

    /// Whether a conductor works on the node, so that a conductor that starts finds the work cut off.
    pub fn is_worked_on(self) -> bool {
        self.activity() == Work
    }

    /// Whether an agent may look its node up (S41). Under fast track the ramdisk may run between operations.
    ///
    /// An agent that starts while its node is held, or serviced, gets an answer too, where Ironic answers that
    /// there is no such node (a quirk of section 1.5).
    pub fn allows_lookup(self, is_fast_track: bool) -> bool {
        let expects_agent = match self.family() {
            Some(Family::Deploy | Family::Clean | Family::Inspect | Family::Rescue | Family::Service) => {
                self.activity() != Failed
            }
            Some(Family::Verify | Family::Delete | Family::Adopt | Family::Unrescue) | None => false,
        };
        expects_agent || is_fast_track && matches!(self, Enroll | Manageable | Available)
    }

    /// Whether a heartbeat is taken (section 1.5): inspections have their own callback.
    pub fn takes_heartbeats(self, is_fast_track: bool) -> bool {
        self.allows_lookup(is_fast_track) && self.family() != Some(Family::Inspect)
    }

    /// Whether the record of the node may be deleted (section 1.5).
    pub fn allows_node_deletion(self) -> bool {
        matches!(self, Enroll | Manageable | Available | AdoptFailed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn states_read_as_in_the_contract() {
        assert_eq!(ProvisionState::ALL.len(), 30);
        for state in ProvisionState::ALL {
            assert_eq!(serde_json::to_value(state).unwrap(), state.as_str());
        }
        assert_eq!(DeployWait.to_string(), "wait call-back");
        assert_eq!(serde_json::to_value(PowerState::On).unwrap(), "power on");
        assert_eq!(serde_json::to_value(PowerState::Off).unwrap(), "power off");
    }

    /// The states in which something holds, as texts.
    fn those(holds: impl Fn(ProvisionState) -> bool) -> Vec<&'static str> {
        ProvisionState::ALL.iter().filter(|state| holds(**state)).map(|state| state.as_str()).collect()
    }

    #[test]
    fn the_sets_of_the_contract() {
        let stuck = those(ProvisionState::is_worked_on);
        assert_eq!(
            stuck,
            [
                "verifying",
                "deploying",
                "deleting",
                "cleaning",
                "inspecting",
                "adopting",
                "rescuing",
                "unrescuing",
                "servicing"
            ]
        );
        let waiting = those(|state| state.activity() == Wait);
        assert_eq!(waiting, ["wait call-back", "clean wait", "inspect wait", "rescue wait", "service wait"]);
        assert_eq!(those(|state| state.activity() == Hold), ["deploy hold", "clean hold", "service hold"]);
        assert_eq!(those(ProvisionState::allows_node_deletion).len(), 4);
    }

    #[test]
    fn s41_only_states_that_expect_an_agent_allow_lookup() {
        let allowed = those(|state| state.allows_lookup(false));
        assert_eq!(
            allowed,
            [
                "deploying",
                "wait call-back",
                "deploy hold",
                "cleaning",
                "clean wait",
                "clean hold",
                "inspecting",
                "inspect wait",
                "rescuing",
                "rescue wait",
                "servicing",
                "service wait",
                "service hold"
            ]
        );
        let fast = those(|state| state.allows_lookup(true) && !state.allows_lookup(false));
        assert_eq!(fast, ["enroll", "manageable", "available"]);
        let heard = those(|state| state.takes_heartbeats(true));
        assert_eq!(heard.len(), allowed.len() + fast.len() - 2);
        assert!(!heard.contains(&"inspect wait"));
    }
}
