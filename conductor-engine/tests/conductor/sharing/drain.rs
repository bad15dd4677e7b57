//! A conductor that stops in order ends nothing that the next one can continue.

use super::site::{Site, is_in, step};
use crate::stand_ins::stage::PATIENCE;
use farrier_conductor::PowerAction;
use farrier_conductor::model::ProvisionState::Manageable;
use farrier_engine::Error;
use farrier_engine::records::Order;
use std::time::{Duration, Instant};

#[test]
fn e13_planned_restarts_end_no_operation_and_count_no_attempt() {
    let site = Site::new();
    let begin = || {
        let timeout = Duration::from_millis(100);
        site.try_begin("c1", &["common"], |settings| settings.graceful_shutdown_timeout = timeout).unwrap()
    };
    let mut host = begin();
    host.create("n1", "common");
    host.order("n1", Order::Manage).unwrap();
    site.until_all(is_in(Manageable));
    site.seen.lock().unwrap().holds_steps = true;
    host.order("n1", step("long")).unwrap();
    for restart in 1..=4 {
        let end = Instant::now() + PATIENCE;
        while site.seen.lock().unwrap().begun.len() < restart {
            assert!(Instant::now() < end, "the step did not begin for the time {restart}");
            std::thread::sleep(Duration::from_millis(5));
        }
        host.runtime.block_on(host.conductor.drain());
        let record = site.record("n1");
        // Its lease is given back: the next one begins at once.
        assert_eq!((record.node.reservation, record.lease_expires_at), (None, None), "{restart}");
        assert!(!site.seen.lock().unwrap().has_shut_down, "the driver ended before the work");
        let refused = host.order("n1", Order::power(PowerAction::Off)).unwrap_err();
        assert!(matches!(refused, Error::Stopping(_)), "{refused}");
        host.stop();
        assert!(std::mem::take(&mut site.seen.lock().unwrap().has_shut_down));
        assert!(
            site.outside
                .block_on(farrier_engine::store::ConductorStore::conductors(&site.store))
                .unwrap()
                .is_empty()
        );
        host = begin();
    }
    site.seen.lock().unwrap().holds_steps = false;
    site.until_all(is_in(Manageable));
    let node = site.record("n1").node;
    assert_eq!((node.last_error, node.driver_internal_info.interruptions), (None, None));
    host.stop();
}

/// What ends in time is not cut off.
#[test]
fn e13_a_conductor_that_stops_waits_for_what_is_under_way() {
    let site = Site::new();
    let host = site.begin("c1", &["common"]);
    host.create("n1", "common");
    host.order("n1", Order::Manage).unwrap();
    site.until_all(is_in(Manageable));
    site.seen.lock().unwrap().holds_steps = true;
    host.order("n1", step("long")).unwrap();
    let end = Instant::now() + PATIENCE;
    while site.seen.lock().unwrap().begun.is_empty() {
        assert!(Instant::now() < end, "the step did not begin");
        std::thread::sleep(Duration::from_millis(5));
    }
    let conductor = host.conductor.clone();
    let drained = host.runtime.spawn(async move { conductor.drain().await });
    std::thread::sleep(Duration::from_millis(100));
    assert!(!drained.is_finished());
    site.seen.lock().unwrap().holds_steps = false;
    host.runtime.block_on(drained).unwrap();
    assert_eq!(site.seen.lock().unwrap().begun.len(), 1);
    assert!(is_in(Manageable)(&site.record("n1")), "{:#?}", site.record("n1"));
    host.stop();
}

/// A step that stops every conductor is given up, whatever an operator orders of the power of the node meanwhile.
#[test]
fn e12_an_order_of_power_on_a_waiting_node_does_not_reset_the_attempts_of_its_operation() {
    let site = Site::new();
    let mut host = site.begin("c1", &["common"]);
    host.create("n1", "common");
    host.order("n1", Order::Manage).unwrap();
    site.until_all(is_in(Manageable));
    site.seen.lock().unwrap().holds_steps = true;
    host.order("n1", step("polled")).unwrap();
    site.until_all(is_in(farrier_conductor::model::ProvisionState::CleanWait));
    host.order("n1", Order::power(PowerAction::On)).unwrap();
    site.until(|records| records[0].order.is_none() && records[0].node.power_state.is_some());
    for crash in 1..=4 {
        site.leave_in_the_middle("n1");
        host.kill();
        host = site.begin("c1", &["common"]);
        site.until(|records| {
            let counted = records[0].node.driver_internal_info.interruptions;
            counted == Some(crash) || records[0].node.last_error.is_some()
        });
    }
    site.until(|records| records[0].node.last_error.is_some());
    let error = site.record("n1").node.last_error.unwrap();
    assert!(error.contains("stopped 3 times while it worked on its cleaning"), "{error}");
    host.stop();
}
