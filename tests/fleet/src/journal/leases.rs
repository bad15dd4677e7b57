//! Whether each conductor held the lease of a machine's node when it acted on the machine.

use super::entry::Entry;
use super::judge::is_act;

/// A change of a lease, as the database of the conductors tells it.
#[derive(Debug, Clone, PartialEq)]
pub struct LeaseChange {
    /// When, in seconds of the journal.
    pub at: f64,
    /// The conductor that holds the lease from then on; nothing where none does.
    pub holder: Option<String>,
}

/// The acts on a machine that a conductor ordered without the lease of its node. The changes of that lease are in their
/// order.
///
/// A lease is in the database before its conductor acts, and ends there after its act was answered: both moments and that of
/// the act are read from one clock.
pub fn without_lease(entries: &[Entry], leases: &[LeaseChange]) -> Vec<Entry> {
    let holder = |at: f64| leases.iter().rev().find(|change| change.at <= at)?.holder.as_deref();
    let is_ordered_by_another = |entry: &&Entry| {
        let by = entry.by.as_ref().filter(|_| is_act(entry));
        by.is_some_and(|by| by.conductor().is_none() || by.conductor() != holder(entry.at))
    };
    entries.iter().filter(is_ordered_by_another).cloned().collect()
}

#[cfg(test)]
mod tests {
    use super::super::entry::{Side, Who};
    use super::*;

    fn act(at: f64, side: Side, conductor: &str, act: &str) -> Entry {
        let program = Some(format!("farrier/0.1.0 ({conductor})"));
        let by = Some(Who { peer: "192.0.2.1:5".parse().unwrap(), user: None, program });
        Entry { at, machine: 0, life: Some(1), side, by, act: act.to_owned(), outcome: "200".to_owned() }
    }

    fn change(at: f64, holder: Option<&str>) -> LeaseChange {
        LeaseChange { at, holder: holder.map(str::to_owned) }
    }

    #[test]
    fn an_act_without_the_lease_is_found_whoever_has_it() {
        let leases = [change(1.0, Some("one")), change(3.0, Some("two")), change(5.0, None)];
        let reset = |at: f64, conductor: &str| act(at, Side::Bmc, conductor, "POST reset");
        let held = [reset(1.0, "one"), reset(2.9, "one"), reset(3.0, "two"), reset(4.9, "two")];
        assert_eq!(without_lease(&held, &leases), []);
        let wrong = [reset(0.9, "one"), reset(2.0, "two"), reset(3.1, "one"), reset(5.1, "two")];
        assert_eq!(without_lease(&wrong, &leases), wrong);
        let write = act(3.5, Side::Agent, "one", "deploy.execute_deploy_step deploy.write_image");
        assert_eq!(without_lease(std::slice::from_ref(&write), &leases), [write]);
        let nobody =
            Entry { by: Some(Who { program: None, ..reset(6.0, "one").by.unwrap() }), ..reset(6.0, "one") };
        assert_eq!(without_lease(std::slice::from_ref(&nobody), &leases), [nobody]);
    }

    #[test]
    fn what_changes_nothing_needs_no_lease() {
        let reads = [
            act(1.0, Side::Bmc, "one", "POST /redfish/v1/SessionService/Sessions"),
            act(1.0, Side::Agent, "one", "standby.get_partition_uuids"),
            Entry { by: None, ..act(1.0, Side::Machine, "one", "start the ramdisk") },
        ];
        assert_eq!(without_lease(&reads, &[]), []);
    }
}
