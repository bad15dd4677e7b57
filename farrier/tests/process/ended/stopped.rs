//! A conductor that is stopped for longer than its lease.

use crate::agent::Script;
use crate::site::{PATIENCE, Site};
use farrier_conductor::model::{PowerState, ProvisionState};
use nix::sys::signal::Signal;
use std::time::Instant;

#[tokio::test(flavor = "multi_thread")]
async fn process_a_conductor_that_was_stopped_for_longer_than_its_lease_changes_nothing() {
    let site = Site::new(Script::default()).await;
    let first = site.conductor("first", "127.0.0.1:0");
    site.enrol(&first);
    // It is stopped while it starts the machine.
    site.machine.stick();
    let client = site.deploy(&first);
    site.until(|record| record.node.reservation.as_deref() == Some("first") && record.order.is_some()).await;
    site.machine.is_on().await;
    first.signal(Signal::SIGSTOP);
    // One that is stopped while it writes keeps all others from their file, as SQLite has it.
    let end = Instant::now() + PATIENCE;
    while !site.is_free().await {
        assert!(Instant::now() < end, "the file of the store is never free");
        first.signal(Signal::SIGCONT);
        first.signal(Signal::SIGSTOP);
    }
    site.machine.unstick();

    let second = site.conductor("second", "127.0.0.1:0");
    let after = site.ends(ProvisionState::Active).await;
    let boots = site.machine.boots();
    assert!(site.record().await.epoch >= 2);

    // The machine that it was starting was ended meanwhile, which it takes for a failure.
    first.signal(Signal::SIGCONT);
    first.says("was taken over by another conductor").await;
    // What is ordered of it now comes after what it was about to do.
    first.order(&["node", "show", "n1"]);
    let now = site.record().await;
    assert_eq!((&now.node, &now.session, now.order), (&after.node, &after.session, after.order));
    assert_eq!((site.machine.power(), site.machine.boots()), (PowerState::On, boots));
    first.order(&["node", "power", "n1", "off"]);
    let end = site.ends(ProvisionState::Active).await;
    assert_eq!(
        (end.node.last_error, site.machine.power(), site.machine.boots()),
        (None, PowerState::Off, boots)
    );
    drop((client, second));
}
