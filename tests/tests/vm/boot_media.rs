//! Every form of the ramdisk under the firmware that servers have, each up to the first heartbeat.

use farrier_media::boot_iso::{self, Additions};
use farrier_tests::agent::commanded::CommandedAgent;
use farrier_tests::agent::stub_conductor::{NODE, StubConductor};
use farrier_tests::environment;
use farrier_tests::images::instance::sha256;
use farrier_tests::images::server::{ImageServer, Reply};
use farrier_tests::machine::boot_machine::{BootMachine, Drive, Firmware, Source};
use farrier_tests::machine::{Boot, Hardware, free_port};
use serde_json::json;
use std::fs;
use std::io::{Cursor, Write};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;
use std::time::Duration;
use tempfile::TempDir;

/// Longest time from power on to the heartbeat, with an emulated processor.
const PATIENCE: Duration = Duration::from_secs(300);
/// Memory of the smallest machine that is promised to work.
const LEAST: u32 = 256;
/// GRUB keeps a quarter of the memory for itself under UEFI.
const LEAST_WITH_GRUB: u32 = 320;
/// As the kernel of aarch64 is unpacked before it runs, GRUB holds more at a time.
const LEAST_WITH_GRUB_ON_AARCH64: u32 = 512;
/// The agent that tests are given there is three times as large as the one that ships, and stays in memory.
const LEAST_ON_AARCH64: u32 = 384;

/// Makes media of the built ramdisk whose agent calls `url`.
fn media(format: &str, url: &str, more: &[&str], folder: &Path) -> PathBuf {
    let output = Command::new(environment::path("FARRIER_IMAGE_BUILDER"))
        .args(["media", "--format", format, "--kernel-parameters", &format!("ipa-api-url={url}")])
        .arg("--dist")
        .arg(environment::path("FARRIER_DIST"))
        .arg("--boot-loaders")
        .arg(environment::path("FARRIER_BOOT_LOADERS"))
        .args(more)
        .arg("--output")
        .arg(folder)
        .output()
        .unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    folder.join(if format == "iso" { "farrier.iso" } else { "farrier.efi" })
}

/// A FAT file system from which UEFI firmware starts `program`.
fn esp(program: &Path, folder: &Path) -> PathBuf {
    let content = fs::read(program).unwrap();
    let mut image = Cursor::new(vec![0; (content.len() + (2 << 20)).next_multiple_of(1 << 20)]);
    fatfs::format_volume(&mut image, fatfs::FormatVolumeOptions::new()).unwrap();
    {
        let volume = fatfs::FileSystem::new(&mut image, fatfs::FsOptions::new()).unwrap();
        let boot = volume.root_dir().create_dir("EFI").unwrap().create_dir("BOOT").unwrap();
        boot.create_file("BOOTX64.EFI").unwrap().write_all(&content).unwrap();
    }
    let file = folder.join("esp.img");
    fs::write(&file, image.into_inner()).unwrap();
    file
}

/// Switches a machine on and returns its console after the heartbeat.
fn calls_home(
    firmware: Firmware,
    memory_mib: u32,
    source: Source<'_>,
    conductor: &StubConductor,
    folder: &Path,
) -> String {
    let machine = BootMachine::start(firmware, memory_mib, source, folder).unwrap();
    let heartbeat = conductor.wait_for("/v1/heartbeat", PATIENCE);
    assert!(heartbeat.is_some(), "no heartbeat; the console:\n{}", machine.console().tail());
    machine.console().text()
}

/// Boots an ISO image and sees its heartbeat.
fn iso_calls_home(firmware: Firmware, memory_mib: u32, drive: Drive) -> String {
    let (folder, conductor) = (TempDir::new().unwrap(), StubConductor::start().unwrap());
    let iso = media("iso", &conductor.guest_url(), &[], folder.path());
    calls_home(firmware, memory_mib, Source::Medium(&iso, drive), &conductor, folder.path())
}

#[test]
fn vm_an_iso_boots_under_bios() {
    iso_calls_home(Firmware::SeaBios, LEAST, Drive::Optical);
}

#[test]
fn vm_an_iso_on_a_stick_boots_under_bios() {
    iso_calls_home(Firmware::SeaBios, LEAST, Drive::Usb);
}

