//! What happened to a node, as its record tells: each entry is the difference between what is stored and what is to be
//! stored, and is written with it. So nothing happens without an entry, and no entry tells what did not happen.

use crate::records::beginning::Beginning;
use crate::records::pending_order::{PendingOrder, Verb};
use farrier_conductor::model::node::Node;
use farrier_conductor::model::states::{Activity, ProvisionState, named_states};
use farrier_conductor::model::steps::step::{PlannedStep, StepKind};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use std::fmt;
use time::OffsetDateTime;
use uuid::Uuid;

/// Entries that are kept of the history of a node; older ones are forgotten.
pub const HISTORY_LIMIT: u32 = 300;

named_states! {
    /// How bad something is that happened.
    Severity {
        /// As it should be.
        Info = "INFO",
        /// Something failed.
        Error = "ERROR",
    }
}

named_states! {
    /// What something that happened was about.
    HistoryKind {
        /// The life of the node: its states and the steps of its operations.
        Provisioning = "provisioning",
        /// The power of its machine.
        Power = "power",
        /// Maintenance and faults.
        Maintenance = "maintenance",
        /// What was proven of its disks.
        Erasing = "erasing",
        /// What operators say about the machine.
        Record = "record",
    }
}

/// Something that happened to a node.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct HistoryEntry {
    /// Identity.
    pub uuid: Uuid,
    /// When it happened.
    #[serde(with = "time::serde::rfc3339")]
    pub created_at: OffsetDateTime,
    /// How bad it is.
    pub severity: Severity,
    /// What it was about.
    pub event_type: HistoryKind,
    /// What happened, as a sentence.
    pub event: String,
    /// The conductor that did it, or got the request.
    pub conductor: String,
    /// Who wanted it, where that is known; nothing where the conductor did it by itself.
    pub user: Option<String>,
    /// The state or the step that began with it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub beginning: Option<Beginning>,
}

/// A node as it was, or as it is to be, with what is ordered of it.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Moment<'a> {
    pub(crate) node: &'a Node,
    pub(crate) order: Option<&'a PendingOrder>,
}

/// An event before it is known when and through whom it happened.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Happening {
    pub(crate) severity: Severity,
    pub(crate) kind: HistoryKind,
    pub(crate) event: String,
    pub(crate) beginning: Option<Beginning>,
}

impl Happening {
    /// Something that is as it should be.
    pub(crate) fn info(kind: HistoryKind, event: impl AsRef<str>) -> Self {
        Self::new(Severity::Info, kind, event.as_ref())
    }

    fn error(kind: HistoryKind, event: impl AsRef<str>) -> Self {
        Self::new(Severity::Error, kind, event.as_ref())
    }

    fn begins(self, beginning: Beginning) -> Self {
        Self { beginning: Some(beginning), ..self }
    }

    /// What a machine or its agent said may have a NUL, which no store keeps.
    fn new(severity: Severity, kind: HistoryKind, event: &str) -> Self {
        Self { severity, kind, event: event.replace('\0', "\u{fffd}"), beginning: None }
    }
}

/// Fields that operators fill, whose changes are told without their values: there may be secrets in them.
const RECORD: &[&str] = &[
    "name",
    "driver",
    "driver_info",
    "properties",
    "instance_uuid",
    "resource_class",
    "traits",
    "owner",
    "lessee",
    "protected",
    "retired",
    "automated_clean",
    "target_raid_config",
];

/// What happened between two moments.
pub(crate) fn between(before: Moment<'_>, after: Moment<'_>) -> Vec<Happening> {
    let happened = [
        record(before.node, after.node),
        order(before.order, after.order),
        state(before.node, after.node),
        step(before.node, after.node),
        error(before.node, after.node),
        power(before.node, after.node),
        maintenance(before.node, after.node),
        erasure(before.node, after.node),
    ];
    happened.into_iter().flatten().collect()
}

fn record(before: &Node, after: &Node) -> Option<Happening> {
    let documents = [before, after].map(|node| match serde_json::to_value(node) {
        Ok(Value::Object(fields)) => fields,
        _ => Map::new(),
    });
    let differs = |field: &&str| documents[0].get(*field) != documents[1].get(*field);
    let mut changed: Vec<_> =
        RECORD.iter().filter(|field| differs(field)).map(|field| (*field).to_owned()).collect();
    if before.interfaces != after.interfaces {
        changed.push("interfaces".to_owned());
    }
    (!changed.is_empty())
        .then(|| Happening::info(HistoryKind::Record, format!("changed: {}", changed.join(", "))))
}

