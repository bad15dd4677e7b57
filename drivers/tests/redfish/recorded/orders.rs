//! What BMCs are asked for whose replies others recorded or published, and that they do it: one row for each of them.

use crate::stage::Stage;
use crate::stand_in::{Mockup, Seen};
use axum::http::Method;
use farrier_conductor::interfaces::{
    BootDeviceSetting, IndicatorState, InterfaceError, ManagementInterface, PowerInterface,
};
use farrier_conductor::model::{BootDevice, BootMode};
use serde_json::json;

/// What mockups must be asked for, without quotes and the words `BootSourceOverride`. Why nothing comes of it stands in
/// brackets.
struct Row {
    mockups: &'static [&'static str],
    /// To start from a CD once, and from the disk for good.
    boot: &'static [&'static str],
    /// To start by UEFI and then by the boot sector, and to have Secure Boot.
    firmware: &'static [&'static str],
    /// To insert a CD and take it out again.
    media: &'static [&'static str],
    /// The kinds of a reset: to restart, to shut down in good order, to be on, and to be off.
    power: &'static [&'static str],
}

const ROWS: &[Row] = &[
    Row {
        mockups: &["dmtf-rackmount1"],
        boot: &[
            "PATCH Systems/437XR1138R2 {Boot:{Target:Cd}}",
            "PATCH Systems/437XR1138R2 {Boot:{Enabled:Continuous,Target:Hdd}}",
        ],
        firmware: &[
            "PATCH Systems/437XR1138R2 {Boot:{Mode:Legacy}}",
            "PATCH Systems/437XR1138R2/SecureBoot {SecureBootEnable:true}",
        ],
        media: &[
            "PATCH Systems/437XR1138R2/VirtualMedia/CD1 {Image:null,Inserted:false}",
            "PATCH Systems/437XR1138R2/VirtualMedia/CD1 {Image:http://m/1.iso,Inserted:true,WriteProtected:true}",
            "PATCH Systems/437XR1138R2/VirtualMedia/CD1 {Image:null,Inserted:false}",
        ],
        power: &["ForceRestart", "GracefulShutdown", "On", "ForceOff"],
    },
    Row {
        mockups: &["hpe-ilo5", "hpe-ilo6", "hpe-ilo7"],
        boot: &[
            "PATCH Systems/1 {Boot:{Enabled:Once,Target:Cd}}",
            "PATCH Systems/1 {Boot:{Enabled:Continuous,Target:Hdd}}",
        ],
        firmware: &[
            "PATCH Systems/1 {Boot:{Mode:Legacy}}",
            "PATCH Systems/1/SecureBoot {SecureBootEnable:true}",
        ],
        media: &[
            "POST Managers/1/VirtualMedia/2/Actions/VirtualMedia.InsertMedia {Image:http://m/1.iso}",
            "POST Managers/1/VirtualMedia/2/Actions/VirtualMedia.EjectMedia null",
        ],
        power: &["ForceRestart", "GracefulShutdown", "On", "ForceOff"],
    },
    Row {
        mockups: &["hpe-cray-ex235a"],
        boot: &[
            "PATCH Systems/Node0 {Boot:{Enabled:Once,Target:Cd}}",
            "PATCH Systems/Node0 {Boot:{Enabled:Once,Target:Cd}}",
            "PATCH Systems/Node0 {Boot:{Enabled:Continuous,Target:Cd}}",
            "(400 Bad Request (Base.1.8.PropertyUnknown): BootSourceOverrideEnabled)",
            "PATCH Systems/Node0 {Boot:{Enabled:Continuous,Target:Hdd}}",
            "PATCH Systems/Node0 {Boot:{Enabled:Continuous,Target:Hdd}}",
            "PATCH Systems/Node0 {Boot:{Enabled:Once,Target:Hdd}}",
            "(400 Bad Request (Base.1.8.PropertyUnknown): BootSourceOverrideEnabled)",
        ],
        firmware: &[
            "PATCH Systems/Node0 {Boot:{Mode:UEFI}}",
            "PATCH Systems/Node0 {Boot:{Enabled:Disabled,Mode:UEFI,Target:None}}",
            "(400 Bad Request (Base.1.8.PropertyUnknown): BootSourceOverrideEnabled)",
            "PATCH Systems/Node0 {Boot:{Mode:Legacy}}",
            "PATCH Systems/Node0 {Boot:{Enabled:Disabled,Mode:Legacy,Target:None}}",
            "(400 Bad Request (Base.1.8.PropertyUnknown): BootSourceOverrideEnabled)",
            "(a machine without Secure Boot)",
        ],
        media: &["(no virtual drive for a cdrom, but for: )"],
        power: &[
            "(a machine that has no ForceRestart or PowerCycle, but On, ForceOff, Off)",
            "(a machine that has no GracefulShutdown or PushPowerButton, but On, ForceOff, Off)",
            "On",
            "ForceOff",
        ],
    },
    Row {
        mockups: &["dell-idrac9"],
        boot: &[
            "PATCH Systems/System.Embedded.1 {Boot:{Enabled:Once,Target:Cd}}",
            "PATCH Systems/System.Embedded.1 {Boot:{Enabled:Continuous,Target:Hdd}}",
        ],
        firmware: &[
            "PATCH Systems/System.Embedded.1 {Boot:{Mode:UEFI}}",
            "PATCH Systems/System.Embedded.1 {Boot:{Mode:Legacy}}",
            "PATCH Systems/System.Embedded.1/SecureBoot {SecureBootEnable:true}",
        ],
        media: &[
            "POST Managers/iDRAC.Embedded.1/VirtualMedia/CD/Actions/VirtualMedia.InsertMedia {Image:http://m/1.iso}",
            "POST Managers/iDRAC.Embedded.1/VirtualMedia/CD/Actions/VirtualMedia.EjectMedia null",
        ],
        power: &["ForceRestart", "GracefulShutdown", "On", "ForceOff"],
    },
    Row {
        mockups: &["dell-idrac10"],
        boot: &[
            "PATCH Systems/System.Embedded.1 {Boot:{Enabled:Once,Target:Cd}}",
            "PATCH Systems/System.Embedded.1 {Boot:{Enabled:Continuous,Target:Hdd}}",
        ],
        firmware: &[
            "PATCH Systems/System.Embedded.1/Settings {Boot:{Mode:UEFI}}",
            "PATCH Systems/System.Embedded.1/Settings {Boot:{Mode:Legacy}}",
            "(a machine that starts by its boot sector, which has no Secure Boot)",
        ],
        media: &[
            "POST Systems/System.Embedded.1/VirtualMedia/2/Actions/VirtualMedia.InsertMedia {Image:http://m/1.iso}",
            "POST Systems/System.Embedded.1/VirtualMedia/2/Actions/VirtualMedia.EjectMedia null",
        ],
        power: &["ForceRestart", "GracefulShutdown", "On", "ForceOff"],
    },
    Row {
        mockups: &["lenovo-xcc"],
        boot: &[
            "PATCH Systems/1 {Boot:{Target:Cd}}",
            "PATCH Systems/1 {Boot:{Enabled:Continuous,Target:Hdd}}",
            "PATCH Systems/1 {Boot:{Enabled:Continuous,Mode:Legacy,Target:Hdd}}",
            "PATCH Systems/1 {Boot:{Enabled:Once,Mode:Legacy,Target:Hdd}}",
        ],
        firmware: &[
            "PATCH Systems/1 {Boot:{Mode:UEFI}}",
            "PATCH Systems/1 {Boot:{Mode:Legacy}}",
            "PATCH Systems/1/SecureBoot {SecureBootEnable:true}",
        ],
        media: &[
            "PATCH Managers/1/VirtualMedia/CD {Image:http://m/1.iso,Inserted:true,WriteProtected:true}",
            "PATCH Managers/1/VirtualMedia/CD {Image:null,Inserted:false}",
        ],
        power: &["ForceRestart", "GracefulShutdown", "On", "ForceOff"],
    },
    Row {
        mockups: &["lenovo-se450"],
        boot: &[
            "PATCH Systems/1 {Boot:{Enabled:Once,Target:Cd}}",
            "PATCH Systems/1 {Boot:{Enabled:Disabled}}",
        ],
        firmware: &["PATCH Systems/1 {Boot:{Mode:Legacy}}", "(a machine without Secure Boot)"],
        media: &["(no virtual drive for a cdrom, but for: )"],
        power: &["ForceRestart", "GracefulShutdown", "On", "ForceOff"],
    },
    Row {
        mockups: &["nokia-ami"],
        boot: &[
            "PATCH Systems/Self/SD {Boot:{Enabled:Once,Target:Cd}}",
            "PATCH Systems/Self/SD {Boot:{Enabled:Continuous,Target:Hdd}}",
        ],
        firmware: &[
            "PATCH Systems/Self/SD {Boot:{Mode:Legacy}}",
            "PATCH Systems/Self/SD {Boot:{Enabled:Disabled,Mode:Legacy,Target:Cd}}",
            "(400 Bad Request (Base.1.8.PropertyValueNotInList): BootSourceOverrideMode)",
            "(a machine without Secure Boot)",
        ],
        media: &["(no virtual drive for a cdrom, but for: )"],
        power: &["ForceRestart", "GracefulShutdown", "On", "ForceOff"],
    },
    Row {
        mockups: &["supermicro-x10"],
        boot: &[
            "PATCH Systems/1 {Boot:{Enabled:Once,Target:UsbCd}}",
            "PATCH Systems/1 {Boot:{Enabled:Continuous,Target:Hdd}}",
        ],
        firmware: &[
            "PATCH Systems/1 {Boot:{Mode:UEFI}}",
            "PATCH Systems/1 {Boot:{Enabled:Disabled,Mode:UEFI,Target:None}}",
            "(400 Bad Request (Base.1.8.PropertyUnknown): BootSourceOverrideMode)",
            "PATCH Systems/1 {Boot:{Mode:Legacy}}",
            "PATCH Systems/1 {Boot:{Enabled:Disabled,Mode:Legacy,Target:None}}",
            "(400 Bad Request (Base.1.8.PropertyUnknown): BootSourceOverrideMode)",
            "(a machine without Secure Boot)",
        ],
        media: &["(no virtual drive for a cdrom, but for: )"],
        power: &["ForceRestart", "GracefulShutdown", "On", "ForceOff"],
    },
    Row {
        mockups: &["supermicro-x12"],
        boot: &[
            "PATCH Systems/1 {Boot:{Enabled:Once,Target:UsbCd}}",
            "PATCH Systems/1 {Boot:{Enabled:Continuous,Target:Hdd}}",
        ],
        firmware: &["PATCH Systems/1 {Boot:{Mode:Legacy}}", "(a machine without Secure Boot)"],
        media: &["(no virtual drive for a cdrom, but for: )"],
        power: &["ForceRestart", "GracefulShutdown", "On", "ForceOff"],
    },
    Row {
        mockups: &["openbmc-gb300"],
        boot: &[
            "PATCH Systems/System_0/Settings {Boot:{Enabled:Once,Target:Cd}}",
            "PATCH Systems/System_0/Settings {Boot:{Enabled:Continuous,Target:Hdd}}",
        ],
        firmware: &[
            "PATCH Systems/System_0 {Boot:{Mode:UEFI}}",
            "PATCH Systems/System_0 {Boot:{Enabled:Disabled,Mode:UEFI,Target:None}}",
            "(400 Bad Request (Base.1.8.PropertyUnknown): BootSourceOverrideMode)",
            "PATCH Systems/System_0 {Boot:{Mode:Legacy}}",
            "PATCH Systems/System_0 {Boot:{Enabled:Disabled,Mode:Legacy,Target:None}}",
            "(400 Bad Request (Base.1.8.PropertyUnknown): BootSourceOverrideMode)",
            "PATCH Systems/System_0/SecureBoot {SecureBootEnable:true}",
            "(400 Bad Request (Base.1.8.PropertyUnknown): SecureBootEnable)",
        ],
        media: &[
            "POST Managers/BMC_0/VirtualMedia/USB2/Actions/VirtualMedia.InsertMedia {Image:http://m/1.iso}",
            "POST Managers/BMC_0/VirtualMedia/USB2/Actions/VirtualMedia.EjectMedia null",
        ],
        power: &["ForceRestart", "GracefulShutdown", "On", "ForceOff"],
    },
];

