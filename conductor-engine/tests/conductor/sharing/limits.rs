//! How many operations are under way at once (section 12.5).

use super::site::{Site, is_in, step};
use farrier_conductor::model::ProvisionState::{CleanFailed, CleanWait, Cleaning, Manageable};
use farrier_engine::records::Order;
use std::time::Duration;

#[test]
fn l02_operations_beyond_the_limit_wait_in_a_fair_queue_that_explain_shows() {
    let site = Site::new();
    let begin = || {
        site.try_begin("c1", &["common"], |settings| {
            settings.operations.max_concurrent_clean = 2;
        })
        .unwrap()
    };
    let mut host = begin();
    let names = ["n1", "n2", "n3", "n4", "n5", "n6"];
    for name in names {
        host.create(name, "common");
        host.order(name, Order::Manage).unwrap();
    }
    site.until_all(is_in(Manageable));
    site.seen.lock().unwrap().holds_steps = true;
    for name in names {
        host.order(name, step("polled")).unwrap();
    }
    let is_queued = |name: &str| {
        let record = site.record(name);
        record.node.provision_state == Cleaning && record.lease_expires_at.is_none()
    };
    site.until(|_| ["n3", "n4", "n5", "n6"].iter().all(|name| is_queued(name)));
    site.until(|_| ["n1", "n2"].iter().all(|name| site.record(name).node.provision_state == CleanWait));
    let explanation = host.runtime.block_on(host.conductor.evidence().explain("n4")).unwrap();
    let told = "It waits in a queue for its cleaning to begin: it has place 2 of 4, and 2 are under way";
    assert!(explanation.waits_for.starts_with(told), "{explanation:#?}");
    assert_eq!((explanation.until, explanation.is_overdue), (None, false));
    assert_eq!(explanation.commands, ["farrier node abort n4"]);

    // It can be taken out of the queue, and nothing was done to its machine.
    host.order("n4", Order::Abort).unwrap();
    let node = site.record("n4").node;
    assert_eq!((node.provision_state, node.maintenance), (CleanFailed, false));
    assert_eq!(node.last_error.as_deref(), Some("cleaning aborted by request before it began [FAR-0510]"));

    // The next process has the same queue.
    host.stop();
    host = begin();
    site.until(|_| ["n1", "n2"].iter().all(|name| site.record(name).lease_expires_at.is_none()));
    std::thread::sleep(Duration::from_millis(200));
    assert_eq!(site.seen.lock().unwrap().begun.len(), 2, "the limit holds after a start");
    site.seen.lock().unwrap().holds_steps = false;
    site.until(|records| records.iter().filter(|record| is_in(Manageable)(record)).count() == 5);
    let mut begun = site.seen.lock().unwrap().begun.clone();
    begun[..2].sort();
    begun[2..4].sort();
    assert_eq!(begun, ["n1", "n2", "n3", "n5", "n6"]);
    host.stop();
}