#[test]
fn vm_an_iso_boots_under_uefi() {
    iso_calls_home(Firmware::Ovmf, LEAST_WITH_GRUB, Drive::Optical);
}

#[test]
fn vm_an_iso_on_a_stick_boots_with_the_secure_boot_keys_of_every_server() {
    let console = iso_calls_home(Firmware::OvmfMicrosoft, 512, Drive::Usb);
    assert!(console.contains("secureboot: Secure boot enabled"), "{console}");
}

/// As a conductor lays it over the ISO of its site: there may be no DHCP, and nobody else knows the token.
#[test]
fn vm_an_iso_brings_the_network_of_its_machine_and_the_token_of_its_agent() {
    let conductor = StubConductor::start_with(json!({"agent_token": "******"})).unwrap();
    let folder = TempDir::new().unwrap();
    let iso = media("iso", &conductor.guest_url(), &[], folder.path());
    let token = "t".repeat(43);
    let network = json!({
        "links": [{"id": "card", "type": "phy", "ethernet_mac_address": "52:54:00:12:34:56"}],
        "networks": [{"id": "site", "link": "card", "type": "ipv4", "ip_address": "10.0.2.77",
            "netmask": "255.255.255.0", "gateway": "10.0.2.2"}],
    });
    let additions = Additions {
        parameters: format!("boot_method=vmedia ipa-agent-token={token}").parse().unwrap(),
        network_data: Some(network.to_string()),
    };
    let mut medium = fs::read(&iso).unwrap();
    let added = boot_iso::overlay(&mut Cursor::new(&medium), &additions).unwrap();
    medium.resize(added.length() as usize, 0);
    added.lay_over(0, &mut medium);
    fs::write(&iso, medium).unwrap();
    let source = Source::Medium(&iso, Drive::Optical);
    let machine = BootMachine::start(Firmware::SeaBios, LEAST, source, folder.path()).unwrap();
    let heartbeat = conductor.wait_for("/v1/heartbeat", PATIENCE);
    let heartbeat = heartbeat.unwrap_or_else(|| panic!("no heartbeat:\n{}", machine.console().tail()));
    let called_from = heartbeat["callback_url"].as_str().unwrap();
    assert!(called_from.starts_with("https://10.0.2.77:"), "{called_from}");
    assert_eq!(heartbeat["agent_token"], token);
}

/// The stick is the smallest disk that a system fits on, and the first one of the bus that the kernel looks at.
#[test]
fn vm_a06_the_stick_that_the_machine_was_booted_from_is_neither_erased_nor_written() {
    let (folder, conductor) = (TempDir::new().unwrap(), StubConductor::start().unwrap());
    let stick = media("iso", &conductor.guest_url(), &[], folder.path());
    fs::File::options().write(true).open(&stick).unwrap().set_len(5 << 30).unwrap();
    let read = |file: &Path, length: usize| {
        let mut bytes = vec![0; length];
        fs::File::open(file).unwrap().read_exact_at(&mut bytes, 0).unwrap();
        bytes
    };
    let before = sha256(&read(&stick, 64 << 20));
    let disk = folder.path().join("disk");
    let old = fs::File::create(&disk).unwrap();
    old.set_len(6 << 30).unwrap();
    old.write_all_at(&[0x55, 0xaa], 510).unwrap();
    let hardware = Hardware {
        mac: "52:54:00:fa:00:32".into(),
        agent_port: free_port().unwrap(),
        keyboard_port: free_port().unwrap(),
        disks: vec![(disk.clone(), "DISK")],
        media: vec![],
        folder: folder.path().to_owned(),
    };
    let drive = format!("if=none,id=stick,format=raw,file={}", stick.display());
    let arguments =
        ["-device", "qemu-xhci", "-drive", &drive, "-device", "usb-storage,drive=stick,bootindex=0"];
    let machine = hardware.boot_with(Boot::Disks, &arguments.map(str::to_owned)).unwrap();
    let agent = CommandedAgent::meet(machine, &hardware, conductor).unwrap();

    let node = json!({"uuid": NODE});
    let step = json!({"step": "erase_devices_metadata", "interface": "deploy"});
    let order = json!({"step": step, "node": node, "ports": []});
    agent.succeed("clean.execute_clean_step", &order, PATIENCE).unwrap();
    assert!(read(&disk, 4096).iter().all(|byte| *byte == 0), "the disk has its old table");
    assert_eq!(sha256(&read(&stick, 64 << 20)), before, "the stick was erased");

    let mut image = vec![0x5a; 4 << 20];
    image[..512].fill(0);
    image[446..462].copy_from_slice(&[0, 0, 2, 0, 0x83, 0, 0, 0, 0, 8, 0, 0, 0, 16, 0, 0]);
    image[510..512].copy_from_slice(&[0x55, 0xaa]);
    let digest = sha256(&image);
    let server = ImageServer::start(vec![Reply::Body(Arc::new(image.clone()))]).unwrap();
    let info = json!({"id": "image", "urls": [server.guest_url()], "disk_format": "raw", "os_hash_algo": "sha256",
        "os_hash_value": digest});
    let step = json!({"step": "write_image", "interface": "deploy", "args": {"image_info": info}});
    let order = json!({"step": step, "node": node, "ports": []});
    agent.succeed("deploy.execute_deploy_step", &order, PATIENCE).unwrap();
    assert!(read(&disk, image.len()) == image, "the image is not on the disk");
    assert_eq!(sha256(&read(&stick, 64 << 20)), before, "the stick was written");
}