const ISO: &str = "http://m/1.iso";

/// Compares what each mockup is asked for with what its row has.
async fn each_row(
    asked: impl AsyncFn(&Stage) -> Vec<String>,
    expected: impl Fn(&Row) -> &'static [&'static str],
) {
    for (mockup, row) in mockups() {
        let stage = Stage::of(Mockup::read(mockup)).await;
        assert_eq!(asked(&stage).await, expected(row), "{mockup}");
    }
}

fn mockups() -> impl Iterator<Item = (&'static str, &'static Row)> {
    ROWS.iter().flat_map(|row| row.mockups.iter().map(move |mockup| (*mockup, row)))
}

/// What was ordered since it was looked at last, and why nothing came of it, where that is so.
fn orders(stage: &Stage, done: Result<(), InterfaceError>) -> Vec<String> {
    let seen = std::mem::take(&mut stage.bmc.inner().seen);
    let is_order = |method: &Method| *method != Method::GET;
    let orders = seen.iter().filter(|seen| is_order(&seen.method) && !seen.path.ends_with("/Sessions"));
    let short = |path: &str| path.trim_start_matches("/redfish/v1/").to_owned();
    let line = |seen: &Seen| {
        let body = seen.body.to_string().replace('"', "").replace("BootSourceOverride", "");
        format!("{} {} {body}", seen.method, short(&seen.path))
    };
    let refused = done.err().map(|error| format!("({})", why(&error)));
    orders.map(line).chain(refused).collect()
}

