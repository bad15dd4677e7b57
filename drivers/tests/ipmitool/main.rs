//! Machines by IPMI: ipmitool, and the simulator of OpenIPMI in front of a machine that is two files.

// Only functions marked as tests may unwrap by default; here everything is test code.
#![allow(clippy::unwrap_used)]

mod answers;
#[path = "../wrong_answers/cells.rs"]
mod cells;
mod console;
mod datagrams;
#[path = "../../../hardware-managers/src/inventory/fake_program.rs"]
mod fake_program;
mod lost;
mod simulator;
mod stand_in;

use farrier_conductor::interfaces::{ManagementInterface, PowerInterface, VendorInterface};
use farrier_conductor::model::clock::{Clock, SystemClock};
use farrier_conductor::model::{
    BootDevice, InitialState, InterfaceKind, NewNode, Node, PowerState, ProvisionState,
};
use farrier_conductor::{Drivers, Settings};
use farrier_drivers::client::rate_limit::RateLimit;
use farrier_drivers::ipmitool::{Bmcs, IpmiManagement, IpmiPower, IpmiSettings, IpmiVendor, with_ipmitool};
use farrier_drivers::netboot::boot_roots::BootRoots;
use farrier_drivers::netboot::interface::Netboot;
use farrier_drivers::netboot::loaders::Loaders;
use farrier_drivers::netboot::scripts::render::Renderer;
use farrier_drivers::netboot::scripts::templates::Templates;
use farrier_drivers::netboot::target::Defaults;
use farrier_drivers::netboot::with_netboot;
use farrier_engine::Conductor;
use farrier_engine::records::Order;
use farrier_engine::store::sqlite::SqliteStore;
use serde_json::{Value, json};
use simulator::{PASSWORD, Simulator, USER};
use std::sync::Arc;
use std::time::Duration;
use time::OffsetDateTime;

fn node(info: &Value, mode: &str) -> Node {
    let driver_info = info.as_object().unwrap().clone().into();
    let mut node =
        Node::enrol(NewNode { driver: "ipmi".into(), driver_info, ..NewNode::default() }, SystemClock.now());
    node.properties.insert("capabilities".into(), json!({"boot_mode": mode}));
    node
}

fn info(simulator: &Simulator) -> Value {
    json!({
        "ipmi_address": "127.0.0.1", "ipmi_port": simulator.port,
        "ipmi_username": USER, "ipmi_password": PASSWORD, "ipmi_cipher_suite": 3,
    })
}

/// Those of a site where nothing takes long.
fn settings() -> IpmiSettings {
    let ms = Duration::from_millis;
    IpmiSettings {
        rate_limit: RateLimit { interval: ms(1), burst: 100, first_backoff: ms(5), longest_backoff: ms(20) },
        power_wait: Duration::from_secs(60),
        power_retry: Duration::from_secs(2),
        refusal_pause: ms(5),
        ..IpmiSettings::default()
    }
}

#[tokio::test]
async fn process_a_machine_goes_on_and_off_and_is_reset() {
    let simulator = Simulator::start();
    let (node, power) = (node(&info(&simulator), "uefi"), IpmiPower::new(Bmcs::new(settings())));
    assert_eq!(power.power_state(&node).await.unwrap(), PowerState::Off);
    power.power_on(&node).await.unwrap();
    assert_eq!(simulator.power(), "1");
    power.power_on(&node).await.unwrap();
    power.reset(&node).await.unwrap();
    power.power_off(&node).await.unwrap();
    assert_eq!(simulator.power(), "0");
    let commands: Vec<_> =
        simulator.commands().into_iter().filter(|command| command.starts_with("set")).collect();
    assert_eq!(
        commands,
        ["set power 1", "set reset 1", "set power 0"],
        "a machine that is on is not told so"
    );
}

#[tokio::test]
async fn process_a_bmc_that_forgets_gets_the_order_again() {
    let simulator = Simulator::start();
    simulator.forget_orders(1);
    let power = IpmiPower::new(Bmcs::new(IpmiSettings { power_retry: Duration::ZERO, ..settings() }));
    power.power_on(&node(&info(&simulator), "uefi")).await.unwrap();
    assert_eq!(simulator.power(), "1");
    simulator.forget_orders(1000);
    let power =
        IpmiPower::new(Bmcs::new(IpmiSettings { power_wait: Duration::from_millis(100), ..settings() }));
    let error = power.power_off(&node(&info(&simulator), "uefi")).await.unwrap_err().to_string();
    assert!(error.contains("accepted the order power off, and reports power on"), "{error}");
}

