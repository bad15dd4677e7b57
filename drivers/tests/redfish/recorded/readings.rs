//! What is understood of the replies of BMCs that others recorded or published: one row for each of them.

use crate::stage::{Stage, info, node};
use crate::stand_in::Mockup;
use farrier_conductor::interfaces::{InterfaceError, ManagementInterface, PowerInterface};
use farrier_conductor::model::LogEntry;
use serde_json::Value;
use std::fmt::Display;
use time::OffsetDateTime;

/// What must be understood of a mockup. What a BMC does not tell is `-`.
struct Row {
    mockup: &'static str,
    /// Maker, power, what it starts from and for how long, boot mode, Secure Boot.
    machine: &'static [&'static str],
    /// What each drive can be, and what is in it.
    drives: &'static [&'static str],
    log: &'static [&'static str],
    /// Each sensor with its reading.
    sensors: &'static [&'static str],
    /// Each light with what it does.
    lights: &'static [&'static str],
    firmware: &'static [&'static str],
    addresses: &'static [&'static str],
}

const EMPTY: Row = Row {
    mockup: "",
    machine: &[],
    drives: &[],
    log: &[],
    sensors: &[],
    lights: &[],
    firmware: &[],
    addresses: &[],
};

const ROWS: &[Row] = &[
    Row {
        mockup: "dmtf-rackmount1",
        machine: &["Contoso", "power on", "pxe once", "uefi", "insecure"],
        drives: &[
            "floppy: https://www.dmtf.org/freeImages/Sardine.img",
            "cdrom: redfish.dmtf.org/freeImages/freeOS.1.1.iso",
        ],
        log: &[
            "Critical: Temperature threshold exceeded, 0x592A28",
            "Critical: System May be Melting, Event.1.0.TempWayTooHot",
            "Critical: Temperature threshold exceeded, 0x592E28",
        ],
        sensors: &[
            "Fan 0@1U 2100 RPM OK",
            "Power 0@1U 325 Warning",
            "Temperature 0@1U 41 OK",
            "Temperature 1@1U",
        ],
        lights: &["system 437XR1138R2 off", "chassis 1U on"],
        firmware: &["bios P79 v1.45 (12/06/2017)", "bmc 1.45.455b66-rev4"],
        addresses: &["12:44:6a:3b:04:11", "aa:bb:cc:dd:ee:fe"],
    },
    Row {
        mockup: "hpe-ilo5",
        machine: &["HPE", "power on", "-", "uefi", "insecure"],
        drives: &["floppy: -", "cdrom: -"],
        log: &[
            "NIC Connectivity status changed to OK for adapter in slot 1, port 1, Hpe-IML, 17.10",
            "iLOEvents.3.15.ServerFirmwareInventoryComplete",
            "Host REST login: System Administrator, Hpe-iLOEventLog, 35.1131",
        ],
        sensors: &["Fan 0@1 26 Percent OK", "Power 0@1 75 OK", "Temperature 0@1 21 OK"],
        lights: &["system 1 off", "chassis 1 off"],
        firmware: &["bios U46 v2.34 (03/11/2025)", "bmc iLO 5 v3.11"],
        addresses: &["88:e9:a4:00:00:01"],
    },
    Row {
        mockup: "hpe-ilo6",
        machine: &["HPE", "power on", "-", "uefi", "insecure"],
        drives: &["floppy: -", "cdrom: -"],
        log: &[
            "IML Cleared ( user: System Administrator), Hpe-IML, 33.1",
            "Warning: Intrusion Alert Detection - The server chassis hood was removed., Hpe-IML, 10.1025",
            "NIC Connectivity status changed to OK for adapter in slot 2, port 1, Hpe-IML, 17.10",
            "iLOEvents.3.15.ServerFirmwareInventoryComplete",
            "Host REST login: System Administrator, Hpe-iLOEventLog, 35.1131",
        ],
        sensors: &["Fan 0@1 26 Percent OK", "Power 0@1 222 OK", "Temperature 0@1 21 OK"],
        lights: &["system 1 off", "chassis 1 off"],
        firmware: &["bios U58 v2.44 (01/17/2025)", "bmc iLO 6 v1.66"],
        addresses: &["58:a2:e1:00:00:01"],
    },
    Row {
        mockup: "hpe-ilo7",
        machine: &["HPE", "power on", "-", "uefi", "insecure"],
        drives: &["floppy: -", "cdrom: -"],
        log: &[
            "iLOEvents.3.15.ServerFirmwareInventoryComplete",
            "Host REST login: System Administrator, Hpe-iLOEventLog, 35.1131",
            "IML Cleared (iLO user: Administrator), Hpe-IML, 33.1",
        ],
        sensors: &["Fan 0@1 26 Percent OK", "Power 0@1 117 OK", "Temperature 0@1 21 OK"],
        lights: &["chassis 1 on"],
        firmware: &["bios U68 v1.40 (05/22/2025)", "bmc 1.14.00 May 28 2025"],
        addresses: &["58:a2:e1:00:00:02"],
    },
    Row {
        mockup: "hpe-cray-ex235a",
        machine: &["HPE", "power on", "-", "-", "-"],
        log: &[
            "The power state of resource /redfish/v1/Systems/Node0 has changed to type On., CrayAlerts.ResourcePowerStateChanged",
        ],
        firmware: &["bios ex235a.bios-1.3.6"],
        addresses: &["00:40:a6:00:00:01"],
        ..EMPTY
    },
    Row {
        mockup: "dell-idrac9",
        machine: &["Dell", "power on", "-", "bios", "secure"],
        drives: &["floppy: -", "cdrom: -"],
        log: &["OEM software event., d000000", "OEM software event., d000000"],
        lights: &["system System.Embedded.1 on", "chassis System.Embedded.1 on"],
        firmware: &["bios 2.2.4", "bmc 4.40.00.00"],
        ..EMPTY
    },
    Row {
        mockup: "dell-idrac10",
        machine: &["Dell", "power off", "-", "bios", "-"],
        drives: &["cdrom/floppy: -", "cdrom/floppy: -"],
        firmware: &["bmc 1.20.50.52"],
        ..EMPTY
    },
    Row {
        mockup: "lenovo-xcc",
        machine: &["Lenovo", "power on", "disk once", "bios", "secure"],
        drives: &["cdrom: -", "floppy: http://192.0.2.2/boot.img"],
        log: &["System boot completed."],
        sensors: &["Fan 0@1 6840 RPM OK", "Power 0@1 OK", "Power 1@1 OK", "Temperature 0@1 23 OK"],
        firmware: &["bios TEE142M-2.41", "bmc TEE142M-2.41"],
        addresses: &["7c:d3:0a:00:00:01"],
        ..EMPTY
    },
    Row {
        mockup: "lenovo-se450",
        machine: &["Lenovo", "power on", "-", "uefi", "-"],
        firmware: &["bmc 1.00"],
        ..EMPTY
    },
    Row {
        mockup: "nokia-ami",
        machine: &["Nokia", "power off", "-", "uefi", "-"],
        firmware: &["bmc 1.00"],
        ..EMPTY
    },
    Row {
        mockup: "supermicro-x10",
        machine: &["Supermicro", "power on", "-", "-", "-"],
        log: &["[ OEM ] Correctable ECC @DIMMB1", "[ OEM ] Activate Node Product Key"],
        sensors: &["Fan 0@1 0 RPM", "Temperature 0@1 0"],
        lights: &["system 1 off", "chassis 1 off"],
        firmware: &["bios 1.2", "bmc 4.0"],
        addresses: &["ac:1f:6b:00:00:01"],
        ..EMPTY
    },
    Row {
        mockup: "supermicro-x12",
        machine: &["Supermicro", "power on", "disk for good", "uefi", "-"],
        lights: &["system 1 off"],
        firmware: &["bios 2.0", "bmc 01.13.04"],
        ..EMPTY
    },
    Row {
        mockup: "openbmc-gb300",
        machine: &["Supermicro", "power on", "-", "-", "-"],
        drives: &["cdrom/floppy: -", "cdrom/floppy: -", "cdrom/floppy: -"],
        sensors: &["Temperature BMC_0_DCSCM_Temp_0@BMC_0 31.625"],
        lights: &["system System_0 off"],
        firmware: &["bmc 70.01.00.09"],
        ..EMPTY
    },
];

