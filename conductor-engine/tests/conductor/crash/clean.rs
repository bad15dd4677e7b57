//! Conductors that are killed while they clean, or inspect.

use super::site::{Life, Site, assert_begun_once, for_each, gates, killed_at, manage, two_steps, writes_of};
use crate::stand_ins::agent::Script;
use crate::stand_ins::agent::signing::Proof;
use farrier_conductor::model::{PowerState, ProvisionState};
use farrier_engine::records::Order;
use farrier_engine::store::EvidenceStore;

/// `kill -9` after every single write of an automated cleaning with a reboot: the node is clean, or it says that it is
/// not.
#[test]
fn fault_a_conductor_that_is_killed_after_any_write_of_a_cleaning_gives_no_node_away_uncleaned() {
    let provide = |life: &Life| {
        let conductor = life.conductor.clone();
        life.runtime.spawn(async move { conductor.order("n1", Order::Provide).await });
    };
    let total = writes_of(two_steps(), manage, provide);
    assert!(total > 12, "{total}");
    let ends = for_each(gates(total - 1), |gate| {
        let (site, node) = killed_at(two_steps(), gate, manage, provide);
        let error = node.last_error.unwrap_or_default();
        match node.provision_state {
            ProvisionState::Available => {
                assert_begun_once(&site, "clean", gate);
                assert_eq!((site.power(), error.as_str()), (PowerState::Off, ""), "{gate:?}");
            }
            // An agent whose token got lost on its way (section 8.4).
            ProvisionState::CleanFailed => assert!(error.contains("no agent called"), "{gate:?}: {error}"),
            ProvisionState::Manageable => {
                assert!(site.machine.power_ons().is_empty() && error.is_empty(), "{gate:?}: {error}");
            }
            state => panic!("{gate:?}: {state}"),
        }
        node.provision_state
    });
    let not_clean: Vec<_> = ends.iter().filter(|(_, end)| *end != ProvisionState::Available).collect();
    assert!(not_clean.len() <= 10, "{not_clean:?}");
}

/// `kill -9` after every single write of a cleaning whose agent proves what it erased: a node that is available has the
/// certificates of all of its steps, or says why it has none, and its history tells how it came there.
#[test]
fn fault_a_conductor_that_is_killed_after_any_write_of_a_cleaning_loses_no_certificate() {
    let script = || Script { proof: Proof::of(&["S1"]), ..Script::default() };
    let provide = |life: &Life| {
        let conductor = life.conductor.clone();
        life.runtime.spawn(async move { conductor.order("n1", Order::Provide).await });
    };
    let total = writes_of(script(), manage, provide);
    let ends = for_each(gates(total - 1), |gate| {
        let (site, node) = killed_at(script(), gate, manage, provide);
        let certificates = site.outside.block_on(site.store.certificates(node.uuid)).unwrap();
        let history = site.outside.block_on(site.store.history(node.uuid)).unwrap();
        let mark = node.driver_internal_info.erasure.map(|mark| mark.to_string());
        let last = history
            .iter()
            .rfind(|entry| entry.event.contains(&format!("{:?}", node.provision_state.as_str())));
        assert!(last.is_some(), "{gate:?} {history:#?}");
        if node.provision_state == ProvisionState::Available {
            let steps: Vec<_> = certificates.iter().map(|one| one.statement.step()).collect();
            let (data, metadata) = ("erase_devices", "erase_devices_metadata");
            assert_eq!(steps, [data, metadata, data, metadata], "{gate:?}");
            assert_eq!(mark.as_deref(), Some("proven: S1 erased"), "{gate:?}");
            let marked = history.iter().filter(|entry| entry.event == "erasure proven: S1 erased").count();
            assert_eq!(marked, 1, "{gate:?} {history:#?}");
        } else {
            assert!(mark.is_none_or(|mark| mark.starts_with("not proven")), "{gate:?}");
        }
        node.provision_state
    });
    let not_clean: Vec<_> = ends.iter().filter(|(_, end)| *end != ProvisionState::Available).collect();
    assert!(not_clean.len() <= 10, "{not_clean:?}");
}

/// `kill -9` after every single write of a retry: the node is clean, or it says that it is not.
#[test]
fn fault_a_conductor_that_is_killed_after_any_write_of_a_retry_gives_no_node_away_uncleaned() {
    let failed = |site: &Site, life: &Life| {
        site.machine.script.lock().unwrap().write_fails = Some("worn out".into());
        manage(site, life);
        life.runtime.block_on(life.conductor.order("n1", Order::Provide)).unwrap();
        site.until(|record| {
            record.node.provision_state == ProvisionState::CleanFailed && record.node.reservation.is_none()
        });
        life.runtime.block_on(life.conductor.set_maintenance("n1", false, None)).unwrap();
        let mut script = site.machine.script.lock().unwrap();
        (script.write_fails, script.accepted) = (None, Vec::new());
    };
    let retry = |life: &Life| {
        let conductor = life.conductor.clone();
        life.runtime.spawn(async move { conductor.order("n1", Order::Retry).await });
    };
    let total = writes_of(two_steps(), failed, retry);
    assert!(total > 8, "{total}");
    let ends = for_each(gates(total - 1), |gate| {
        let (site, node) = killed_at(two_steps(), gate, failed, retry);
        let error = node.last_error.unwrap_or_default();
        match node.provision_state {
            ProvisionState::Available => {
                assert_begun_once(&site, "clean", gate);
                assert_eq!((site.power(), error.as_str()), (PowerState::Off, ""), "{gate:?}");
            }
            ProvisionState::CleanFailed => {
                let known = ["worn out", "no agent called"];
                assert!(known.iter().any(|known| error.contains(known)), "{gate:?}: {error}");
            }
            state => panic!("{gate:?}: {state}"),
        }
        node.provision_state
    });
    let not_clean: Vec<_> = ends.iter().filter(|(_, end)| *end != ProvisionState::Available).collect();
    assert!(not_clean.len() <= 10, "{not_clean:?}");
}

/// `kill -9` after every single write of an inspection: it is done, or it has changed nothing.
#[test]
fn fault_a_conductor_that_is_killed_after_any_write_of_an_inspection_finds_all_or_nothing() {
    let inspect = |life: &Life| {
        let conductor = life.conductor.clone();
        life.runtime.spawn(async move { conductor.order("n1", Order::Inspect).await });
    };
    let total = writes_of(Script::default(), manage, inspect);
    assert!(total > 6, "{total}");
    let ends = for_each(gates(total - 1), |gate| {
        let (site, node) = killed_at(Script::default(), gate, manage, inspect);
        let error = node.last_error.unwrap_or_default();
        let told = site.outside.block_on(site.store.inspection(node.uuid)).unwrap();
        let is_done = node.inspection_finished_at.is_some();
        let found = (told.is_some(), node.ports.len() == 2, node.properties.contains_key("cpu_arch"));
        assert_eq!(found, (is_done, is_done, is_done), "{gate:?}");
        assert_eq!(site.power(), PowerState::Off, "{gate:?}");
        assert_eq!(site.machine.state.lock().unwrap().boot, None, "{gate:?}");
        match node.provision_state {
            ProvisionState::Manageable => assert_eq!(error, "", "{gate:?}"),
            // What was posted got lost with the conductor, and no ramdisk posts twice.
            ProvisionState::InspectFailed => assert!(error.contains("no agent called"), "{gate:?}: {error}"),
            state => panic!("{gate:?}: {state}"),
        }
        is_done
    });
    let not_done: Vec<_> = ends.iter().filter(|(_, is_done)| !is_done).collect();
    assert!(not_done.len() <= 4, "{not_done:?}");
}
