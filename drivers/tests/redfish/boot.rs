//! What machines start from, their firmware, and what else management tells.

use crate::stage::{Stage, settings};
use crate::stand_in::Manner;
use axum::http::Method;
use farrier_conductor::interfaces::{BootDeviceSetting, IndicatorState, ManagementInterface, PowerInterface};
use farrier_conductor::model::{BootDevice, BootMode};
use farrier_drivers::redfish::RedfishSettings;
use farrier_drivers::redfish::quirks::{Quirk, Quirks};
use serde_json::json;

#[tokio::test]
async fn a_boot_device_is_set_for_once_and_for_all() {
    let Stage { bmc, node, power, management } = Stage::new([]).await;
    assert_eq!(management.get_boot_device(&node).await.unwrap(), BootDeviceSetting::default());
    management.set_boot_device(&node, BootDevice::Cdrom, false).await.unwrap();
    let cd = BootDeviceSetting { device: Some(BootDevice::Cdrom), persistent: Some(false) };
    assert_eq!(management.get_boot_device(&node).await.unwrap(), cd);
    power.power_on(&node).await.unwrap();
    management.set_boot_device(&node, BootDevice::Disk, true).await.unwrap();
    power.reboot(&node).await.unwrap();
    power.reboot(&node).await.unwrap();
    assert_eq!(bmc.inner().machine.started_from, ["Cd", "Hdd", "Hdd"]);
    management.set_boot_device(&node, BootDevice::Pxe, true).await.unwrap();
    let boots: Vec<_> = bmc.bodies(&Method::PATCH).into_iter().map(|body| body["Boot"].clone()).collect();
    assert_eq!(
        boots,
        [
            json!({"BootSourceOverrideTarget": "Cd", "BootSourceOverrideEnabled": "Once"}),
            json!({"BootSourceOverrideTarget": "Hdd", "BootSourceOverrideEnabled": "Continuous"}),
            // What is so already is left out.
            json!({"BootSourceOverrideTarget": "Pxe"}),
        ]
    );
}

#[tokio::test]
async fn a_device_that_the_machine_has_not_is_refused_with_those_that_it_has() {
    let Stage { bmc: _bmc, node, management, .. } = Stage::new([]).await;
    let error = management.set_boot_device(&node, BootDevice::Uefihttp, false).await.unwrap_err().to_string();
    assert!(error.contains("cannot start from uefihttp, but from None, Pxe, Cd"), "{error}");
}

/// Twice the same lesson: what was ordered counts when it is read again.
#[tokio::test]
async fn f57_f24_an_override_is_read_again_and_keeps_the_boot_mode() {
    let manners = [Manner::Odd(Quirk::ModeFallsBack)];
    let Stage { bmc, node, management, .. } = Stage::new(manners).await;
    management.set_boot_device(&node, BootDevice::Disk, true).await.unwrap();
    assert_eq!(bmc.inner().machine.boot.mode, "UEFI");
    let settings = RedfishSettings { quirks: Quirks::all().without(Quirk::CompleteBoot), ..settings() };
    let Stage { bmc: _bmc, node, management, .. } =
        Stage::with([Manner::Odd(Quirk::CompleteBoot)], settings).await;
    management.set_boot_device(&node, BootDevice::Disk, true).await.unwrap();
}

#[tokio::test]
async fn f57_what_no_bmc_keeps_is_set_again_before_each_power_on() {
    let Stage { bmc, node, power, management } = Stage::new([Manner::Odd(Quirk::OnceOnly)]).await;
    management.set_boot_device(&node, BootDevice::Disk, true).await.unwrap();
    power.power_on(&node).await.unwrap();
    power.reboot(&node).await.unwrap();
    management.set_boot_device(&node, BootDevice::Cdrom, false).await.unwrap();
    power.reboot(&node).await.unwrap();
    power.reboot(&node).await.unwrap();
    assert_eq!(bmc.inner().machine.started_from, ["Hdd", "Hdd", "Cd", "Hdd"]);
}

