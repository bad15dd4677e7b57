//! Steps that every conductor has, whatever the node (section 3.9).

use super::known::KnownStep;
use crate::model::{StepId, StepKind};
use farrier_protocol::step::ArgumentInfo;
use serde_json::{Map, Value};

/// The argument of `wait`.
const SECONDS: &str = "seconds";

/// A step that every conductor has. The interface that is given with it is ignored.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reserved {
    /// The machine is powered on.
    PowerOn,
    /// The machine is powered off.
    PowerOff,
    /// The machine is powered off and on.
    Reboot,
    /// The operation continues when an operator lets it.
    Hold,
    /// The operation continues with the agent's next heartbeat, or after some seconds.
    Wait,
}

impl Reserved {
    const ALL: [(Self, &str); 5] = [
        (Self::PowerOn, "power_on"),
        (Self::PowerOff, "power_off"),
        (Self::Reboot, "reboot"),
        (Self::Hold, "hold"),
        (Self::Wait, "wait"),
    ];

    /// The one with this name.
    pub fn named(step: &str) -> Option<Self> {
        Self::ALL.iter().find(|(_, name)| *name == step).map(|(reserved, _)| *reserved)
    }

    /// The seconds that a `wait` with these arguments takes; nothing when it takes until the next heartbeat.
    pub fn seconds(args: &Map<String, Value>) -> Option<u64> {
        args.get(SECONDS)?.as_u64()
    }

    /// What is wrong with the arguments, if anything.
    pub(super) fn fault(self, args: &Map<String, Value>) -> Option<String> {
        let given = args.get(SECONDS).filter(|_| self == Self::Wait)?;
        given
            .as_u64()
            .is_none()
            .then(|| format!("the argument \"seconds\" must be a whole number, not {given}"))
    }

    /// It, as a step of the node. Nothing of it runs in the ramdisk, but where a heartbeat is waited for.
    pub(super) fn known(self, kind: StepKind, id: &StepId, args: &Map<String, Value>) -> KnownStep {
        let seconds = ArgumentInfo {
            description: "seconds to wait; without it, the step waits for the next heartbeat".to_owned(),
            required: false,
        };
        let arguments = match self {
            Self::Wait => [(SECONDS.to_owned(), seconds)].into(),
            Self::PowerOn | Self::PowerOff | Self::Reboot | Self::Hold => [].into(),
        };
        KnownStep {
            arguments,
            is_abortable: true,
            requires_ramdisk: self == Self::Wait && !args.contains_key(SECONDS),
            ..KnownStep::new(kind, &id.interface, &id.step, 0)
        }
    }
}
