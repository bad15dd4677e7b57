//! What there is to do for a node: a pure function of its record.

use crate::records::{PendingOrder, Verb};
use farrier_conductor::model::{Activity, Node, PowerAction, ProvisionState, StepKind};

/// What there is to do for a node.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Work {
    /// Nothing, until an operator orders something.
    Nothing,
    /// Its power was ordered.
    Power(PowerAction),
    /// Its end was ordered.
    Forget,
    /// Its instance is removed.
    Undeploy,
    /// Its machine is to be proven under control.
    Verify,
    /// An operation that an interface leads begins, or goes on where a conductor stopped.
    Operation(Operation),
    /// Its operation was aborted, and more is owed for it than to clean up.
    Abort,
    /// An operation that failed has left something.
    CleanUp,
    /// The ramdisk is to call.
    Await,
    /// It is in an operation that this conductor does not know.
    Abandon,
}

/// An operation that an interface of the node leads.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Operation {
    /// One that consists of steps.
    Steps(StepKind),
    /// The node is taken over with its instance.
    Adopt,
    /// Its inspection begins.
    Inspect,
    /// Its ramdisk has posted what it saw.
    ContinueInspection,
    /// It gets a rescue system.
    Rescue,
    /// Its instance is started again after a rescue.
    Unrescue,
}

impl Work {
    /// What there is to do for a node of which `order` is ordered.
    pub(crate) fn of(node: &Node, order: Option<&PendingOrder>) -> Self {
        let verb = order.map(|order| order.verb);
        if let Some(action) = verb.and_then(Verb::power_action) {
            return Self::Power(action);
        }
        match verb {
            Some(Verb::Forget) => return Self::Forget,
            Some(Verb::Abort) => return Self::Abort,
            Some(Verb::CleanUp) => return Self::CleanUp,
            Some(Verb::ContinueInspection) => return Self::Operation(Operation::ContinueInspection),
            Some(
                Verb::Deploy
                | Verb::Undeploy
                | Verb::Manage
                | Verb::Clean
                | Verb::Service
                | Verb::Adopt
                | Verb::Inspect
                | Verb::Rescue
                | Verb::Unrescue
                | Verb::PowerOn
                | Verb::PowerOff
                | Verb::Reboot
                | Verb::SoftPowerOff
                | Verb::SoftReboot,
            )
            | None => {}
        }
        let state = node.provision_state;
        match (state, state.activity()) {
            (ProvisionState::Deleting, _) => Self::Undeploy,
            (ProvisionState::Verifying, _) => Self::Verify,
            (ProvisionState::Adopting, _) => Self::Operation(Operation::Adopt),
            (ProvisionState::Inspecting, _) => Self::Operation(Operation::Inspect),
            (ProvisionState::Rescuing, _) => Self::Operation(Operation::Rescue),
            (ProvisionState::Unrescuing, _) => Self::Operation(Operation::Unrescue),
            (_, Activity::Work) => {
                let steps = |kind| Self::Operation(Operation::Steps(kind));
                StepKind::of(state).map_or(Self::Abandon, steps)
            }
            (_, Activity::Wait) => Self::Await,
            (_, Activity::Rest | Activity::Hold | Activity::Failed) => Self::Nothing,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use farrier_conductor::model::NewNode;
    use time::OffsetDateTime;

    fn node(state: ProvisionState) -> Node {
        let mut node = Node::enrol(NewNode::default(), OffsetDateTime::UNIX_EPOCH);
        node.provision_state = state;
        node
    }

    /// Lesson F66: a state that nobody attends to cannot be forgotten here.
    #[test]
    fn f66_every_state_that_is_not_at_rest_has_its_work() {
        for state in ProvisionState::ALL {
            let work = Work::of(&node(*state), None);
            match state.activity() {
                Activity::Work => {
                    let works = [Work::Undeploy, Work::Verify, Work::Abandon];
                    assert!(works.contains(&work) || matches!(work, Work::Operation(_)), "{state} {work:?}");
                }
                Activity::Wait => assert_eq!(work, Work::Await, "{state}"),
                Activity::Rest | Activity::Hold | Activity::Failed => {
                    assert_eq!(work, Work::Nothing, "{state}");
                }
            }
        }
    }

    #[test]
    fn an_order_for_power_comes_before_everything() {
        for state in ProvisionState::ALL {
            for action in PowerAction::ALL {
                let order = PendingOrder::new((*action).into(), OffsetDateTime::UNIX_EPOCH);
                assert_eq!(Work::of(&node(*state), Some(&order)), Work::Power(*action), "{state}");
            }
        }
    }
}
