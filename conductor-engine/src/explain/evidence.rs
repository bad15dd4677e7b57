//! What a record tells of its node, the most telling first.

use crate::evidence::diagnosis::Diagnosis;
use crate::explain::Evidence;
use crate::store::Record;
use farrier_conductor::interfaces::HandWork;
use farrier_conductor::model::{Activity, StepKind};
use time::OffsetDateTime;
use time::format_description::well_known::Rfc3339;

/// What evidence of the power is about.
pub(crate) const POWER: &str = "power";

/// What a record tells of its node.
pub(crate) fn of(record: &Record, now: OffsetDateTime) -> Vec<Evidence> {
    let node = &record.node;
    let mut evidence = Vec::new();
    let mut tell =
        |what: &str, said: Option<String>| evidence.extend(said.map(|said| Evidence::new(what, said)));
    tell("last error", node.last_error.clone());
    tell("fault", node.fault.map(|fault| fault.to_string()));
    tell(
        "maintenance",
        node.maintenance
            .then(|| node.maintenance_reason.clone().unwrap_or_else(|| "no reason was given".into())),
    );
    tell(
        "order",
        record.order.map(|order| {
            let interruptions = node.driver_internal_info.interruptions.unwrap_or_default();
            let again = match order.attempts.unsigned_abs() + interruptions {
                0 => String::new(),
                attempts => format!(", taken up again {attempts} times"),
            };
            format!("{} since {}{again}", order.verb, text(order.ordered_at))
        }),
    );
    tell("target", node.target_provision_state.map(|target| target.to_string()));
    tell("step", step(record));
    let is_under_way =
        matches!(node.provision_state.activity(), Activity::Work | Activity::Wait | Activity::Hold);
    let heard = record.session.agent_last_heartbeat;
    tell(
        "last heartbeat",
        match heard {
            Some(heard) => Some(format!("{} ({} s ago)", text(heard), (now - heard).whole_seconds())),
            None => is_under_way.then(|| "none since the machine was started".to_owned()),
        },
    );
    tell(
        "agent",
        record.session.agent_url.clone().map(|url| {
            let version = record.session.agent_version.as_ref().map(|version| format!(", version {version}"));
            format!("{url}{}", version.unwrap_or_default())
        }),
    );
    let power = node.power_state.map_or_else(|| "not known".to_owned(), |state| state.to_string());
    tell(
        POWER,
        Some(match node.target_power_state {
            Some(target) => format!("{power}, to be {target}"),
            None => power,
        }),
    );
    tell(
        "boot interface",
        node.driver_internal_info
            .boot_fallback
            .as_ref()
            .map(|fallback| format!("{}, fallen back to: {}", fallback.boot_interface, fallback.reason)),
    );
    tell(
        "lease",
        node.reservation.as_ref().zip(record.lease_expires_at).map(|(holder, until)| {
            let verb = if until > now { "until" } else { "expired at" };
            format!("{holder}, {verb} {}", text(until))
        }),
    );
    tell(
        "disk export",
        node.driver_internal_info
            .disk_export
            .as_ref()
            .map(|export| format!("{export} since {}", text(export.since))),
    );
    tell("erasure", node.driver_internal_info.erasure.as_ref().map(ToString::to_string));
    evidence
}

/// What an operator has to do.
pub(crate) fn by_hand(work: &HandWork) -> Evidence {
    Evidence::new("order to an operator", format!("{} (since {})", work.what, text(work.since)))
}

/// How many entries of a controller's log are told; the others are beside them.
const ENTRIES_TOLD: usize = 3;

/// What could be had of a machine: the latest of it.
pub(crate) fn of_machine(words: &Diagnosis) -> Vec<Evidence> {
    let latest = &words.log[words.log.len().saturating_sub(ENTRIES_TOLD)..];
    let entries = latest.iter().map(|entry| {
        let at = entry.at.map(|at| format!("{} ", text(at))).unwrap_or_default();
        Evidence::new("event log", format!("{at}{}", entry.said))
    });
    let screen = words.screenshot.iter().map(|name| Evidence::new("screen", name.clone()));
    let missing = words.missing.iter().map(|missing| Evidence::new("could not be had", missing.clone()));
    entries.chain(screen).chain(missing).collect()
}

fn step(record: &Record) -> Option<String> {
    let node = &record.node;
    let kind = StepKind::of(node.provision_state)?;
    let step = node.step(kind)?;
    let plan = node.plan(kind);
    let place = plan.index.map(|index| format!(" ({} of {})", index + 1, plan.steps.len()));
    let ends = if step.abort_after { ", after which the operation is aborted" } else { "" };
    Some(format!("{kind} step {}{}{ends}", step.id(), place.unwrap_or_default()))
}

fn text(time: OffsetDateTime) -> String {
    let time = time.replace_nanosecond(0).unwrap_or(time);
    time.format(&Rfc3339).unwrap_or_default()
}
