//! Recorded power states are kept true, whatever machines and drivers do (section 12.4).

use crate::stand_ins::stage::{PATIENCE, new_node, quick};
use async_trait::async_trait;
use farrier_conductor::interfaces::{BootContext, BootInterface, Interface, InterfaceError, PowerInterface};
use farrier_conductor::model::{Fault, InitialState, NewNode, Node, PowerState, ProvisionState};
use farrier_conductor::{Drivers, HardwareType, Settings};
use farrier_engine::Conductor;
use farrier_engine::records::Order;
use farrier_engine::store::sqlite::SqliteStore;
use farrier_engine::store::{Change, NodeStore, Store, Terms};
use farrier_media::KernelParameters;
use std::collections::VecDeque;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};
use time::OffsetDateTime;

/// What a machine says when its power state is read.
#[derive(Debug, Clone, Copy)]
enum Says {
    On,
    Off,
    /// The truth.
    Truth,
    Error,
    /// Its driver does not ask it.
    NotAsked,
    /// Nothing, ever.
    Nothing,
    /// Its driver panics.
    Crash,
}

/// A machine with a driver of its own.
struct Machine {
    is_on: Mutex<bool>,
    /// What it says, one after the other; the last again and again.
    says: Mutex<VecDeque<Says>>,
    /// Whether it does as it is told.
    obeys: bool,
    told: Mutex<Vec<PowerState>>,
    readings: AtomicUsize,
    /// Readings under way, and the most that ever were.
    at_once: Mutex<(usize, usize)>,
}

impl Machine {
    fn new(is_on: bool, says: &[Says]) -> Arc<Self> {
        Arc::new(Self { obeys: true, ..Self::stubborn(is_on, says) })
    }

    fn stubborn(is_on: bool, says: &[Says]) -> Self {
        Self {
            is_on: Mutex::new(is_on),
            says: Mutex::new(says.iter().copied().collect()),
            obeys: false,
            told: Mutex::default(),
            readings: AtomicUsize::new(0),
            at_once: Mutex::default(),
        }
    }

    fn say(&self, says: &[Says]) {
        *self.says.lock().unwrap() = says.iter().copied().collect();
    }

    fn told(&self) -> Vec<PowerState> {
        self.told.lock().unwrap().clone()
    }

    fn tell(&self, state: PowerState) {
        self.told.lock().unwrap().push(state);
        if self.obeys {
            *self.is_on.lock().unwrap() = state == PowerState::On;
        }
    }

    /// Waits until it was read so often from now on.
    async fn is_read(&self, times: usize) {
        let (end, until) = (Instant::now() + PATIENCE, self.readings.load(Ordering::SeqCst) + times);
        while self.readings.load(Ordering::SeqCst) < until {
            assert!(Instant::now() < end, "the machine is not read");
            tokio::time::sleep(Duration::from_millis(2)).await;
        }
    }
}

/// Counts a reading for as long as it is under way.
struct UnderWay<'a>(&'a Machine);

impl<'a> UnderWay<'a> {
    fn begin(machine: &'a Machine) -> Self {
        let mut at_once = machine.at_once.lock().unwrap();
        at_once.0 += 1;
        at_once.1 = at_once.1.max(at_once.0);
        Self(machine)
    }
}

impl Drop for UnderWay<'_> {
    fn drop(&mut self) {
        self.0.at_once.lock().unwrap().0 -= 1;
    }
}

/// The driver of a machine.
#[derive(Clone)]
struct Driver(Arc<Machine>);

impl Interface for Driver {}

#[async_trait]
impl PowerInterface for Driver {
    async fn power_state(&self, _node: &Node) -> Result<PowerState, InterfaceError> {
        let _counted = UnderWay::begin(&self.0);
        self.0.readings.fetch_add(1, Ordering::SeqCst);
        let says = {
            let mut says = self.0.says.lock().unwrap();
            if says.len() > 1 { says.pop_front().unwrap() } else { says[0] }
        };
        match says {
            Says::On => Ok(PowerState::On),
            Says::Off => Ok(PowerState::Off),
            Says::Truth if *self.0.is_on.lock().unwrap() => Ok(PowerState::On),
            Says::Truth => Ok(PowerState::Off),
            Says::Error => {
                Err(InterfaceError::driver(std::io::Error::other("the BMC has no route to itself")))
            }
            Says::NotAsked => {
                Err(InterfaceError::not_asked(std::io::Error::other("its password was refused a minute ago")))
            }
            Says::Nothing => std::future::pending().await,
            Says::Crash => panic!("a driver panics"),
        }
    }

