//! Conductors that are killed while they work on a machine with an instance.

use super::site::{
    Life, Site, activate, assert_begun_once, for_each, gates, killed_at, manage, two_steps, writes_of,
};
use crate::stand_ins::agent::Script;
use crate::stand_ins::machine::Boot;
use farrier_conductor::model::{PowerState, ProvisionState};
use farrier_engine::records::Order;
use serde_json::json;

/// By which rescue systems are entered.
const PASSWORD: &str = "oats and barley";

/// The same for a service: the instance runs again, or the node says that it does not.
#[test]
fn fault_a_conductor_that_is_killed_after_any_write_of_a_service_loses_no_instance() {
    let service = |life: &Life| {
        let conductor = life.conductor.clone();
        let steps = ["first", "second"].map(|step| json!({"interface": "deploy", "step": step}));
        life.runtime.spawn(async move { conductor.order("n1", Order::service(&steps)).await });
    };
    let total = writes_of(two_steps(), activate, service);
    assert!(total > 12, "{total}");
    let ends = for_each(gates(total - 1), |gate| {
        let (site, node) = killed_at(two_steps(), gate, activate, service);
        let error = node.last_error.unwrap_or_default();
        let last_boot = site.machine.power_ons().pop().flatten();
        let is_serviced = !site.machine.script.lock().unwrap().steps().is_empty();
        assert!(!node.instance_info.is_empty(), "{gate:?}");
        match node.provision_state {
            ProvisionState::Active => {
                assert_eq!(
                    (site.power(), last_boot, error.as_str()),
                    (PowerState::On, Some(Boot::Disk), ""),
                    "{gate:?}"
                );
                if is_serviced {
                    assert_begun_once(&site, "service", gate);
                }
            }
            ProvisionState::ServiceFailed => assert!(error.contains("no agent called"), "{gate:?}: {error}"),
            state => panic!("{gate:?}: {state}"),
        }
        (node.provision_state, is_serviced)
    });
    let not_serviced: Vec<_> =
        ends.iter().filter(|(_, end)| *end != (ProvisionState::Active, true)).collect();
    assert!(not_serviced.len() <= 10, "{not_serviced:?}");
}

#[test]
fn fault_a_conductor_that_is_killed_while_it_adopts_does_not_switch_the_machine() {
    let adopt = |life: &Life| {
        let conductor = life.conductor.clone();
        life.runtime.spawn(async move { conductor.order("n1", Order::Adopt).await });
    };
    for gate in gates(3) {
        let (site, node) = killed_at(Script::default(), gate, manage, adopt);
        // Nothing is known of its instance, nor need be.
        let known = [ProvisionState::Manageable, ProvisionState::AdoptFailed, ProvisionState::Active];
        assert!(known.contains(&node.provision_state), "{gate:?} {}", node.provision_state);
        assert!(site.machine.power_ons().is_empty(), "{gate:?}");
    }
}

fn order_rescue(life: &Life) {
    let conductor = life.conductor.clone();
    life.runtime.spawn(async move { conductor.order("n1", Order::rescue(PASSWORD)).await });
}

/// `kill -9` after every single write of a rescue: its system can be entered, or the node says that it cannot.
#[test]
fn fault_a_conductor_that_is_killed_after_any_write_of_a_rescue_leaves_a_system_with_its_password() {
    let total = writes_of(Script::default(), activate, order_rescue);
    assert!(total > 8, "{total}");
    let ends = for_each(gates(total - 1), |gate| {
        let (site, node) = killed_at(Script::default(), gate, activate, order_rescue);
        let error = node.last_error.unwrap_or_default();
        let can_be_entered = site.machine.script.lock().unwrap().rescue_password.is_some();
        assert_eq!(node.instance_info.hashed_rescue_password(), None, "{gate:?}");
        match node.provision_state {
            ProvisionState::Rescue => {
                assert_eq!(
                    (site.power(), can_be_entered, error.as_str()),
                    (PowerState::On, true, ""),
                    "{gate:?}"
                );
            }
            // An agent whose token got lost on its way (section 8.4).
            ProvisionState::RescueFailed => {
                assert!(error.contains("no agent called"), "{gate:?}: {error}");
                assert_eq!(site.power(), PowerState::Off, "{gate:?}");
            }
            ProvisionState::Active => {
                assert_eq!(site.machine.power_ons().pop().flatten(), Some(Boot::Disk), "{gate:?}");
            }
            state => panic!("{gate:?}: {state}"),
        }
        node.provision_state
    });
    let not_rescued: Vec<_> = ends.iter().filter(|(_, end)| *end != ProvisionState::Rescue).collect();
    assert!(not_rescued.len() <= 6, "{not_rescued:?}");
}

#[test]
fn fault_a_conductor_that_is_killed_after_any_write_of_an_unrescue_starts_the_instance() {
    let rescued = |site: &Site, life: &Life| {
        activate(site, life);
        order_rescue(life);
        site.until(|record| {
            record.node.provision_state == ProvisionState::Rescue && record.node.reservation.is_none()
        });
    };
    let unrescue = |life: &Life| {
        let conductor = life.conductor.clone();
        life.runtime.spawn(async move { conductor.order("n1", Order::Unrescue).await });
    };
    let total = writes_of(Script::default(), rescued, unrescue);
    for_each(gates(total - 1), |gate| {
        let (site, node) = killed_at(Script::default(), gate, rescued, unrescue);
        let last_boot = site.machine.power_ons().pop().flatten();
        match node.provision_state {
            ProvisionState::Active => assert_eq!(last_boot, Some(Boot::Disk), "{gate:?}"),
            // Before the order is written there is none.
            ProvisionState::Rescue => assert!(matches!(last_boot, Some(Boot::Ramdisk(_))), "{gate:?}"),
            state => panic!("{gate:?}: {state}"),
        }
        assert_eq!((site.power(), node.last_error), (PowerState::On, None), "{gate:?}");
    });
}
