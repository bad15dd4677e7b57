//! Machines whose BMCs speak Redfish (DMTF DSP0266; sections 9.3 to 9.5).
//!
//! A request goes a short way: an interface ([`power`], [`management`]) asks the machine of a node ([`system`]) for a
//! resource ([`resource`](client::resource)); its BMC ([`bmc`](client::bmc)) waits for its rate limit, proves who asks ([`session`](client::session)), sends the request
//! ([`exchange`](client::exchange)) and waits for what the BMC does by and by ([`task`](client::task)). What a BMC refuses is read in [`message`](client::message). In what
//! they differ from the schema stands in [`quirks`], and what makers have that it has not in [`screenshot`], and nowhere else.
//!
//! Certificates are verified unless the record forbids that ([`trust`](client::trust)); no request follows a redirect to another host; no
//! answer is read without a bound; and a password that was refused is not tried again for a while. Passwords and tokens
//! are of a type that does not print.

mod boot_override;
mod client;
mod event_log;
mod indicators;
mod inspect;
mod management;
mod power;
pub mod quirks;
mod screenshot;
mod sensors;
mod subsystems;
mod system;
mod virtual_media;

pub use client::bmcs::Bmcs;
pub use client::error::RedfishError;
pub use client::message::Refusal;
pub use client::settings::RedfishSettings;
pub use inspect::RedfishInspect;
pub use management::{Lasting, RedfishManagement};
pub use power::RedfishPower;

use farrier_conductor::interfaces::RefusedSteps;
use farrier_conductor::model::{InterfaceKind, StepKind};
use farrier_conductor::registry::Unsupported;
use farrier_conductor::{Drivers, HardwareType};

/// The name of the hardware type, and of its interfaces.
pub const REDFISH: &str = "redfish";

/// The name of the hardware type of Dell's machines.
pub const IDRAC: &str = "idrac";

/// The name of its interfaces, which are those of [`REDFISH`].
const IDRAC_REDFISH: &str = "idrac-redfish";

/// The deploy interfaces of its machines, the best one first.
const DEPLOY: [&str; 5] = ["autodetect", "direct", "ramdisk", "bootc", "custom-agent"];

/// What clients name for each node, and what refuses each of its steps.
const REFUSED: [RefusedSteps; 3] = [
    RefusedSteps {
        kind: InterfaceKind::Bios,
        steps: &[("apply_configuration", &["settings"]), ("factory_reset", &[])],
        of: &[StepKind::Clean, StepKind::Deploy, StepKind::Service],
        reason: "settings of the firmware are not changed out of band; change them by the BMC's own tools",
    },
    RefusedSteps {
        kind: InterfaceKind::Firmware,
        steps: &[("update", &["settings"])],
        of: &[StepKind::Clean, StepKind::Service],
        reason: "firmware is not updated out of band; update it by the BMC's own tools",
    },
    RefusedSteps {
        kind: InterfaceKind::Raid,
        steps: &[
            ("create_configuration", &["create_root_volume", "create_nonroot_volumes", "delete_existing"]),
            ("delete_configuration", &[]),
            (
                "apply_configuration",
                &["raid_config", "create_root_volume", "create_nonroot_volumes", "delete_existing"],
            ),
        ],
        of: &[StepKind::Clean, StepKind::Deploy, StepKind::Service],
        reason: "volumes of RAID controllers are not made out of band; set raid_interface to agent for software RAID, or \
                 make them by the BMC's own tools",
    },
];

/// Adds the hardware type `redfish`, whose machines are booted by the interfaces `boot`, the best one first, which have
/// to be added too.
pub fn with_redfish(drivers: Drivers, bmcs: &Bmcs, boot: &[&'static str]) -> Drivers {
    with_types(drivers, bmcs, &[(REDFISH, boot)])
}

/// Adds hardware types of machines whose BMCs speak Redfish, [`REDFISH`] or [`IDRAC`], each with the interfaces by which
/// its machines are booted, the best one first, which have to be added too.
pub fn with_types(drivers: Drivers, bmcs: &Bmcs, types: &[(&'static str, &[&'static str])]) -> Drivers {
    let lasting = Lasting::default();
    let drivers = [REDFISH, IDRAC_REDFISH].into_iter().fold(drivers, |drivers, name| {
        let drivers = drivers
            .power(name, RedfishPower::new(bmcs.clone(), lasting.clone()))
            .management(name, RedfishManagement::new(bmcs.clone(), lasting.clone()))
            .inspect(name, RedfishInspect::new(bmcs.clone()))
            .vendor(name, Unsupported(InterfaceKind::Vendor));
        let [bios, firmware, raid] = REFUSED;
        drivers.bios(name, bios).firmware(name, firmware).raid(name, raid)
    });
    types.iter().fold(drivers, |drivers, (name, boot)| drivers.hardware_type(hardware_type(name, boot)))
}

fn hardware_type(name: &str, boot: &[&'static str]) -> HardwareType {
    // Names that nodes of Ironic have for one interface.
    let own: &[&str] = if name == IDRAC { &[IDRAC_REDFISH, REDFISH] } else { &[REDFISH] };
    let with = |first: &[&'static str], last: &[&'static str]| [first, own, last].concat();
    HardwareType::new(name)
        .power(with(&[], &[]))
        .management(with(&[], &["noop"]))
        .boot(boot.iter().copied())
        .deploy(DEPLOY)
        .inspect(with(&["agent"], &["no-inspect"]))
        .raid(with(&["no-raid", "agent"], &[]))
        .bios(with(&[], &["no-bios"]))
        .firmware(with(&[], &["no-firmware"]))
        .vendor(with(&["no-vendor"], &[]))
        .rescue(["agent", "no-rescue"])
}
