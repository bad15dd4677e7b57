//! The agent is killed in the middle of steps of every kind, and the one after it says that they have failed.

use farrier_tests::agent::commanded::CommandedAgent;
use farrier_tests::agent::stub_conductor::NODE;
use farrier_tests::images::instance;
use farrier_tests::images::server::{ImageServer, Reply};
use farrier_tests::machine::monitor::Monitor;
use farrier_tests::machine::{Hardware, free_port};
use farrier_tests::ramdisk::killer;
use serde_json::{Value, json};
use std::fs;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;
use tempfile::TempDir;

const DISK: &str = "ROOT";
const DISK_BYTES: usize = 16 << 20;
const MEMORY: [&str; 2] = ["-m", "512"];
/// How long an emulated machine may take for a step, or to start an agent again.
const PATIENCE: Duration = Duration::from_secs(300);

/// A machine with one disk in use, whose writes can be held up.
struct Stable {
    agent: CommandedAgent,
    monitor: Monitor,
    disk: PathBuf,
    _folder: TempDir,
}

impl Stable {
    fn new() -> Self {
        let folder = TempDir::new().unwrap();
        let dist = killer::ramdisk(folder.path()).unwrap();
        let disk = folder.path().join("disk.img");
        fs::write(&disk, vec![0x5a; DISK_BYTES]).unwrap();
        let hardware = Hardware {
            mac: "52:54:00:fa:00:41".into(),
            agent_port: free_port().unwrap(),
            keyboard_port: free_port().unwrap(),
            disks: vec![(disk.clone(), DISK)],
            media: Vec::new(),
            folder: folder.path().to_owned(),
        };
        let socket = folder.path().join("monitor");
        // Not what a lack of memory does is tried here.
        let arguments = [MEMORY.map(str::to_owned), Monitor::arguments(&socket)].concat();
        let agent = CommandedAgent::boot(&hardware, &arguments, &dist, "ipa-disk-wait-attempts=1").unwrap();
        Self { agent, monitor: Monitor::connect(&socket).unwrap(), disk, _folder: folder }
    }

    fn order(&self, phase: &str, step: &str, arguments: &Value) -> Value {
        let step = json!({"step": step, "interface": "deploy", "args": arguments});
        let node = json!({"uuid": NODE, "properties": {"root_device": {"serial": DISK}}});
        let params = json!({"step": step, "node": node, "ports": []});
        self.agent.order(&format!("{phase}.execute_{phase}_step"), &params).unwrap()
    }

    fn succeed(&self, phase: &str, step: &str, arguments: &Value) -> Value {
        self.order(phase, step, arguments);
        self.agent.wait_for_success(PATIENCE).unwrap()[format!("{phase}_result")].take()
    }

    /// Orders a step in whose middle the agent is killed. The next one must know of that one command, and that it
    /// has failed, and why.
    fn assert_cut_off(&self, phase: &str, step: &str, arguments: &Value) {
        let ordered = self.order(phase, step, arguments);
        let commands = self.agent.outlive(&ordered["id"], PATIENCE).unwrap();
        let [failed] = commands.as_slice() else { panic!("{commands:?}") };
        assert_eq!(failed["command_name"], format!("execute_{phase}_step"), "{failed}");
        assert_eq!(failed["command_status"], "FAILED", "{failed}");
        let error = failed["command_error"]["details"].as_str().unwrap();
        for part in [step, killer::REASON, "start the operation again"] {
            assert!(error.contains(part), "{part}: {error}");
        }
    }

    /// Has the agent killed when the step writes to the disk, which takes its time; then the step succeeds.
    fn survive(&mut self, phase: &str, step: &str, arguments: &Value) {
        self.succeed(phase, killer::KILL_AT_NEXT_WRITE, &json!({}));
        self.monitor.throttle_writes(DISK, 1).unwrap();
        self.assert_cut_off(phase, step, arguments);
        self.monitor.throttle_writes(DISK, 0).unwrap();
        self.succeed(phase, step, arguments);
    }
}

#[test]
fn vm_x01_a_step_in_whose_middle_the_agent_was_killed_has_failed_and_can_be_ordered_again() {
    let mut stable = Stable::new();
    stable.survive("clean", "erase_devices", &json!({}));
    assert!(fs::read(&stable.disk).unwrap().iter().all(|byte| *byte == 0), "the disk is not erased");

    let image = instance::image().unwrap();
    let server = ImageServer::start(vec![Reply::Body(Arc::new(image.clone()))]).unwrap();
    let image_info = json!({
        "id": "image.raw",
        "urls": [server.guest_url()],
        "disk_format": "raw",
        "os_hash_algo": "sha256",
        "os_hash_value": instance::sha256(&image),
    });
    for phase in ["deploy", "service"] {
        stable.survive(phase, "write_image", &json!({"image_info": image_info}));
        assert!(fs::read(&stable.disk).unwrap()[..image.len()] == image, "not the image, {phase}");
    }
    stable.survive("clean", "erase_devices_metadata", &json!({}));
    assert_eq!(fs::read(&stable.disk).unwrap()[510..512], [0, 0], "the table is still there");

    for phase in ["clean", "service"] {
        stable.assert_cut_off(phase, killer::KILL_NOW, &json!({}));
        assert_eq!(stable.succeed(phase, killer::COUNT_LINGERING, &json!({})), json!(0), "{phase}");
    }
}
