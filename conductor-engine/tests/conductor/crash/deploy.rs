//! Conductors that are killed while they deploy, or remove an instance.

use super::site::{Life, Site, activate, for_each, gates, killed_at, manage, two_steps, writes_of};
use crate::stand_ins::agent::Script;
use crate::stand_ins::gate::Gate;
use crate::stand_ins::machine::Boot;
use farrier_conductor::model::{PowerState, ProvisionState};
use farrier_engine::records::Order;
use serde_json::json;

fn writes_of_a_deployment(script: Script) -> usize {
    writes_of(script, |_, _| {}, Life::order)
}

/// Kills a conductor at the gate while it deploys, and tells where the node ends.
fn killed_while_it_deploys(gate: Gate) -> ProvisionState {
    let (site, node) = killed_at(Script::default(), gate, |_, _| {}, Life::order);
    let last_boot = site.machine.power_ons().pop().flatten();
    let error = node.last_error.unwrap_or_default();
    match node.provision_state {
        ProvisionState::Active => {
            assert_eq!((site.power(), error.as_str()), (PowerState::On, ""), "{gate:?}");
            assert_eq!(last_boot, Some(Boot::Disk), "{gate:?}");
            // What is done is not done again.
            let accepted = site.machine.script.lock().unwrap().accepted.clone();
            let written = accepted.iter().filter(|(name, _)| name == "deploy.execute_deploy_step").count();
            assert_eq!(written, 1, "{gate:?}");
        }
        ProvisionState::DeployFailed => {
            // An agent whose token got lost on its way has none, and only power off and on gives it another
            // (section 8.4).
            assert!(error.contains("no agent called"), "{gate:?}: {error}");
            assert_eq!(site.power(), PowerState::Off, "{gate:?}: {error}");
        }
        ProvisionState::Available => {
            assert_eq!((site.power(), last_boot), (PowerState::Off, None), "{gate:?}");
        }
        state => panic!("{gate:?}: {state}"),
    }
    node.provision_state
}

/// `kill -9` after every single write of a deployment: once with what follows the write done and not recorded, once
/// with it not done.
#[test]
fn fault_a_conductor_that_is_killed_after_any_write_of_a_deployment_forgets_no_node() {
    let total = writes_of_a_deployment(Script::default());
    assert!(total > 12, "{total}");
    let ends = for_each(gates(total - 1), killed_while_it_deploys);
    // Before the order is written there is none.
    let not_active: Vec<_> = ends.iter().filter(|(_, end)| *end != ProvisionState::Active).collect();
    assert!(not_active.len() <= 6, "{not_active:?}");
}

/// An instance that runs in memory.
fn order_in_memory(life: &Life) {
    let conductor = life.conductor.clone();
    let info = json!({"boot_iso": "http://192.0.2.5/live.iso", "deploy_interface": "autodetect"});
    let info = serde_json::from_value(info).unwrap();
    life.runtime.spawn(async move { conductor.order("n1", Order::deploy(info)).await });
}

#[test]
fn fault_a_conductor_that_is_killed_while_it_boots_an_instance_into_memory_goes_on() {
    let total = writes_of(Script::default(), |_, _| {}, order_in_memory);
    assert!(total > 3, "{total}");
    for_each(gates(total - 1), |gate| {
        let (site, node) = killed_at(Script::default(), gate, |_, _| {}, order_in_memory);
        let last_boot = site.machine.power_ons().pop().flatten();
        match node.provision_state {
            ProvisionState::Active => {
                assert!(matches!(last_boot, Some(Boot::Memory(..))), "{gate:?} {last_boot:?}");
                assert_eq!(site.power(), PowerState::On, "{gate:?}");
            }
            // Before the order is written there is none.
            ProvisionState::Available => assert_eq!(last_boot, None, "{gate:?}"),
            state => panic!("{gate:?}: {state} {:?}", node.last_error),
        }
    });
}

