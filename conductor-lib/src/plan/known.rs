//! The steps that a node offers: those of its driver, and those of its agent (sections 3.3 and 3.4).

use crate::model::{StepId, StepKind};
use farrier_protocol::step::{ArgumentInfo, StepDescription};
use std::collections::{BTreeMap, BTreeSet};
use std::str::FromStr;

/// A step that a node offers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KnownStep {
    /// What it is known by.
    pub id: StepId,
    /// Place in an automatic run, highest first; 0 is never automatic.
    pub priority: i64,
    /// Its arguments by name.
    pub arguments: BTreeMap<String, ArgumentInfo>,
    /// Whether an operator may abort it.
    pub is_abortable: bool,
    /// Whether the ramdisk must run.
    pub requires_ramdisk: bool,
    /// Whether the agent runs it.
    pub in_band: bool,
    /// Whether the agent wants its machine rebooted after it.
    pub reboot_requested: bool,
}

impl KnownStep {
    /// A step of the driver or of a deploy interface, without arguments, for which the ramdisk must run.
    pub fn new(kind: StepKind, interface: &str, step: &str, priority: i64) -> Self {
        Self {
            id: StepId::new(interface, step),
            priority,
            arguments: BTreeMap::new(),
            is_abortable: kind == StepKind::Deploy,
            requires_ramdisk: true,
            in_band: false,
            reboot_requested: false,
        }
    }

    fn of_agent(kind: StepKind, described: &StepDescription) -> Self {
        Self {
            in_band: true,
            reboot_requested: described.reboot_requested,
            arguments: described.argsinfo.clone().unwrap_or_default(),
            is_abortable: described.abortable.unwrap_or(kind == StepKind::Deploy),
            ..Self::new(kind, &described.interface, &described.step, described.priority)
        }
    }
}

/// What the operator of a conductor says about steps in general.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct StepPolicy {
    /// Other priorities than those that drivers and agents give (`[conductor]clean_step_priority_override`,
    /// `[deploy]erase_devices_priority` and others); 0 disables.
    pub priorities: BTreeMap<StepId, i64>,
    /// Steps that never run: refused where they are asked for, left out where they would run by themselves
    /// (`[api]disallow_clean_steps` and others).
    pub disallowed: BTreeSet<StepId>,
}

/// What the operator of a conductor says about the steps of each kind of operation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StepPolicies {
    /// About clean steps.
    pub clean: StepPolicy,
    /// About deploy steps.
    pub deploy: StepPolicy,
    /// About service steps.
    pub service: StepPolicy,
}

impl StepPolicies {
    /// What is said about the steps of a kind.
    pub fn of(&self, kind: StepKind) -> &StepPolicy {
        match kind {
            StepKind::Clean => &self.clean,
            StepKind::Deploy => &self.deploy,
            StepKind::Service => &self.service,
        }
    }
}

/// Nothing, but that nobody sends raw commands to a BMC.
impl Default for StepPolicies {
    fn default() -> Self {
        let policy =
            StepPolicy { disallowed: [StepId::new("vendor", "send_raw")].into(), ..StepPolicy::default() };
        Self { clean: policy.clone(), deploy: policy.clone(), service: policy }
    }
}

/// An entry of an option that overrides priorities is not of its form.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0:?} is not of the form INTERFACE.STEP:PRIORITY with a priority of 0 and more")]
pub struct ParseOverrideError(String);

/// A priority for a step, of the form `deploy.erase_devices:0`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PriorityOverride(pub StepId, pub i64);

impl FromStr for PriorityOverride {
    type Err = ParseOverrideError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let parts = || {
            let (id, priority) = text.trim().rsplit_once(':')?;
            let (interface, step) = id.split_once('.')?;
            let priority = priority.trim().parse().ok().filter(|priority| *priority >= 0)?;
            let is_named = !interface.is_empty() && !step.is_empty();
            is_named.then(|| Self(StepId::new(interface, step), priority))
        };
        parts().ok_or_else(|| ParseOverrideError(text.to_owned()))
    }
}

/// The steps of a node: those of its driver, and those of its agent that the driver does not have itself. Each has the
/// priority that the policy gives.
pub fn known<'a>(
    kind: StepKind,
    driver: Vec<KnownStep>,
    agent: impl IntoIterator<Item = &'a StepDescription>,
    policy: &StepPolicy,
) -> Vec<KnownStep> {
    let mut known = driver;
    for described in agent {
        let step = KnownStep::of_agent(kind, described);
        if known.iter().all(|other| other.id != step.id) {
            known.push(step);
        }
    }
    for step in &mut known {
        step.priority = policy.priorities.get(&step.id).copied().unwrap_or(step.priority);
    }
    known
}

#[cfg(test)]
mod tests {
    use super::*;

    fn described(interface: &str, step: &str, priority: i64) -> StepDescription {
        StepDescription {
            interface: interface.into(),
            step: step.into(),
            priority,
            reboot_requested: false,
            abortable: None,
            argsinfo: None,
        }
    }

    #[test]
    fn the_drivers_own_step_wins_and_the_policy_sets_priorities() {
        let driver = vec![KnownStep {
            requires_ramdisk: false,
            ..KnownStep::new(StepKind::Clean, "raid", "delete_configuration", 0)
        }];
        let agent = [
            described("raid", "delete_configuration", 5),
            described("deploy", "erase_devices", 10),
            StepDescription { abortable: Some(true), ..described("deploy", "erase_devices_metadata", 99) },
        ];
        let priorities = [("deploy.erase_devices:0", 0), ("raid.delete_configuration:30", 30)];
        let priorities = priorities.map(|(text, expected)| {
            let PriorityOverride(id, priority) = text.parse().unwrap();
            assert_eq!(priority, expected);
            (id, priority)
        });
        let policy = StepPolicy { priorities: priorities.into(), ..StepPolicy::default() };
        let known = known(StepKind::Clean, driver, &agent, &policy);
        let told: Vec<_> = known
            .iter()
            .map(|step| (step.id.to_string(), step.priority, step.is_abortable, step.requires_ramdisk))
            .collect();
        let expected = [
            ("raid.delete_configuration", 30, false, false),
            ("deploy.erase_devices", 0, false, true),
            ("deploy.erase_devices_metadata", 99, true, true),
        ];
        assert_eq!(told, expected.map(|(id, priority, one, other)| (id.to_owned(), priority, one, other)));
    }

    #[test]
    fn an_override_has_one_form() {
        for (text, expected) in [
            ("deploy.erase_devices:10", Some(("deploy", "erase_devices", 10))),
            (" vendor.a.b:1 ", Some(("vendor", "a.b", 1))),
            ("deploy.erase_devices", None),
            ("erase_devices:10", None),
            (".x:1", None),
            ("deploy.:1", None),
            ("deploy.x:-1", None),
            ("deploy.x:ten", None),
            ("", None),
        ] {
            let read = text.parse::<PriorityOverride>().ok();
            let expected = expected
                .map(|(interface, step, number)| PriorityOverride(StepId::new(interface, step), number));
            assert_eq!(read, expected, "{text:?}");
        }
    }
}