    async fn power_on(&self, _node: &Node) -> Result<(), InterfaceError> {
        self.0.tell(PowerState::On);
        Ok(())
    }

    async fn power_off(&self, _node: &Node) -> Result<(), InterfaceError> {
        self.0.tell(PowerState::Off);
        Ok(())
    }
}

#[async_trait]
impl BootInterface for Driver {
    async fn prepare_ramdisk(&self, _: BootContext<'_>, _: &KernelParameters) -> Result<(), InterfaceError> {
        Ok(())
    }

    async fn clean_up_ramdisk(&self, _: BootContext<'_>) -> Result<(), InterfaceError> {
        Ok(())
    }

    async fn prepare_instance(&self, boot: BootContext<'_>) -> Result<(), InterfaceError> {
        boot.boot_from_disk(self).await
    }

    async fn clean_up_instance(&self, _boot: BootContext<'_>) -> Result<(), InterfaceError> {
        Ok(())
    }
}

/// A conductor and its machines, each a driver of the name of its node.
struct Site {
    conductor: Conductor,
    store: Arc<SqliteStore>,
    _folder: tempfile::TempDir,
}

impl Site {
    /// Rounds take milliseconds, and a machine is waited for as long as a busy computer may take to answer for it.
    /// Each comes with the power state that is recorded of its active node.
    async fn new(
        machines: &[(&str, &Arc<Machine>, Option<PowerState>)],
        change: impl FnOnce(&mut Settings),
    ) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let store = Arc::new(SqliteStore::open(&folder.path().join("nodes.sqlite")).await.unwrap());
        let mut settings = Settings {
            check_interval: Duration::from_millis(5),
            power_read_timeout: PATIENCE,
            ..quick("http://127.0.0.1:1")
        };
        settings.power_sync.sync_power_state_interval = Duration::from_millis(10);
        settings.power_sync.power_failure_recovery_interval = Duration::ZERO;
        change(&mut settings);
        for (number, (name, _, recorded)) in machines.iter().enumerate() {
            enrol(&*store, number, name, *recorded).await;
        }
        let mut drivers = Drivers::default();
        for (name, machine, _) in machines {
            let driver = Driver(Arc::clone(machine));
            let hardware_type = HardwareType::new(*name).power([*name]).boot([*name]).deploy(["direct"]);
            drivers = drivers.power(*name, driver.clone()).boot(*name, driver).hardware_type(hardware_type);
        }
        let conductor = Conductor::builder(settings, store.clone(), drivers).start().await.unwrap();
        let runner = conductor.clone();
        tokio::spawn(async move { runner.run().await });
        Self { conductor, store, _folder: folder }
    }

    async fn node(&self, name: &str) -> Node {
        self.conductor.node(name).await.unwrap()
    }

    /// The node once it is as wanted, and nobody works on it.
    async fn until(&self, name: &str, wanted: impl Fn(&Node) -> bool) -> Node {
        let end = Instant::now() + PATIENCE;
        loop {
            let node = self.node(name).await;
            if wanted(&node) && node.reservation.is_none() {
                return node;
            }
            assert!(Instant::now() < end, "waited for something else than {node:#?}");
            tokio::time::sleep(Duration::from_millis(2)).await;
        }
    }
}

/// Writes an active node down, whose driver has its name.
async fn enrol(store: &dyn Store, number: usize, name: &str, recorded: Option<PowerState>) {
    let new = new_node(name, &format!("52:54:00:00:01:{number:02x}"));
    let now = OffsetDateTime::now_utc();
    let mut node = Node::enrol(NewNode { driver: name.to_owned(), ..new }, now);
    (node.provision_state, node.power_state) = (ProvisionState::Active, recorded);
    store.create(&node).await.unwrap();
}

const ON: Option<PowerState> = Some(PowerState::On);
const OFF: Option<PowerState> = Some(PowerState::Off);

