//! What a journal proves.

use super::entry::{Entry, Side};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::time::Duration;

/// A step that a machine's agent was told to run more than once in one operation.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Twice {
    /// The operation.
    pub operation: String,
    /// The step.
    pub act: String,
    /// How often.
    pub count: usize,
}

/// Two that acted on a machine by turns within one operation.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Overlap {
    /// What the first did, after which the other acted.
    pub before: Entry,
    /// What the other did.
    pub between: Entry,
    /// What the first did then.
    pub after: Entry,
}

/// What is in the path of sessions of a BMC.
const SESSIONS: &str = "/SessionService/";

/// The acts by which the driver tells that an operation begins.
const BEGINS: &str = "begin ";

/// The steps that agents were told to run more than once in one operation, without a fault in it.
pub fn done_twice(entries: &[Entry]) -> Vec<Twice> {
    let mut found = Vec::new();
    for (operation, entries) in operations(entries) {
        if entries.iter().any(|entry| entry.side == Side::Fault) {
            continue;
        }
        let mut counts: BTreeMap<&str, usize> = BTreeMap::new();
        let steps = entries.iter().filter(|entry| entry.side == Side::Agent && is_step(entry));
        steps.for_each(|entry| *counts.entry(&entry.act).or_default() += 1);
        let several = counts.into_iter().filter(|(_, count)| *count > 1);
        let twice = |(act, count): (&str, usize)| Twice {
            operation: operation.to_owned(),
            act: act.to_owned(),
            count,
        };
        found.extend(several.map(twice));
    }
    found
}

/// Where two acted by turns on the same machine within one operation. Somebody that goes on after another has ended does
/// not overlap with it. Logins and commands that change nothing are no acts: a conductor that stood still between the
/// confirmation of its lease and a request sends that request when it goes on. Somebody that comes back after a whole lease
/// may have taken the machine over again.
pub fn overlaps(entries: &[Entry], lease: Duration) -> Vec<Overlap> {
    let mut found = Vec::new();
    for (_, entries) in operations(entries) {
        for side in [Side::Bmc, Side::Agent] {
            let acts = entries.iter().filter(|entry| entry.side == side && is_act(entry));
            let acts: Vec<_> = acts.filter_map(|entry| Some((entry.by.as_ref()?.actor(), entry))).collect();
            for (place, (actor, after)) in acts.iter().enumerate() {
                let Some(between) = place.checked_sub(1).map(|before| &acts[before]) else { continue };
                let before = acts[..place].iter().rev().skip(1).find(|(one, _)| one == actor);
                let is_soon = after.at - between.1.at < lease.as_secs_f64();
                if let (true, true, Some((_, before))) = (is_soon, between.0 != *actor, before) {
                    let [before, between, after] = [before, between.1, after].map(|entry| (*entry).clone());
                    found.push(Overlap { before, between, after });
                }
            }
        }
    }
    found
}

/// Whether the machine was acted on: a client of a BMC that logs in, and one that asks an agent for what it knows, change
/// nothing of it.
pub(super) fn is_act(entry: &Entry) -> bool {
    match entry.side {
        Side::Bmc => !entry.act.contains(SESSIONS),
        Side::Agent => !entry.act.contains(".get_") && !entry.act.contains(".collect_"),
        Side::Machine | Side::Fault | Side::Driver => false,
    }
}

fn is_step(entry: &Entry) -> bool {
    entry.act.contains(".execute_") && entry.outcome != "409"
}

/// The entries of each operation, by its name.
fn operations(entries: &[Entry]) -> Vec<(&str, &[Entry])> {
    let name = |entry: &Entry| entry.side == Side::Driver && entry.act.starts_with(BEGINS);
    let mut starts: Vec<_> = (0..entries.len()).filter(|place| name(&entries[*place])).collect();
    if starts.first() != Some(&0) {
        starts.insert(0, 0);
    }
    let ends = starts.iter().skip(1).copied().chain([entries.len()]);
    let named = |place: usize| entries.get(place).and_then(|entry| entry.act.strip_prefix(BEGINS));
    starts
        .iter()
        .zip(ends)
        .map(|(start, end)| (named(*start).unwrap_or("no operation"), &entries[*start..end]))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::super::entry::Who;
    use super::*;

    fn entry(side: Side, act: &str, by: Option<&str>) -> Entry {
        let by = by.map(|user| Who {
            peer: "192.0.2.1:5".parse().unwrap(),
            user: Some(user.to_owned()),
            program: None,
        });
        let outcome = "200".to_owned();
        Entry { at: 0.0, machine: 0, life: Some(1), side, by, act: act.to_owned(), outcome }
    }

    #[test]
    fn a_step_may_come_again_in_another_operation_and_after_a_fault_only() {
        const WRITE: &str = "deploy.execute_deploy_step deploy.write_image";
        let begin = |operation: &str| entry(Side::Driver, &format!("begin {operation}"), None);
        let write = || entry(Side::Agent, WRITE, Some("a"));
        assert_eq!(
            done_twice(&[begin("deploy"), write(), begin("rebuild"), write()]),
            Vec::<Twice>::new(),
            "each operation writes"
        );
        let twice = [begin("deploy"), write(), write(), begin("rebuild")];
        let found = done_twice(&twice);
        assert_eq!((found.len(), found[0].operation.as_str(), found[0].count), (1, "deploy", 2));
        let fault = entry(Side::Fault, "agent-crash", None);
        assert_eq!(done_twice(&[begin("deploy"), write(), fault, write()]), Vec::<Twice>::new());
    }

    fn turns(entries: &[Entry]) -> Vec<Overlap> {
        overlaps(entries, Duration::from_secs(10))
    }

    #[test]
    fn who_takes_over_does_not_overlap_and_who_acts_by_turns_does() {
        let act = |user: &str| entry(Side::Bmc, "POST reset", Some(user));
        assert_eq!(turns(&[act("a"), act("a"), act("b"), act("b")]), Vec::<Overlap>::new());
        let found = turns(&[act("a"), act("b"), act("a")]);
        assert_eq!((found.len(), found[0].between.by.as_ref().unwrap().user.as_deref()), (1, Some("b")));
        let late = Entry { at: 10.0, ..act("a") };
        assert_eq!(turns(&[act("a"), act("b"), late]), Vec::<Overlap>::new(), "it took over again");
        let login = entry(Side::Bmc, "POST /redfish/v1/SessionService/Sessions", Some("b"));
        assert_eq!(turns(&[act("a"), login, act("a")]), Vec::<Overlap>::new());
        let told = |user: &str, act: &str| entry(Side::Agent, act, Some(user));
        let write = |user: &str| told(user, "deploy.execute_deploy_step deploy.write_image");
        let reads = told("b", "standby.get_partition_uuids");
        assert_eq!(turns(&[write("a"), reads, write("a")]), Vec::<Overlap>::new());
        assert_eq!(turns(&[write("a"), write("b"), write("a")]).len(), 1);
        let begin = entry(Side::Driver, "begin deploy", None);
        assert_eq!(turns(&[act("a"), act("b"), begin, act("a")]), Vec::<Overlap>::new());
    }
}
