//! Machines of HPE by their iLO, versions 4 to 7, whose nodes have the keys that Ironic's drivers for iLO have (section 9.6).
//!
//! An iLO speaks Redfish. In what it differs from others stands in the table of
//! [quirks](crate::redfish::quirks), where also nodes of the hardware type `redfish` find it; here the
//! keys of `driver_info` are translated into those of Redfish, and errors are translated back.

mod driver_info_keys;
mod management;
mod power;

pub use management::IloManagement;
pub use power::IloPower;

use crate::redfish::{Bmcs, Lasting};
use farrier_conductor::{Drivers, HardwareType};

/// The name of the interfaces.
const ILO: &str = "ilo";

/// The name of the hardware type, and those that nodes of old conductors have for it.
pub const HARDWARE_TYPES: [&str; 3] = [ILO, "ilo5", "agent_ilo"];

/// The deploy interfaces of its machines, the best one first.
const DEPLOY: [&str; 5] = ["autodetect", "direct", "ramdisk", "bootc", "custom-agent"];

/// Adds the hardware type `ilo` and its old names, whose machines are booted by the interfaces `boot`, the best one
/// first, which have to be added too.
pub fn with_ilo(drivers: Drivers, bmcs: &Bmcs, boot: &[&'static str]) -> Drivers {
    let lasting = Lasting::default();
    let drivers = drivers
        .power(ILO, IloPower::new(bmcs.clone(), lasting.clone()))
        .management(ILO, IloManagement::new(bmcs.clone(), lasting));
    HARDWARE_TYPES.into_iter().fold(drivers, |drivers, name| {
        let ilo = HardwareType::new(name).power([ILO]).management([ILO, "noop"]);
        let ilo = ilo.boot(boot.iter().copied()).deploy(DEPLOY);
        let ilo = ilo.inspect(["agent", "no-inspect"]).raid(["no-raid", "agent"]);
        drivers.hardware_type(ilo.rescue(["agent", "no-rescue"]))
    })
}
