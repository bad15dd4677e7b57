//! Conductors that are killed, stopped or overtaken while they work.

use crate::agent::Script;
use crate::agent::signing::Proof;
use crate::gate::{Gate, GatedStore};
use crate::machine::{Boot, FakeMachine};
use crate::stage::{MAC, PATIENCE, image, new_node, quick};
use farrier_conductor::api::ramdisk::ramdisk_router;
use farrier_conductor::clock::{Clock, SystemClock};
use farrier_conductor::model::{Activity, Node, PowerState, ProvisionState};
use farrier_conductor::settings::AgentSettings;
use farrier_conductor::store::sqlite::SqliteStore;
use farrier_conductor::store::{Change, Record, Store, Terms};
use farrier_conductor::{Conductor, PowerAction, Settings};
use serde_json::{Value, json};
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};
use tokio::net::TcpListener;
use tokio::runtime::{Builder, Runtime};

/// By which rescue systems are entered.
const PASSWORD: &str = "oats and barley";

/// What outlives every conductor: a machine with its agent, and the file.
struct Site {
    outside: Runtime,
    machine: FakeMachine,
    store: SqliteStore,
    file: PathBuf,
    _folder: tempfile::TempDir,
}

/// One life of a conductor, whose end is as sudden as that of a process.
struct Life {
    runtime: Runtime,
    conductor: Conductor,
    store: Arc<GatedStore>,
    address: SocketAddr,
}

fn runtime() -> Runtime {
    Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap()
}

impl Site {
    fn new(script: Script) -> Self {
        let _ = rustls::crypto::ring::default_provider().install_default();
        let (outside, folder) = (runtime(), tempfile::tempdir().unwrap());
        let file = folder.path().join("nodes.sqlite");
        let (machine, store) =
            outside.block_on(async { (FakeMachine::new(script), SqliteStore::open(&file).await.unwrap()) });
        Self { outside, machine, store, file, _folder: folder }
    }

    fn record(&self) -> Record {
        self.outside.block_on(self.store.by_name("n1")).unwrap().unwrap()
    }

    /// Changes the record, as an operator does.
    fn change_node(&self, change: impl FnOnce(&mut Node)) {
        let now = SystemClock.now();
        let terms = Terms { holder: "test", now, expires_at: now + time::Duration::MINUTE };
        self.outside.block_on(async {
            let uuid = self.store.by_name("n1").await.unwrap().unwrap().node.uuid;
            let (lease, mut record) = self.store.take(uuid, &terms).await.unwrap();
            change(&mut record.node);
            self.store.write(&lease, &Change { ends_lease: true, ..Change::of(&record.node) }).await.unwrap();
        });
    }

    /// The record once it is as wanted.
    fn until(&self, wanted: impl Fn(&Record) -> bool) -> Record {
        let end = Instant::now() + PATIENCE;
        loop {
            let record = self.record();
            if wanted(&record) {
                return record;
            }
            assert!(Instant::now() < end, "waited for something else than {record:#?}");
            std::thread::sleep(Duration::from_millis(5));
        }
    }

    /// The record once there is nothing to do.
    fn at_rest(&self) -> Record {
        self.until(|record| {
            let activity = record.node.provision_state.activity();
            let is_free = record.lease_expires_at.is_none_or(|until| until <= SystemClock.now());
            record.order.is_none() && is_free && !matches!(activity, Activity::Work | Activity::Wait)
        })
    }

    fn power(&self) -> PowerState {
        self.machine.state.lock().unwrap().power
    }
}

