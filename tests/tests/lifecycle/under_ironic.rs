//! Lives under an unmodified Ironic.

use crate::leader::Led::{ByIronic, ByIronicWithIscsi};
use crate::stable::Stable;
use farrier_tests::ramdisk::killer;
use serde_json::json;

#[test]
fn ironic_with_fast_track_and_a_machine_that_is_switched_on_by_hand() {
    crate::with_fast_track(ByIronic);
}

#[test]
fn ironic_with_virtual_media_of_a_redfish_bmc() {
    crate::with_virtual_media_of_a_redfish_bmc(ByIronic);
}

#[test]
fn ironic_with_ipxe() {
    crate::with_redfish_and_ipxe(ByIronic);
}

#[test]
fn ironic_d22_with_automated_cleaning_that_erases_disks() {
    crate::with_automated_cleaning_that_erases_disks(ByIronic);
}

/// An agent that is killed in the middle of a step of any kind has not done it: Ironic says why the operation
/// failed, and the next attempt succeeds; of services, the one after that.
#[test]
fn ironic_x01_with_an_agent_that_is_killed_in_the_middle_of_steps() {
    let stable = Stable::with_killer();
    let mut horse = stable.enrol(false);
    horse.be_cut_off_cleaning("erase_devices");
    horse.be_cut_off_cleaning("erase_devices_metadata");
    horse.be_cut_off_by_a_step();
    horse.clean(&[killer::COUNT_LINGERING, "erase_devices_metadata", "erase_devices"]);
    horse.assert_disks_erased();
    horse.provide();
    horse.be_cut_off_deploying("mule");
    horse.deploy("horse");
    horse.start_fast_track();
    horse.be_cut_off_in_service();
    horse.service_in_vain();
    horse.take_service_step();
}

#[test]
fn ironic_d19_with_debian_on_a_mirror() {
    crate::with_debian_on_a_mirror(ByIronic);
}

#[test]
fn ironic_d19_with_debian_on_striped_mirrors() {
    crate::with_debian_on_striped_mirrors(ByIronic);
}

/// A manager of a third party, in fewer than 60 lines of Python, adds a clean step: Ironic lists it, runs it
/// by hand and by itself, and shows why it failed.
#[test]
fn ironic_with_a_third_partys_hardware_manager() {
    const STEP: &str = "check_asset_tag";
    let manager = include_str!("../../../hardware-managers/examples/asset_tag.py");
    assert!(manager.lines().count() < 60);
    let stable = Stable::with_asset_tag("HORSE-7");
    let mut horse = stable.enrol(false);
    horse.expect_asset_tag("PONY-3");
    let error = horse.fail_to_clean(STEP);
    assert!(error.contains("the asset tag is 'HORSE-7', expected 'PONY-3'"), "{error}");
    horse.expect_asset_tag("HORSE-7");
    horse.clean(&[STEP]);
    let steps = horse.provide_and_list_steps();
    let step = steps.iter().find(|step| step["step"] == STEP).unwrap_or_else(|| panic!("{steps:?}"));
    assert_eq!((&step["interface"], &step["priority"]), (&json!("deploy"), &json!(20)));
}

/// The last release that writes images itself finds our agent's export as it found the Python agent's.
#[test]
fn ironic_iscsi_17_writes_the_disk_that_the_agent_exports() {
    let stable = Stable::new(ByIronicWithIscsi);
    let mut horse = stable.enrol(false);
    horse.provide_uncleaned();
    horse.deploy("horse");
    horse.rebuild("pony");
}
