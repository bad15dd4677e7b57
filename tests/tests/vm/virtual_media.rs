//! Parameters and configuration from the drives of a BMC (section 3.4 of the contract).

use farrier_tests::bmc::media;
use farrier_tests::environment;
use farrier_tests::machine::{Boot, Hardware, Medium, free_port};
use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;
use tempfile::TempDir;

/// How long an emulated machine may take to ask its conductor.
const PATIENCE: Duration = Duration::from_secs(120);

/// An image with one config file.
fn configuration(folder: &Path, name: &str, publisher: &str, option: &str) -> PathBuf {
    let content = folder.join(format!("{name}-content"));
    let directory = content.join("etc/ironic-python-agent.d");
    fs::create_dir_all(&directory).unwrap();
    fs::write(directory.join(format!("{name}.conf")), format!("[DEFAULT]\n{option}\n")).unwrap();
    let file = folder.join(format!("{name}.iso"));
    media::iso(&file, "config-2", publisher, &content).unwrap();
    file
}

/// Boots with these parameters and returns the console once `text` is on it.
fn boot(parameters: &str, text: &str) -> String {
    let folder = TempDir::new().unwrap();
    let floppy = folder.path().join("floppy.img");
    let line = "ipa-api-url=http://10.0.2.2:1\nipa-lookup-interval=2\n";
    media::floppy(&floppy, *b"ir-vfd-dev ", &[("parameters.txt", line)]).unwrap();
    let boot_medium = configuration(folder.path(), "boot", "ab-12", "global_request_id = req-boot");
    let leftover = configuration(folder.path(), "leftover", "other", "no_such_leftover = 1");
    let planted = configuration(folder.path(), "planted", "ab-12", "no_such_planted = 1");
    let hardware = Hardware {
        mac: "52:54:00:fa:00:04".into(),
        agent_port: free_port().unwrap(),
        keyboard_port: free_port().unwrap(),
        disks: vec![(planted, "PLANTED")],
        media: vec![Medium::Optical(boot_medium), Medium::Optical(leftover), Medium::Usb(floppy)],
        folder: folder.path().to_owned(),
    };
    let parameters = format!("console=ttyS0 {parameters}");
    let _machine = hardware.boot(Boot::Ramdisk(&environment::path("FARRIER_DIST"), &parameters)).unwrap();
    let console = hardware.console();
    console.wait_for(text, 0, PATIENCE).unwrap();
    console.text()
}

#[test]
fn vm_s13_s14_only_the_media_of_this_boot_are_believed() {
    let console = boot("boot_method=vmedia ir_pub_id=ab-12", "error=http://10.0.2.2:1/ cannot be reached");
    assert!(console.contains("virtual floppy read"), "{console}");
    assert!(console.contains("ironic-python-agent.d/boot.conf"), "{console}");
    for other in ["leftover", "planted"] {
        assert!(!console.contains(other), "{console}");
    }
}

#[test]
fn vm_s13_without_boot_method_no_medium_is_read() {
    let console = boot("", "add ipa-api-url");
    for other in ["http://10.0.2.2", "configuration copied", "virtual floppy"] {
        assert!(!console.contains(other), "{console}");
    }
}
