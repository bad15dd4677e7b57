//! What there is to do for a node: a pure function of its record.

use crate::model::{Activity, Node, Order, ProvisionState, Verb};

/// What there is to do for a node.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Work {
    /// Nothing, until an operator orders something.
    Nothing,
    /// Its power was ordered.
    Power(Verb),
    /// Its end was ordered.
    Forget,
    /// A deployment begins, or goes on where a conductor stopped.
    Deploy,
    /// Its instance is removed.
    Undeploy,
    /// The ramdisk is to call.
    Await,
    /// It is in an operation that this conductor does not know.
    Abandon,
}

impl Work {
    /// What there is to do for a node of which `order` is ordered.
    pub(super) fn of(node: &Node, order: Option<&Order>) -> Self {
        match order.map(|order| order.verb) {
            Some(verb @ (Verb::PowerOn | Verb::PowerOff | Verb::Reboot)) => return Self::Power(verb),
            Some(Verb::Forget) => return Self::Forget,
            Some(Verb::Deploy | Verb::Undeploy) | None => {}
        }
        match (node.provision_state, node.provision_state.activity()) {
            (ProvisionState::Deploying, _) => Self::Deploy,
            (ProvisionState::Deleting, _) => Self::Undeploy,
            (_, Activity::Work) => Self::Abandon,
            (_, Activity::Wait) => Self::Await,
            (_, Activity::Rest | Activity::Hold | Activity::Failed) => Self::Nothing,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::NewNode;
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
                    assert!(matches!(work, Work::Deploy | Work::Undeploy | Work::Abandon), "{state}");
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
            for verb in [Verb::PowerOn, Verb::PowerOff, Verb::Reboot] {
                let order = Order::new(verb, OffsetDateTime::UNIX_EPOCH);
                assert_eq!(Work::of(&node(*state), Some(&order)), Work::Power(verb), "{state}");
            }
        }
    }
}
