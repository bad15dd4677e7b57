//! A disk that a machine reaches over two host bus adapters, one of which fails.

use farrier_tests::agent::commanded::CommandedAgent;
use farrier_tests::agent::stub_conductor::{NODE, StubConductor};
use farrier_tests::environment;
use farrier_tests::images::instance;
use farrier_tests::images::server::{ImageServer, Reply};
use farrier_tests::machine::monitor::Monitor;
use farrier_tests::machine::{Hardware, free_port};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::fs::{self, File};
use std::os::unix::fs::{FileExt, MetadataExt};
use std::path::PathBuf;
use std::time::{Duration, Instant};
use tempfile::TempDir;

const MIB: u64 = 1 << 20;
const DISK: u64 = 5 << 30;
const IMAGE: usize = 512 << 20;
/// What both paths say of the disk.
const NAME: &str = "0x5000c500a1b2c3d9";
/// The name of another disk.
const OTHER: &str = "0x5000c500a1b2c3da";
/// Longest time of a deployment on a busy machine.
const LIMIT: Duration = Duration::from_secs(900);
const POLL: Duration = Duration::from_millis(100);
/// Where each path fails, however often it is tried. Which of them is used first is the kernel's affair; the
/// places are so far apart that whichever failed at the first one is used again at the second.
const BAD: [u64; 2] = [40 * MIB, 400 * MIB];

/// A machine with one disk that hangs on two adapters, and another one that is a disk of its own.
struct Stable {
    agent: CommandedAgent,
    conductor: StubConductor,
    hardware: Hardware,
    image: PathBuf,
    folder: TempDir,
}

