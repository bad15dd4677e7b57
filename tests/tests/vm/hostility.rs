//! Crowds of hostile clients at the agent of the smallest machine, while it writes an image.

use farrier_tests::agent::commanded::CommandedAgent;
use farrier_tests::agent::hostility::{Crowd, Hostility, Victim};
use farrier_tests::agent::stub_conductor::{NODE, StubConductor};
use farrier_tests::images::instance::sha256;
use farrier_tests::images::server::{ImageServer, Pace, Reply};
use farrier_tests::machine::{Firmware, Hardware, free_port};
use farrier_tests::ramdisk::witness::{self, Sight};
use serde_json::{Value, json};
use std::fs::File;
use std::net::{Ipv4Addr, SocketAddr};
use std::os::unix::fs::FileExt;
use std::thread;
use std::time::{Duration, Instant};
use tempfile::TempDir;
use tokio::runtime::Runtime;

const MIB: usize = 1 << 20;
/// What Ironic tells agents to call within, in seconds; here a fifth of it, so that several calls are seen.
const HEARTBEAT_TIMEOUT: u64 = 60;
/// How long an emulated machine may take for a step.
const STEP: Duration = Duration::from_secs(300);
/// How often a conductor asks an agent that does not answer.
const ATTEMPTS: usize = 3;
/// How long the writing agent is looked at before the crowds come.
const CALM: Duration = Duration::from_secs(15);
/// Longer than the silence that a conductor and the agent bear.
const SIEGE: Duration = Duration::from_secs(75);
/// A crowd.
const CROWD: usize = 200;
const KINDS: [Hostility; 6] = [
    Hostility::Silence,
    Hostility::SlowHead,
    Hostility::Http2,
    Hostility::Pipelining,
    Hostility::Body,
    Hostility::Garbage,
];
/// Where the crowds reach the machine: its second card, so that they have an address of their own.
const HARASSED: &str = "user,id=harassed,net=10.0.3.0/24";

/// The beginning of the image comes at once, so that the writer has all the memory that it will have.
const AT_ONCE: usize = 48 * MIB;
/// Bytes a second that come while the agent is besieged.
const SLOWLY: usize = 128 << 10;
const IMAGE: usize = 96 * MIB;
/// Bytes of a disk that the default rule takes.
const DISK: u64 = 5 << 30;

/// A disk's worth of bytes that cannot be told apart from others, with an MBR.
fn image() -> Vec<u8> {
    let mut image = vec![0; IMAGE];
    rand::fill(&mut image[..]);
    image[..512].fill(0);
    image[446..462].copy_from_slice(&[0, 0, 2, 0, 0x83, 0, 0, 0, 0, 8, 0, 0, 0, 0, 1, 0]);
    image[510..512].copy_from_slice(&[0x55, 0xaa]);
    image
}

fn step(name: &str, arguments: &Value) -> Value {
    json!({
        "step": {"step": name, "interface": "deploy", "args": arguments},
        "node": {"uuid": NODE, "properties": {}},
        "ports": [],
    })
}

#[test]
fn vm_x41_x42_x44_crowds_neither_end_the_agent_nor_slow_its_heartbeats_nor_spoil_the_image() {
    rustls::crypto::ring::default_provider().install_default().ok();
    let folder = TempDir::new().unwrap();
    let disk = folder.path().join("disk");
    File::create(&disk).unwrap().set_len(DISK).unwrap();
    let hardware = Hardware {
        mac: "52:54:00:fa:00:41".into(),
        agent_port: free_port().unwrap(),
        keyboard_port: free_port().unwrap(),
        disks: vec![(disk.clone(), "DISK")],
        media: vec![],
        folder: folder.path().into(),
    };
    let dist = witness::ramdisk(folder.path()).unwrap();
    let port = free_port().unwrap();
    let network = format!("{HARASSED},hostfwd=tcp:127.0.0.1:{port}-:9999");
    let card = ["-netdev", &network, "-device", "virtio-net-pci,netdev=harassed,romfile="];
    let conductor = StubConductor::start_with(json!({"heartbeat_timeout": HEARTBEAT_TIMEOUT})).unwrap();
    let agent = CommandedAgent::boot_under(
        Firmware::Uefi,
        conductor,
        &hardware,
        &card.map(str::to_owned),
        &dist,
        "ipa-disk-wait-attempts=1",
    )
    .unwrap();
    agent.succeed("deploy.execute_deploy_step", &step(witness::STEP, &json!({})), STEP).unwrap();

    let (image, pace) = (image(), Pace::new(AT_ONCE, SLOWLY));
    let server = ImageServer::start(vec![Reply::Paced(image.clone().into(), pace.clone())]).unwrap();
    let info = json!({
        "id": "image", "urls": [server.guest_url()], "os_hash_algo": "sha256", "disk_format": "raw",
        "os_hash_value": sha256(&image),
    });
    let writing =
        agent.order("deploy.execute_deploy_step", &step("write_image", &json!({"image_info": info})));
    let writing = writing.unwrap()["id"].take();
    let started = Instant::now();
    while !is_written(&disk, &image, AT_ONCE - 2 * MIB) {
        let last = agent.last_command().unwrap();
        let is_underway = last["command_status"] == "RUNNING" && started.elapsed() < STEP;
        assert!(is_underway, "nothing is written: {last}\n{}", hardware.console().tail());
        thread::sleep(Duration::from_millis(500));
    }
    let sights = || witness::sights(&hardware.console());
    let before = sights().len();
    thread::sleep(CALM);
    let calm = sights().split_off(before);
    agent.conductor().news();

    let besieged = besiege(&agent, SocketAddr::from((Ipv4Addr::LOCALHOST, port)));
    let siege = sights().split_off(before + calm.len());
    pace.end();
    agent.wait_for_success(STEP).unwrap();
    let commands = agent.commands().unwrap();
    assert_eq!(commands.len(), 2, "an agent that was started again knows one: {commands:?}");
    assert_eq!(commands[1]["id"], writing);
    assert!(is_written(&disk, &image, IMAGE), "the disk has something else");
    besieged.require();
    require_memory(&calm, &siege);
}

