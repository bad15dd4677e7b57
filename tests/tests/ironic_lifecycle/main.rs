//! The life of a node under an unmodified Ironic, once for each way in which a machine boots.
//!
//! `cargo xtask test ironic` installs Ironic, builds the ramdisk and says where they are.

#![allow(clippy::unwrap_used)]

mod disks;
mod horse;
mod stable;
mod system;

use farrier_tests::ironic::Control;
use farrier_tests::killer;
use horse::Horse;
use serde_json::{Value, json};
use stable::Stable;

/// Kernel and ramdisk are handed to the firmware; one boot serves everything up to the deployment.
#[test]
fn ironic_with_fast_track_and_a_machine_that_is_switched_on_by_hand() {
    let stable = Stable::new();
    let mut horse = stable.enrol(Control::Hand, true);
    horse.mark_disks();
    horse.inspect();
    horse.clean(&["erase_devices_metadata"]);
    horse.assert_no_marks();
    horse.provide();
    horse.deploy("horse");
    assert_eq!(horse.ramdisk_boots(), 1, "the ramdisk was booted again in spite of fast track");
    horse.stop_fast_track();
    horse.fail_to_rebuild();
    horse.rebuild("pony");
    horse.rescue();
    horse.unrescue();
    service(&mut horse);
    horse.undeploy();
}

/// Every operation on its own boot of an image that a Redfish BMC puts into its virtual drive.
#[test]
fn ironic_with_virtual_media_of_a_redfish_bmc() {
    let stable = Stable::new();
    let bmc = stable.bmc(None);
    let (address, system) = (bmc.address(), bmc.system());
    let boot = "redfish-virtual-media";
    let mut horse = stable.enrol(Control::Redfish { address: &address, system: &system, boot }, false);
    horse.mark_disks();
    horse.inspect();
    horse.clean(&["erase_devices_metadata"]);
    horse.assert_no_marks();
    horse.mark_disks();
    horse.provide();
    horse.deploy("horse");
    horse.rebuild("pony");
    if stable.ironic.rescues_by_virtual_media() {
        // Without it Ironic 39.0.0 switches a machine off when it has been rescued.
        horse.start_fast_track();
        horse.rescue();
        horse.stop_fast_track();
        horse.unrescue();
    }
    service(&mut horse);
    horse.undeploy();
}

/// The same with an iPXE ROM, which fetches what Ironic wrote.
#[test]
fn ironic_with_ipxe() {
    let stable = Stable::new();
    let bmc = stable.bmc(Some(&stable.ironic.ipxe_script()));
    let (address, system) = (bmc.address(), bmc.system());
    let mut horse =
        stable.enrol(Control::Redfish { address: &address, system: &system, boot: "ipxe" }, false);
    horse.mark_disks();
    horse.inspect();
    horse.clean(&["erase_devices_metadata"]);
    horse.assert_no_marks();
    horse.provide();
    horse.deploy("horse");
    horse.rebuild("pony");
    horse.rescue();
    horse.unrescue();
    service(&mut horse);
    horse.undeploy();
}

/// Nothing of what filled every sector of four disks is left after automated cleaning.
#[test]
fn ironic_d22_with_automated_cleaning_that_erases_disks() {
    let stable = Stable::with_full_disks();
    let mut horse = stable.enrol(Control::Hand, false);
    horse.provide();
    horse.assert_disks_erased();
}

/// An agent that is killed in the middle of a step of any kind has not done it: Ironic says why the operation
/// failed, and the next attempt succeeds; of services, the one after that.
#[test]
fn ironic_x01_with_an_agent_that_is_killed_in_the_middle_of_steps() {
    let stable = Stable::with_killer();
    let mut horse = stable.enrol(Control::Hand, false);
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
    horse.service();
}

/// A Debian system on a mirror boots without either disk.
#[test]
fn ironic_d19_with_debian_on_a_mirror() {
    let os = json!({"raid_level": "1", "size_gb": "MAX", "volume_name": "os", "is_root_volume": true});
    boots_from_raid(&["ONE", "TWO"], 4096, &[os]);
}

/// A Debian system on striped mirrors boots without any one disk.
#[test]
fn ironic_d19_with_debian_on_striped_mirrors() {
    let data = json!({"raid_level": "1", "size_gb": 1, "volume_name": "data"});
    let os = json!({"raid_level": "1+0", "size_gb": "MAX", "volume_name": "os", "is_root_volume": true});
    boots_from_raid(&["ONE", "TWO", "THREE", "FOUR"], 2560, &[data, os]);
}

/// A manager of a third party, in fewer than 60 lines of Python, adds a clean step: Ironic lists it, runs it
/// by hand and by itself, and shows why it failed.
#[test]
fn ironic_with_a_third_partys_hardware_manager() {
    const STEP: &str = "check_asset_tag";
    let manager = include_str!("../../../hardware-managers/examples/asset_tag.py");
    assert!(manager.lines().count() < 60);
    let stable = Stable::with_asset_tag("HORSE-7");
    let mut horse = stable.enrol(Control::Hand, false);
    horse.expect_asset_tag("PONY-3");
    let error = horse.fail_to_clean(STEP);
    assert!(error.contains("the asset tag is 'HORSE-7', expected 'PONY-3'"), "{error}");
    horse.expect_asset_tag("HORSE-7");
    horse.clean(&[STEP]);
    let steps = horse.provide_and_list_steps();
    let step = steps.iter().find(|step| step["step"] == STEP).unwrap_or_else(|| panic!("{steps:?}"));
    assert_eq!((&step["interface"], &step["priority"]), (&json!("deploy"), &json!(20)));
}

/// Volumes that Ironic's RAID interface has the agent make survive automated cleaning, get the system in
/// spite of the root device hints, and boot it without each disk in turn.
fn boots_from_raid(serials: &[&'static str], mebibytes: u64, volumes: &[Value]) {
    let stable = Stable::with_equal_disks(serials, mebibytes << 20);
    let mut horse = stable.enrol(Control::Hand, true);
    let volumes: Vec<_> = volumes
        .iter()
        .map(|volume| {
            let mut volume = volume.clone();
            volume["controller"] = json!("software");
            volume
        })
        .collect();
    horse.make_raid(&json!({"logical_disks": volumes}));
    horse.provide_with_raid();
    horse.deploy_onto_raid("horse");
}

/// Ironic 26.1.6 answers the lookup of an agent in this state only with fast track.
fn service(horse: &mut Horse<'_>) {
    horse.start_fast_track();
    horse.service();
    horse.stop_fast_track();
}