/// Compares what is told of each mockup with what its row has.
async fn each_row(
    read: impl AsyncFn(&Stage) -> Vec<String>,
    expected: impl Fn(&Row) -> &'static [&'static str],
) {
    for row in ROWS {
        let stage = Stage::of(Mockup::read(row.mockup)).await;
        assert_eq!(read(&stage).await, expected(row), "{}", row.mockup);
    }
}

fn or_dash<T: Display>(read: Result<T, InterfaceError>) -> String {
    read.map_or_else(|_| "-".to_owned(), |read| read.to_string())
}

async fn machine(stage: &Stage) -> Vec<String> {
    let Stage { node, power, management, .. } = stage;
    let setting = management.get_boot_device(node).await.unwrap();
    let device = setting.device.map_or_else(|| "-".to_owned(), |device| device.to_string());
    let holds = match setting.persistent {
        Some(true) => " for good",
        Some(false) => " once",
        None => "",
    };
    let secure_boot = management.get_secure_boot_state(node).await;
    vec![
        or_dash(management.detect_vendor(node).await),
        or_dash(power.power_state(node).await),
        format!("{device}{holds}"),
        or_dash(management.get_boot_mode(node).await.map(|mode| mode.as_str())),
        or_dash(secure_boot.map(|is_on| if is_on { "secure" } else { "insecure" })),
    ]
}