/// Whether the disk has what the image has there, behind the first MiB, which comes last.
fn is_written(disk: &std::path::Path, image: &[u8], end: usize) -> bool {
    let start = if end == image.len() { 0 } else { end - MIB };
    let mut found = vec![0; end - start];
    File::open(disk).unwrap().read_exact_at(&mut found, start as u64).is_ok() && found == image[start..end]
}

/// What was seen from outside during a siege.
#[derive(Debug)]
struct Besieged {
    started: Instant,
    ended: Instant,
    heartbeats: Vec<Instant>,
    /// How long each answer took, and how many attempts before it had none.
    answers: Vec<(Duration, usize)>,
    /// How often the agent has met each kind.
    meetings: Vec<(Hostility, usize)>,
}

/// Has all crowds at `address` at once, and asks as a conductor does meanwhile.
fn besiege(agent: &CommandedAgent, address: SocketAddr) -> Besieged {
    let runtime = Runtime::new().unwrap();
    let guard = runtime.enter();
    // The address by which the conductor knows the machine.
    let victim = Victim::new(address, Ipv4Addr::new(10, 0, 2, 15).into(), agent.certificate());
    let started = Instant::now();
    let crowds = KINDS.map(|kind| (kind, Crowd::gather(kind, CROWD, &victim)));
    drop(guard);
    let mut answers = Vec::new();
    while started.elapsed() < SIEGE {
        let (last, took, failed) = ask(agent);
        assert_eq!(last["command_status"], "RUNNING", "{last}");
        answers.push((took, failed));
        thread::sleep(Duration::from_secs(2));
    }
    let ended = Instant::now();
    let meetings = crowds.iter().map(|(kind, crowd)| (*kind, crowd.meetings())).collect();
    runtime.shutdown_background();
    let news = agent.conductor().news().into_iter();
    let heartbeats =
        news.filter(|sent| sent.path.starts_with("/v1/heartbeat/")).map(|sent| sent.at).collect();
    Besieged { started, ended, heartbeats, answers, meetings }
}

/// The last command, asked for as often as a conductor does (`[agent]max_command_attempts`), each time for no longer
/// (`[agent]command_timeout`): how long the answer took, and how many attempts failed before it.
fn ask(agent: &CommandedAgent) -> (Value, Duration, usize) {
    let mut failed = Vec::new();
    while failed.len() < ATTEMPTS {
        let asked = Instant::now();
        match agent.last_command() {
            Ok(last) => return (last, asked.elapsed(), failed.len()),
            Err(error) => failed.push(error),
        }
    }
    panic!("the agent does not answer its conductor: {failed:?}");
}

impl Besieged {
    fn require(&self) {
        let times = [&[self.started], &self.heartbeats[..], &[self.ended]].concat();
        let longest = times.windows(2).map(|pair| pair[1] - pair[0]).max().unwrap();
        let slowest = self.answers.iter().map(|(took, _)| took).max().unwrap();
        let at_once = self.answers.iter().filter(|(_, failed)| *failed == 0).count();
        println!(
            "{} heartbeats, at most {longest:?} apart; {} answers in at most {slowest:?}, {at_once} to the first \
             attempt; met {:?}",
            self.heartbeats.len(),
            self.answers.len(),
            self.meetings
        );
        assert!(longest < Duration::from_secs(HEARTBEAT_TIMEOUT), "{self:?}");
        assert!(2 * at_once > self.answers.len(), "most attempts fail: {self:?}");
        for (kind, meetings) in &self.meetings {
            // Who says nothing is met when it is closed out, and stays as long as it may before that.
            let enough = if *kind == Hostility::Silence { 1 } else { CROWD / 4 };
            assert!(*meetings >= enough, "{kind:?} hardly reached the agent: {self:?}");
        }
    }
}

/// The agent takes at most 16 MiB more than in the calm, with as many open connections as it allows at all.
fn require_memory(calm: &[Sight], siege: &[Sight]) {
    let peak = |sights: &[Sight]| sights.iter().map(|sight| sight.peak).max().unwrap();
    let open = siege.iter().filter(|sight| sight.open >= 48).count();
    let more = peak(siege).saturating_sub(peak(calm));
    println!(
        "{} sights; {} KiB in the calm, {} KiB more; {open} times at least 48 connections",
        siege.len(),
        peak(calm) >> 10,
        more >> 10
    );
    assert!(2 * open > siege.len(), "the crowds were not there: {siege:?}");
    assert!(more <= 16 << 20, "{calm:?} {siege:?}");
}