#[tokio::test]
async fn process_boot_devices_are_set_in_both_modes_and_read_again() {
    let simulator = Simulator::start();
    let management = IpmiManagement::new(Bmcs::new(settings()));
    for (mode, device) in [
        ("uefi", BootDevice::Pxe),
        ("bios", BootDevice::Disk),
        ("uefi", BootDevice::Cdrom),
        ("bios", BootDevice::Pxe),
    ] {
        let node = node(&info(&simulator), mode);
        management.set_boot_device(&node, device, false).await.unwrap();
        assert_eq!(management.get_boot_device(&node).await.unwrap().device, Some(device), "{mode}");
    }
    let node = node(&info(&simulator), "uefi");
    // The simulator knows no setup, and keeps what it had.
    let error = management.set_boot_device(&node, BootDevice::Floppy, false).await.unwrap_err().to_string();
    assert!(error.contains("this boot device is not supported"), "{error}");
    assert_eq!(management.detect_vendor(&node).await.unwrap(), "MontaVista Software, Inc.");
}

#[tokio::test]
async fn process_a_wrong_password_is_tried_twice_and_is_in_no_error() {
    let simulator = Simulator::start();
    let power = IpmiPower::new(Bmcs::new(settings()));
    for (key, value) in [("ipmi_password", "hay and oats"), ("ipmi_username", "nobody")] {
        let mut wrong = info(&simulator);
        wrong[key] = json!(value);
        let wrong = node(&wrong, "uefi");
        let first = power.power_state(&wrong).await.unwrap_err().to_string();
        let begun = std::time::Instant::now();
        let second = power.power_state(&wrong).await.unwrap_err().to_string();
        assert!(begun.elapsed() < Duration::from_secs(1), "the BMC is not asked again");
        for error in [first, second] {
            assert!(error.contains("refuses the user or the password (RAKP 2"), "{error}");
            assert!(!error.contains("hay and oats") && !error.contains(PASSWORD), "{error}");
        }
    }
    power.power_state(&node(&info(&simulator), "uefi")).await.unwrap();
}

#[tokio::test]
async fn process_a_cipher_suite_is_found_that_the_bmc_has() {
    let simulator = Simulator::start();
    // The simulator has suite 3 alone, which ipmitool finds by itself; one that knows less stands for older ones.
    let folder = tempfile::tempdir().unwrap();
    let program = folder.path().join("ipmitool");
    let refused = "Error in open session response message : no matching cipher suite";
    let text = format!(
        "#!/bin/sh\ncase \"$*\" in *' -C '*) exec ipmitool \"$@\" ;; esac\necho '{refused}' >&2\nexit 1\n"
    );
    fake_program::install(&program, &text);
    let settings = IpmiSettings { program: program.to_str().unwrap().to_owned(), ..settings() };
    let power = IpmiPower::new(Bmcs::new(settings));
    let mut fixed = info(&simulator);
    fixed["ipmi_cipher_suite"] = json!(17);
    let error = power.power_state(&node(&fixed, "uefi")).await.unwrap_err().to_string();
    assert!(
        error.contains("invalid authentication algorithm"),
        "what the record says is not changed: {error}"
    );
    let mut any = info(&simulator);
    any["ipmi_cipher_suite"] = Value::Null;
    power.power_state(&node(&any, "uefi")).await.unwrap();
}

#[tokio::test]
async fn process_nobody_at_the_address_is_reported_in_one_line() {
    let unused = std::net::UdpSocket::bind("127.0.0.1:0").unwrap();
    let info = json!({"ipmi_address": "127.0.0.1", "ipmi_port": unused.local_addr().unwrap().port()});
    let settings = IpmiSettings { command_timeout: Duration::from_millis(300), ..settings() };
    let power = IpmiPower::new(Bmcs::new(settings));
    let error = power.power_state(&node(&info, "uefi")).await.unwrap_err().to_string();
    assert!(error.contains("does not carry out \"power status\": not within 0.3 s"), "{error}");
}

