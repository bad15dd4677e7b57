//! What a node waits for, since when and until when, what is known about it, and what to do: `farrier explain`.
//!
//! The record alone explains a node, in each state, with and without a lease, and with each fault; a test goes through all of
//! them. What the agent and the console say at this moment is added by the conductor.

pub(crate) mod boot_progress;
mod evidence;
pub(crate) mod gather;
mod next_action;
pub(crate) mod ramdisk_logs;
pub(crate) mod screenshot;
pub mod who_acts;

use crate::evidence::diagnosis::{Cause, Diagnosis};
use crate::explain::who_acts::Attention;
use crate::limits::QueuePlace;
use crate::placement::Unserved;
use crate::records::PendingOrder;
use crate::store::Record;
use farrier_conductor::interfaces::HandWork;
use farrier_conductor::model::{
    Activity, Family, Node, PlannedStep, PowerState, ProvisionState, StepKind, masked_text,
};
use farrier_conductor::settings::Settings;
use serde::{Deserialize, Serialize};
use time::OffsetDateTime;
use uuid::Uuid;

/// What evidence from a console is about.
pub(crate) const CONSOLE: &str = "console";

/// What a node waits for.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Explanation {
    /// Identity of the node.
    pub node: Uuid,
    /// Its name.
    pub name: Option<String>,
    /// Where it is in its life.
    pub provision_state: ProvisionState,
    /// What it waits for: a sentence.
    pub waits_for: String,
    /// Since when.
    #[serde(with = "time::serde::rfc3339")]
    pub since: OffsetDateTime,
    /// Until when, where that ends by itself.
    #[serde(with = "time::serde::rfc3339::option")]
    pub until: Option<OffsetDateTime>,
    /// Whether that has passed.
    pub is_overdue: bool,
    /// Why its machine is silent, where something names that.
    #[serde(default)]
    pub cause: Option<Cause>,
    /// What is known.
    pub evidence: Vec<Evidence>,
    /// What to do: a sentence.
    pub next_action: String,
    /// Commands that do it, in their order.
    pub commands: Vec<String>,
    /// The records of its machine in full; the evidence has their ends.
    #[serde(default)]
    pub diagnosis: Option<Diagnosis>,
    /// When this was so.
    #[serde(with = "time::serde::rfc3339")]
    pub at: OffsetDateTime,
}

/// Something that is known of a node.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Evidence {
    /// What it is about.
    pub what: String,
    /// What it says.
    pub said: String,
}

impl Explanation {
    /// Adds what an operator has to do to the machine.
    pub(crate) fn add_hand_work(&mut self, work: &HandWork) {
        self.evidence.insert(0, evidence::by_hand(work));
        self.next_action = format!("Unless that is done, {}. {}", work.what, self.next_action);
    }

    /// Adds what its BMC says of its power now, where the record has something else, or that cannot be read.
    pub(crate) fn add_power(&mut self, now: Result<PowerState, String>) {
        let Some(recorded) = self.evidence.iter_mut().find(|one| one.what == evidence::POWER) else { return };
        match now {
            // The target of an order that is being carried out stays beside it.
            Ok(now) if recorded.said.starts_with(now.as_str()) => {}
            Ok(now) => recorded.said = format!("{now} (it was {} when it was read last)", recorded.said),
            Err(why) => {
                let said = format!("{} when it was read last; it cannot be read now: {why}", recorded.said);
                *recorded = Evidence::new(evidence::POWER, said);
            }
        }
    }

    /// Adds what could be had of the machine.
    pub(crate) fn add_diagnosis(&mut self, words: Diagnosis) {
        self.evidence.extend(evidence::of_machine(&words));
        self.cause.clone_from(&words.cause);
        self.diagnosis = Some(words);
    }

    /// The operation waits for its turn.
    pub(crate) fn waits_in_queue(&mut self, node: &Node, place: &QueuePlace) {
        let QueuePlace { place, waiting, under_way } = place;
        let operation = node.provision_state.family().map_or("its operation", operation);
        self.waits_for = format!(
            "It waits in a queue for {operation} to begin: it has place {place} of {waiting}, and {under_way} are under way, \
             which is the limit."
        );
        (self.until, self.is_overdue) = (None, false);
        self.next_action =
            "Nothing: it begins when one that is under way ends. To take it out of the queue, abort it; to \
            have more under way at once, start the conductor with a higher limit (--max-concurrent-…)."
                .to_owned();
        self.commands = vec![format!("farrier node abort {}", node.label())];
    }