/// Boots a unified kernel image and sees its heartbeat.
fn uki_calls_home(firmware: Firmware, signing: &[&str]) -> String {
    let (folder, conductor) = (TempDir::new().unwrap(), StubConductor::start().unwrap());
    let uki = media("uki", &conductor.guest_url(), signing, folder.path());
    let esp = esp(&uki, folder.path());
    calls_home(firmware, LEAST, Source::Medium(&esp, Drive::Usb), &conductor, folder.path())
}

#[test]
fn vm_a_unified_kernel_image_boots_under_uefi() {
    uki_calls_home(Firmware::Ovmf, &[]);
}

#[test]
fn vm_a_signed_unified_kernel_image_boots_where_its_key_is_known_and_no_other_does() {
    let folder = TempDir::new().unwrap();
    // The key that this firmware trusts comes in its package, under a password.
    let key = folder.path().join("key.pem");
    let decrypted = Command::new("openssl")
        .args(["pkey", "-passin", "pass:snakeoil", "-in", "/usr/share/ovmf/PkKek-1-snakeoil.key", "-out"])
        .arg(&key)
        .status()
        .unwrap();
    assert!(decrypted.success());
    let certificate = "/usr/share/ovmf/PkKek-1-snakeoil.pem";
    let signing = ["--signing-key", key.to_str().unwrap(), "--signing-certificate", certificate];
    let console = uki_calls_home(Firmware::OvmfTestKey, &signing);
    assert!(console.contains("secureboot: Secure boot enabled"), "{console}");

    let firmware = Firmware::OvmfTestKey;
    let unsigned = media("uki", "http://10.0.2.2:1", &[], folder.path());
    let esp = esp(&unsigned, folder.path());
    let machine =
        BootMachine::start(firmware, LEAST, Source::Medium(&esp, Drive::Usb), folder.path()).unwrap();
    machine.console().wait_for("Access Denied", 0, PATIENCE).unwrap();
    assert!(!machine.console().text().contains("farrier:"), "{}", machine.console().tail());
}

#[test]
fn aarch64_kernel_and_ramdisk_boot() {
    let (folder, conductor) = (TempDir::new().unwrap(), StubConductor::start().unwrap());
    let dist = environment::path("FARRIER_DIST");
    let parameters = format!("console=ttyAMA0 ipa-api-url={}", conductor.guest_url());
    let source = Source::Ramdisk(&dist, &parameters);
    calls_home(Firmware::Aavmf, LEAST_ON_AARCH64, source, &conductor, folder.path());
}

#[test]
fn aarch64_an_iso_boots() {
    iso_calls_home(Firmware::Aavmf, LEAST_WITH_GRUB_ON_AARCH64, Drive::Optical);
}
