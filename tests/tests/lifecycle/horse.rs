//! A node with its machine: what is ordered, and what must be seen afterwards.

use crate::disks;
use crate::stable::Stable;
use farrier_tests::conductor::ironic::{FAST_TRACK_TIMEOUT, Ironic};
use farrier_tests::conductor::node_api::{Instance, Node, Order};
use farrier_tests::machine::console::Console;
use farrier_tests::machine::monitor::Monitor;
use farrier_tests::machine::{Boot, Firmware, Machine};
use farrier_tests::ramdisk::killer;
use serde_json::{Value, json};
use std::fs;
use std::thread;
use std::time::{Duration, Instant};

/// How long an emulated machine may take for anything.
const PATIENCE: Duration = Duration::from_secs(600);

pub struct Horse<'a> {
    stable: &'a Stable,
    node: Node<'a>,
    console: Console,
    /// Who switches the machine on, if its conductor cannot.
    hand: Option<Hand<'a>>,
    /// When an agent can have been heard last.
    last_agent: Instant,
}

/// An operator, who reads in Ironic what to boot.
pub struct Hand<'a> {
    pub ironic: &'a Ironic,
    pub machine: Option<Machine>,
    pub fast_track: bool,
}

impl<'a> Horse<'a> {
    pub fn new(stable: &'a Stable, node: Node<'a>, hand: Option<Hand<'a>>) -> Self {
        Self { stable, node, console: stable.hardware.console(), hand, last_agent: Instant::now() }
    }

    /// Is inspected with marks on its disks, which a manual cleaning takes away.
    pub fn inspect_and_clean(&mut self) {
        self.mark_disks();
        self.inspect();
        self.clean(&["erase_devices_metadata"]);
        self.assert_no_marks();
    }

    pub fn inspect(&mut self) {
        self.carry_out(&Order::inspect(), "inspect wait", "manageable");
        let inventory = self.node.inventory().unwrap();
        assert_eq!(inventory["interfaces"][0]["mac_address"], self.stable.hardware.mac.as_str());
        let disks = inventory["disks"].as_array().unwrap();
        let mut serials: Vec<_> = disks.iter().filter_map(|disk| disk["serial"].as_str()).collect();
        serials.sort_unstable();
        assert_eq!(serials, ["OTHER", "ROOT"]);
        assert_eq!(inventory["cpu"]["architecture"], "x86_64");
        assert_eq!(inventory["boot"]["current_boot_mode"], self.stable.boot_mode);
    }

    pub fn clean(&mut self, steps: &[&str]) {
        self.carry_out(&Order::clean(steps), "clean wait", "manageable");
    }

    /// Removes what RAID there is, and has the wanted volumes made.
    pub fn make_raid(&mut self, wanted: &Value) {
        self.node.set_raid(wanted).unwrap();
        let steps = Order::clean_raid(&["delete_configuration", "create_configuration"]);
        let node = self.carry_out(&steps, "clean wait", "manageable");
        assert_eq!(node["raid_config"]["logical_disks"], wanted["logical_disks"], "{}", node["raid_config"]);
    }

    /// Deploys Debian, and waits until it has booted with the name from its config drive.
    pub fn deploy_debian(&mut self, name: &str) {
        let sum = self.stable.system.sha256.clone();
        let instance = self.instance(name, &sum);
        self.node.set_instance(&instance).unwrap();
        let start = self.console.length();
        self.carry_out(&Order::deploy(&instance), "wait call-back", "active");
        self.switched_off();
        self.boot_disks_by_hand();
        self.console.wait_for(&format!("{name} login:"), start, PATIENCE).unwrap();
    }

    /// Deploys Debian onto the root volume, and boots from what is left without each disk in turn.
    pub fn deploy_onto_raid(&mut self, name: &str) {
        self.deploy_debian(name);
        self.switch_off();
        for missing in 0..self.stable.hardware.disks.len() {
            let start = self.console.length();
            let _machine = self.stable.hardware.boot_without(missing, Firmware::Uefi).unwrap();
            self.console.wait_for(self.stable.system.greeting, start, PATIENCE).unwrap();
        }
    }

    /// Records what the asset tag of the machine should be.
    pub fn expect_asset_tag(&self, tag: &str) {
        self.node.set_property("asset_tag", &json!(tag)).unwrap();
    }

    /// Cleans with one step, which fails; gives the conductor's account of it.
    pub fn fail_to_clean(&mut self, step: &str) -> String {
        let node = self.carry_out(&Order::clean(&[step]), "clean wait", "clean failed");
        self.manage_again();
        node["last_error"].as_str().unwrap_or_default().to_owned()
    }

