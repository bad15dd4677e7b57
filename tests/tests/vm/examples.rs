//! The conductors of `conductor-lib/examples`, each with a machine of its own.

use farrier_tests::environment;
use farrier_tests::images::instance::{self, GREETING, sha256};
use farrier_tests::images::server::{ImageServer, Reply};
use farrier_tests::machine::console::Console;
use farrier_tests::machine::{Boot, Hardware, Machine, free_port};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use std::fs::{self, File};
use std::io::Read;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};
use tempfile::TempDir;

const MAC: &str = "52:54:00:fa:00:31";
/// How long an emulated machine may take to boot and do one thing.
const PATIENCE: Duration = Duration::from_secs(240);
/// How long an example may take to end with what it started.
const ENDING: Duration = Duration::from_secs(10);
const POLL: Duration = Duration::from_millis(100);
/// What the disk is full of at first: anything that is no sector of a wiped one.
const OLD: u8 = 0xA5;
/// How much of the disk's start is old, in bytes.
const START: usize = 1 << 20;
/// Bytes of a disk that the default rule for the root disk accepts.
const SIZE: u64 = 5 << 30;

/// An example that runs, and what it printed. Dropping it ends it.
struct Example {
    process: Child,
    output: PathBuf,
}

impl Example {
    fn start(name: &str, arguments: &[&str], folder: &Path) -> Self {
        // Cargo puts examples beside the folder of the test programs.
        let tests = std::env::current_exe().unwrap();
        let program = tests.ancestors().nth(2).unwrap().join("examples").join(name);
        let output = folder.join("output");
        let process = Command::new(&program)
            .args(arguments)
            .stdin(Stdio::null())
            .stdout(File::create(&output).unwrap())
            .spawn()
            .unwrap_or_else(|error| panic!("{}: {error}", program.display()));
        Self { process, output }
    }

    fn wait_for(&self, text: &str) {
        let end = Instant::now() + PATIENCE;
        loop {
            let printed = fs::read_to_string(&self.output).unwrap();
            if printed.contains(text) {
                return;
            }
            assert!(Instant::now() < end, "{text:?} was not printed, but:\n{printed}");
            std::thread::sleep(POLL);
        }
    }
}

impl Drop for Example {
    fn drop(&mut self) {
        // As an operator ends it: what it started ends with it. Shells have what they start in the background ignore that
        // signal, and with it whoever does not ask for it.
        kill(Pid::from_raw(self.process.id() as i32), Signal::SIGINT).ok();
        let end = Instant::now() + ENDING;
        while matches!(self.process.try_wait(), Ok(None)) && Instant::now() < end {
            std::thread::sleep(POLL);
        }
        self.process.kill().ok();
        self.process.wait().ok();
    }
}

/// Boots the ramdisk in a machine with this disk, whose conductor listens on a port of the loopback address.
fn boot(port: u16, disk: &Path, folder: &Path) -> Machine {
    let hardware = Hardware {
        mac: MAC.into(),
        agent_port: free_port().unwrap(),
        keyboard_port: free_port().unwrap(),
        disks: vec![(disk.to_owned(), "FARRIER-EXAMPLE")],
        media: vec![],
        folder: folder.to_owned(),
    };
    let line = format!(
        "console=ttyS0 ipa-api-url=http://10.0.2.2:{port} ipa-advertise-host=127.0.0.1 \
         ipa-advertise-port={}",
        hardware.agent_port
    );
    hardware.boot(Boot::Ramdisk(&environment::path("FARRIER_DIST"), &line)).unwrap()
}

/// A disk whose first MiB holds something else than zeros.
fn old_disk(folder: &Path) -> PathBuf {
    let disk = folder.join("disk.raw");
    fs::write(&disk, vec![OLD; START]).unwrap();
    File::options().write(true).open(&disk).unwrap().set_len(SIZE).unwrap();
    disk
}

/// The first bytes of a disk.
fn start_of(disk: &Path, length: usize) -> Vec<u8> {
    let mut bytes = vec![0; length];
    File::open(disk).unwrap().read_exact(&mut bytes).unwrap();
    bytes
}

#[test]
fn vm_a_conductor_with_a_store_of_its_own_cleans_a_machine() {
    let folder = TempDir::new().unwrap();
    let port = free_port().unwrap();
    let example = Example::start("own_store", &[&format!("127.0.0.1:{port}"), MAC], folder.path());
    example.wait_for("listening on");
    let disk = old_disk(folder.path());
    let mut machine = boot(port, &disk, folder.path());
    example.wait_for(&format!("{MAC} is manageable"));
    machine.wait_until_off(PATIENCE).unwrap();
    let wiped = start_of(&disk, START).iter().filter(|byte| **byte != OLD).count();
    assert!(wiped >= 33 * 512, "{wiped} bytes of the old table's place were wiped");
}

#[test]
fn vm_a_conductor_of_the_agents_client_alone_learns_what_a_machine_is_made_of() {
    let folder = TempDir::new().unwrap();
    let port = free_port().unwrap();
    let example = Example::start("agent_alone", &[&format!("127.0.0.1:{port}")], folder.path());
    example.wait_for("listening on");
    let disk = old_disk(folder.path());
    let mut machine = boot(port, &disk, folder.path());
    example.wait_for("\"serial\": \"FARRIER-EXAMPLE\"");
    machine.wait_until_off(PATIENCE).unwrap();
    assert!(start_of(&disk, START).iter().all(|byte| *byte == OLD), "nothing was written");
}

#[test]
fn vm_a_conductor_with_a_power_driver_of_its_own_deploys_a_machine() {
    let folder = TempDir::new().unwrap();
    let listen = format!("127.0.0.1:{}", free_port().unwrap());
    let disk = old_disk(folder.path());
    let image = instance::image().unwrap();
    let server = ImageServer::start(vec![Reply::Body(image.clone().into())]).unwrap();
    let (dist, digest) = (environment::path("FARRIER_DIST"), format!("sha256:{}", sha256(&image)));
    let (dist, file, url) = (dist.display().to_string(), disk.display().to_string(), server.guest_url());
    let example = Example::start("power_strip", &[&listen, MAC, &dist, &file, &url, &digest], folder.path());
    example.wait_for("the machine is active");
    Console::new(folder.path().join("disk.raw.console")).wait_for(GREETING, 0, PATIENCE).unwrap();
    drop(example);
    assert!(start_of(&disk, image.len()) == image, "the disk does not begin with the image");
}
