//! The reference conductor boots a machine by its own iPXE, which asks for its script by the boot configuration API.

use farrier_tests::cells::exit;
use farrier_tests::cells::netboot::Cell;
use farrier_tests::conductor::farrier::Farrier;
use farrier_tests::conductor::lab::{Instance, Lab};
use farrier_tests::conductor::node_api::{Control, Enrolment, Node, Order};
use farrier_tests::environment;
use farrier_tests::images::instance::{GREETING, image, sha256};
use farrier_tests::images::server::{ImageServer, Reply};
use farrier_tests::machine::{Boot, EMULATED, Firmware, Hardware, free_port, user_network};
use farrier_tests::network::netboot_loaders::Bootable;
use std::fs;
use std::net::Ipv4Addr;
use std::sync::Arc;
use std::time::Duration;
use tempfile::TempDir;

const NODE: &str = "horse";
const DISK_BYTES: u64 = 64 << 20;
/// Longest time until a machine says what it is, with an emulated processor.
const PATIENCE: Duration = Duration::from_secs(180);

#[test]
fn vm_a_machine_is_deployed_by_ipxe_that_asks_the_boot_configuration_api() {
    let folder = TempDir::new().unwrap();
    let disk = folder.path().join("disk.img");
    fs::File::create(&disk).unwrap().set_len(DISK_BYTES).unwrap();
    let (port, agent) = (free_port().unwrap(), free_port().unwrap());
    let (listen, url) = (format!("127.0.0.1:{port}"), format!("http://10.0.2.2:{port}"));
    let lab = Lab::start_at(&listen, &environment::path("FARRIER_BIN"), folder.path(), &["--api-url", &url])
        .unwrap();
    let ramdisk = ImageServer::start(vec![Reply::Folder(environment::path("FARRIER_DIST"))]).unwrap();
    let file = |name: &str| ramdisk.guest_url().replace("image.raw", name);
    let info = [
        "qemu_firmware=bios".to_owned(),
        format!("qemu_disks={};serial=ROOT", disk.display()),
        format!("qemu_console_log={}", lab.console(NODE).file().display()),
        format!("qemu_boot_file={url}/boot.ipxe"),
        format!("qemu_agent_port={agent}"),
        format!("deploy_kernel={}", file("vmlinuz")),
        format!("deploy_ramdisk={}", file("initramfs.img")),
        format!(
            "kernel_append_params=console=ttyS0 ipa-disk-wait-attempts=1 ipa-advertise-host=127.0.0.1 \
             ipa-advertise-port={agent}"
        ),
    ];
    let mut create = vec!["node", "create", NODE, "--mac", "52:54:00:fa:00:43", "--driver", "qemu"];
    create.extend(["--interface", "boot=ipxe", "--property", "capabilities=boot_mode:bios"]);
    create.extend(["--property", r#"root_device={"serial": "ROOT"}"#]);
    create.extend(info.iter().flat_map(|pair| ["--driver-info", pair]));
    lab.order(&create).unwrap();

    let image = Arc::new(image().unwrap());
    let server = ImageServer::start(vec![Reply::Body(Arc::clone(&image))]).unwrap();
    let instance = Instance { url: server.guest_url(), sha256: &sha256(&image), config_drive: None };
    lab.deploy(NODE, &instance, |_| {}).unwrap_or_else(|error| {
        panic!("{error:#}\nconsole:\n{}\nconductor:\n{}", lab.console(NODE).tail(), lab.log_tail())
    });

    assert_eq!(ramdisk.requests(), 2, "kernel and ramdisk, once each");
    let node = lab.node(NODE).unwrap();
    assert_eq!((&node["provision_state"], &node["power_state"]), (&"active".into(), &"power on".into()));
    lab.console(NODE).wait_for(GREETING, 0, PATIENCE).unwrap();
}

/// One conductor leads the node. Another conductor with the same database answers the machine's iPXE and its agent, as one
/// behind their common address may.
#[test]
fn vm_a_machine_is_inspected_by_ipxe_that_asks_a_conductor_that_does_not_own_its_node() {
    let folder = TempDir::new().unwrap();
    let (program, dist) = (environment::path("FARRIER_BIN"), environment::path("FARRIER_DIST"));
    let allowed = dist.display().to_string();
    let port = free_port().unwrap();
    let url = format!("http://10.0.2.2:{port}");
    let usual =
        ["--enabled-hardware-types", "manual", "--file-url-allowed-paths", &allowed, "--api-url", &url];
    let start = |name: &str, port: u16, own: &[&str]| {
        let options = [&usual[..], &["--conductor-name", name], own].concat();
        let listen = (Ipv4Addr::LOCALHOST, port).into();
        Farrier::start_at(listen, &program, &folder.path().join(name), &options).unwrap()
    };
    let owner = start("owner", free_port().unwrap(), &[]);
    let records = folder.path().join("owner/state/nodes.sqlite").display().to_string();
    let other = start("other", port, &["--database", &records, "--conductor-group", "elsewhere"]);

    let agent_port = free_port().unwrap();
    let enrolment = Enrolment {
        mac: "52:54:00:fa:00:45",
        dist: &dist,
        parameters: &format!(
            "console=ttyS0 {EMULATED} ipa-disk-wait-attempts=1 ipa-advertise-host=127.0.0.1 \
             ipa-advertise-port={agent_port}"
        ),
        fast_track: false,
        control: Control::Network { boot: "ipxe", mode: "bios" },
    };
    let node = Node::enrol(&owner, &enrolment).unwrap();
    node.order(&Order::inspect()).unwrap();
    node.reach("inspect wait", PATIENCE).unwrap();
    let hardware = Hardware {
        mac: enrolment.mac.into(),
        agent_port,
        keyboard_port: free_port().unwrap(),
        disks: vec![],
        media: vec![],
        folder: folder.path().into(),
    };
    let network = format!("{},bootfile={}", user_network(agent_port), other.ipxe_script());
    let card = format!("virtio-net-pci,netdev=net,bootindex=0,mac={}", hardware.mac);
    let arguments = ["-netdev", &network, "-device", &card, "-m", "512"].map(str::to_owned);
    let _machine = hardware.boot_without_network(Firmware::Bios, Boot::Disks, &arguments).unwrap();
    let seen = node.reach("manageable", PATIENCE);
    let seen = seen.unwrap_or_else(|error| panic!("{error:#}\nconsole:\n{}", hardware.console().tail()));
    assert_eq!(seen["conductor"], "owner");
    let console = hardware.console().text();
    assert!(console.contains(&format!("ipa-inspection-callback-url={url}/")), "{console}");
}

/// The whole way by what the conductor serves: addresses, loader, configuration, kernel and ramdisk.
fn boots(method: &str, firmware: Firmware, secure_boot: bool) {
    let cell = Cell::ALL.into_iter().find(|cell| cell.method == method && cell.firmware == firmware).unwrap();
    let cell = Cell { secure_boot, ..cell };
    let folder = TempDir::new().unwrap();
    let bootable = Bootable { dist: environment::path("FARRIER_DIST"), loaders: Vec::new() };
    cell.boot(&environment::path("FARRIER_BIN"), &bootable, folder.path()).unwrap();
}

#[test]
fn vm_a_bios_is_led_through_pxelinux_to_the_ramdisk() {
    boots("pxe", Firmware::Bios, false);
}

#[test]
fn vm_uefi_firmware_that_starts_only_what_is_signed_is_led_through_shim_and_grub_to_the_ramdisk() {
    boots("pxe", Firmware::Uefi, true);
}

/// A machine that begins with the network and is not to boot from there; `cargo xtask matrix exits` tries every loader.
fn comes_to_its_disk(name: &str) {
    let cell = exit::Cell::all().into_iter().find(|cell| cell.to_string() == name).unwrap();
    let folder = TempDir::new().unwrap();
    let bootable = Bootable { dist: folder.path().into(), loaders: Vec::new() };
    cell.run(&environment::path("FARRIER_BIN"), &bootable, folder.path()).unwrap();
}

#[test]
fn vm_c06_grub_sends_an_unknown_machine_to_its_disk() {
    comes_to_its_disk("uefi-pxe-bootx64.efi-unknown");
}

#[test]
fn vm_c06_ipxe_sends_a_machine_with_an_instance_to_its_disk() {
    comes_to_its_disk("bios-ipxe-boot.ipxe-fallback");
}

#[test]
fn vm_c06_pxelinux_sends_an_unknown_machine_to_its_disk() {
    comes_to_its_disk("bios-pxe-pxelinux.0-unknown");
}
