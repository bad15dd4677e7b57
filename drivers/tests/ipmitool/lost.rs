//! Answers that are lost, spoilt or wrong once.

use crate::stand_in::{LIMIT, StandIn, Wrong};
use crate::{node, settings};
use farrier_conductor::interfaces::{InterfaceError, ManagementInterface, PowerInterface, VendorInterface};
use farrier_conductor::model::{BootDevice, Node};
use farrier_drivers::ipmitool::{Bmcs, IpmiManagement, IpmiPower, IpmiSettings, IpmiVendor};
use serde_json::json;
use std::time::Duration;

/// What ipmitool says of sessions that do not come about, or end.
pub const LOST: [&str; 6] = [
    "> no response from RAKP 1 message\nError: Unable to establish IPMI v2 / RMCP+ session",
    "Error: Unable to establish IPMI v2 / RMCP+ session",
    "Error in open session response message : insufficient resources for session",
    "Error: Received an Unexpected Open Session Response; inactive session ID",
    "Get Session Challenge command failed",
    "Unable to get Chassis Power Status",
];
pub const SPOILT: &str = "> RAKP 2 HMAC is invalid\nError: Unable to establish IPMI v2 / RMCP+ session";

pub fn machine(mode: &str) -> Node {
    node(&json!({"ipmi_address": "127.0.0.1", "ipmi_username": "u", "ipmi_password": "p"}), mode)
}

pub fn bmcs(program: &StandIn) -> Bmcs {
    let ms = Duration::from_millis;
    Bmcs::new(IpmiSettings {
        program: program.program(),
        command_timeout: LIMIT,
        power_retry: ms(10),
        refusal_pause: ms(20),
        power_wait: Duration::from_secs(20),
        ..settings()
    })
}

#[tokio::test]
async fn process_c03_a_lost_answer_does_not_fail_a_power_action() {
    for text in LOST.into_iter().chain([SPOILT]) {
        for number in 1..=3 {
            for wrong in [Wrong::Before(text), Wrong::After(text)] {
                let program = StandIn::new("Farm");
                program.is_wrong(number, number, wrong);
                IpmiPower::new(bmcs(&program)).power_on(&machine("uefi")).await.unwrap();
                assert_eq!(program.power(), "on", "{wrong:?}");
            }
        }
    }
    // Orders that the BMC refuses once, also with the machine in a state in which it takes none.
    for text in [
        "Set Chassis Power Control to Up/On failed: Command not supported in present state",
        "Unknown (0xd5)",
    ] {
        let program = StandIn::new("Farm");
        program.is_wrong(2, 2, Wrong::Before(text));
        IpmiPower::new(bmcs(&program)).power_on(&machine("uefi")).await.unwrap();
        assert_eq!(program.power(), "on", "{text}");
    }
}

#[tokio::test]
async fn process_c03_every_command_is_given_again_and_orders_that_start_something_only_where_they_were_not_got()
 {
    let each = async |wrong: Wrong| {
        let program = StandIn::new("Farm");
        let bmcs = bmcs(&program);
        let (management, power) = (IpmiManagement::new(bmcs.clone()), IpmiPower::new(bmcs.clone()));
        let vendor = IpmiVendor::new(bmcs);
        let node = machine("uefi");
        let raw = json!({"raw_bytes": "0x00 0x08 0x03 0x08"});
        program.is_wrong(1, 1, wrong);
        management.set_boot_device(&node, BootDevice::Pxe, false).await.unwrap();
        for number in 1..=2 {
            let begun = program.asked().len();
            program.is_wrong(begun + number, begun + number, wrong);
            management.get_event_log(&node, time::OffsetDateTime::UNIX_EPOCH).await.unwrap();
        }
        let mut once = Vec::new();
        for order in 0..4 {
            let begun = program.asked().len();
            program.is_wrong(begun + 1, begun + 1, wrong);
            let done: Result<(), InterfaceError> = match order {
                0 => power.reset(&node).await,
                1 => power.soft_power_off(&node).await,
                2 => management.inject_nmi(&node).await,
                _ => vendor.passthru(&node, "send_raw", &raw).await.map(drop),
            };
            once.push((done.is_ok(), program.asked().len() - begun));
        }
        once
    };
    assert_eq!(each(Wrong::Before(LOST[0])).await, [(true, 2); 4]);
    assert_eq!(each(Wrong::After("Unable to get the answer")).await, [(false, 1); 4]);
}

#[tokio::test]
async fn process_c03_a_command_that_the_bmc_refuses_is_not_given_again() {
    let program = StandIn::new("Farm");
    program.is_wrong(1, 1, Wrong::Before("Get Device ID command failed: Invalid command"));
    let error = IpmiManagement::new(bmcs(&program)).detect_vendor(&machine("uefi")).await.unwrap_err();
    assert!(error.to_string().contains("does not carry out \"mc info\""), "{error}");
    assert_eq!(program.asked(), ["mc info"]);
}

