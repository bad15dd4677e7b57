//! The reference conductor has an emulated machine inspected by the agent in its ramdisk.

use farrier_tests::conductor::lab::{Lab, Machine};
use farrier_tests::environment;
use farrier_tests::machine::Firmware;
use serde_json::{Value, json};
use std::fs::File;
use tempfile::TempDir;

const NODE: &str = "mare";
const FIRST: &str = "52:54:00:fa:00:42";
const SECOND: &str = "52:54:00:fa:00:43";
const DISK_BYTES: u64 = 3 << 30;
/// Beside those that run by themselves, what depends on disks and firmware.
const HOOKS: &str = "ramdisk-error,validate-interfaces,ports,architecture,root-device,capabilities";

#[test]
fn vm_an_inspection_finds_both_cards_and_what_the_machine_is_made_of() {
    let folder = TempDir::new().unwrap();
    let disk = folder.path().join("disk.img");
    File::create(&disk).unwrap().set_len(DISK_BYTES).unwrap();
    let arguments = ["--add-ports", "all", "--inspection-hooks", HOOKS];
    let lab = Lab::start(&environment::path("FARRIER_BIN"), folder.path(), &arguments).unwrap();
    let second_card =
        format!("-netdev user,id=second -device virtio-net-pci,netdev=second,romfile=,mac={SECOND}");
    lab.enrol(&Machine {
        name: NODE.into(),
        mac: FIRST.into(),
        dist: environment::path("FARRIER_DIST"),
        firmware: Firmware::Uefi,
        memory_mib: 256,
        disks: vec![(disk, "ROOT".into())],
        driver_info: vec![format!("qemu_extra_args={second_card}")],
        properties: vec![r#"root_device={"serial": "ROOT"}"#.into()],
    })
    .unwrap();
    lab.order(&["node", "manage", NODE]).unwrap();
    assert!(
        lab.order(&["node", "inventory", NODE]).unwrap_err().to_string().contains("was not inspected yet")
    );
    let console = || lab.console(NODE).tail();
    assert_eq!(
        lab.order(&["node", "inspect", NODE]).unwrap_or_else(|error| panic!("{error}\n{}", console())),
        "manageable\n"
    );

    let node = lab.node(NODE).unwrap();
    assert_eq!((&node["power_state"], &node["last_error"]), (&"power off".into(), &Value::Null), "{node}");
    assert_eq!(
        (&node["properties"]["cpu_arch"], &node["properties"]["local_gb"]),
        (&"x86_64".into(), &json!(2))
    );
    assert!(node["properties"]["capabilities"].as_str().unwrap().contains("boot_mode:uefi"), "{node}");
    let shown = lab.order(&["node", "show", NODE]).unwrap();
    let mut ports: Vec<_> =
        shown.lines().filter_map(|line| line.strip_prefix("port")).map(str::trim).collect();
    ports.sort_unstable();
    assert_eq!(ports, [FIRST, SECOND]);

    let told: Value =
        serde_json::from_str(&lab.order(&["node", "inventory", NODE, "--json"]).unwrap()).unwrap();
    let inventory = &told["inventory"];
    assert_eq!(inventory["disks"][0]["size"], DISK_BYTES, "{inventory}");
    assert_eq!(told["plugin_data"]["root_disk"]["serial"], "ROOT", "{told}");
    let mut cards: Vec<_> =
        inventory["interfaces"].as_array().unwrap().iter().map(|card| &card["mac_address"]).collect();
    cards.sort_by_key(|card| card.to_string());
    assert_eq!(cards, [FIRST, SECOND]);
    let table = lab.order(&["node", "inventory", NODE]).unwrap();
    assert!(table.contains("3.0 GiB") && table.contains(SECOND), "{table}");
}
