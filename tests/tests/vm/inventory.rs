//! What the agent says of a machine whose hardware is known down to the last serial number.

use farrier_tests::agent::stub_conductor::StubConductor;
use farrier_tests::bmc::in_band::Bmc;
use farrier_tests::environment;
use farrier_tests::machine::{self, Boot, Firmware, Hardware, free_port};
use serde_json::{Value, json};
use std::fs;
use std::path::Path;
use std::time::{Duration, Instant};
use tempfile::TempDir;

const LIMIT: Duration = Duration::from_secs(240);
const GIB: u64 = 1 << 30;
const FIRST_MAC: &str = "52:54:00:fa:00:11";
const COLLECTORS: &str = "default,pci-devices,usb-devices,numa-topology,dmi-decode,lldp,logs";

const BMC: Bmc = Bmc {
    channel: 8,
    ipv4: std::net::Ipv4Addr::new(198, 51, 100, 10),
    ipv6: std::net::Ipv6Addr::new(0x2001, 0xdb8, 0, 0, 0, 0, 0, 0x10),
    mac: [0xd0, 0x94, 0x66, 0x00, 0x11, 0x22],
};

/// QEMU's arguments for what a machine has beyond its first interface.
fn hardware(folder: &Path) -> Vec<String> {
    let disk = |name: &str, gib: u64| {
        let file = folder.join(name);
        fs::File::create(&file).unwrap().set_len(gib * GIB).unwrap();
        machine::drive(name, &file)
    };
    let bmc = folder.join("bmc");
    BMC.start(&bmc).unwrap();
    [
        ("-m", "512".to_owned()),
        ("-smp", "2,sockets=2,cores=1,threads=1".to_owned()),
        ("-netdev", "user,id=second,net=10.0.3.0/24".to_owned()),
        ("-device", "e1000e,netdev=second,romfile=,addr=0x10,mac=52:54:00:fa:00:12".to_owned()),
        ("-netdev", "user,id=third,net=10.0.4.0/24".to_owned()),
        ("-device", "virtio-net-pci,netdev=third,romfile=,addr=0x11,mac=52:54:00:fa:00:13".to_owned()),
        ("-drive", disk("virtio", 5)),
        ("-device", "virtio-blk-pci,drive=virtio,serial=VIRTIO-1,addr=0x12".to_owned()),
        ("-drive", disk("sata", 6)),
        ("-device", "ide-hd,bus=ide.1,drive=sata,serial=SATA-1,model=Example SATA,wwn=0x5000c500a1b2c3d4,rotation_rate=7200".to_owned()),
        ("-device", "virtio-scsi-pci,id=scsi,addr=0x13".to_owned()),
        ("-drive", disk("scsi", 7)),
        (
            "-device",
            "scsi-hd,bus=scsi.0,channel=0,scsi-id=3,lun=1,drive=scsi,serial=SCSI-1,vendor=EXAMPLE,product=Example SCSI,\
             wwn=0x5000c500a1b2c3d5,rotation_rate=1,physical_block_size=4096".to_owned(),
        ),
        ("-drive", disk("nvme", 8)),
        ("-device", "nvme,drive=nvme,serial=NVME-1,addr=0x14".to_owned()),
        ("-device", "qemu-xhci".to_owned()),
        ("-device", "usb-tablet".to_owned()),
        // Connected at once, QEMU 7.2 crashes: its interface is not there yet.
        ("-chardev", format!("socket,id=bmc,reconnect=1,path={}", bmc.display())),
        ("-device", "ipmi-bmc-extern,id=bmc0,chardev=bmc".to_owned()),
        ("-device", "isa-ipmi-kcs,bmc=bmc0".to_owned()),
        ("-smbios", "type=0,vendor=Example Firmware,version=2.4.7,date=01/31/2026".to_owned()),
        ("-smbios", "type=1,manufacturer=Example Inc.,product=Example R1,serial=ABC1234".to_owned()),
    ]
    .into_iter()
    .flat_map(|(name, value)| [name.to_owned(), value])
    .collect()
}