    /// Cleans with a step in whose middle the agent is killed.
    pub fn be_cut_off_cleaning(&mut self, step: &str) {
        self.be_cut_off(
            &Order::clean(&[killer::KILL_AT_NEXT_WRITE, step]),
            "clean wait",
            "clean failed",
            step,
        );
        self.manage_again();
    }

    /// Cleans with a step of an external manager that kills the agent itself.
    pub fn be_cut_off_by_a_step(&mut self) {
        let step = killer::KILL_NOW;
        self.be_cut_off(&Order::clean(&[step]), "clean wait", "clean failed", step);
        self.manage_again();
    }

    /// Deploys, and the agent is killed while it writes the image.
    pub fn be_cut_off_deploying(&mut self, name: &str) {
        let sum = self.stable.system.sha256.clone();
        let instance = self.instance(name, &sum);
        self.node.set_instance(&instance).unwrap();
        let kill =
            json!({"interface": "deploy", "step": killer::KILL_AT_NEXT_WRITE, "priority": 85, "args": {}});
        let order = Order::deploy_with(&instance, &json!([kill]));
        self.be_cut_off(&order, "wait call-back", "deploy failed", "write_image");
    }

    /// Writes the image as a service step, and the agent is killed meanwhile.
    pub fn be_cut_off_in_service(&mut self) {
        let kill = json!({"interface": "deploy", "step": killer::KILL_AT_NEXT_WRITE});
        let order = Order::service(&json!([kill, self.write_image_again()]));
        self.be_cut_off(&order, "service wait", "service failed", "write_image");
        self.node.leave_maintenance().unwrap();
    }

    /// Carries out what fails because the agent is killed in the middle of a step: writes to disks take their time.
    fn be_cut_off(&mut self, order: &Order, wait: &str, end: &str, step: &str) {
        let begin = Instant::now();
        self.node.order(order).unwrap();
        self.boot_ramdisk_by_hand(wait);
        let mut monitor = Monitor::connect(&self.stable.monitor_socket()).unwrap();
        for (_, serial) in &self.stable.hardware.disks {
            monitor.throttle_writes(serial, 1).unwrap();
        }
        let node = self.end(order, begin, end);
        let error = node["last_error"].as_str().unwrap_or_default();
        for part in [step, killer::REASON, "start the operation again"] {
            assert!(error.contains(part), "{part} is not in {error:?}");
        }
        println!("{end}: {error}");
    }

    fn manage_again(&self) {
        self.node.leave_maintenance().unwrap();
        self.node.order(&Order::manage()).unwrap();
        self.seen(self.node.reach("manageable", PATIENCE));
    }

    /// Makes the node available: automated cleaning.
    pub fn provide(&mut self) {
        self.provide_with_raid();
        self.assert_no_marks();
    }

    /// The same; gives the steps of the deploy interface that the conductor lists for the machine meanwhile.
    pub fn provide_and_list_steps(&mut self) -> Vec<Value> {
        const STEPS: &str = "/driver_internal_info/agent_cached_clean_steps/deploy";
        let begin = self.begin(&Order::provide(), "clean wait", "available");
        let is_listed = |node: &Value| node.pointer(STEPS).is_some_and(Value::is_array);
        let node = self.seen(self.node.wait_for(PATIENCE, is_listed));
        self.end(&Order::provide(), begin, "available");
        self.assert_no_marks();
        node.pointer(STEPS).and_then(Value::as_array).cloned().unwrap_or_default()
    }

    /// The same for a node whose disks keep their partitions.
    pub fn provide_with_raid(&mut self) {
        self.carry_out(&Order::provide(), "clean wait", "available");
    }

    /// Makes the node available under a conductor that cleans nothing.
    pub fn provide_uncleaned(&self) {
        self.node.order(&Order::provide()).unwrap();
        self.seen(self.node.reach("available", PATIENCE));
    }

    pub fn deploy(&mut self, name: &str) {
        let sum = self.stable.system.sha256.clone();
        let instance = self.instance(name, &sum);
        self.node.set_instance(&instance).unwrap();
        self.install(&Order::deploy(&instance), name);
    }

    pub fn rebuild(&mut self, name: &str) {
        let sum = self.stable.system.sha256.clone();
        let instance = self.instance(name, &sum);
        self.node.set_instance(&instance).unwrap();
        self.install(&Order::rebuild(&instance), name);
    }

    /// A deployment with a wrong checksum says so, and leaves nothing that could boot.
    pub fn fail_to_rebuild(&mut self) {
        let wrong = "0".repeat(64);
        let instance = self.instance("mule", &wrong);
        self.node.set_instance(&instance).unwrap();
        let node = self.carry_out(&Order::rebuild(&instance), "wait call-back", "deploy failed");
        let error = node["last_error"].as_str().unwrap_or_default();
        for digest in [&wrong, &self.stable.system.sha256] {
            assert!(error.contains(digest.as_str()), "{digest} is not in {error:?}");
        }
        let start = disks::read(self.stable.root(), 0, 1 << 20);
        assert!(start.iter().all(|byte| *byte == 0), "the first MiB is not empty");
    }