/// Orders of power change no state by themselves.
fn order(before: Option<&PendingOrder>, after: Option<&PendingOrder>) -> Option<Happening> {
    use Verb::{Forget, PowerOff, PowerOn, Reboot, SoftPowerOff, SoftReboot};
    let order = after.filter(|order| before.is_none_or(|before| before.verb != order.verb))?;
    let is_of_power = matches!(order.verb, PowerOn | PowerOff | Reboot | SoftPowerOff | SoftReboot | Forget);
    is_of_power.then(|| Happening::info(HistoryKind::Power, format!("ordered: {}", order.verb)))
}

fn state(before: &Node, after: &Node) -> Option<Happening> {
    let (was, is) = (before.provision_state, after.provision_state);
    if was == is {
        return None;
    }
    let kind = HistoryKind::Provisioning;
    let beginning = Beginning::State { from: was, state: is };
    if has_failed(before, after) {
        let reason = after.last_error.as_deref().unwrap_or("the reason is not known");
        let event = format!("{was:?} ended as {is:?}: {reason}", was = was.as_str(), is = is.as_str());
        return Some(Happening::error(kind, event).begins(beginning));
    }
    let target = after.target_provision_state.filter(|target| *target != is);
    let way = target.map(|target| format!(", on the way to {:?}", target.as_str())).unwrap_or_default();
    let event = format!("from {:?} to {:?}{way}", was.as_str(), is.as_str());
    Some(Happening::info(kind, event).begins(beginning))
}

/// A machine that could not be proven to be under control stays enrolled.
fn has_failed(before: &Node, after: &Node) -> bool {
    let is = after.provision_state;
    is.activity() == Activity::Failed
        || before.provision_state == ProvisionState::Verifying && is == ProvisionState::Enroll
}

fn step(before: &Node, after: &Node) -> Option<Happening> {
    let kind = StepKind::of(after.provision_state)?;
    let place = |node: &Node| node.plan(kind).index;
    let id = |node: &Node| node.step(kind).map(PlannedStep::id);
    let step = after.step(kind)?;
    if (id(before), place(before)) == (id(after), place(after)) {
        return None;
    }
    let (number, of) = (place(after).map(|index| index + 1), after.plan(kind).steps.len());
    let which = number.map(|number| format!(" ({number} of {of})")).unwrap_or_default();
    let event = format!("{kind} step {}{which}", step.id());
    let beginning = Beginning::Step { step: step.id().to_string(), number, of };
    Some(Happening::info(HistoryKind::Provisioning, event).begins(beginning))
}

/// What went wrong and left the node in its state.
fn error(before: &Node, after: &Node) -> Option<Happening> {
    let text = after.last_error.as_ref().filter(|text| before.last_error.as_ref() != Some(text))?;
    if before.provision_state != after.provision_state && has_failed(before, after) {
        return None;
    }
    let kind = match before.target_power_state {
        Some(_) => HistoryKind::Power,
        None => HistoryKind::Provisioning,
    };
    Some(Happening::error(kind, text.clone()))
}

fn power(before: &Node, after: &Node) -> Option<Happening> {
    if before.power_state == after.power_state {
        return None;
    }
    let event = match after.power_state {
        Some(state) => state.to_string(),
        None => "the power state is not known any more".to_owned(),
    };
    Some(Happening::info(HistoryKind::Power, event))
}

fn maintenance(before: &Node, after: &Node) -> Option<Happening> {
    if (before.maintenance, before.fault) == (after.maintenance, after.fault) {
        return None;
    }
    let kind = HistoryKind::Maintenance;
    let reason = after.maintenance_reason.as_ref().map(|reason| format!(": {reason}")).unwrap_or_default();
    Some(match (after.maintenance, after.fault) {
        (true, Some(fault)) => {
            Happening::error(kind, format!("maintenance begins by the fault {:?}{reason}", fault.as_str()))
        }
        (true, None) => Happening::info(kind, format!("maintenance begins{reason}")),
        (false, _) => Happening::info(kind, "maintenance ends"),
    })
}