/// Boots the machine and returns what it posts.
fn inspect() -> Value {
    let folder = TempDir::new().unwrap();
    let dist = environment::path("FARRIER_DIST");
    let conductor = StubConductor::start().unwrap();
    let parameters = format!(
        "console=ttyS0 ipa-inspection-callback-url={}/v1/continue_inspection \
         ipa-inspection-collectors={COLLECTORS} ipa-lldp-timeout=1 BOOTIF=01-{}",
        conductor.guest_url(),
        FIRST_MAC.replace(':', "-")
    );
    let arguments = hardware(folder.path());
    let hardware = Hardware {
        mac: FIRST_MAC.into(),
        agent_port: free_port().unwrap(),
        keyboard_port: free_port().unwrap(),
        disks: vec![],
        media: vec![],
        folder: folder.path().into(),
    };
    let mut machine =
        hardware.boot_under(Firmware::Uefi, Boot::Ramdisk(&dist, &parameters), &arguments).unwrap();
    let started = Instant::now();
    while started.elapsed() < LIMIT && machine.is_on().unwrap() {
        if let Some(posted) = conductor.wait_for("/v1/continue_inspection", Duration::from_secs(1)) {
            return posted;
        }
    }
    panic!("nothing was posted:\n{}", hardware.console().tail())
}

/// Every key of `expected` and no other; a text in angle brackets stands for any value of that type.
fn assert_is(found: &Value, expected: &Value, place: &str) {
    match (found, expected) {
        (Value::Object(found), Value::Object(expected)) => {
            let names = |object: &serde_json::Map<String, Value>| object.keys().cloned().collect::<Vec<_>>();
            assert_eq!(names(found), names(expected), "{place}");
            for (name, expected) in expected {
                assert_is(&found[name], expected, &format!("{place}.{name}"));
            }
        }
        (Value::Array(found), Value::Array(expected)) => {
            assert_eq!(found.len(), expected.len(), "{place}: {found:#?}");
            for (index, (found, expected)) in found.iter().zip(expected).enumerate() {
                assert_is(found, expected, &format!("{place}[{index}]"));
            }
        }
        (Value::String(_), Value::String(pattern)) if pattern == "<text>" => assert_ne!(found, "", "{place}"),
        (Value::Number(_), Value::String(pattern)) if pattern == "<number>" => {
            assert!(found.as_u64().unwrap() > 0, "{place}");
        }
        _ => assert_eq!(found, expected, "{place}"),
    }
}

fn interfaces() -> Value {
    let interface = |mac: &str, ipv4: &str, pci: &str, vendor: &str, product: &str, driver: &str| {
        json!({
            "name": "<text>", "mac_address": mac, "ipv4_address": ipv4, "ipv6_address": "<text>", "has_carrier": true,
            "lldp": null, "vendor": vendor, "product": product, "client_id": null, "biosdevname": null,
            "speed_mbps": null, "pci_address": pci, "driver": driver,
        })
    };
    let mut second =
        interface("52:54:00:fa:00:12", "10.0.3.15", "0000:00:10.0", "0x8086", "0x10d3", "e1000e");
    second["speed_mbps"] = json!(1000);
    json!([
        interface(FIRST_MAC, "10.0.2.15", "<text>", "0x1af4", "0x0001", "virtio_net"),
        second,
        interface("52:54:00:fa:00:13", "10.0.4.15", "<text>", "0x1af4", "0x0001", "virtio_net"),
    ])
}