impl Stable {
    /// Both paths come with the rules by which QEMU makes them fail.
    fn new(rules: [Value; 2]) -> Self {
        let folder = TempDir::new().unwrap();
        let path = |name: &str| folder.path().join(name);
        for disk in ["shared", "other"] {
            File::create(path(disk)).unwrap().set_len(DISK).unwrap();
        }
        let mut image = instance::image().unwrap();
        image.extend((image.len()..IMAGE).map(|place| (place / 4099 % 255 + 1) as u8));
        fs::write(path("image"), image).unwrap();
        let mut arguments = Vec::from(Monitor::arguments(&path("qmp")));
        let [first, second] = rules;
        for (number, file, rules, identity) in [
            (0, "shared", first, format!("serial=SHARED,wwn={NAME}")),
            (1, "shared", second, format!("serial=SHARED,wwn={NAME}")),
            (2, "other", json!({}), format!("serial=OTHER,wwn={OTHER}")),
        ] {
            let image = json!({"driver": "file", "filename": path(file), "locking": "off"});
            let mut failing = json!({"driver": "blkdebug", "image": image});
            failing.as_object_mut().unwrap().extend(rules.as_object().unwrap().clone());
            let drive = json!({"driver": "raw", "node-name": format!("node{number}"), "file": failing});
            let device = format!(
                "scsi-hd,bus=adapter{number}.0,drive=node{number},share-rw=on,id=path{number},{identity}"
            );
            let adapter = format!("virtio-scsi-pci,id=adapter{number}");
            for [option, value] in
                [["-blockdev", &drive.to_string()], ["-device", &adapter], ["-device", &device]]
            {
                arguments.extend([option.to_owned(), value.to_owned()]);
            }
        }
        let conductor = StubConductor::start().unwrap();
        let agent_port = free_port().unwrap();
        let hardware = Hardware {
            mac: "52:54:00:fa:00:71".into(),
            agent_port,
            keyboard_port: free_port().unwrap(),
            disks: vec![],
            media: vec![],
            folder: folder.path().into(),
        };
        // The kernel tells on the console which path it leaves.
        let parameters = format!(
            "loglevel=6 ipa-inspection-callback-url={}/v1/continue_inspection ipa-inspection-collectors=default",
            conductor.guest_url()
        );
        let dist = environment::path("FARRIER_DIST");
        let agent = CommandedAgent::boot(&hardware, &arguments, &dist, &parameters).unwrap();
        Self { agent, conductor, hardware, image: path("image"), folder }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn console(&self) -> String {
        self.hardware.console().text()
    }

    /// Number of the adapter of the path that is used first. The kernel numbers these in the order of their places,
    /// after others that have no disks, and gives disks their names as they answer.
    fn adapter_in_use(&self) -> usize {
        let console = self.console();
        let (_, joined) = console.split_once("paths=\"").unwrap();
        let used = joined.split([',', '"']).next().unwrap();
        let disks = console.lines().filter_map(|line| {
            let (address, name) = line.split_once("sd ")?.1.split_once(": [")?;
            let (name, _) = name.split_once("] Attached SCSI disk")?;
            Some((address.split(':').next()?.parse::<u32>().ok()?, name))
        });
        disks.collect::<BTreeMap<_, _>>().values().position(|name| *name == used).expect(&console)
    }

    /// Orders the deploy step that writes the image to the disk with two paths.
    fn begin(&self) -> ImageServer {
        let server = ImageServer::start(vec![Reply::File(self.image.clone())]).unwrap();
        let image = json!({
            "id": "image", "urls": [server.guest_url()], "os_hash_algo": "sha256", "disk_format": "raw",
            "os_hash_value": instance::sha256(&fs::read(&self.image).unwrap()),
        });
        let params = json!({
            "step": {"step": "write_image", "interface": "deploy", "args": {"image_info": image}},
            "node": {"uuid": NODE, "properties": {"root_device": {"wwn": NAME}}},
            "ports": [],
        });
        self.agent.order("deploy.execute_deploy_step", &params).unwrap();
        server
    }

    /// Waits for the end of the deployment and compares the disk with the image.
    fn assert_deployed(&self) {
        self.agent.wait_for_success(LIMIT).unwrap();
        let mut written = vec![0; IMAGE];
        File::open(self.path("shared")).unwrap().read_exact_at(&mut written, 0).unwrap();
        assert!(written == fs::read(&self.image).unwrap(), "the disk is not the image");
        assert_eq!(fs::metadata(self.path("other")).unwrap().blocks(), 0, "the other disk was written");
    }
}

#[test]
fn vm_d23_a_disk_with_two_paths_is_one_and_outlives_one_of_them() {
    let stable = Stable::new([json!({}), json!({})]);
    let posted = stable.conductor.wait_for("/v1/continue_inspection", LIMIT).unwrap();
    let disks = posted["inventory"]["disks"].as_array().unwrap();
    let named: BTreeMap<_, _> =
        disks.iter().map(|disk| (disk["wwn"].as_str().unwrap(), disk["name"].as_str().unwrap())).collect();
    assert_eq!(named.keys().collect::<Vec<_>>(), [&NAME, &OTHER], "{}", stable.console());
    assert!(named[NAME].starts_with("/dev/dm-") && named[OTHER].starts_with("/dev/sd"), "{named:?}");

    let adapter = stable.adapter_in_use();
    let _server = stable.begin();
    let started = Instant::now();
    while fs::metadata(stable.path("shared")).unwrap().blocks() * 512 < 64 * MIB {
        assert!(started.elapsed() < LIMIT, "nothing is written:\n{}", stable.console());
        std::thread::sleep(POLL);
    }
    let mut monitor = Monitor::connect(&stable.path("qmp")).unwrap();
    monitor.execute("device_del", &json!({"id": format!("path{adapter}")})).unwrap();
    monitor.wait_for("DEVICE_DELETED").unwrap();
    stable.assert_deployed();
    assert!(stable.console().contains("Failing path"), "the other path was used:\n{}", stable.console());
}

#[test]
fn vm_d23_a_path_that_failed_is_used_again_when_it_answers() {
    let rules = BAD.map(|place| {
        let always = json!({"event": "none", "iotype": "write", "errno": 5, "sector": place / 512});
        json!({"inject-error": [always]})
    });
    let stable = Stable::new(rules);
    let _server = stable.begin();
    stable.assert_deployed();
    let line = "the path is used again";
    stable.hardware.console().wait_for(line, 0, LIMIT).unwrap();
    assert!(stable.console().contains("Failing path"), "{}", stable.console());
}
