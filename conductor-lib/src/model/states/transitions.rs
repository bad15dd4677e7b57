//! What moves a node from one provision state to another (sections 1.2 to 1.4).

use crate::model::states::{Activity, Family, ProvisionState, named_states};
use serde::{Deserialize, Serialize};
use std::fmt;

named_states! {
    /// What happens to a node. The first fourteen are verbs of operators.
    Event {
        /// An operator wants the machine under control, or out of the hands of users.
        Manage = "manage",
        /// An operator offers the node for instances.
        Provide = "provide",
        /// An operator wants clean steps; also the end of a removal, whose cleaning begins.
        Clean = "clean",
        /// An operator wants to know what the machine is made of.
        Inspect = "inspect",
        /// An operator wants a running instance taken over.
        Adopt = "adopt",
        /// An operator wants an instance.
        Deploy = "deploy",
        /// An operator wants the instance written anew.
        Rebuild = "rebuild",
        /// An operator wants the instance removed.
        Delete = "delete",
        /// An operator wants a rescue system.
        Rescue = "rescue",
        /// An operator wants the instance back.
        Unrescue = "unrescue",
        /// An operator wants service steps.
        Service = "service",
        /// An operator lets a held node go on.
        Unhold = "unhold",
        /// An operator ends the operation.
        Abort = "abort",
        /// An operator tries the step again at which the operation failed; Ironic has no such verb.
        Retry = "retry",
        /// The operation succeeded.
        Done = "done",
        /// The operation failed.
        Fail = "fail",
        /// The work goes on when the agent calls.
        Wait = "wait",
        /// The agent called.
        Resume = "resume",
        /// The work goes on when an operator lets it.
        Hold = "hold",
    }
}

use ProvisionState as S;

