//! Fake hardware: its interfaces succeed at once, and remember their orders while the conductor
//! runs. Clients and the states of nodes are tried out with it, without a machine (Ironic's `fake-hardware`).
//!
//! [`with_fake_hardware`] adds the hardware type to a conductor. No agent ever runs on its machines: a deployment is one
//! step, and cleaning and service are steps of its vendor interface.

mod boot;
mod console;
mod deploy;
mod firmware;
mod inspect;
mod machines;
mod management;
mod power;
mod raid;
mod rescue;
mod vendor;

use boot::FakeBoot;
use console::FakeConsole;
use deploy::FakeDeploy;
use farrier_conductor::{Drivers, HardwareType};
use inspect::FakeInspect;
use machines::Machines;
use management::FakeManagement;
use power::FakePower;
use raid::FakeRaid;
use rescue::FakeRescue;
use vendor::FakeVendor;

/// The name of the hardware type.
pub const FAKE_HARDWARE: &str = "fake-hardware";

/// The name of each of its interfaces.
const FAKE: &str = "fake";

/// Adds the hardware type `fake-hardware`.
pub fn with_fake_hardware(drivers: Drivers) -> Drivers {
    let machines = Machines::default();
    let fake = HardwareType::new(FAKE_HARDWARE).power([FAKE]).management([FAKE]).boot([FAKE]);
    let fake = fake.console([FAKE, "no-console"]).bios([FAKE, "no-bios"]).firmware([FAKE, "no-firmware"]);
    let fake = fake.deploy([FAKE]).inspect([FAKE, "no-inspect"]).rescue([FAKE, "no-rescue"]);
    drivers
        .power(FAKE, FakePower::new(machines.clone()))
        .management(FAKE, FakeManagement::new(machines))
        .boot(FAKE, FakeBoot)
        .deploy(FAKE, FakeDeploy)
        .inspect(FAKE, FakeInspect)
        .raid(FAKE, FakeRaid)
        .rescue(FAKE, FakeRescue)
        .vendor(FAKE, FakeVendor)
        .console(FAKE, FakeConsole)
        .bios(FAKE, firmware::BIOS)
        .firmware(FAKE, firmware::FIRMWARE)
        .hardware_type(fake.raid([FAKE, "no-raid"]).vendor([FAKE, "no-vendor"]))
}

#[cfg(test)]
mod tests;