#[tokio::test]
async fn a_machine_is_driven_to_its_record_when_it_says_twice_that_it_is_not_there() {
    let (went_off, came_on) = (Machine::new(false, &[Says::Truth]), Machine::new(true, &[Says::Truth]));
    let site = Site::new(&[("went-off", &went_off, ON), ("came-on", &came_on, OFF)], |_| {}).await;
    for (name, machine, state) in [("went-off", &went_off, ON), ("came-on", &came_on, OFF)] {
        site.until(name, |_| !machine.told().is_empty()).await;
        machine.is_read(4).await;
        let node = site.until(name, |node| node.target_power_state.is_none()).await;
        assert_eq!((node.power_state, node.maintenance, node.last_error), (state, false, None));
        assert_eq!(machine.told(), [state.unwrap()]);
    }
}

#[tokio::test]
async fn where_nothing_is_forced_the_record_follows_the_machine() {
    let (machine, new) = (Machine::new(false, &[Says::Truth]), Machine::new(true, &[Says::Truth]));
    let follow = |settings: &mut Settings| settings.power_sync.force_power_state_during_sync = false;
    let site = Site::new(&[("went-off", &machine, ON), ("new", &new, None)], follow).await;
    site.until("went-off", |node| node.power_state == OFF).await;
    site.until("new", |node| node.power_state == ON).await;
    assert!(machine.told().is_empty() && new.told().is_empty());
}

#[tokio::test]
async fn answers_that_change_each_time_change_nothing() {
    let flapping: Vec<_> = [Says::Off, Says::On].repeat(100);
    for is_forced in [true, false] {
        let machine = Machine::new(true, &flapping);
        let force = |settings: &mut Settings| settings.power_sync.force_power_state_during_sync = is_forced;
        let site = Site::new(&[("flaps", &machine, ON)], force).await;
        machine.is_read(20).await;
        let node = site.node("flaps").await;
        assert_eq!((node.power_state, node.maintenance), (ON, false));
        assert!(machine.told().is_empty());
    }
}

/// Gives machines that never answer up soon.
fn impatient(settings: &mut Settings) {
    settings.power_read_timeout = Duration::from_millis(50);
}

#[tokio::test]
async fn a_machine_that_hangs_ends_in_maintenance_and_stops_nobody() {
    let (hangs, good) = (Machine::new(true, &[Says::Nothing]), Machine::new(false, &[Says::Truth]));
    // On a busy computer the good one may be late too: then it comes back.
    let recover = |settings: &mut Settings| {
        impatient(settings);
        settings.power_sync.power_failure_recovery_interval = Duration::from_millis(10);
    };
    let site = Site::new(&[("hangs", &hangs, ON), ("zebra", &good, ON)], recover).await;
    let node = site.until("hangs", |node| node.maintenance).await;
    assert_eq!((node.fault, node.power_state), (Some(Fault::Power), None));
    let told = node.maintenance_reason.unwrap();
    let reason = "driver \"hangs\" did not answer power.power_state within 0.05 s; look at the machine's BMC";
    assert!(told.ends_with(reason), "{told}");
    site.until("zebra", |_| good.told().contains(&PowerState::On)).await;
}

#[tokio::test]
async fn bad_machines_end_in_maintenance_and_stop_nobody() {
    let good = Machine::new(false, &[Says::Truth]);
    let says = [("errs", Says::Error), ("crashes", Says::Crash)];
    let bad = says.map(|(name, says)| (name, Machine::new(true, &[says])));
    let mut machines: Vec<_> = bad.iter().map(|(name, machine)| (*name, machine, ON)).collect();
    // The last in every listing.
    machines.push(("zebra", &good, ON));
    let recover = |settings: &mut Settings| {
        settings.power_sync.power_failure_recovery_interval = Duration::from_millis(10)
    };
    let site = Site::new(&machines, recover).await;
    enrol(&*site.store, 99, "unknown", ON).await;

    for (name, reason) in [
        ("errs", "cannot be read: the BMC has no route to itself"),
        (
            "crashes",
            "cannot be read: driver \"crashes\" crashed in power.power_state; see the conductor's log",
        ),
    ] {
        let node = site.until(name, |node| node.maintenance).await;
        assert_eq!((node.fault, node.power_state), (Some(Fault::Power), None), "{name}");
        let told = node.maintenance_reason.unwrap();
        assert!(told.ends_with(reason), "{told}");
    }
    site.until("zebra", |_| good.told() == [PowerState::On]).await;

    // Whoever can be read again is back; the others stay where they are.
    bad[0].1.say(&[Says::Truth]);
    let node = site.until("errs", |node| !node.maintenance).await;
    assert_eq!((node.fault, node.maintenance_reason, node.power_state), (None, None, ON));
    // E8: no node is put into maintenance by a conductor that cannot serve it.
    assert!(!site.node("unknown").await.maintenance);
}