    /// Another conductor leads the node, and has something to do for it if so.
    pub(crate) fn is_led_by(&mut self, conductor: &str, is_owed: bool) {
        self.evidence.insert(0, Evidence::new("conductor", conductor));
        if is_owed {
            self.waits_for =
                format!("It waits for conductor {conductor}, which leads it, to carry out what is ordered.");
            self.next_action = format!(
                "Nothing: conductor {conductor} begins within seconds, or when it has begun what was ordered before; ask it to \
                 explain the node for its place in the queue."
            );
            self.commands.clear();
        }
    }

    /// No conductor leads the node.
    pub(crate) fn is_led_by_none(&mut self, unserved: &Unserved) {
        self.waits_for = format!("It waits for a conductor that leads it: {unserved}.");
        (self.until, self.is_overdue) = (None, false);
        self.next_action =
            "Start such a conductor, and the node continues by itself; nothing has failed meanwhile."
                .to_owned();
        self.commands = vec!["baremetal conductor list".to_owned()];
    }

    /// What a user who may not read consoles gets of it: a console may show secrets that nothing masks.
    #[must_use]
    pub fn without_console(mut self) -> Self {
        self.evidence.retain(|evidence| evidence.what != CONSOLE);
        if let Some(words) = &mut self.diagnosis {
            words.console.clear();
        }
        self
    }
}

impl Evidence {
    pub(crate) fn new(what: &str, said: impl Into<String>) -> Self {
        let said: String = said.into();
        Self { what: what.to_owned(), said: masked_text(&said).into_owned() }
    }
}

/// What a node waits for, and what is to be done about it.
struct Waiting {
    waits_for: String,
    until: Option<OffsetDateTime>,
    next_action: String,
    commands: Vec<String>,
}

impl Waiting {
    /// Nobody has to do anything.
    fn by_itself(waits_for: String, until: Option<OffsetDateTime>, next_action: &str) -> Self {
        Self { waits_for, until, next_action: next_action.to_owned(), commands: Vec::new() }
    }
}

/// What a node waits for, as its record tells.
pub(crate) fn explain(record: &Record, settings: &Settings, now: OffsetDateTime) -> Explanation {
    let node = &record.node;
    let waiting = match Attention::of(record, settings) {
        Attention::Conductor { holder, until } if is_owed(record) => match until > now {
            true => working(record, &holder, until),
            false => abandoned(record, Some(until)),
        },
        Attention::Nobody => abandoned(record, None),
        Attention::Agent { until } => for_agent(record, until, now),
        Attention::Conductor { .. } | Attention::Operator => without_lease(record, settings, now),
    };
    let Waiting { waits_for, until, next_action, commands } = waiting;
    Explanation {
        node: node.uuid,
        name: node.name.clone(),
        provision_state: node.provision_state,
        waits_for,
        since: record
            .order
            .map_or(node.provision_updated_at, |order| order.ordered_at.max(node.provision_updated_at)),
        until,
        is_overdue: until.is_some_and(|until| until <= now),
        cause: None,
        evidence: evidence::of(record, now),
        next_action,
        commands,
        diagnosis: None,
        at: now,
    }
}

/// Whether a conductor has something to do for the node.
fn is_owed(record: &Record) -> bool {
    record.order.is_some() || record.node.provision_state.is_worked_on()
}

fn working(record: &Record, holder: &str, until: OffsetDateTime) -> Waiting {
    let waits_for = format!("It waits for conductor {holder}, which {}.", work(record));
    let next = "Nothing: it continues by itself. Should that conductor stop, another one continues when the lease ends.";
    Waiting::by_itself(waits_for, Some(until), next)
}

fn abandoned(record: &Record, until: Option<OffsetDateTime>) -> Waiting {
    let waits_for =
        format!("It waits for any conductor to resume it: the one that stopped {}.", work(record));
    let next = "Nothing, where a conductor runs: it takes the node over within seconds. Else start one, and read the log \
        of the one that stopped.";
    Waiting::by_itself(waits_for, until, next)
}

/// What a conductor does for a node, as the end of a sentence.
fn work(record: &Record) -> String {
    let node = &record.node;
    match &record.order {
        Some(order) => format!("carries out the order {:?}", order.verb.as_str()),
        None => format!("works on {}", node.provision_state.family().map_or("it", operation)),
    }
}

