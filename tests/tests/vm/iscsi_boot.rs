//! Machines that iPXE boots with an iSCSI disk, which the table of the firmware names.

use farrier_tests::agent::commanded::CommandedAgent;
use farrier_tests::agent::stub_conductor::{NODE, StubConductor};
use farrier_tests::environment;
use farrier_tests::images::instance;
use farrier_tests::images::server::{ImageServer, Reply};
use farrier_tests::iscsi::target::{IscsiTarget, NAME};
use farrier_tests::machine::{Boot, Firmware, Hardware, free_port, user_network};
use farrier_tests::ramdisk::{self, Addition};
use serde_json::json;
use std::fs::{self, File};
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::time::Duration;
use tempfile::TempDir;

const DISK: u64 = 5 << 30;
/// Longest time of a command on a busy machine.
const PATIENCE: Duration = Duration::from_secs(420);
/// Memory in MiB, with what iPXE holds while it boots.
const MEMORY: &str = "512";

/// Boots the ramdisk in `folder` by iPXE, which has hooked the iSCSI disk of that URI before.
fn boot(folder: &Path, uri: &str) -> (Hardware, CommandedAgent) {
    let conductor = StubConductor::start().unwrap();
    let files = ImageServer::start(vec![Reply::Folder(folder.to_owned())]).unwrap();
    let hardware = Hardware {
        mac: "52:54:00:fa:00:51".into(),
        agent_port: free_port().unwrap(),
        keyboard_port: free_port().unwrap(),
        disks: vec![],
        media: vec![],
        folder: folder.to_owned(),
    };
    let (server, agent_port) = (format!("http://10.0.2.2:{}", files.port()), hardware.agent_port);
    let parameters = format!("console=ttyS0 no_timer_check ipa-api-url={}", conductor.guest_url());
    let script = format!(
        "#!ipxe\nset keep-san 1\nsanhook --drive 0x80 {uri}\n\
         kernel {server}/vmlinuz initrd=initramfs.img {parameters}\ninitrd {server}/initramfs.img\nboot\n"
    );
    fs::write(folder.join("boot.ipxe"), script).unwrap();
    let network = format!("{},bootfile={server}/boot.ipxe", user_network(agent_port));
    // Its option ROM is iPXE.
    let card = format!("virtio-net-pci,netdev=net,mac={}", hardware.mac);
    let arguments = ["-netdev", &network, "-device", &card, "-m", MEMORY].map(str::to_owned);
    let machine = hardware.boot_without_network(Firmware::Uefi, Boot::Disks, &arguments).unwrap();
    let agent = CommandedAgent::meet(machine, &hardware, conductor).unwrap();
    (hardware, agent)
}

#[test]
fn vm_the_disk_that_the_firmware_booted_from_is_deployed_to() {
    let folder = TempDir::new().unwrap();
    let path = |name: &str| folder.path().join(name);
    // What logs in to iSCSI disks.
    let dist = ramdisk::build(folder.path(), &[Addition::Program("/usr/sbin/iscsistart")]).unwrap();
    File::create(path("disk")).unwrap().set_len(DISK).unwrap();
    let target = IscsiTarget::start(&path("disk"), folder.path()).unwrap();
    let (_hardware, agent) = boot(&dist, &target.guest_uri());

    let image = instance::image().unwrap();
    let server = ImageServer::start(vec![Reply::Body(image.clone().into())]).unwrap();
    let info = json!({
        "id": "image", "urls": [server.guest_url()], "os_hash_algo": "sha256", "disk_format": "raw",
        "os_hash_value": instance::sha256(&image),
    });
    let params = json!({
        "step": {"step": "write_image", "interface": "deploy", "args": {"image_info": info}},
        "node": {"uuid": NODE, "properties": {}},
        "ports": [],
    });
    agent.succeed("deploy.execute_deploy_step", &params, PATIENCE).unwrap();
    let mut written = vec![0; image.len()];
    File::open(path("disk")).unwrap().read_exact_at(&mut written, 0).unwrap();
    assert!(written == image, "the disk is not the image");
}

#[test]
fn vm_without_the_program_one_line_tells_and_the_agent_goes_on() {
    let folder = TempDir::new().unwrap();
    let path = |name: &str| folder.path().join(name);
    // The ramdisk as it is built without asking for more.
    for file in ["vmlinuz", "initramfs.img"] {
        fs::copy(environment::path("FARRIER_DIST").join(file), path(file)).unwrap();
    }
    File::create(path("disk")).unwrap().set_len(DISK).unwrap();
    let target = IscsiTarget::start(&path("disk"), folder.path()).unwrap();
    let (hardware, agent) = boot(folder.path(), &target.guest_uri());
    // The first command that is about disks waits for them.
    let step = json!({"step": "erase_devices_metadata", "interface": "deploy"});
    let params = json!({"step": step, "node": {"uuid": NODE}, "ports": []});
    agent.order("clean.execute_clean_step", &params).unwrap();
    let error = agent.wait_for_failure(PATIENCE).unwrap();
    assert!(error["details"].as_str().unwrap().contains("no disk is seen"), "{error}");
    let console = hardware.console().text();
    let line = format!("the iSCSI disk {NAME} at 10.0.2.2:");
    assert_eq!(console.matches(&line).count(), 1, "{console}");
    assert!(console.contains("farrier-image build --program /usr/sbin/iscsistart"), "{console}");
}