/// What is said of a BMC, without where it is and what to do.
fn why(error: &InterfaceError) -> String {
    let text = error.to_string();
    let said = text.split_once(" has ").or(text.split_once(" with ")).map_or(&*text, |(_, said)| said);
    said.split_once("; ").map_or(said, |(said, _)| said).to_owned()
}

async fn boot(stage: &Stage) -> Vec<String> {
    let Stage { node, management, .. } = stage;
    let once = management.set_boot_device(node, BootDevice::Cdrom, false).await;
    if once.is_ok() {
        let expected = BootDeviceSetting { device: Some(BootDevice::Cdrom), persistent: Some(false) };
        assert_eq!(management.get_boot_device(node).await.unwrap(), expected);
    }
    let mut all = orders(stage, once);
    let for_good = management.set_boot_device(node, BootDevice::Disk, true).await;
    all.extend(orders(stage, for_good));
    all
}

#[tokio::test]
async fn boot_devices_are_set_where_the_bmc_has_them() {
    each_row(boot, |row| row.boot).await;
}

#[tokio::test]
async fn f57_what_is_pending_is_left_alone_when_a_machine_is_powered_on() {
    let allowable = "/Boot/BootSourceOverrideEnabled@Redfish.AllowableValues";
    let settings = "/redfish/v1/Systems/Self/SD";
    let once_only = Mockup::read("nokia-ami").with(settings, allowable, json!(["Disabled", "Once"]));
    let stage = Stage::of(once_only).await;
    let Stage { node, power, management, .. } = &stage;
    management.set_boot_device(node, BootDevice::Disk, true).await.unwrap();
    management.set_boot_device(node, BootDevice::Cdrom, false).await.unwrap();
    orders(&stage, Ok(()));
    let asked = orders(&stage, power.power_on(node).await);
    assert_eq!(asked, ["POST Systems/Self/Actions/ComputerSystem.Reset {ResetType:On}"]);
}