impl Life {
    /// A conductor begins, at the address of an earlier one or at any.
    fn begin(site: &Site, name: &str, address: Option<SocketAddr>, gate: Gate) -> Self {
        let runtime = runtime();
        let (conductor, store, address) = runtime.block_on(async {
            let listener = listen(address.unwrap_or(([127, 0, 0, 1], 0).into())).await;
            let address = listener.local_addr().unwrap();
            let settings = Settings {
                conductor_name: name.to_owned(),
                lease: Duration::from_millis(400),
                // On a busy computer somebody else's short work may be met again and again.
                node_locked_attempts: 100,
                deploy_callback_timeout: Duration::from_secs(2),
                clean_callback_timeout: Duration::from_secs(2),
                service_callback_timeout: Duration::from_secs(2),
                rescue_callback_timeout: Duration::from_secs(2),
                inspect_wait_timeout: Duration::from_secs(2),
                // A step whose answer came late on a busy host would be begun twice.
                agent: AgentSettings { command_timeout: Duration::from_secs(5), ..quick("").agent },
                ..quick(&format!("http://{address}"))
            };
            let inner: Arc<dyn Store> = Arc::new(SqliteStore::open(&site.file).await.unwrap());
            let store = GatedStore::new(inner, gate, settings.clone());
            let conductor = site.machine.conductor(settings, store.clone()).start().await.unwrap();
            tokio::spawn(axum::serve(listener, ramdisk_router(conductor.clone())).into_future());
            let runner = conductor.clone();
            tokio::spawn(async move { runner.run().await });
            (conductor, store, address)
        });
        Self { runtime, conductor, store, address }
    }

    fn enrol(&self) {
        self.runtime.block_on(self.conductor.create_node(new_node("n1", MAC))).unwrap();
    }

    /// Orders a deployment, and does not wait for the answer.
    fn order(&self) {
        let conductor = self.conductor.clone();
        self.runtime.spawn(async move { conductor.deploy("n1", image()).await.map(drop) });
    }

    fn kill(self) {
        self.store.assert_none_forgotten();
        self.runtime.shutdown_background();
    }
}

