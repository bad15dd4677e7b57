//! The life of a node under an unmodified Ironic, once for each way in which a machine boots.
//!
//! `cargo xtask test ironic` installs Ironic, builds the ramdisk and says where they are.

#![allow(clippy::unwrap_used)]

mod disks;
mod horse;
mod stable;

use farrier_tests::ironic::Control;
use horse::Horse;
use serde_json::json;
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

/// A mirror that Ironic's RAID interface has the agent make survives automated cleaning, gets the instance
/// in spite of the root device hints, and boots without either disk.
#[test]
fn ironic_d19_with_software_raid() {
    let stable = Stable::with_twins();
    let mut horse = stable.enrol(Control::Hand, true);
    horse.make_raid(&json!({"logical_disks": [
        {"controller": "software", "raid_level": "1", "size_gb": "MAX", "volume_name": "os", "is_root_volume": true},
    ]}));
    horse.provide_with_raid();
    horse.deploy_onto_raid("horse");
}

/// Ironic 26.1.6 answers the lookup of an agent in this state only with fast track.
fn service(horse: &mut Horse<'_>) {
    horse.start_fast_track();
    horse.service();
    horse.stop_fast_track();
}