/// What a conductor did for a node, as the end of a sentence.
pub(crate) fn work_in_words(node: &Node, order: Option<&PendingOrder>) -> String {
    match order {
        Some(order) => format!("carried out the order {:?}", order.verb.as_str()),
        None => format!("worked on {}", node.provision_state.family().map_or("it", operation)),
    }
}

fn operation(family: Family) -> &'static str {
    match family {
        Family::Verify => "the verification of its BMC",
        Family::Deploy => "its deployment",
        Family::Delete => "the removal of its instance",
        Family::Clean => "its cleaning",
        Family::Inspect => "its inspection",
        Family::Adopt => "its adoption",
        Family::Rescue => "its rescue",
        Family::Unrescue => "the return of its instance",
        Family::Service => "its service",
    }
}

/// A lease by which nothing is owed moves nobody on: it has expired, or somebody reads a heartbeat or changes the
/// record.
fn without_lease(record: &Record, settings: &Settings, now: OffsetDateTime) -> Waiting {
    let unleased = Record { lease_expires_at: None, ..record.clone() };
    match Attention::of(&unleased, settings) {
        Attention::Agent { until } => for_agent(record, until, now),
        _ if record.node.provision_state.activity() == Activity::Wait => {
            waits_without_deadline(record, settings)
        }
        _ => next_action::is_to_act(&record.node),
    }
}

fn for_agent(record: &Record, until: OffsetDateTime, now: OffsetDateTime) -> Waiting {
    let waits_for = format!("It waits for {}.", whom(record));
    match until <= now {
        true => Waiting::by_itself(
            waits_for,
            Some(until),
            "Nothing, where a conductor runs: the deadline has passed, and the operation fails when a conductor \
             checks the node next. Else start one.",
        ),
        false => Waiting {
            next_action: "Nothing before the deadline: then the operation fails. To end it now, abort it; to see why its \
                agent is silent, look at the console of the machine."
                .to_owned(),
            commands: vec![format!("farrier node abort {}", record.node.label())],
            ..Waiting::by_itself(waits_for, Some(until), "")
        },
    }
}

/// Whom an operation waits for, and for what, as the end of a sentence.
fn whom(record: &Record) -> String {
    let node = &record.node;
    let kind = StepKind::of(node.provision_state);
    let step = node.current_step().map(PlannedStep::id);
    let is_driver = kind.is_some_and(|kind| node.plan(kind).polling || node.plan(kind).disable_ramdisk);
    match (step, record.session.agent_last_heartbeat) {
        (Some(step), _) if is_driver => format!("the machine's own controller to end the step {step}"),
        (Some(step), Some(_)) => format!("its agent to end the step {step}"),
        (Some(step), None) => format!("its agent to call, for the step {step}"),
        (None, _) if node.provision_state == ProvisionState::InspectWait => {
            "its ramdisk to post what the machine is made of".to_owned()
        }
        (None, Some(_)) => "the next heartbeat of its agent".to_owned(),
        (None, None) => "its agent to call for the first time: the ramdisk boots".to_owned(),
    }
}

fn waits_without_deadline(record: &Record, settings: &Settings) -> Waiting {
    let label = record.node.label();
    let abort = format!("farrier node abort {label}");
    if !record.node.maintenance {
        return Waiting {
            waits_for: format!("It waits for {}, without a deadline.", whom(record)),
            until: None,
            next_action: "Look at the console of the machine, and abort the operation when its agent will not call; the \
                conductor's settings give it no deadline."
                .to_owned(),
            commands: vec![abort],
        };
    }
    let (waits_for, next_action) = match settings.allow_provisioning_in_maintenance {
        true => (
            "It waits for an operator to end its maintenance, during which its operation pauses.",
            "End the maintenance when you are done with the machine, and the operation continues; or abort it.",
        ),
        false => (
            "It waits for an operator: it is in maintenance, in which the next heartbeat fails its operation.",
            "End the maintenance before its agent calls, and the operation continues; or abort it.",
        ),
    };
    Waiting {
        waits_for: waits_for.to_owned(),
        until: None,
        next_action: next_action.to_owned(),
        commands: vec![format!("farrier node maintenance {label} off"), abort],
    }
}

#[cfg(test)]
mod tests;