/// Every allowed transition: the 93 of section 1.3, in its order, and three to try again.
const TRANSITIONS: &[(ProvisionState, &[(Event, ProvisionState)])] = &[
    (S::Enroll, &[(Event::Manage, S::Verifying)]),
    (S::Verifying, &[(Event::Done, S::Manageable), (Event::Fail, S::Enroll)]),
    (
        S::Manageable,
        &[
            (Event::Provide, S::Cleaning),
            (Event::Clean, S::Cleaning),
            (Event::Inspect, S::Inspecting),
            (Event::Adopt, S::Adopting),
        ],
    ),
    (S::Available, &[(Event::Deploy, S::Deploying), (Event::Manage, S::Manageable)]),
    (
        S::Deploying,
        &[
            (Event::Done, S::Active),
            (Event::Wait, S::DeployWait),
            (Event::Hold, S::DeployHold),
            (Event::Fail, S::DeployFailed),
        ],
    ),
    (
        S::DeployWait,
        &[
            (Event::Resume, S::Deploying),
            (Event::Hold, S::DeployHold),
            (Event::Fail, S::DeployFailed),
            (Event::Abort, S::DeployFailed),
            (Event::Delete, S::Deleting),
        ],
    ),
    (S::DeployHold, &[(Event::Unhold, S::DeployWait), (Event::Abort, S::DeployFailed)]),
    (
        S::DeployFailed,
        &[
            (Event::Deploy, S::Deploying),
            (Event::Rebuild, S::Deploying),
            (Event::Delete, S::Deleting),
            (Event::Retry, S::Deploying),
        ],
    ),
    (
        S::Active,
        &[
            (Event::Rebuild, S::Deploying),
            (Event::Delete, S::Deleting),
            (Event::Rescue, S::Rescuing),
            (Event::Service, S::Servicing),
        ],
    ),
    (S::Deleting, &[(Event::Clean, S::Cleaning), (Event::Fail, S::Error)]),
    (S::Error, &[(Event::Rebuild, S::Deploying), (Event::Delete, S::Deleting)]),
    (
        S::Cleaning,
        &[
            (Event::Done, S::Available),
            (Event::Manage, S::Manageable),
            (Event::Wait, S::CleanWait),
            (Event::Hold, S::CleanHold),
            (Event::Fail, S::CleanFailed),
        ],
    ),
    (
        S::CleanWait,
        &[
            (Event::Resume, S::Cleaning),
            (Event::Hold, S::CleanHold),
            (Event::Fail, S::CleanFailed),
            (Event::Abort, S::CleanFailed),
        ],
    ),
    (S::CleanHold, &[(Event::Unhold, S::CleanWait), (Event::Abort, S::CleanFailed)]),
    (S::CleanFailed, &[(Event::Manage, S::Manageable), (Event::Retry, S::Cleaning)]),
    (
        S::Inspecting,
        &[(Event::Done, S::Manageable), (Event::Wait, S::InspectWait), (Event::Fail, S::InspectFailed)],
    ),
    (
        S::InspectWait,
        &[
            (Event::Resume, S::Inspecting),
            (Event::Done, S::Manageable),
            (Event::Fail, S::InspectFailed),
            (Event::Abort, S::InspectFailed),
        ],
    ),
    (S::InspectFailed, &[(Event::Manage, S::Manageable), (Event::Inspect, S::Inspecting)]),
    (S::Adopting, &[(Event::Done, S::Active), (Event::Fail, S::AdoptFailed)]),
    (S::AdoptFailed, &[(Event::Adopt, S::Adopting), (Event::Manage, S::Manageable)]),
    (S::Rescuing, &[(Event::Done, S::Rescue), (Event::Wait, S::RescueWait), (Event::Fail, S::RescueFailed)]),
    (
        S::RescueWait,
        &[
            (Event::Resume, S::Rescuing),
            (Event::Fail, S::RescueFailed),
            (Event::Abort, S::RescueFailed),
            (Event::Delete, S::Deleting),
        ],
    ),
    (
        S::Rescue,
        &[(Event::Rescue, S::Rescuing), (Event::Unrescue, S::Unrescuing), (Event::Delete, S::Deleting)],
    ),
    (
        S::RescueFailed,
        &[(Event::Rescue, S::Rescuing), (Event::Unrescue, S::Unrescuing), (Event::Delete, S::Deleting)],
    ),
    (S::Unrescuing, &[(Event::Done, S::Active), (Event::Fail, S::UnrescueFailed)]),
    (
        S::UnrescueFailed,
        &[(Event::Rescue, S::Rescuing), (Event::Unrescue, S::Unrescuing), (Event::Delete, S::Deleting)],
    ),
    (
        S::Servicing,
        &[
            (Event::Done, S::Active),
            (Event::Wait, S::ServiceWait),
            (Event::Hold, S::ServiceHold),
            (Event::Fail, S::ServiceFailed),
        ],
    ),
    (
        S::ServiceWait,
        &[
            (Event::Resume, S::Servicing),
            (Event::Hold, S::ServiceHold),
            (Event::Fail, S::ServiceFailed),
            (Event::Abort, S::ServiceFailed),
            (Event::Delete, S::Deleting),
        ],
    ),
    (
        S::ServiceHold,
        &[
            (Event::Service, S::Servicing),
            (Event::Unhold, S::ServiceWait),
            (Event::Fail, S::ServiceFailed),
            (Event::Abort, S::ServiceFailed),
        ],
    ),
    (
        S::ServiceFailed,
        &[
            (Event::Service, S::Servicing),
            (Event::Rescue, S::Rescuing),
            (Event::Wait, S::ServiceWait),
            (Event::Hold, S::ServiceHold),
            (Event::Delete, S::Deleting),
            (Event::Abort, S::Active),
            (Event::Retry, S::Servicing),
        ],
    ),
];