    /// Boots the ramdisk, in which somebody logs in at the console with the password.
    pub fn rescue(&mut self) {
        const PASSWORD: &str = "four old horseshoes";
        let start = self.console.length();
        self.carry_out(&Order::rescue(PASSWORD), "rescue wait", "rescue");
        self.console.wait_for("login:", start, PATIENCE).unwrap();
        let mut typist = self.stable.leader.typist(&self.stable.hardware, &self.node.uuid);
        typist.answer("", "rescue", PATIENCE).unwrap();
        typist.answer("Password:", PASSWORD, PATIENCE).unwrap();
        typist.answer("#", "id; echo $((6 * 7)) horses", PATIENCE).unwrap();
        typist.expect("uid=0(rescue)", PATIENCE).unwrap();
        typist.expect("42 horses", PATIENCE).unwrap();
    }

    /// The same. Without fast track Ironic 39.0.0 switches a machine off when it has been rescued by virtual media.
    pub fn rescue_with_its_ramdisk_kept(&mut self) {
        match self.stable.leader.services_by_fast_track() {
            true => {
                self.start_fast_track();
                self.rescue();
                self.stop_fast_track();
            }
            false => self.rescue(),
        }
    }

    /// Boots the instance again.
    pub fn unrescue(&mut self) {
        let start = self.console.length();
        self.node.order(&Order::unrescue()).unwrap();
        self.seen(self.node.reach("active", PATIENCE));
        self.boot_disks_by_hand();
        self.console.wait_for(self.stable.system.greeting, start, PATIENCE).unwrap();
    }

    /// Writes the image again as a service step, over a disk that was damaged.
    pub fn service(&mut self) {
        match self.stable.leader.services_by_fast_track() {
            true => {
                self.start_fast_track();
                self.take_service_step();
                self.stop_fast_track();
            }
            false => self.take_service_step(),
        }
    }

    /// The same, where the conductor needs nothing for it.
    pub fn take_service_step(&mut self) {
        const DAMAGE: u64 = 5 << 20;
        disks::write(self.stable.root(), DAMAGE, b"damage");
        let start = self.console.length();
        let steps = json!([self.write_image_again()]);
        self.carry_out(&Order::service(&steps), "service wait", "active");
        let offset = usize::try_from(DAMAGE).unwrap();
        assert_eq!(disks::read(self.stable.root(), DAMAGE, 6), self.stable.system.image[offset..offset + 6]);
        self.boot_disks_by_hand();
        self.console.wait_for(self.stable.system.greeting, start, PATIENCE).unwrap();
    }

    /// Services a node whose last service has failed: Ironic handles that failure as one of a deployment, believes
    /// that the node is still at its last step, and is done.
    pub fn service_in_vain(&mut self) {
        let order = Order::service(&json!([self.write_image_again()]));
        let begin = Instant::now();
        self.node.order(&order).unwrap();
        // It is over, and the agent forgotten, before anybody can see whether that one is trusted.
        self.boot_ramdisk_by_hand("service wait");
        self.end(&order, begin, "active");
    }

    fn write_image_again(&self) -> Value {
        let image_info = json!({
            "id": "image.raw",
            "urls": [self.stable.system.server.guest_url()],
            "disk_format": "raw",
            "os_hash_algo": "sha256",
            "os_hash_value": self.stable.system.sha256,
        });
        json!({"interface": "deploy", "step": "write_image", "args": {"image_info": image_info}})
    }

    /// Removes the instance: automated cleaning.
    pub fn undeploy(&mut self) {
        self.carry_out(&Order::undeploy(), "clean wait", "available");
        self.assert_no_marks();
    }

    /// Lets the conductor keep a ramdisk that it has booted; one that still runs is not wanted.
    pub fn start_fast_track(&mut self) {
        // Until then Ironic would take the instance for the ramdisk.
        thread::sleep(FAST_TRACK_TIMEOUT.saturating_sub(self.last_agent.elapsed()));
        self.node.set_fast_track(true).unwrap();
    }

    /// For a while after its last heartbeat, Ironic would take the instance for the ramdisk.
    pub fn stop_fast_track(&mut self) {
        self.node.set_fast_track(false).unwrap();
        self.hand.iter_mut().for_each(|hand| hand.fast_track = false);
    }

    /// Fails if anything is left of what filled the disks.
    pub fn assert_disks_erased(&self) {
        let Stable { hardware, further, .. } = self.stable;
        hardware
            .disks
            .iter()
            .map(|(disk, _)| disk)
            .chain(further)
            .for_each(|disk| disks::assert_nothing_left(disk));
    }

