//! Machines whose BMCs speak IPMI, led by the program `ipmitool` (section 9.7).
//!
//! [`program`] runs it; [`bmcs`] keeps the rate limit of each BMC, asks one again that is busy, finds a cipher suite that it
//! has, and leaves it alone when it has refused a password. [`power`], [`management`],
//! [`console`] and [`vendor`] are the interfaces; an open console is a process of its own ([`sol`]), whose log is a
//! [`ring`].

mod bmcs;
mod connection;
mod console;
mod error;
mod event_log;
mod management;
mod power;
mod program;
mod ring;
mod sol;
mod vendor;

pub use bmcs::{Bmcs, IpmiSettings};
pub use console::IpmiConsole;
pub use error::IpmiError;
pub use management::IpmiManagement;
pub use power::IpmiPower;
pub use sol::Reopening;
pub use vendor::IpmiVendor;

use farrier_conductor::{Drivers, HardwareType};
use std::path::Path;

/// The name of the interfaces.
const IPMITOOL: &str = "ipmitool";

/// The name of the hardware type, and those that nodes of old conductors have for it.
pub const HARDWARE_TYPES: [&str; 3] = ["ipmi", "pxe_ipmitool", "agent_ipmitool"];

/// The deploy interfaces of its machines, the best one first.
const DEPLOY: [&str; 5] = ["autodetect", "direct", "ramdisk", "bootc", "custom-agent"];

/// Adds the hardware type `ipmi` and its old names, whose machines are booted by the interfaces `boot`, the best one
/// first, which have to be added too. The logs of their consoles are kept below `state_dir`.
pub fn with_ipmitool(
    drivers: Drivers,
    settings: IpmiSettings,
    state_dir: &Path,
    boot: &[&'static str],
) -> Drivers {
    let bmcs = Bmcs::new(settings);
    let drivers = drivers
        .power(IPMITOOL, IpmiPower::new(bmcs.clone()))
        .management(IPMITOOL, IpmiManagement::new(bmcs.clone()))
        .console(IPMITOOL, IpmiConsole::new(bmcs.clone(), state_dir))
        .vendor(IPMITOOL, IpmiVendor::new(bmcs));
    HARDWARE_TYPES.into_iter().fold(drivers, |drivers, name| {
        let ipmi = HardwareType::new(name).power([IPMITOOL]).management([IPMITOOL, "noop"]);
        let ipmi = ipmi.boot(boot.iter().copied()).deploy(DEPLOY).vendor([IPMITOOL, "no-vendor"]);
        let ipmi = ipmi.console([IPMITOOL, "no-console"]);
        let ipmi = ipmi.inspect(["agent", "no-inspect"]).raid(["no-raid", "agent"]);
        drivers.hardware_type(ipmi.rescue(["agent", "no-rescue"]))
    })
}