/// What is proven of the disks of a node that becomes available.
fn erasure(before: &Node, after: &Node) -> Option<Happening> {
    let mark = |node: &Node| node.driver_internal_info.erasure.clone();
    let marked = mark(after).filter(|_| mark(before) != mark(after))?;
    Some(Happening::info(HistoryKind::Erasing, format!("erasure {marked}")))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::records::tests::node;
    use farrier_conductor::model::{Event, Fault, PowerState};
    use serde_json::json;

    fn told(before: &Node, after: &Node) -> Vec<(Severity, String)> {
        let moment = |node| Moment { node, order: None };
        between(moment(before), moment(after)).into_iter().map(|one| (one.severity, one.event)).collect()
    }

    fn changed(change: impl FnOnce(&mut Node)) -> Vec<(Severity, String)> {
        let before = node();
        let mut after = before.clone();
        change(&mut after);
        told(&before, &after)
    }

    #[test]
    fn nothing_happened_to_a_node_that_is_as_it_was() {
        assert_eq!(changed(|_| {}), []);
        assert_eq!(changed(|node| node.updated_at += time::Duration::HOUR), []);
        assert_eq!(
            changed(|node| node.driver_internal_info.others.insert("a".into(), 1.into()).map_or((), drop)),
            []
        );
    }

    #[test]
    fn a_nul_in_what_a_machine_says_is_replaced() {
        let failed = changed(|node| node.set_last_error("no\0disk"));
        assert_eq!(failed, [(Severity::Error, "no\u{fffd}disk".to_owned())]);
    }

    #[test]
    fn every_change_that_an_operator_looks_for_has_its_sentence() {
        use Severity::{Error, Info};
        let now = OffsetDateTime::UNIX_EPOCH;
        let deploys = |node: &mut Node| assert!(node.apply(Event::Deploy, now));
        for (told, expected) in [
            (changed(deploys), (Info, r#"from "available" to "deploying", on the way to "active""#)),
            (
                changed(|node| {
                    (node.maintenance, node.fault) = (true, Some(Fault::Power));
                    node.maintenance_reason = Some("no answer".into());
                }),
                (Error, r#"maintenance begins by the fault "power failure": no answer"#),
            ),
            (changed(|node| node.maintenance = true), (Info, "maintenance begins")),
            (changed(|node| node.power_state = Some(PowerState::On)), (Info, "power on")),
            (changed(|node| node.set_last_error("the BMC is gone")), (Error, "the BMC is gone")),
            (changed(|node| node.name = Some("n2".into())), (Info, "changed: name")),
            (
                changed(|node| node.interfaces.set(farrier_conductor::model::InterfaceKind::Boot, "ipxe")),
                (Info, "changed: interfaces"),
            ),
        ] {
            assert_eq!(told, [(expected.0, expected.1.to_owned())]);
        }
    }

    #[test]
    fn a_failure_is_told_once_with_its_reason() {
        for (state, event, expected) in [
            (ProvisionState::Deploying, Event::Fail, r#""deploying" ended as "deploy failed": disk full"#),
            (ProvisionState::Verifying, Event::Fail, r#""verifying" ended as "enroll": disk full"#),
        ] {
            let mut before = node();
            before.provision_state = state;
            let mut after = before.clone();
            assert!(after.apply(event, OffsetDateTime::UNIX_EPOCH));
            after.set_last_error("disk full");
            assert_eq!(told(&before, &after), [(Severity::Error, expected.to_owned())]);
        }
    }

    #[test]
    fn a_step_is_told_with_its_place_and_its_turn() {
        let mut before = node();
        before.provision_state = ProvisionState::Cleaning;
        let mut after = before.clone();
        let steps =
            ["erase_devices_metadata", "erase_devices"].map(|name| PlannedStep::new("deploy", name, 10));
        after.clean_step = Some(steps[1].clone());
        let plan = after.plan_mut(StepKind::Clean);
        (plan.steps, plan.index) = (steps.into(), Some(1));
        assert_eq!(
            told(&before, &after),
            [(Severity::Info, "clean step deploy.erase_devices (2 of 2)".to_owned())]
        );
        assert_eq!(told(&after, &after), []);
    }

    #[test]
    fn an_order_of_power_is_told_and_one_that_a_state_tells_is_not() {
        let node = node();
        for (verb, expected) in [(Verb::Reboot, Some("ordered: rebooting")), (Verb::Deploy, None)] {
            let order = PendingOrder::new(verb, OffsetDateTime::UNIX_EPOCH);
            let [before, after] = [None, Some(&order)].map(|order| Moment { node: &node, order });
            let told = between(before, after);
            assert_eq!(told.first().map(|one| one.event.as_str()), expected);
            assert_eq!(between(after, after), []);
        }
    }

    #[test]
    fn s48_what_changed_of_the_record_is_told_without_its_values() {
        let told = changed(|node| {
            node.driver_info = serde_json::from_value(json!({"redfish_password": "hunter2"})).unwrap();
        });
        assert_eq!(told, [(Severity::Info, "changed: driver_info".to_owned())]);
    }
}