/// The record that the agent's doctor writes, as its BMC shows it.
#[tokio::test]
async fn process_the_event_log_is_read_since_a_moment() {
    let simulator = Simulator::start();
    let (management, vendor) =
        (IpmiManagement::new(Bmcs::new(settings())), IpmiVendor::new(Bmcs::new(settings())));
    let node = node(&info(&simulator), "uefi");
    let raw = async |bytes: &str| {
        vendor.passthru(&node, "send_raw", &json!({"raw_bytes": bytes})).await.unwrap();
    };
    let hour_ago = OffsetDateTime::now_utc() - time::Duration::HOUR;
    assert_eq!(management.get_event_log(&node, hour_ago).await.unwrap(), []);
    let event = "0x0a 0x44 0 0 2 0 0 0 0 0x20 0 4 0x12 1 0x6f 1 0xff 0xff";
    raw(event).await;
    // The clock of the BMC is a day behind.
    let behind = u32::try_from((OffsetDateTime::now_utc() - time::Duration::DAY).unix_timestamp()).unwrap();
    let bytes = behind.to_le_bytes().map(|byte| byte.to_string()).join(" ");
    raw(&format!("0x0a 0x49 {bytes}")).await;
    raw(event).await;
    raw("0x0a 0x44 0 0 0xe0 0x66 0x61 0x72 0x72 0x69 0x65 0x72 0x6c 0x69 0x6e 0x6b 0 0").await;
    let log = management.get_event_log(&node, hour_ago).await.unwrap();
    let said: Vec<_> = log.iter().map(|entry| entry.said.as_str()).collect();
    let boot = "System Event #0x01, OEM System boot event, Asserted";
    assert_eq!(said, [boot, boot, "OEM record e0, 666172726965726c696e6b0000"]);
    let off = OffsetDateTime::now_utc() - log[1].at.unwrap();
    assert!(off.abs() < time::Duration::MINUTE, "{off}");
    assert_eq!((log[0].at, log[2].at), (None, None));
    let now = OffsetDateTime::now_utc() + time::Duration::MINUTE;
    let log = management.get_event_log(&node, now).await.unwrap();
    assert_eq!(log.len(), 1, "what bears no time stays: {log:?}");
}

#[tokio::test]
async fn process_raw_bytes_go_to_the_bmc() {
    let simulator = Simulator::start();
    let vendor = IpmiVendor::new(Bmcs::new(settings()));
    let node = node(&info(&simulator), "uefi");
    // Get Device ID.
    let answer = vendor.passthru(&node, "send_raw", &json!({"raw_bytes": "0x06 0x01"})).await.unwrap();
    assert!(answer.as_str().unwrap().starts_with("00 03 09 08"), "{answer}");
}

/// A host of Metal3 with the scheme `ipmi` or `libvirt`, as its operator registers it: managed, and adopted without an
/// image, before there is a port or anything to boot.
#[tokio::test]
async fn process_c04_k22_the_operator_of_metal3_manages_and_adopts_a_host_by_ipmi() {
    let simulator = Simulator::start();
    let folder = tempfile::tempdir().unwrap();
    let netboot = Netboot {
        defaults: Defaults::default(),
        renderer: Renderer { templates: Templates::load(None).unwrap(), timeout: None, http_url: None },
        loaders: Loaders::default(),
        dhcp: None,
        roots: BootRoots::default(),
    };
    let store = Arc::new(SqliteStore::open(&folder.path().join("nodes.sqlite")).await.unwrap());
    let drivers = with_netboot(Drivers::default(), &Arc::new(netboot));
    let drivers = with_ipmitool(drivers, settings(), folder.path(), &farrier_drivers::netboot::NAMES);
    let conductor =
        Conductor::builder(Settings::new("http://127.0.0.1:6385"), store, drivers).start().await.unwrap();
    let mut info = info(&simulator);
    info["ipmi_port"] = simulator.port.to_string().into();
    info["ipmi_priv_level"] = "ADMINISTRATOR".into();
    info["ipmi_verify_ca"] = false.into();
    let mut new = NewNode {
        name: Some("metal3~host-0".into()),
        driver: "ipmi".into(),
        driver_info: info.as_object().unwrap().clone().into(),
        initial_state: InitialState::Enroll,
        ..NewNode::default()
    };
    for (kind, name) in
        [(InterfaceKind::Boot, "ipxe"), (InterfaceKind::Raid, "no-raid"), (InterfaceKind::Inspect, "agent")]
    {
        new.interfaces.set(kind, name);
    }
    conductor.create_node(new).await.unwrap();
    let reached = async |state: ProvisionState| {
        let end = std::time::Instant::now() + Duration::from_secs(60);
        loop {
            let node = conductor.node("metal3~host-0").await.unwrap();
            if node.provision_state == state && node.reservation.is_none() {
                assert_eq!(node.last_error, None);
                return;
            }
            assert!(std::time::Instant::now() < end, "waited for {state}, but {node:#?}");
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    };
    conductor.order("metal3~host-0", Order::Manage).await.unwrap();
    reached(ProvisionState::Manageable).await;
    conductor.order("metal3~host-0", Order::Adopt).await.unwrap();
    reached(ProvisionState::Active).await;
    conductor.set_maintenance("metal3~host-0", true, None).await.unwrap();
    conductor.remove_node("metal3~host-0").await.unwrap();
}