/// The address may be that of a conductor that was killed a moment ago.
async fn listen(address: SocketAddr) -> TcpListener {
    let end = Instant::now() + PATIENCE;
    loop {
        match TcpListener::bind(address).await {
            Ok(listener) => return listener,
            Err(error) => assert!(Instant::now() < end, "{address}: {error}"),
        }
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

/// How many writes an order takes that nobody disturbs.
fn writes_of(script: Script, prepare: impl Fn(&Site, &Life), order: impl Fn(&Life)) -> usize {
    let site = Site::new(script);
    let life = Life::begin(&site, "c1", None, Gate::Open);
    life.enrol();
    prepare(&site, &life);
    let before = life.store.writes();
    order(&life);
    site.until(|record| record.order.is_some());
    site.at_rest();
    life.store.writes() - before
}

fn writes_of_a_deployment(script: Script) -> usize {
    writes_of(script, |_, _| {}, Life::order)
}

/// Kills a conductor at the gate while it carries out an order, starts another, and gives the node once it rests.
fn killed_at(
    script: Script,
    gate: Gate,
    prepare: impl Fn(&Site, &Life),
    order: impl Fn(&Life),
) -> (Site, Node) {
    let site = Site::new(script);
    let first = Life::begin(&site, "c1", None, Gate::Open);
    first.enrol();
    prepare(&site, &first);
    let writes = first.store.writes();
    first.store.set(match gate {
        Gate::RefusesAfter(more) => Gate::RefusesAfter(writes + more),
        Gate::HangsAfter(more) => Gate::HangsAfter(writes + more),
        Gate::Open => Gate::Open,
    });
    order(&first);
    first.runtime.block_on(first.store.stops());
    // What was begun before the gate shut comes to its end.
    std::thread::sleep(Duration::from_millis(30));
    let address = first.address;
    first.kill();

    let second = Life::begin(&site, "c1", Some(address), Gate::Open);
    let node = site.at_rest().node;
    second.kill();
    assert_eq!(node.power_state.unwrap_or(PowerState::Off), site.power(), "{gate:?}");
    assert_eq!(node.target_power_state, None, "{gate:?}");
    (site, node)
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

/// Does something for every gate, some at a time, since it is mostly waited.
fn for_each<T: Send>(gates: impl Iterator<Item = Gate>, act: impl Fn(Gate) -> T + Sync) -> Vec<(Gate, T)> {
    let gates: Vec<_> = gates.collect();
    let next = AtomicUsize::new(0);
    let some = || {
        let mut ends = Vec::new();
        while let Some(gate) = gates.get(next.fetch_add(1, Ordering::SeqCst)) {
            ends.push((*gate, act(*gate)));
        }
        ends
    };
    let ends: Vec<_> = std::thread::scope(|scope| {
        let threads: Vec<_> = (0..8).map(|_| scope.spawn(some)).collect();
        threads.into_iter().flat_map(|thread| thread.join().unwrap()).collect()
    });
    assert_eq!(ends.len(), gates.len());
    ends
}

/// `kill -9` after every single write of a deployment: once with what follows the write done and not recorded, once
/// with it not done.
#[test]
fn a_conductor_that_is_killed_after_any_write_of_a_deployment_forgets_no_node() {
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
    life.runtime.spawn(async move { conductor.deploy("n1", info).await.map(drop) });
}

#[test]
fn a_conductor_that_is_killed_while_it_boots_an_instance_into_memory_goes_on() {
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
fn a_conductor_that_is_killed_while_a_deployment_fails_leaves_no_machine_on() {
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

/// Both ways to be killed after each of the first writes of an order.
fn gates(writes: usize) -> impl Iterator<Item = Gate> {
    (1..=writes).flat_map(|writes| [Gate::RefusesAfter(writes), Gate::HangsAfter(writes)])
}

#[test]
fn a_conductor_that_is_killed_while_it_undeploys_leaves_no_machine_on() {
    let undeploy = |life: &Life| {
        let conductor = life.conductor.clone();
        life.runtime.spawn(async move { conductor.undeploy("n1").await });
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

fn offer(step: &str, priority: u32, reboot_requested: bool) -> Value {
    json!({"interface": "deploy", "step": step, "priority": priority, "reboot_requested": reboot_requested})
}

/// An agent with two steps, the first of which wants a reboot.
fn two_steps() -> Script {
    Script { offers: Some(vec![offer("first", 20, true), offer("second", 10, false)]), ..Script::default() }
}

fn manage(site: &Site, life: &Life) {
    life.runtime.block_on(life.conductor.manage("n1")).unwrap();
    site.until(|record| record.node.reservation.is_none());
}

fn activate(site: &Site, life: &Life) {
    // Its own steps are those of its service.
    let offers = site.machine.script.lock().unwrap().offers.take();
    life.order();
    site.until(|record| {
        record.node.provision_state == ProvisionState::Active && record.node.reservation.is_none()
    });
    let mut script = site.machine.script.lock().unwrap();
    (script.offers, script.accepted) = (offers, Vec::new());
}

/// Sees that each step was begun once.
fn assert_begun_once(site: &Site, kind: &str, gate: Gate) {
    let begun = site.machine.script.lock().unwrap().steps();
    assert_eq!(begun, ["first", "second"].map(|step| format!("{kind} deploy.{step}")), "{gate:?}");
}

/// `kill -9` after every single write of an automated cleaning with a reboot: the node is clean, or it says that it is
/// not.
#[test]
fn a_conductor_that_is_killed_after_any_write_of_a_cleaning_gives_no_node_away_uncleaned() {
    let provide = |life: &Life| {
        let conductor = life.conductor.clone();
        life.runtime.spawn(async move { conductor.provide("n1").await });
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
fn a_conductor_that_is_killed_after_any_write_of_a_cleaning_loses_no_certificate() {
    let script = || Script { proof: Proof::of(&["S1"]), ..Script::default() };
    let provide = |life: &Life| {
        let conductor = life.conductor.clone();
        life.runtime.spawn(async move { conductor.provide("n1").await });
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
            let steps: Vec<_> = certificates.iter().map(|one| one.statement.step.as_str()).collect();
            assert_eq!(steps, ["erase_devices", "erase_devices_metadata"], "{gate:?}");
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

/// The same for a service: the instance runs again, or the node says that it does not.
#[test]
fn a_conductor_that_is_killed_after_any_write_of_a_service_loses_no_instance() {
    let service = |life: &Life| {
        let conductor = life.conductor.clone();
        let steps = ["first", "second"].map(|step| json!({"interface": "deploy", "step": step}));
        life.runtime.spawn(async move { conductor.service("n1", &steps, false).await });
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
fn a_conductor_that_is_killed_while_it_adopts_does_not_switch_the_machine() {
    let adopt = |life: &Life| {
        let conductor = life.conductor.clone();
        life.runtime.spawn(async move { conductor.adopt("n1").await });
    };
    for gate in gates(3) {
        let (site, node) = killed_at(Script::default(), gate, manage, adopt);
        // Nothing is known of its instance.
        let known = [ProvisionState::Manageable, ProvisionState::AdoptFailed];
        assert!(known.contains(&node.provision_state), "{gate:?} {}", node.provision_state);
        assert!(site.machine.power_ons().is_empty(), "{gate:?}");
    }
}

/// The same where the agent of a cleaning stays for the deployment: it deploys, or another one does.
#[test]
fn f39_a_conductor_that_is_killed_while_an_agent_that_stayed_deploys_forgets_no_node() {
    let cleaned = |site: &Site, life: &Life| {
        site.change_node(|node| {
            node.driver_info.insert("fast_track".to_owned(), true.into());
        });
        manage(site, life);
        life.runtime.block_on(life.conductor.provide("n1")).unwrap();
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

/// `kill -9` after every single write of a retry: the node is clean, or it says that it is not.
#[test]
fn a_conductor_that_is_killed_after_any_write_of_a_retry_gives_no_node_away_uncleaned() {
    let failed = |site: &Site, life: &Life| {
        site.machine.script.lock().unwrap().write_fails = Some("worn out".into());
        manage(site, life);
        life.runtime.block_on(life.conductor.provide("n1")).unwrap();
        site.until(|record| {
            record.node.provision_state == ProvisionState::CleanFailed && record.node.reservation.is_none()
        });
        life.runtime.block_on(life.conductor.set_maintenance("n1", false, None)).unwrap();
        let mut script = site.machine.script.lock().unwrap();
        (script.write_fails, script.accepted) = (None, Vec::new());
    };
    let retry = |life: &Life| {
        let conductor = life.conductor.clone();
        life.runtime.spawn(async move { conductor.retry("n1").await });
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
fn a_conductor_that_is_killed_after_any_write_of_an_inspection_finds_all_or_nothing() {
    let inspect = |life: &Life| {
        let conductor = life.conductor.clone();
        life.runtime.spawn(async move { conductor.inspect("n1").await });
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

fn order_rescue(life: &Life) {
    let conductor = life.conductor.clone();
    life.runtime.spawn(async move { conductor.rescue("n1", PASSWORD).await });
}

/// `kill -9` after every single write of a rescue: its system can be entered, or the node says that it cannot.
#[test]
fn a_conductor_that_is_killed_after_any_write_of_a_rescue_leaves_a_system_with_its_password() {
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
fn a_conductor_that_is_killed_after_any_write_of_an_unrescue_starts_the_instance() {
    let rescued = |site: &Site, life: &Life| {
        activate(site, life);
        order_rescue(life);
        site.until(|record| {
            record.node.provision_state == ProvisionState::Rescue && record.node.reservation.is_none()
        });
    };
    let unrescue = |life: &Life| {
        let conductor = life.conductor.clone();
        life.runtime.spawn(async move { conductor.unrescue("n1").await });
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

/// Whatever an abort is cut off at, it ends in the failed state (lesson F65).
#[test]
fn f65_a_conductor_that_is_killed_while_it_aborts_ends_in_the_failed_state() {
    let clean = |site: &Site, life: &Life| {
        manage(site, life);
        let steps = [json!({"interface": "power", "step": "hold"})];
        life.runtime.block_on(life.conductor.clean("n1", &steps, false)).unwrap();
        site.until(|record| {
            record.node.provision_state == ProvisionState::CleanHold && record.node.reservation.is_none()
        });
    };
    let abort = |life: &Life| {
        let conductor = life.conductor.clone();
        life.runtime.spawn(async move { conductor.abort("n1").await });
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
fn a_conductor_that_is_killed_while_it_reboots_a_machine_leaves_it_on() {
    for action in [PowerAction::Reboot, PowerAction::SoftReboot] {
        killed_while_it_reboots(action);
    }
}

fn killed_while_it_reboots(action: PowerAction) {
    let reboot = move |life: &Life| {
        let conductor = life.conductor.clone();
        life.runtime.spawn(async move { conductor.set_power("n1", action).await });
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
fn an_order_that_stops_every_conductor_is_given_up() {
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
fn a_conductor_that_wakes_after_its_lease_overwrites_nothing() {
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
fn a_store_that_refuses_for_a_while_fails_no_deployment() {
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
