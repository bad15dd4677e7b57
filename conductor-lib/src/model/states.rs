//! Provision states, events and the transition table (conductor contract 1.1 and 1.3).

use serde::{Deserialize, Serialize};
use std::fmt;

macro_rules! named_states {
    ($(#[$meta:meta])* $name:ident { $($(#[$doc:meta])* $variant:ident = $text:literal,)* }) => {
        $(#[$meta])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
        pub enum $name {
            $($(#[$doc])* #[serde(rename = $text)] $variant,)*
        }

        impl $name {
            /// Every state, in the order of the contract.
            pub const ALL: &'static [Self] = &[$(Self::$variant),*];

            /// The text on the wire and in the store.
            pub fn as_str(self) -> &'static str {
                match self { $(Self::$variant => $text,)* }
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(self.as_str())
            }
        }
    };
}

named_states! {
    /// Where a node is in its life.
    ProvisionState {
        /// Ready to be deployed.
        Available = "available",
        /// The conductor works on a deployment.
        Deploying = "deploying",
        /// A deployment waits for the agent (DEPLOYWAIT).
        DeployWait = "wait call-back",
        /// The last deployment failed.
        DeployFailed = "deploy failed",
        /// An instance runs.
        Active = "active",
        /// The instance is being removed.
        Deleting = "deleting",
        /// Removing the instance failed.
        Error = "error",
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

/// What moves a node from one provision state to another.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Event {
    /// An operator wants an instance.
    Deploy,
    /// An operator wants the instance written anew.
    Rebuild,
    /// The work goes on when the agent calls.
    Wait,
    /// The agent called.
    Resume,
    /// The operation succeeded.
    Done,
    /// The operation failed.
    Fail,
    /// An operator wants the instance removed.
    Delete,
}

use Event::{Delete, Deploy, Done, Fail, Rebuild, Resume, Wait};
use ProvisionState::{Active, Available, Deleting, DeployFailed, DeployWait, Deploying, Error};

/// Every allowed transition of the deploy family. A node without an instance is available at
/// once, since there is no automated cleaning yet.
const TRANSITIONS: &[(ProvisionState, Event, ProvisionState)] = &[
    (Available, Deploy, Deploying),
    (Deploying, Done, Active),
    (Deploying, Wait, DeployWait),
    (Deploying, Fail, DeployFailed),
    (DeployWait, Resume, Deploying),
    (DeployWait, Fail, DeployFailed),
    (DeployWait, Delete, Deleting),
    (DeployFailed, Deploy, Deploying),
    (DeployFailed, Rebuild, Deploying),
    (DeployFailed, Delete, Deleting),
    (Active, Rebuild, Deploying),
    (Active, Delete, Deleting),
    (Deleting, Done, Available),
    (Deleting, Fail, Error),
    (Error, Rebuild, Deploying),
    (Error, Delete, Deleting),
];

impl ProvisionState {
    /// The state after `event`, or nothing when the event is not allowed here.
    pub fn after(self, event: Event) -> Option<Self> {
        TRANSITIONS.iter().find(|(from, on, _)| *from == self && *on == event).map(|(_, _, to)| *to)
    }

    /// The states from which `event` is allowed.
    pub fn allowing(event: Event) -> impl Iterator<Item = Self> {
        TRANSITIONS.iter().filter(move |(_, on, _)| *on == event).map(|(from, _, _)| *from)
    }

    /// Where an operation that is under way is meant to end (contract 1.4); nothing in a state of rest.
    pub fn target(self) -> Option<Self> {
        match self {
            Deploying | DeployWait | DeployFailed => Some(Active),
            Deleting | Error => Some(Available),
            Available | Active => None,
        }
    }

    /// Whether an agent may look its node up (contract 1.5).
    pub fn allows_lookup(self) -> bool {
        matches!(self, Deploying | DeployWait)
    }

    /// Whether a conductor works on the node, so that a conductor that starts finds the work cut off.
    pub fn is_worked_on(self) -> bool {
        matches!(self, Deploying | Deleting)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn states_read_as_in_the_contract() {
        let texts: Vec<_> = ProvisionState::ALL.iter().map(|state| state.as_str()).collect();
        assert_eq!(
            texts,
            ["available", "deploying", "wait call-back", "deploy failed", "active", "deleting", "error"]
        );
        for state in ProvisionState::ALL {
            assert_eq!(serde_json::to_value(state).unwrap(), state.as_str());
        }
        assert_eq!(serde_json::to_value(PowerState::On).unwrap(), "power on");
        assert_eq!(serde_json::to_value(PowerState::Off).unwrap(), "power off");
    }

    #[test]
    fn transitions() {
        for (from, event, to) in [
            (Available, Deploy, Some(Deploying)),
            (Available, Rebuild, None),
            (Available, Wait, None),
            (Deploying, Deploy, None),
            (Deploying, Wait, Some(DeployWait)),
            (Deploying, Done, Some(Active)),
            (DeployWait, Resume, Some(Deploying)),
            (DeployWait, Fail, Some(DeployFailed)),
            (DeployWait, Deploy, None),
            (DeployFailed, Deploy, Some(Deploying)),
            (DeployFailed, Resume, None),
            (Active, Rebuild, Some(Deploying)),
            (Active, Deploy, None),
            (Active, Delete, Some(Deleting)),
            (Deleting, Done, Some(Available)),
        ] {
            assert_eq!(from.after(event), to, "{from} {event:?}");
        }
    }

    #[test]
    fn every_transition_is_listed_once() {
        for (index, (from, event, _)) in TRANSITIONS.iter().enumerate() {
            let same =
                |(other, on, _): &&(ProvisionState, Event, ProvisionState)| other == from && on == event;
            assert_eq!(TRANSITIONS[index..].iter().filter(same).count(), 1, "{from} {event:?}");
        }
    }

    #[test]
    fn s41_only_states_that_expect_an_agent_allow_lookup() {
        let allowed: Vec<_> = ProvisionState::ALL.iter().filter(|state| state.allows_lookup()).collect();
        assert_eq!(allowed, [&Deploying, &DeployWait]);
    }
}
