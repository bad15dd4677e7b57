//! Deployments on emulated machines: a good one, and each that must fail in one clear line.

use farrier_tests::conductor::lab::{Instance, Lab, Machine};
use farrier_tests::environment;
use farrier_tests::images::instance::{image, sha256};
use farrier_tests::images::server::{ImageServer, Reply};
use farrier_tests::machine::Firmware;
use std::fs;
use std::path::PathBuf;
use std::sync::Arc;
use std::thread;
use tempfile::TempDir;

const MIB: usize = 1 << 20;
const ROOT_BYTES: usize = 4 << 30;
const OTHER_BYTES: usize = 64 * MIB;
const NODE: &str = "horse";

/// A conductor and one machine with a root disk and another one, both with old content.
struct Stable {
    lab: Lab,
    root: PathBuf,
    other: PathBuf,
    _folder: TempDir,
}

impl Stable {
    fn new() -> Self {
        Self::with(|_| {}, &[])
    }

    fn with(change: impl FnOnce(&mut Machine), serve: &[&str]) -> Self {
        let folder = TempDir::new().unwrap();
        let (root, other) = (folder.path().join("root.img"), folder.path().join("other.img"));
        fs::write(&other, vec![0xaa; OTHER_BYTES]).unwrap();
        fs::write(&root, vec![0xbb; 2 * MIB]).unwrap();
        fs::File::options().write(true).open(&root).unwrap().set_len(ROOT_BYTES as u64).unwrap();
        let lab = Lab::start(&environment::path("FARRIER_BIN"), folder.path(), serve).unwrap();
        let quick = "ipa-image-download-connection-retries=1 ipa-image-download-connection-retry-interval=0.2 \
                     ipa-disk-wait-attempts=1";
        let mut machine = Machine {
            name: NODE.into(),
            mac: "52:54:00:fa:00:02".into(),
            dist: environment::path("FARRIER_DIST"),
            firmware: Firmware::Bios,
            memory_mib: 256,
            disks: vec![(other.clone(), "OTHER".into()), (root.clone(), "ROOT".into())],
            driver_info: vec![format!("kernel_append_params={quick}")],
            properties: vec![r#"root_device={"serial": "ROOT"}"#.into()],
        };
        change(&mut machine);
        lab.enrol(&machine).unwrap();
        Self { lab, root, other, _folder: folder }
    }

    fn deploy(&self, reply: Reply, sha256: &str) -> anyhow::Result<Vec<String>> {
        let server = ImageServer::start(vec![reply]).unwrap();
        let instance = Instance { url: server.guest_url(), sha256, config_drive: None };
        let mut events = Vec::new();
        self.lab.deploy(NODE, &instance, |event| events.push(event.event))?;
        Ok(events)
    }

    /// Deploys, and sees that it fails in one line that holds all of `parts`, the same line that
    /// the node's record keeps.
    fn fail(&self, reply: Reply, sha256: &str, parts: &[&str]) {
        let error = self.deploy(reply, sha256).unwrap_err().to_string();
        let node = self.lab.node(NODE).unwrap();
        let last_error = node["last_error"].as_str().unwrap_or_default();
        let console = self.lab.console(NODE).tail();
        assert_eq!(node["provision_state"], "deploy failed", "{error}\n{console}");
        for part in parts {
            assert!(error.contains(part), "{part:?} is not in {error:?}\n{console}");
            assert!(last_error.contains(part), "{part:?} is not in last_error {last_error:?}");
        }
        assert_eq!(error.lines().count(), 1, "{error}");
        self.assert_other_disk_is_untouched();
    }

    fn assert_other_disk_is_untouched(&self) {
        assert!(fs::read(&self.other).unwrap() == vec![0xaa; OTHER_BYTES], "the other disk was touched");
    }

    fn assert_root_disk_is_untouched(&self) {
        assert_eq!(self.start_of_root(), vec![0xbb; 2 * MIB]);
    }

    /// No boot code, no partition table and no copy of one.
    fn assert_root_disk_has_no_table(&self) {
        assert!(self.start_of_root()[..MIB].iter().all(|byte| *byte == 0), "the first MiB is not empty");
        let mut end = vec![0; MIB];
        let file = fs::File::open(&self.root).unwrap();
        std::os::unix::fs::FileExt::read_exact_at(&file, &mut end, (ROOT_BYTES - MIB) as u64).unwrap();
        assert!(end.iter().all(|byte| *byte == 0), "the last MiB is not empty");
    }

    fn start_of_root(&self) -> Vec<u8> {
        let mut start = vec![0; 2 * MIB];
        let file = fs::File::open(&self.root).unwrap();
        std::os::unix::fs::FileExt::read_exact_at(&file, &mut start, 0).unwrap();
        start
    }
}

#[test]
fn vm_an_image_reaches_the_hinted_disk_and_no_other() {
    let stable = Stable::with(|machine| machine.firmware = Firmware::Uefi, &[]);
    let image = Arc::new(image().unwrap());
    let events = stable.deploy(Reply::Body(Arc::clone(&image)), &sha256(&image)).unwrap();
    let milestones: Vec<_> = events.iter().filter(|event| *event != "progress").collect();
    assert_eq!(
        milestones,
        [
            "power_on",
            "first_heartbeat",
            "write_started",
            "image_written",
            "image_verified",
            "boot_entry",
            "powered_off",
            "booting",
            "active"
        ]
    );
    assert!(stable.start_of_root() == image[..2 * MIB], "the disk's first bytes are not the image's");
    stable.assert_other_disk_is_untouched();
}

#[test]
fn vm_a_wrong_checksum_leaves_no_table() {
    let stable = Stable::new();
    let image = Arc::new(image().unwrap());
    let wrong = "0".repeat(64);
    let actual = sha256(&image);
    stable.fail(Reply::Body(image), &wrong, &["sha256", &wrong, &actual, "http://10.0.2.2", "/dev/vd"]);
    stable.assert_root_disk_has_no_table();
}

#[test]
fn vm_d07_a_truncated_download_leaves_no_table() {
    let stable = Stable::new();
    let image = Arc::new(image().unwrap());
    let sum = sha256(&image);
    stable.fail(Reply::Truncated(image, 3 * MIB), &sum, &["http://10.0.2.2", "broke off", "of 6291456"]);
    stable.assert_root_disk_has_no_table();
}

#[test]
fn vm_an_image_larger_than_the_disk_touches_nothing() {
    let stable = Stable::new();
    let folder = TempDir::new().unwrap();
    let large = folder.path().join("large.raw");
    fs::File::create(&large).unwrap().set_len(ROOT_BYTES as u64 + 512).unwrap();
    stable.fail(Reply::File(large), &"0".repeat(64), &["4294967808", "4294967296", "larger disk"]);
    stable.assert_root_disk_is_untouched();
}

#[test]
fn vm_f03_a_missing_image_and_a_broken_server_touch_nothing() {
    let stable = Stable::new();
    for (status, text) in [(404, "404 Not Found"), (500, "500 Internal Server Error")] {
        stable.fail(Reply::Status(status), &"0".repeat(64), &["http://10.0.2.2", text]);
        stable.assert_root_disk_is_untouched();
    }
}

#[test]
fn vm_hints_that_no_disk_satisfies_touch_nothing() {
    let stable =
        Stable::with(|machine| machine.properties = vec![r#"root_device={"serial": "NOSUCH"}"#.into()], &[]);
    let image = Arc::new(image().unwrap());
    let sum = sha256(&image);
    stable.fail(Reply::Body(image), &sum, &["serial", "NOSUCH", "/dev/vda", "/dev/vdb"]);
    stable.assert_root_disk_is_untouched();
}

#[test]
fn vm_a_machine_without_disks_says_so() {
    let stable = Stable::with(
        |machine| {
            machine.disks.clear();
            machine.properties.clear();
        },
        &[],
    );
    let image = Arc::new(image().unwrap());
    let sum = sha256(&image);
    stable.fail(Reply::Body(image), &sum, &["no disk"]);
}

#[test]
fn vm_a_machine_without_dhcp_or_without_a_cable_ends_in_deploy_failed() {
    // The machine has to find out before the conductor gives it up, however slowly it is emulated.
    let ends = |network: &str, on_console: &str| {
        let stable = Stable::with(
            |machine| machine.driver_info.push(format!("qemu_network={network}")),
            &["--deploy-callback-timeout", "75"],
        );
        let image = Arc::new(image().unwrap());
        let sum = sha256(&image);
        stable.fail(Reply::Body(image), &sum, &[NODE, "75 s", "console"]);
        let console = stable.lab.console(NODE).text();
        assert!(console.contains(on_console), "{network}: {}", stable.lab.console(NODE).tail());
        stable.assert_root_disk_is_untouched();
    };
    thread::scope(|scope| {
        scope.spawn(|| ends("unplugged", "link down"));
        scope.spawn(|| ends("isolated", "no DHCP server answers"));
    });
}

#[test]
fn vm_p13_an_agent_that_gives_up_is_started_again() {
    let nobody = "kernel_append_params=ipa-api-url=http://10.0.2.2:1 ipa-lookup-timeout=2";
    let stable = Stable::with(
        |machine| machine.driver_info = vec![nobody.into()],
        &["--deploy-callback-timeout", "40"],
    );
    let image = Arc::new(image().unwrap());
    let sum = sha256(&image);
    stable.fail(Reply::Body(image), &sum, &[NODE, "no agent called for 40 s"]);
    let console = stable.lab.console(NODE).text();
    assert!(console.contains("http://10.0.2.2:1/ cannot be reached"), "{}", stable.lab.console(NODE).tail());
    assert!(console.matches("starting it again").count() >= 2, "{}", stable.lab.console(NODE).tail());
}
