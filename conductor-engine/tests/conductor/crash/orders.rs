//! Conductors that are killed while they abort or switch power, that are stopped, or whose disk is full.

use super::site::{Life, Site, gates, killed_at, manage};
use crate::stand_ins::agent::Script;
use crate::stand_ins::gate::Gate;
use farrier_conductor::PowerAction;
use farrier_conductor::model::{PowerState, ProvisionState};
use farrier_engine::records::Order;
use serde_json::json;
use std::time::Duration;

/// Whatever an abort is cut off at, it ends in the failed state (lesson F65).
#[test]
fn fault_f65_a_conductor_that_is_killed_while_it_aborts_ends_in_the_failed_state() {
    let clean = |site: &Site, life: &Life| {
        manage(site, life);
        let steps = [json!({"interface": "power", "step": "hold"})];
        life.runtime.block_on(life.conductor.order("n1", Order::clean(&steps))).unwrap();
        site.until(|record| {
            record.node.provision_state == ProvisionState::CleanHold && record.node.reservation.is_none()
        });
    };
    let abort = |life: &Life| {
        let conductor = life.conductor.clone();
        life.runtime.spawn(async move { conductor.order("n1", Order::Abort).await });
    };
    // The lease, the order, the end of the session: the next write is the last.
    for gate in gates(3) {
        let (site, node) = killed_at(Script::default(), gate, clean, abort);
        let expected = match gate {
            Gate::RefusesAfter(1) | Gate::HangsAfter(1) => (ProvisionState::CleanHold, PowerState::On, false),
            _ => (ProvisionState::CleanFailed, PowerState::Off, true),
        };
        let says_so = node.last_error.is_some_and(|error| error.contains("aborted"));
        assert_eq!((node.provision_state, site.power(), says_so), expected, "{gate:?}");
    }
}

#[test]
fn fault_a_conductor_that_is_killed_while_it_reboots_a_machine_leaves_it_on() {
    for action in [PowerAction::Reboot, PowerAction::SoftReboot] {
        killed_while_it_reboots(action);
    }
}

fn killed_while_it_reboots(action: PowerAction) {
    let reboot = move |life: &Life| {
        let conductor = life.conductor.clone();
        life.runtime.spawn(async move { conductor.order("n1", Order::power(action)).await });
    };
    for gate in gates(3) {
        let (site, node) = killed_at(Script::default(), gate, |_, _| {}, reboot);
        let expected = match gate {
            Gate::RefusesAfter(1) | Gate::HangsAfter(1) => PowerState::Off,
            _ => PowerState::On,
        };
        assert_eq!((site.power(), node.last_error), (expected, None), "{gate:?}");
    }
}

/// An operation that ends its conductor each time it is taken up is given up, with a reason.
#[test]
fn fault_an_order_that_stops_every_conductor_is_given_up() {
    let site = Site::new(Script::default());
    let mut life = Life::begin(&site, "c1", None, Gate::Open);
    life.enrol();
    life.store.set(Gate::HangsAfter(life.store.writes() + 3));
    life.order();
    life.runtime.block_on(life.store.stops());
    for _ in 0..3 {
        let address = life.address;
        life.kill();
        // Its lease, that it is taken up once more, its first step.
        life = Life::begin(&site, "c1", Some(address), Gate::HangsAfter(3));
        life.runtime.block_on(life.store.stops());
    }
    let address = life.address;
    life.kill();
    let _last = Life::begin(&site, "c1", Some(address), Gate::Open);
    let node = site.at_rest().node;
    assert_eq!((node.provision_state, site.power()), (ProvisionState::DeployFailed, PowerState::Off));
    assert!(node.last_error.unwrap().contains("stopped 3 times"));
}

/// A conductor that is stopped (SIGSTOP) in the middle of a deployment, for longer than its lease.
#[test]
fn fault_a_conductor_that_wakes_after_its_lease_overwrites_nothing() {
    let site = Site::new(Script::default());
    let stopped = Life::begin(&site, "c1", None, Gate::Open);
    stopped.enrol();
    let enrolled = stopped.store.writes();
    // The order is taken and written; the first write of its worker is the last that returns for a while.
    stopped.store.set(Gate::HangsAfter(enrolled + 3));
    stopped.order();
    stopped.runtime.block_on(stopped.store.stops());
    let before = site.record();
    assert_eq!(before.node.reservation.as_deref(), Some("c1"));

    let other = Life::begin(&site, "c2", None, Gate::Open);
    let after = site.until(|record| record.node.provision_state == ProvisionState::Active);
    assert!(after.epoch > before.epoch);
    let power_ons = site.machine.power_ons().len();

    let writes = stopped.store.writes();
    stopped.store.set(Gate::Open);
    std::thread::sleep(Duration::from_millis(500));
    assert_eq!(site.machine.power_ons().len(), power_ons);
    assert_eq!(site.power(), PowerState::On);
    let now = site.record();
    assert_eq!((now.node, now.session, now.order), (after.node, after.session, after.order));
    assert_eq!(stopped.store.writes(), writes);
    drop(other);
}

/// A disk that is full for a while delays a deployment, and ends none.
#[test]
fn fault_a_store_that_refuses_for_a_while_fails_no_deployment() {
    let site = Site::new(Script::default());
    let life = Life::begin(&site, "c1", None, Gate::Open);
    life.enrol();
    for more in [3, 5, 7] {
        life.store.set(Gate::RefusesAfter(life.store.writes() + more));
        if more == 3 {
            life.order();
        }
        life.runtime.block_on(life.store.stops());
        std::thread::sleep(Duration::from_millis(100));
    }
    life.store.set(Gate::Open);
    let record = site.at_rest();
    assert_eq!((record.node.provision_state, record.node.last_error), (ProvisionState::Active, None));
}
