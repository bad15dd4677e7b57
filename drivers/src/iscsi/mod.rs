//! The iSCSI deploy: the agent exports the root disk, and the conductor writes it (section 5.6). For sites whose machines
//! may not fetch images themselves.
//!
//! [`mod@unit`] is the exported disk, with a name and a secret that are new for each deployment, and [`proof`] which of
//! the machine's disks it is. An [`Initiator`] logs in to it, of the [`initiators`] the one that the node chooses:
//! [`qemu`] by the block layer of QEMU, as a child that needs no rights and makes no device on this host, or
//! [`open_iscsi`] by the kernel of this host, whose [`record`]s tell what a killed conductor has left. [`write`] puts the
//! image there by the same code as the agent's. [`deploy`] is the interface: whatever ends it, what it opened is closed
//! (lesson F60).

mod deploy;
mod error;
mod initiator;
mod initiators;
mod open_iscsi;
mod program;
mod proof;
mod qemu;
mod record;
mod unit;
mod write;

pub use deploy::IscsiDeploy;
pub use error::IscsiError;
pub use initiator::{Initiator, Session};
pub use initiators::Initiators;
pub use open_iscsi::OpenIscsiInitiator;
pub use qemu::QemuInitiator;
pub use unit::LogicalUnit;
pub use write::{Job, Written};

use farrier_conductor::Drivers;

/// The name of the interface.
pub const NAME: &str = "iscsi";

/// What machines must be able to deploy by, too.
const BESIDE: &str = "direct";

/// Adds the deploy interface, which all hardware types offer that are declared already and deploy by [`BESIDE`].
pub fn with_iscsi(drivers: Drivers, initiators: Initiators) -> Drivers {
    drivers.deploy(NAME, IscsiDeploy::new(initiators)).offer_deploy(NAME, BESIDE)
}

#[cfg(all(test, feature = "fake"))]
mod tests {
    use super::*;
    use crate::fake::{FAKE_HARDWARE, with_fake_hardware};
    use farrier_conductor::model::InterfaceKind::Deploy;
    use farrier_conductor::{HardwareType, Settings};

    #[test]
    fn it_is_offered_where_machines_deploy_directly_and_nowhere_else() {
        let rack = HardwareType::new("rack").power(["fake"]).boot(["fake"]).deploy(["direct"]);
        let drivers = with_fake_hardware(Drivers::default()).hardware_type(rack);
        let drivers = with_iscsi(drivers, Initiators::new(QemuInitiator::default()));
        let (hardware, _) = drivers.build(&Settings::new("http://127.0.0.1:1")).unwrap();
        assert_eq!(hardware.composition.interfaces_of("rack", Deploy).1, ["direct", NAME]);
        assert!(!hardware.composition.interfaces_of(FAKE_HARDWARE, Deploy).1.contains(&NAME));
    }
}