    /// Leaves signs of an earlier use on all disks.
    pub fn mark_disks(&self) {
        self.stable.hardware.disks.iter().for_each(|(disk, _)| disks::mark(disk));
    }

    pub fn assert_no_marks(&self) {
        self.stable.hardware.disks.iter().for_each(|(disk, _)| disks::assert_no_marks(disk));
    }

    /// How often the ramdisk was booted.
    pub fn ramdisk_boots(&self) -> usize {
        self.console.text().matches("userland started").count()
    }

    fn instance<'b>(&self, name: &str, sha256: &'b str) -> Instance<'b> {
        Instance {
            url: self.stable.system.server.guest_url(),
            sha256,
            // cloud-init refuses what has no identity.
            meta_data: json!({"uuid": self.node.uuid, "name": name, "hostname": name}),
        }
    }

    /// Deploys the image, and waits until it has booted.
    fn install(&mut self, order: &Order, name: &str) {
        let other = fs::read(self.stable.other()).unwrap();
        let start = self.console.length();
        self.carry_out(order, "wait call-back", "active");
        disks::assert_deployed(self.stable.root(), &self.stable.system.image, name);
        assert!(fs::read(self.stable.other()).unwrap() == other, "the other disk was touched");
        self.switched_off();
        self.boot_disks_by_hand();
        self.console.wait_for(self.stable.system.greeting, start, PATIENCE).unwrap();
    }

    /// Orders something that the ramdisk does while the node is in the state `wait`, and ends in `end`.
    fn carry_out(&mut self, order: &Order, wait: &str, end: &str) -> Value {
        let begin = self.begin(order, wait, end);
        self.end(order, begin, end)
    }

    fn begin(&mut self, order: &Order, wait: &str, end: &str) -> Instant {
        let begin = Instant::now();
        self.node.order(order).unwrap();
        self.boot_ramdisk_by_hand(wait);
        // An inspection is over when the agent has posted what it found.
        if wait != "inspect wait" {
            self.assert_trusted(end);
        }
        begin
    }

    fn end(&mut self, order: &Order, begin: Instant, end: &str) -> Value {
        let node = self.node.reach(end, PATIENCE);
        self.last_agent = Instant::now();
        println!("{:4.0} s for {order}", begin.elapsed().as_secs_f64());
        self.seen(node)
    }

    fn seen<T>(&self, outcome: anyhow::Result<T>) -> T {
        outcome.unwrap_or_else(|error| panic!("{error:#}\nconsole:\n{}", self.console.tail()))
    }

    /// Boots what Ironic says, once it waits for the agent; with fast track a running ramdisk serves.
    fn boot_ramdisk_by_hand(&mut self, wait: &str) {
        let Some(hand) = &mut self.hand else { return };
        if hand.fast_track && hand.machine.is_some() {
            return;
        }
        hand.machine = None;
        self.node.reach(wait, PATIENCE).unwrap();
        let hardware = &self.stable.hardware;
        let parameters = hand.ironic.kernel_parameters(&self.node.uuid, &hardware.mac).unwrap();
        let ramdisk = Boot::Ramdisk(&self.stable.dist, &parameters);
        hand.machine = Some(hardware.boot_under(Firmware::Uefi, ramdisk, &self.stable.arguments).unwrap());
    }

    /// A deployed machine is switched off by its agent; Ironic wants it on.
    fn switched_off(&mut self) {
        let Some(hand) = &mut self.hand else { return };
        hand.machine.take().unwrap().wait_until_off(PATIENCE).unwrap();
    }

    fn boot_disks_by_hand(&mut self) {
        let Some(hand) = &mut self.hand else { return };
        hand.machine = None;
        hand.machine = Some(self.stable.hardware.boot_under(Firmware::Uefi, Boot::Disks, &[]).unwrap());
    }

    /// Switches the machine off, whatever it does.
    fn switch_off(&mut self) {
        match &mut self.hand {
            Some(hand) => hand.machine = None,
            None => self.node.power_off(PATIENCE).unwrap(),
        }
    }

    /// The agent is called over TLS with its own certificate, and with a token, while the node is not yet in `end`.
    fn assert_trusted(&self, end: &str) {
        let Some(agent) = self.seen(self.node.agent(end, PATIENCE)) else {
            return assert_eq!(end, "rescue", "nobody saw the agent of an operation that takes a while");
        };
        let url = agent["agent_url"].as_str().unwrap_or_default();
        assert!(self.stable.leader.calls(&self.stable.hardware, url), "{url}");
        assert_eq!(agent["agent_secret_token"], "******", "the conductor has no token for the agent");
        assert!(agent["agent_verify_ca"].is_string(), "the conductor does not know the agent's certificate");
    }
}