#[tokio::test]
async fn machines_are_read_with_their_power_and_what_they_start_from() {
    each_row(machine, |row| row.machine).await;
}

async fn drives(stage: &Stage) -> Vec<String> {
    let drives = stage.management.get_virtual_media(&stage.node).await.unwrap();
    let read = drives.iter().map(|drive| {
        let kinds: Vec<_> = drive.media_types.iter().map(ToString::to_string).collect();
        assert_eq!(drive.inserted, drive.image.is_some());
        format!("{}: {}", kinds.join("/"), drive.image.as_deref().unwrap_or("-"))
    });
    read.collect()
}

#[tokio::test]
async fn where_a_bmc_has_several_machines_they_are_named() {
    let Stage { bmc, power, .. } = Stage::of(Mockup::read("openbmc-gb300")).await;
    let error = power.power_state(&node(&info(&bmc.url))).await.unwrap_err().to_string();
    let named = "several machines: /redfish/v1/Systems/System_0, /redfish/v1/Systems/HGX_Baseboard_0";
    assert!(error.contains(named), "{error}");
}

#[tokio::test]
async fn virtual_drives_are_found_wherever_they_are() {
    each_row(drives, |row| row.drives).await;
}

async fn log(stage: &Stage) -> Vec<String> {
    let log = stage.management.get_event_log(&stage.node, OffsetDateTime::UNIX_EPOCH).await.unwrap();
    log.into_iter().map(|LogEntry { said, .. }| said).collect()
}

#[tokio::test]
async fn logs_are_read_but_those_about_who_may_do_what() {
    each_row(log, |row| row.log).await;
}

/// Each sensor as `Fan 0@1 2100 RPM OK`.
async fn sensors(stage: &Stage) -> Vec<String> {
    let kinds = stage.management.get_sensors_data(&stage.node).await.unwrap();
    let read = kinds.iter().flat_map(|(kind, sensors)| {
        let sensors = sensors.as_object().into_iter().flatten();
        sensors.map(move |(name, sensor)| format!("{kind} {name}{}", values(sensor)))
    });
    read.collect()
}

fn values(sensor: &Value) -> String {
    let read = ["reading", "reading_units", "reading_celsius", "last_power_output_watts", "health"];
    let value = |key: &&str| match &sensor[*key] {
        Value::String(text) => format!(" {text}"),
        Value::Null => String::new(),
        value => format!(" {value}"),
    };
    read.iter().map(value).collect()
}

#[tokio::test]
async fn sensors_are_read_with_their_values() {
    each_row(sensors, |row| row.sensors).await;
}

#[tokio::test]
async fn sensors_are_read_of_services_that_have_a_resource_for_each() {
    let enclosure = "/redfish/v1/Chassis/1U";
    let both = Mockup::read("dmtf-rackmount1");
    let newer = both.with(enclosure, "/Thermal", Value::Null).with(enclosure, "/Power", Value::Null);
    let stage = Stage::of(newer).await;
    let expected = [
        "Fan Bay1@1U 2200 RPM OK",
        "Power Bay1@1U 937.4 Warning",
        "Temperature Exhaust@1U 40.5",
        "Temperature Intake@1U 24.8",
    ];
    assert_eq!(sensors(&stage).await, expected);
}

async fn lights(stage: &Stage) -> Vec<String> {
    let Stage { node, management, .. } = stage;
    let mut read = Vec::new();
    for light in management.get_supported_indicators(node).await.unwrap() {
        let state = management.get_indicator_state(node, &light).await.unwrap();
        read.push(format!("{} {} {state}", light.component, light.name));
    }
    read
}

#[tokio::test]
async fn lights_of_machines_and_enclosures_are_read() {
    each_row(lights, |row| row.lights).await;
}

async fn firmware(stage: &Stage) -> Vec<String> {
    let versions = stage.management.get_firmware_versions(&stage.node).await.unwrap();
    versions.iter().map(|one| format!("{} {}", one.component, one.version)).collect()
}

#[tokio::test]
async fn versions_of_firmware_are_read() {
    each_row(firmware, |row| row.firmware).await;
}

async fn addresses(stage: &Stage) -> Vec<String> {
    let addresses = stage.management.get_mac_addresses(&stage.node).await.unwrap();
    addresses.iter().map(ToString::to_string).collect()
}

#[tokio::test]
async fn addresses_of_network_cards_are_read() {
    each_row(addresses, |row| row.addresses).await;
}