fn disks() -> Value {
    let disk = |name: &str, gib: u64, changes: Value| {
        let mut disk = json!({
            "name": name, "model": null, "size": gib * GIB, "rotational": false, "wwn": null, "serial": null,
            "vendor": null, "wwn_with_extension": null, "wwn_vendor_extension": null, "hctl": null, "by_path": null,
            "logical_sectors": 512, "physical_sectors": 512, "tran": null,
        });
        disk.as_object_mut().unwrap().extend(changes.as_object().unwrap().clone());
        disk
    };
    json!([
        disk(
            "/dev/nvme0n1",
            8,
            json!({
                "model": "QEMU NVMe Ctrl", "serial": "NVME-1", "tran": "nvme",
                "by_path": "/dev/disk/by-path/pci-0000:00:14.0-nvme-1", "wwn": "<text>",
            })
        ),
        disk(
            "<text>",
            6,
            json!({
                "model": "Example SATA", "serial": "SATA-1", "vendor": "ATA", "rotational": true, "tran": "sata",
                "wwn": "0x5000c500a1b2c3d4", "wwn_with_extension": "0x5000c500a1b2c3d4",
                "by_path": "/dev/disk/by-path/pci-0000:00:1f.2-ata-2", "hctl": "<text>",
            })
        ),
        disk(
            "<text>",
            7,
            json!({
                "model": "Example SCSI", "serial": "SCSI-1", "vendor": "EXAMPLE",
                "wwn": "0x5000c500a1b2c3d5", "wwn_with_extension": "0x5000c500a1b2c3d5",
                "by_path": "/dev/disk/by-path/pci-0000:00:13.0-scsi-0:0:3:1", "hctl": "<text>", "physical_sectors": 4096,
            })
        ),
        disk(
            "/dev/vda",
            5,
            json!({
                "serial": "VIRTIO-1", "tran": "virtio", "vendor": "0x1af4", "rotational": true,
                "by_path": "/dev/disk/by-path/virtio-pci-0000:00:12.0",
            })
        ),
    ])
}

#[test]
fn vm_f42_f43_f44_every_field_of_the_inventory_is_present_and_true() {
    let mut posted = inspect();
    // Kernels name devices in the order in which they find them.
    for (list, key) in [("interfaces", "mac_address"), ("disks", "serial")] {
        let devices = posted["inventory"][list].as_array_mut().unwrap();
        devices.sort_by_key(|device| device[key].to_string());
    }
    let expected = json!({
        "interfaces": interfaces(),
        "cpu": {
            "model_name": "<text>", "frequency": "<text>", "count": 2, "architecture": "x86_64",
            "flags": posted["inventory"]["cpu"]["flags"], "socket_count": 2,
        },
        "disks": disks(),
        "memory": {"total": "<number>", "physical_mb": 512},
        "bmc_address": "198.51.100.10",
        "bmc_v6address": "2001:db8::10",
        "bmc_mac": "d0:94:66:00:11:22",
        "system_vendor": {
            "product_name": "Example R1", "serial_number": "ABC1234", "manufacturer": "Example Inc.",
            "firmware": {"vendor": "Example Firmware", "version": "2.4.7", "build_date": "01/31/2026"},
        },
        "boot": {"current_boot_mode": "uefi", "pxe_interface": format!("01-{}", FIRST_MAC.replace(':', "-"))},
        "hostname": "<text>",
    });
    assert_is(&posted["inventory"], &expected, "inventory");
    let flags = posted["inventory"]["cpu"]["flags"].as_array().unwrap();
    assert!(["fpu", "lm"].iter().all(|flag| flags.contains(&json!(flag))), "{flags:?}");
    assert_eq!(posted["error"], Value::Null);
    assert_eq!(posted["root_disk"]["name"], "/dev/vda", "the smallest of at least 4 GiB");
    assert_eq!(posted["boot_interface"], expected["boot"]["pxe_interface"]);
    assert_eq!(posted["configuration"]["collectors"], json!(COLLECTORS.split(',').collect::<Vec<_>>()));
    let pci = posted["pci_devices"].as_array().unwrap();
    assert!(pci.iter().any(|one| one["bus"] == "0000:00:10.0" && one["product_id"] == "10d3"), "{pci:?}");
    let usb = posted["usb_devices"].as_array().unwrap();
    assert!(usb.iter().any(|one| one["product"] == "QEMU USB Tablet"), "{usb:?}");
    assert_eq!(posted["numa_topology"]["cpus"].as_array().unwrap().len(), 2);
    assert_eq!(posted["dmi"]["bios"]["Vendor"], "Example Firmware");
    assert_eq!(posted["dmi"]["memory"]["devices"][0]["Size"], "512 MB");
    assert_eq!(posted["lldp_raw"].as_object().unwrap().len(), 3);
    assert!(posted["logs"].as_str().unwrap().starts_with("H4sI"));
}