async fn firmware(stage: &Stage) -> Vec<String> {
    let Stage { node, management, .. } = stage;
    let mut all = Vec::new();
    for mode in [BootMode::Uefi, BootMode::Bios] {
        let done = management.set_boot_mode(node, mode).await;
        all.extend(orders(stage, done));
    }
    management.set_boot_mode(node, BootMode::Uefi).await.ok();
    orders(stage, Ok(()));
    let done = management.set_secure_boot_state(node, true).await;
    all.extend(orders(stage, done));
    all
}

#[tokio::test]
async fn boot_modes_and_secure_boot_are_set_where_the_bmc_has_them() {
    each_row(firmware, |row| row.firmware).await;
}

async fn media(stage: &Stage) -> Vec<String> {
    let Stage { node, management, .. } = stage;
    let inserted = management.attach_virtual_media(node, BootDevice::Cdrom, ISO).await;
    let is_in = inserted.is_ok();
    let mut all = orders(stage, inserted);
    if is_in {
        let media = management.get_virtual_media(node).await.unwrap();
        assert!(media.iter().any(|medium| medium.image.as_deref() == Some(ISO)), "{media:?}");
        let ejected = management.detach_virtual_media(node, &[BootDevice::Cdrom]).await;
        all.extend(orders(stage, ejected));
    }
    all
}

#[tokio::test]
async fn media_are_inserted_and_ejected_by_what_the_drive_has() {
    each_row(media, |row| row.media).await;
}

async fn power(stage: &Stage) -> Vec<String> {
    let Stage { node, power, .. } = stage;
    power.power_on(node).await.unwrap();
    orders(stage, Ok(()));
    let mut all = orders(stage, power.reset(node).await);
    all.extend(orders(stage, power.soft_power_off(node).await));
    power.power_off(node).await.unwrap();
    orders(stage, Ok(()));
    all.extend(orders(stage, power.power_on(node).await));
    all.extend(orders(stage, power.power_off(node).await));
    let kind = |order: &str| order.split_once("ResetType:").map(|(_, kind)| kind.replace('}', ""));
    all.iter().map(|order| kind(order).unwrap_or_else(|| order.clone())).collect()
}

#[tokio::test]
async fn machines_are_reset_by_kinds_that_they_have() {
    each_row(power, |row| row.power).await;
}

#[tokio::test]
async fn every_light_is_switched_and_read_as_it_is() {
    for (mockup, _) in mockups() {
        let Stage { bmc: _bmc, node, management, .. } = Stage::of(Mockup::read(mockup)).await;
        for light in management.get_supported_indicators(&node).await.unwrap() {
            for state in [IndicatorState::On, IndicatorState::Off] {
                management.set_indicator_state(&node, &light, state).await.unwrap();
                let read = management.get_indicator_state(&node, &light).await.unwrap();
                assert_eq!(read, state, "{mockup}");
            }
        }
    }
}