#[test]
fn fault_a_conductor_that_is_killed_while_a_deployment_fails_leaves_no_machine_on() {
    let script = Script { write_fails: Some("disk full".into()), ..Script::default() };
    let total = writes_of_a_deployment(script.clone());
    for_each(gates(total - 1), |gate| {
        let (site, node) = killed_at(script.clone(), gate, |_, _| {}, Life::order);
        assert_eq!(site.power(), PowerState::Off, "{gate:?}");
        match node.provision_state {
            ProvisionState::Available => assert!(site.machine.power_ons().is_empty(), "{gate:?}"),
            ProvisionState::DeployFailed => {
                let error = node.last_error.unwrap();
                let known = ["write_image failed: disk full", "no agent called"];
                assert!(known.iter().any(|known| error.contains(known)), "{gate:?}: {error}");
            }
            state => panic!("{gate:?}: {state}"),
        }
    });
}

#[test]
fn fault_a_conductor_that_is_killed_while_it_undeploys_leaves_no_machine_on() {
    let undeploy = |life: &Life| {
        let conductor = life.conductor.clone();
        life.runtime.spawn(async move { conductor.order("n1", Order::Undeploy).await });
    };
    // The lease, the order, the end of the session: the next write is the last.
    let ends: Vec<_> =
        gates(3).map(|gate| (gate, killed_at(Script::default(), gate, activate, undeploy))).collect();
    for (gate, (site, node)) in ends {
        // Before the order is written there is none.
        let expected = match gate {
            Gate::RefusesAfter(1) | Gate::HangsAfter(1) => (ProvisionState::Active, PowerState::On, true),
            _ => (ProvisionState::Available, PowerState::Off, false),
        };
        let has_instance = !node.instance_info.is_empty();
        assert_eq!(
            (node.provision_state, site.power(), has_instance),
            expected,
            "{gate:?} {:?}",
            node.last_error
        );
    }
}

/// The same where the agent of a cleaning stays for the deployment: it deploys, or another one does.
#[test]
fn fault_f39_a_conductor_that_is_killed_while_an_agent_that_stayed_deploys_forgets_no_node() {
    let cleaned = |site: &Site, life: &Life| {
        site.change_node(|node| {
            node.driver_info.insert("fast_track".to_owned(), true.into());
        });
        manage(site, life);
        life.runtime.block_on(life.conductor.order("n1", Order::Provide)).unwrap();
        let node = site.at_rest().node;
        assert_eq!((node.provision_state, site.power()), (ProvisionState::Available, PowerState::On));
        let mut script = site.machine.script.lock().unwrap();
        (script.offers, script.accepted) = (None, Vec::new());
    };
    let total = writes_of(two_steps(), cleaned, Life::order);
    assert!(total > 8, "{total}");
    let ends = for_each(gates(total - 1), |gate| {
        let (site, node) = killed_at(two_steps(), gate, cleaned, Life::order);
        let last_boot = site.machine.power_ons().pop().flatten();
        let error = node.last_error.unwrap_or_default();
        match node.provision_state {
            ProvisionState::Active => {
                assert_eq!((error.as_str(), last_boot), ("", Some(Boot::Disk)), "{gate:?}");
                let written = site.machine.script.lock().unwrap().steps();
                assert_eq!(written, ["deploy deploy.write_image"], "{gate:?}");
            }
            ProvisionState::DeployFailed => {
                assert!(error.contains("no agent called"), "{gate:?}: {error}");
                assert_eq!(site.power(), PowerState::Off, "{gate:?}");
            }
            ProvisionState::Available => assert_eq!(site.power(), PowerState::On, "{gate:?}"),
            state => panic!("{gate:?}: {state}"),
        }
        node.provision_state
    });
    let not_active: Vec<_> = ends.iter().filter(|(_, end)| *end != ProvisionState::Active).collect();
    assert!(not_active.len() <= 6, "{not_active:?}");
}
