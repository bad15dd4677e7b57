//! Direct deployments that an unmodified Ironic drives.
//!
//! `cargo xtask test ironic` installs Ironic, builds the ramdisk and says where they are.

#![allow(clippy::unwrap_used)]

use farrier_tests::image_server::{ImageServer, Reply};
use farrier_tests::instance::{image, sha256};
use farrier_tests::ironic::{Enrolment, Instance, Ironic};
use farrier_tests::machine::{Hardware, Machine, free_port};
use serde_json::{Value, json};
use std::fs::{self, File};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;
use tempfile::TempDir;

const MIB: usize = 1 << 20;
const ROOT_BYTES: u64 = 4 << 30;
const OTHER_BYTES: usize = 64 * MIB;
const MAC: &str = "52:54:00:fa:00:03";

/// How long an emulated machine may take for anything.
const PATIENCE: Duration = Duration::from_secs(300);

fn environment(name: &str) -> PathBuf {
    std::env::var_os(name).unwrap_or_else(|| panic!("{name} is not set: run cargo xtask test ironic")).into()
}

/// Ironic, an image, and a node with a root disk and another one.
struct Stable {
    ironic: Ironic,
    image: Arc<Vec<u8>>,
    server: ImageServer,
    node: String,
    dist: PathBuf,
    hardware: Hardware,
    parameters: String,
    folder: TempDir,
}

impl Stable {
    fn new(fast_track: bool) -> Self {
        let folder = TempDir::new().unwrap();
        let dist = environment("FARRIER_DIST");
        let (root, other) = (folder.path().join("root.img"), folder.path().join("other.img"));
        File::create(&root).unwrap().set_len(ROOT_BYTES).unwrap();
        fs::write(&other, vec![0xaa; OTHER_BYTES]).unwrap();
        let agent_port = free_port().unwrap();
        let hardware =
            Hardware { mac: MAC.into(), agent_port, disks: vec![(other, "OTHER"), (root, "ROOT")] };
        let image = Arc::new(image().unwrap());
        let server = ImageServer::start(vec![Reply::Body(Arc::clone(&image))]).unwrap();
        let installed = environment("FARRIER_IRONIC");
        println!("with {}", installed.display());
        // Ironic looks whether the image exists, but only the machine reaches 10.0.2.2.
        let ironic = Ironic::start(&installed, folder.path(), &dist, &server.proxy()).unwrap();
        let parameters = format!(
            "console=ttyS0 ipa-disk-wait-attempts=1 ipa-advertise-host=127.0.0.1 ipa-advertise-port={agent_port}"
        );
        let enrolment = Enrolment { mac: MAC, dist: &dist, parameters: &parameters, fast_track };
        let node = ironic.enrol(&enrolment).unwrap();
        Self { ironic, image, server, node, dist, hardware, parameters, folder }
    }

    fn start_deployment(&self, sha256: &str) {
        let instance = Instance { url: self.server.guest_url(), sha256 };
        self.ironic.deploy(&self.node, &instance, &json!({"name": "horse"})).unwrap();
    }

    /// Switches the machine on as iPXE would, once Ironic waits for the agent.
    fn boot(&self) -> Machine {
        let is_waiting = |node: &Value| node["provision_state"] == "wait call-back";
        self.ironic.wait_for(&self.node, PATIENCE, is_waiting).unwrap();
        self.boot_with(&self.ironic.kernel_parameters(&self.node, MAC).unwrap())
    }

    fn boot_with(&self, parameters: &str) -> Machine {
        Machine::boot(&self.hardware, &self.dist, parameters, self.folder.path()).unwrap()
    }

    /// What Ironic knows of the agent once the agent was heard.
    fn agent(&self) -> Value {
        let is_known = |node: &Value| node["driver_internal_info"]["agent_url"].is_string();
        self.ironic.wait_for(&self.node, PATIENCE, is_known).unwrap()["driver_internal_info"].clone()
    }

    /// The state in which a deployment ends.
    fn end(&self) -> Value {
        let is_over =
            |node: &Value| ["active", "deploy failed"].iter().any(|state| node["provision_state"] == *state);
        self.ironic.wait_for(&self.node, PATIENCE, is_over).unwrap()
    }

