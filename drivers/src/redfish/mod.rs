//! Machines whose BMCs speak Redfish (DMTF DSP0266; sections 9.3 to 9.5).
//!
//! A request goes a short way: an interface ([`power`], [`management`]) asks the machine of a node ([`system`]) for a
//! resource ([`resource`]); its BMC ([`bmc`]) waits at the gate, proves who asks ([`session`]), sends the request
//! ([`exchange`]) and waits for what the BMC does by and by ([`task`]). What a BMC refuses is read in [`message`]. In what
//! they differ from the schema stands in [`quirks`], and what makers have that it has not in [`screenshot`], and nowhere else.
//!
//! Certificates are verified unless the record forbids that ([`trust`]); no request follows a redirect to another host; no
//! answer is read without a bound; and a password that was refused is not tried again for a while. Passwords and tokens
//! are of a type that does not print.

mod allowable;
mod bmc;
mod bmcs;
mod boot_override;
mod connection;
mod error;
mod event_log;
mod exchange;
mod indicators;
mod management;
mod message;
mod power;
pub mod quirks;
mod resource;
mod screenshot;
mod sensors;
mod session;
mod settings;
mod subsystems;
mod system;
mod task;
mod trust;
mod virtual_media;

pub use bmcs::Bmcs;
pub use error::RedfishError;
pub use management::{Lasting, RedfishManagement};
pub use message::Refusal;
pub use power::RedfishPower;
pub use settings::RedfishSettings;

use farrier_conductor::{Builder, HardwareType};

/// The name of the hardware type, and of its interfaces.
pub const REDFISH: &str = "redfish";

/// The deploy interfaces of its machines, the best one first.
const DEPLOY: [&str; 5] = ["autodetect", "direct", "ramdisk", "bootc", "custom-agent"];

/// Adds the hardware type `redfish`, whose machines are booted by the interfaces `boot`, the best one first, which have
/// to be added too.
pub fn with_redfish(builder: Builder, bmcs: &Bmcs, boot: &[&'static str]) -> Builder {
    let lasting = Lasting::default();
    let redfish = HardwareType::new(REDFISH).power([REDFISH]).management([REDFISH, "noop"]);
    let redfish = redfish.boot(boot.iter().copied()).deploy(DEPLOY);
    let redfish = redfish.inspect(["agent", "no-inspect"]).raid(["no-raid", "agent"]);
    builder
        .power(REDFISH, RedfishPower::new(bmcs.clone(), lasting.clone()))
        .management(REDFISH, RedfishManagement::new(bmcs.clone(), lasting))
        .hardware_type(redfish.rescue(["agent", "no-rescue"]))
}