impl ProvisionState {
    /// What may happen in it, each event with the state that follows.
    pub fn transitions(self) -> &'static [(Event, ProvisionState)] {
        TRANSITIONS.iter().find(|(from, _)| *from == self).map_or(&[], |(_, events)| events)
    }

    /// The state after `event`, or nothing when the event is not allowed here.
    pub fn after(self, event: Event) -> Option<Self> {
        self.transitions().iter().find(|(on, _)| *on == event).map(|(_, to)| *to)
    }

    /// The states in which an operator may have `event` happen.
    pub fn taking(event: Event) -> impl Iterator<Item = Self> {
        Self::ALL.iter().copied().filter(move |state| state.takes_verb(event))
    }

    /// Whether an operator may have `event` happen in it. A conductor that works on the node may have events of the
    /// same name happen, as the ends of a removal and of cleaning.
    pub fn takes_verb(self, event: Event) -> bool {
        self.after(event).is_some() && self.activity() != Activity::Work
    }

    /// Where an operation that is under way, or failed, is meant to end (section 1.4); nothing in a state of
    /// rest. Cleaning by hand has another target, which the order that starts it passes on with every event.
    pub fn target(self) -> Option<Self> {
        if self.activity() == Activity::Rest {
            return None;
        }
        self.family().map(|family| match family {
            Family::Verify | Family::Inspect => S::Manageable,
            Family::Deploy | Family::Adopt | Family::Unrescue | Family::Service => S::Active,
            Family::Delete | Family::Clean => S::Available,
            Family::Rescue => S::Rescue,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_has_the_size_of_the_contracts() {
        let states: Vec<_> = TRANSITIONS.iter().map(|(from, _)| *from).collect();
        assert_eq!(states, ProvisionState::ALL, "every state once, in order");
        let transitions = TRANSITIONS.iter().map(|(_, events)| events.len()).sum::<usize>();
        assert_eq!((transitions, Event::ALL.len()), (93 + 3, 18 + 1));
        for (from, events) in TRANSITIONS {
            for (index, (event, _)) in events.iter().enumerate() {
                assert!(events[..index].iter().all(|(other, _)| other != event), "{from} {event} twice");
            }
        }
    }

    #[test]
    fn c26_a_service_that_has_failed_can_be_aborted_and_one_that_waits_be_ended_with_its_instance() {
        use ProvisionState as S;
        for (from, event, to) in [
            (S::ServiceFailed, Event::Abort, S::Active),
            (S::ServiceFailed, Event::Delete, S::Deleting),
            (S::ServiceWait, Event::Delete, S::Deleting),
            (S::ServiceWait, Event::Abort, S::ServiceFailed),
        ] {
            assert!(from.transitions().contains(&(event, to)), "{from} {event}");
        }
    }

    /// Section 1.2, by the other way round.
    #[test]
    fn verbs_are_allowed_where_the_contract_allows_them() {
        let rows: &[(Event, &[&str])] = &[
            (Event::Manage, &["enroll", "available", "clean failed", "inspect failed", "adopt failed"]),
            (Event::Provide, &["manageable"]),
            (Event::Clean, &["manageable"]),
            (Event::Inspect, &["manageable", "inspect failed"]),
            (Event::Adopt, &["manageable", "adopt failed"]),
            (Event::Deploy, &["available", "deploy failed"]),
            (Event::Rebuild, &["deploy failed", "active", "error"]),
            (Event::Rescue, &["active", "rescue", "rescue failed", "unrescue failed", "service failed"]),
            (Event::Unrescue, &["rescue", "rescue failed", "unrescue failed"]),
            (Event::Service, &["active", "service hold", "service failed"]),
            (Event::Retry, &["deploy failed", "clean failed", "service failed"]),
            (Event::Unhold, &["deploy hold", "clean hold", "service hold"]),
            (
                Event::Delete,
                &[
                    "wait call-back",
                    "deploy failed",
                    "active",
                    "error",
                    "rescue wait",
                    "rescue",
                    "rescue failed",
                    "unrescue failed",
                    "service wait",
                    "service failed",
                ],
            ),
            (
                Event::Abort,
                &[
                    "wait call-back",
                    "deploy hold",
                    "clean wait",
                    "clean hold",
                    "inspect wait",
                    "rescue wait",
                    "service wait",
                    "service hold",
                    "service failed",
                ],
            ),
        ];
        for (event, expected) in rows {
            let allowed: Vec<_> = ProvisionState::taking(*event).map(ProvisionState::as_str).collect();
            assert_eq!(allowed, *expected, "{event}");
        }
    }

    #[test]
    fn work_can_end_waiting_can_time_out_and_a_hold_can_be_lifted() {
        for state in ProvisionState::ALL {
            let allows = |event| state.after(event).is_some();
            match state.activity() {
                Activity::Work => assert!(allows(Event::Fail), "{state}"),
                Activity::Wait => assert!(allows(Event::Resume) && allows(Event::Fail), "{state}"),
                Activity::Hold => assert!(allows(Event::Unhold) && allows(Event::Abort), "{state}"),
                Activity::Rest | Activity::Failed => {
                    assert!(!state.transitions().is_empty(), "{state}");
                    assert!(!allows(Event::Resume) && !allows(Event::Done), "{state}");
                }
            }
        }
    }

    #[test]
    fn default_targets() {
        for (state, target) in [
            (S::Verifying, Some("manageable")),
            (S::DeployFailed, Some("active")),
            (S::CleanWait, Some("available")),
            (S::Deleting, Some("available")),
            (S::Inspecting, Some("manageable")),
            (S::Adopting, Some("active")),
            (S::Rescuing, Some("rescue")),
            (S::Unrescuing, Some("active")),
            (S::ServiceHold, Some("active")),
            (S::Active, None),
            (S::Enroll, None),
        ] {
            assert_eq!(state.target().map(ProvisionState::as_str), target, "{state}");
        }
    }
}