    fn root(&self) -> &Path {
        &self.hardware.disks[1].0
    }

    /// The agent is called over TLS with its own certificate, and with a token.
    fn assert_trusted(&self) {
        let agent = self.agent();
        assert_eq!(agent["agent_url"], format!("https://127.0.0.1:{}", self.hardware.agent_port));
        assert_eq!(agent["agent_secret_token"], "******", "Ironic has no token for the agent");
        assert!(agent["agent_verify_ca"].is_string(), "Ironic does not know the agent's certificate");
    }

    fn assert_success(&self, mut machine: Machine) {
        let node = self.end();
        let console = machine.console().tail();
        assert_eq!(
            (&node["provision_state"], &node["last_error"]),
            (&json!("active"), &Value::Null),
            "{console}"
        );
        machine.wait_until_off(PATIENCE).unwrap();
        self.assert_deployed();
    }

    fn assert_deployed(&self) {
        // The first sector holds the table, to which the config drive's partition was added.
        assert!(read(self.root(), 512, self.image.len() - 512) == self.image[512..], "not the image");
        assert_eq!(read(self.root(), 440, 6 + 16), self.image[440..462], "not the image's table");
        let drive = self.config_drive();
        assert_eq!(&drive[32769..32774], b"CD001", "the config drive is no ISO image");
        assert_eq!(&drive[32808..32816], b"config-2", "label of the config drive");
        let text = br#""name": "horse""#;
        assert!(drive.windows(text.len()).any(|window| window == text), "no meta data in the config drive");
        self.assert_other_disk_is_untouched();
    }

    /// The second partition.
    fn config_drive(&self) -> Vec<u8> {
        let entry = read(self.root(), 462, 16);
        let number = |at: usize| u32::from_le_bytes(entry[at..at + 4].try_into().unwrap());
        read(self.root(), u64::from(number(8)) * 512, number(12) as usize * 512)
    }

    fn assert_other_disk_is_untouched(&self) {
        let other = fs::read(&self.hardware.disks[0].0).unwrap();
        assert!(other == vec![0xaa; OTHER_BYTES], "the other disk was touched");
    }
}

fn read(file: &Path, offset: u64, length: usize) -> Vec<u8> {
    let mut bytes = vec![0; length];
    File::open(file).unwrap().read_exact_at(&mut bytes, offset).unwrap();
    bytes
}

#[test]
fn ironic_deploys_an_image_with_a_config_drive() {
    let stable = Stable::new(false);
    stable.start_deployment(&sha256(&stable.image));
    let machine = stable.boot();
    stable.assert_trusted();
    stable.assert_success(machine);
}

#[test]
fn ironic_with_fast_track_deploys_on_the_running_ramdisk() {
    let stable = Stable::new(true);
    stable.ironic.power_on(&stable.node).unwrap();
    let parameters = format!("{} ipa-api-url={}", stable.parameters, stable.ironic.guest_url());
    let machine = stable.boot_with(&parameters);
    stable.assert_trusted();
    stable.start_deployment(&sha256(&stable.image));
    stable.assert_success(machine);
    let boot_configuration = stable.ironic.kernel_parameters(&stable.node, MAC);
    assert!(boot_configuration.is_err(), "Ironic wanted to boot the ramdisk again");
}

#[test]
fn ironic_tells_a_wrong_checksum() {
    let stable = Stable::new(false);
    let wrong = "0".repeat(64);
    stable.start_deployment(&wrong);
    let machine = stable.boot();
    let node = stable.end();
    assert_eq!(node["provision_state"], "deploy failed", "{}", machine.console().tail());
    let error = node["last_error"].as_str().unwrap_or_default();
    for digest in [&wrong, &sha256(&stable.image)] {
        assert!(error.contains(digest.as_str()), "{digest} is not in {error:?}");
    }
    assert!(read(stable.root(), 0, MIB).iter().all(|byte| *byte == 0), "the first MiB is not empty");
    stable.assert_other_disk_is_untouched();
}
