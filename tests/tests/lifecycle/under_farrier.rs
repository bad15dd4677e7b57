//! The same lives under `farrier`, and one with the Python agent.

use crate::leader::Led::{ByFarrier, ThroughBmc};
use crate::stable::Stable;
use farrier_tests::bmc::ipmi::Simulator;
use farrier_tests::conductor::node_api::Control;

#[test]
fn lifecycle_with_fast_track() {
    crate::with_fast_track(ByFarrier);
}

/// Every operation on its own boot.
#[test]
fn lifecycle_with_a_boot_for_every_operation() {
    let stable = Stable::new(ByFarrier);
    let mut horse = stable.enrol(false);
    horse.inspect_and_clean();
    horse.mark_disks();
    horse.provide();
    horse.deploy("horse");
    assert_eq!(horse.ramdisk_boots(), 4, "inspection, both cleanings and deployment");
}

#[test]
fn lifecycle_with_virtual_media_of_a_redfish_bmc() {
    crate::with_virtual_media_of_a_redfish_bmc(ThroughBmc);
}

#[test]
fn lifecycle_with_redfish_and_ipxe() {
    crate::with_redfish_and_ipxe(ThroughBmc);
}

#[test]
fn lifecycle_with_ipmi_and_ipxe() {
    let stable = Stable::new(ThroughBmc);
    let bmc = Simulator::start(&stable.hardware, &stable.leader.ipxe_script()).unwrap();
    crate::with_ipxe(&mut stable.enrol_under(Control::Ipmi(bmc.port()), false));
    let told = bmc.told().unwrap();
    let times = |order: &str| told.iter().filter(|one| *one == order).count();
    assert!(times("set boot pxe") >= 8, "not for each boot of the ramdisk: {told:?}");
}

#[test]
fn lifecycle_d22_with_automated_cleaning_that_erases_disks() {
    crate::with_automated_cleaning_that_erases_disks(ByFarrier);
}

#[test]
fn lifecycle_d19_with_debian_on_a_mirror() {
    crate::with_debian_on_a_mirror(ByFarrier);
}

#[test]
fn lifecycle_d19_with_debian_on_striped_mirrors() {
    crate::with_debian_on_striped_mirrors(ByFarrier);
}

/// The Python agent 13, unchanged, serves a machine from its inspection until it waits for its second user.
#[test]
fn lifecycle_with_the_python_agent() {
    let stable = Stable::with_python_agent(ByFarrier);
    let mut horse = stable.enrol(true);
    horse.inspect_and_clean();
    horse.provide();
    horse.deploy_debian("horse");
    horse.stop_fast_track();
    horse.undeploy();
}
