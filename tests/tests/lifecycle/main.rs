//! The life of a node, led over Ironic's REST interface: by an unmodified Ironic once for each way in which a machine
//! boots, and by `farrier`, with the same requests and the same things looked at.
//!
//! `cargo xtask test ironic` installs Ironic, builds the ramdisk and says where they are; `cargo xtask test lifecycle`
//! does so for `farrier`, and for the Python agent.

#![allow(clippy::unwrap_used)]

mod disks;
mod horse;
mod leader;
mod stable;
mod system;
mod tutorial;
mod under_farrier;
mod under_ironic;

use farrier_tests::conductor::node_api::Control;
use farrier_tests::images::server::ImageServer;
use horse::Horse;
use leader::Led;
use serde_json::{Value, json};
use stable::Stable;

/// Kernel and ramdisk are handed to the firmware; one boot serves everything up to the deployment.
fn with_fast_track(led: Led) {
    let stable = Stable::new(led);
    let mut horse = stable.enrol(true);
    horse.inspect_and_clean();
    horse.provide();
    horse.deploy("horse");
    assert_eq!(horse.ramdisk_boots(), 1, "the ramdisk was booted again in spite of fast track");
    horse.stop_fast_track();
    horse.fail_to_rebuild();
    horse.rebuild("pony");
    horse.rescue();
    horse.unrescue();
    horse.service();
    horse.undeploy();
}

/// Every operation on its own boot of a medium that a Redfish BMC puts into its virtual drive.
fn with_virtual_media_of_a_redfish_bmc(led: Led) {
    let stable = Stable::new(led);
    let bmc = stable.bmc(None);
    let (address, system, iso) = (bmc.address(), bmc.system(), stable.leader.iso(&stable.dist));
    let url = iso.as_ref().map(ImageServer::url);
    let boot = "redfish-virtual-media";
    let control = Control::Redfish { address: &address, system: &system, boot, iso: url.as_deref() };
    let mut horse = stable.enrol_under(control, false);
    horse.inspect_and_clean();
    horse.mark_disks();
    horse.provide();
    horse.deploy("horse");
    horse.rebuild("pony");
    if stable.leader.rescues_by_virtual_media() {
        let read = || iso.as_ref().map(ImageServer::requests);
        let before = read();
        assert_ne!(before, Some(0), "nobody has read the ISO");
        horse.rescue_with_its_ramdisk_kept();
        assert_eq!(read(), before, "the rescue has a kernel and a ramdisk of its own");
        horse.unrescue();
    }
    horse.service();
    horse.undeploy();
}

/// The same with an iPXE ROM, which fetches what the conductor serves, and a Redfish BMC.
fn with_redfish_and_ipxe(led: Led) {
    let stable = Stable::new(led);
    let bmc = stable.bmc(Some(&stable.leader.ipxe_script()));
    let (address, system) = (bmc.address(), bmc.system());
    let control = Control::Redfish { address: &address, system: &system, boot: "ipxe", iso: None };
    with_ipxe(&mut stable.enrol_under(control, false));
}

/// Every operation on its own boot by iPXE.
fn with_ipxe(horse: &mut Horse<'_>) {
    horse.inspect_and_clean();
    horse.provide();
    horse.deploy("horse");
    horse.rebuild("pony");
    horse.rescue();
    horse.unrescue();
    horse.service();
    horse.undeploy();
}

/// Nothing of what filled every sector of four disks is left after automated cleaning.
fn with_automated_cleaning_that_erases_disks(led: Led) {
    let stable = Stable::with_full_disks(led);
    let mut horse = stable.enrol(false);
    horse.provide();
    horse.assert_disks_erased();
}

/// A Debian system on a mirror boots without either disk.
fn with_debian_on_a_mirror(led: Led) {
    let os = json!({"raid_level": "1", "size_gb": "MAX", "volume_name": "os", "is_root_volume": true});
    boots_from_raid(led, &["ONE", "TWO"], 4096, &[os]);
}

/// A Debian system on striped mirrors boots without any one disk.
fn with_debian_on_striped_mirrors(led: Led) {
    let data = json!({"raid_level": "1", "size_gb": 1, "volume_name": "data"});
    let os = json!({"raid_level": "1+0", "size_gb": "MAX", "volume_name": "os", "is_root_volume": true});
    boots_from_raid(led, &["ONE", "TWO", "THREE", "FOUR"], 2560, &[data, os]);
}

/// Volumes that the conductor's RAID interface has the agent make survive automated cleaning, get the system in
/// spite of the root device hints, and boot it without each disk in turn.
fn boots_from_raid(led: Led, serials: &[&'static str], mebibytes: u64, volumes: &[Value]) {
    let stable = Stable::with_equal_disks(led, serials, mebibytes << 20);
    let mut horse = stable.enrol(true);
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