#[tokio::test]
async fn process_c01_a_password_is_refused_when_it_was_refused_again_and_is_not_asked_for_then() {
    let program = StandIn::new("Farm");
    let power = IpmiPower::new(bmcs(&program));
    let node = machine("uefi");
    power.power_state(&node).await.unwrap();
    // One that has worked has two more attempts.
    program.is_wrong(2, 3, Wrong::Before(SPOILT));
    power.power_state(&node).await.unwrap();
    program.is_wrong(5, 1000, Wrong::Before(SPOILT));
    let error = power.power_state(&node).await.unwrap_err();
    assert!(matches!(error, InterfaceError::Driver(_)), "{error:?}");
    assert_eq!(program.asked().len(), 7);
    let error = power.power_state(&node).await.unwrap_err();
    assert!(matches!(error, InterfaceError::NotAsked(_)), "{error:?}");
    assert_eq!(program.asked().len(), 7, "it is left alone for a while");
}

#[tokio::test]
async fn process_c16_the_disk_of_supermicro_by_uefi_has_a_number_of_its_own() {
    for (maker, vendor, mode, number) in [
        ("Super Micro Computer Inc.", None, "uefi", "0x24"),
        ("Supermicro", None, "uefi", "0x24"),
        ("Farm", Some("supermicro"), "uefi", "0x24"),
        ("Supermicro", Some("farm"), "uefi", "0x08"),
        ("Farm", None, "uefi", "0x08"),
        ("Supermicro", None, "bios", "disk options=persistent"),
    ] {
        let program = StandIn::new(maker);
        let mut node = machine(mode);
        node.properties.extend(vendor.map(|vendor| ("vendor".to_owned(), json!(vendor))));
        let management = IpmiManagement::new(bmcs(&program));
        management.set_boot_device(&node, BootDevice::Disk, true).await.unwrap();
        assert_eq!(management.get_boot_device(&node).await.unwrap().device, Some(BootDevice::Disk));
        let asked = program.asked();
        assert!(asked.iter().any(|asked| asked.contains(number)), "{maker} {vendor:?}: {asked:?}");
        management.set_boot_device(&node, BootDevice::Pxe, false).await.unwrap();
    }
}

#[tokio::test]
async fn process_c16_a_bmc_that_did_not_name_its_maker_once_is_asked_again() {
    let refused = "Get Device ID command failed: Requested sensor, data, or record not found";
    for wrong in [Wrong::Before(refused), Wrong::Garbage("<html>"), Wrong::Empty, Wrong::Half] {
        let program = StandIn::new("Supermicro");
        let (management, node) = (IpmiManagement::new(bmcs(&program)), machine("uefi"));
        program.is_wrong(2, 2, wrong);
        management.set_boot_device(&node, BootDevice::Disk, true).await.unwrap();
        assert!(program.asked().iter().any(|asked| asked.contains("0x24")), "{:?}", program.asked());
    }
    // One that never does so is no Supermicro, and is asked again the next time.
    let program = StandIn::new("Supermicro");
    let (management, node) = (IpmiManagement::new(bmcs(&program)), machine("uefi"));
    program.is_wrong(2, 3, Wrong::Garbage("Manufacturer Name : "));
    for number in ["0x08", "0x24"] {
        management.set_boot_device(&node, BootDevice::Disk, true).await.unwrap();
        let asked = program.asked();
        let orders: Vec<_> = asked.iter().filter(|asked| asked.starts_with("raw 0x00 0x08 0x05")).collect();
        assert!(orders.last().unwrap().contains(number), "{asked:?}");
    }
}

#[tokio::test]
async fn process_c16_flags_that_are_not_reported_and_a_parameter_that_there_is_not_fail_nothing() {
    let program = StandIn::new("Farm");
    let (management, node) = (IpmiManagement::new(bmcs(&program)), machine("uefi"));
    program.reports_flags("No override");
    management.set_boot_device(&node, BootDevice::Disk, true).await.unwrap();
    let begun = program.asked().len();
    program.is_wrong(begun + 1, begun + 1, Wrong::Before("Unable to send RAW command (channel=0x0 netfn=0x0 lun=0x0 cmd=0x8 rsp=0xcc): Invalid data field in request"));
    management.set_boot_device(&node, BootDevice::Pxe, false).await.unwrap();
    // What is told and is something else is believed.
    program.reports_flags("Force PXE");
    let error = management.set_boot_device(&node, BootDevice::Disk, false).await.unwrap_err().to_string();
    assert!(error.contains("accepted the order to start from disk, and reports pxe"), "{error}");
}
