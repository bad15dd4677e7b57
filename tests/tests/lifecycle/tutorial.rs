//! The tutorial *Your first server*: each command of the page, on a host and a server as it describes them.

use crate::disks;
use farrier_tests::bmc::redfish::Bmc;
use farrier_tests::book::commands::commands;
use farrier_tests::book::shell::Shell;
use farrier_tests::environment;
use farrier_tests::machine::{Hardware, free_port};
use farrier_tests::network::bridge::{ADDRESS, network_called};
use std::fs::{self, File};
use std::net::Ipv4Addr;
use std::path::Path;
use std::time::Duration;
use tempfile::TempDir;

/// The page, below the root of the repository.
const PAGE: &str = "docs/src/first-server.md";
/// The host's card in the VLAN, as the page names it.
const CARD: &str = "eno2";
/// The address of the BMC there.
const BMC: Ipv4Addr = Ipv4Addr::new(192, 0, 2, 10);
/// The address of the server's card there.
const MAC: &str = "52:54:00:fa:00:44";
const DISK_BYTES: u64 = 8 << 30;
/// Longest time of a command: the first one compiles, later ones boot an emulated processor.
const PATIENCE: Duration = Duration::from_secs(45 * 60);

#[test]
fn lifecycle_each_command_of_the_tutorial_runs_and_the_last_one_logs_in() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let page = commands(&fs::read_to_string(root.join(PAGE)).unwrap()).unwrap();
    let login = page.last().unwrap();
    assert!(login.text.starts_with("ssh ") && login.output == ["horse"], "{login:?}");

    let folder = TempDir::new().unwrap();
    let disk = folder.path().join("disk.img");
    File::create(&disk).unwrap().set_len(DISK_BYTES).unwrap();
    disks::mark(&disk);
    let hardware = Hardware {
        mac: MAC.into(),
        agent_port: free_port().unwrap(),
        keyboard_port: free_port().unwrap(),
        disks: vec![(disk, "S5GXNX0R")],
        media: Vec::new(),
        folder: folder.path().join("machine"),
    };
    fs::create_dir(&hardware.folder).unwrap();
    network_called(CARD, &[ADDRESS, BMC], 1).unwrap();
    let _bmc = Bmc::start_with_tls(&environment::path("FARRIER_REDFISH"), &hardware, BMC, 0).unwrap();

    let mut shell = Shell::start(&root, &folder.path().join("shell"), &folder.path().join("srv")).unwrap();
    for command in &page {
        if let Err(error) = shell.run(command, PATIENCE) {
            panic!("{error:#}\nconsole of the server:\n{}", hardware.console().tail());
        }
    }
}