#[tokio::test]
async fn two_failures_and_an_answer_are_no_fault() {
    let machine = Machine::new(true, &[Says::Error, Says::Error, Says::On].repeat(20));
    let site = Site::new(&[("moody", &machine, ON)], |_| {}).await;
    machine.is_read(30).await;
    assert!(!site.node("moody").await.maintenance);
}

#[tokio::test]
async fn c01_readings_that_were_not_made_are_no_failed_readings() {
    let mut says = vec![Says::Error];
    says.extend([Says::NotAsked; 30]);
    says.extend([Says::Error, Says::On]);
    let machine = Machine::new(true, &says);
    let site = Site::new(&[("left-alone", &machine, ON)], |_| {}).await;
    machine.is_read(40).await;
    assert!(!site.node("left-alone").await.maintenance);
    // Those that were made and failed are counted through those that were not.
    machine.say(&[Says::Error, Says::NotAsked].repeat(200));
    site.until("left-alone", |node| node.maintenance).await;
}

#[tokio::test]
async fn a_machine_that_does_not_follow_is_given_up() {
    let machine = Arc::new(Machine::stubborn(false, &[Says::Truth]));
    let site = Site::new(&[("stubborn", &machine, ON)], |_| {}).await;
    let node = site.until("stubborn", |node| node.maintenance).await;
    assert_eq!((node.fault, node.power_state), (Some(Fault::Power), OFF));
    assert_eq!(machine.told(), [PowerState::On; 3]);
}

#[tokio::test]
async fn an_operators_maintenance_is_the_operators() {
    let often = |settings: &mut Settings| {
        settings.power_sync.power_failure_recovery_interval = Duration::from_millis(5)
    };
    let machine = Machine::new(true, &[Says::Truth]);
    let site = Site::new(&[("kept", &machine, ON)], often).await;
    let uuid = site.node("kept").await.uuid;
    let now = OffsetDateTime::now_utc();
    let terms = Terms { holder: "operator", now, expires_at: now + time::Duration::MINUTE };
    let (lease, mut record) = site.store.take(uuid, &terms).await.unwrap();
    (record.node.maintenance, record.node.maintenance_reason) = (true, Some("new fans".to_owned()));
    let change = Change { ends_lease: true, ..Change::of(&record.node) };
    site.store.write(&lease, &change).await.unwrap();
    *machine.is_on.lock().unwrap() = false;
    // Many rounds.
    tokio::time::sleep(Duration::from_millis(200)).await;
    let node = site.node("kept").await;
    assert_eq!((node.maintenance, node.maintenance_reason.as_deref()), (true, Some("new fans")));
    assert!(machine.told().is_empty());
}

#[tokio::test]
async fn no_more_than_eight_machines_are_read_at_a_time() {
    let machine = Machine::new(true, &[Says::Nothing]);
    let names: Vec<_> = (0..30).map(|number| format!("n{number}")).collect();
    let machines: Vec<_> = names.iter().map(|name| (name.as_str(), &machine, ON)).collect();
    let site = Site::new(&machines, impatient).await;
    for name in &names {
        site.until(name, |node| node.maintenance).await;
    }
    assert_eq!(machine.at_once.lock().unwrap().1, 8);
}

#[tokio::test]
async fn c22_a_bmc_that_hangs_is_given_up_and_leaves_its_node_free() {
    let hangs = Machine::new(true, &[Says::Nothing]);
    let site = Site::new(&[("hangs", &hangs, ON)], impatient).await;
    let new = NewNode {
        driver: "hangs".to_owned(),
        initial_state: InitialState::Enroll,
        ..new_node("new", "52:54:00:00:02:01")
    };
    site.conductor.create_node(new).await.unwrap();
    site.conductor.order("new", Order::Manage).await.unwrap();
    let node = site.until("new", |node| node.last_error.is_some()).await;
    assert_eq!(node.provision_state, ProvisionState::Enroll);
    assert!(node.last_error.unwrap().contains("did not answer power.power_state within 0.05 s"));
    site.conductor.order("new", Order::Delete).await.unwrap();
}