#[tokio::test]
async fn f23_a_maker_whose_firmware_minds_gets_no_override_beside_a_boot_entry() {
    let Stage { bmc, node, power, management } = Stage::new([Manner::Odd(Quirk::FirmwareOrder)]).await;
    management.set_boot_device(&node, BootDevice::Cdrom, false).await.unwrap();
    power.power_on(&node).await.unwrap();
    management.set_boot_device(&node, BootDevice::Disk, true).await.unwrap();
    power.reboot(&node).await.unwrap();
    assert_eq!(bmc.inner().machine.started_from, ["Cd", "its own order"]);
}

#[tokio::test]
async fn boot_mode_and_secure_boot_are_set_and_read_again() {
    let Stage { bmc, node, management, .. } = Stage::new([]).await;
    management.set_secure_boot_state(&node, true).await.unwrap();
    assert!(management.get_secure_boot_state(&node).await.unwrap());
    management.set_secure_boot_state(&node, false).await.unwrap();
    management.set_boot_mode(&node, BootMode::Bios).await.unwrap();
    assert_eq!(management.get_boot_mode(&node).await.unwrap(), BootMode::Bios);
    let error = management.set_secure_boot_state(&node, true).await.unwrap_err().to_string();
    assert!(error.contains("set its boot mode to uefi first"), "{error}");
    assert!(!bmc.inner().machine.secure_boot);
}

#[tokio::test]
async fn management_reads_what_the_machine_is() {
    let Stage { bmc, node, power, management } = Stage::new([]).await;
    assert_eq!(management.detect_vendor(&node).await.unwrap(), "Farm");
    let addresses = management.get_mac_addresses(&node).await.unwrap();
    let texts: Vec<_> = addresses.iter().map(ToString::to_string).collect();
    assert_eq!(texts, ["52:54:00:00:00:01", "52:54:00:00:00:02"], "one card cannot be read");
    let sensors = management.get_sensors_data(&node).await.unwrap();
    assert_eq!(sensors["Fan"]["0@1"]["reading"], 2100);
    assert_eq!(sensors["Fan"]["0@1"]["health"], "OK");
    assert_eq!(sensors["Temperature"]["3@1"]["reading_celsius"], 21.5);
    power.power_on(&node).await.unwrap();
    management.inject_nmi(&node).await.unwrap();
    assert_eq!(bmc.inner().machine.started_from, ["its own order", "NMI"]);
}

#[tokio::test]
async fn lights_are_switched_and_looked_at_again() {
    let Stage { bmc, node, management, .. } = Stage::new([]).await;
    let lights = management.get_supported_indicators(&node).await.unwrap();
    let names: Vec<_> = lights.iter().map(|light| (light.component.as_str(), light.name.as_str())).collect();
    assert_eq!(names, [("system", "1"), ("chassis", "1")]);
    let [own, enclosure] = lights.as_slice() else { panic!("{lights:?}") };
    assert_eq!(own.states, [IndicatorState::On, IndicatorState::Off]);
    management.set_indicator_state(&node, own, IndicatorState::On).await.unwrap();
    assert!(bmc.inner().machine.is_located);
    assert_eq!(management.get_indicator_state(&node, own).await.unwrap(), IndicatorState::On);
    management.set_indicator_state(&node, enclosure, IndicatorState::On).await.unwrap();
    assert_eq!(bmc.inner().machine.led, "Lit");
    // A light that stays as it was.
    let error = management.set_indicator_state(&node, enclosure, IndicatorState::Blinking).await.unwrap_err();
    assert!(error.to_string().contains("a light that is on, not blinking"), "{error}");
}

#[tokio::test]
async fn versions_of_firmware_are_those_of_the_machine_and_of_its_bmc() {
    let Stage { bmc: _bmc, node, management, .. } = Stage::new([]).await;
    let versions = management.get_firmware_versions(&node).await.unwrap();
    let read: Vec<_> = versions.iter().map(|one| (one.component.as_str(), one.version.as_str())).collect();
    assert_eq!(read, [("bios", "U30 v2.1"), ("bmc", "iLO 5 v2.44")]);
}
