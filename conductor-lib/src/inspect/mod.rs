//! Inspection: what a machine is made of, as its ramdisk tells (sections 8.5 and 12.6).
//!
//! An inspection boots the ramdisk, which posts its inventory and nothing else: what it posts is written down with the
//! end of the wait, in one transaction, and a worker goes on from there ([`operation`]). The machine is put right
//! first; then [`hooks`] look at the inventory, and what they want changed is written with the end of the inspection.
//! So whatever stops a conductor, an inspection has changed nothing yet, or it is done.

pub(crate) mod agent;
pub mod bmc_addresses;
mod callback;
mod cards;
mod discovery;
pub mod hooks;
mod identities;
pub(crate) mod operation;
mod orders;
mod report;
pub(crate) mod settings;

pub use agent::{AgentInspect, take_over};
pub use report::LOGS;
pub use report::{Claim, Report};
pub use settings::{AddPorts, InspectionSettings, KeepPorts, UnknownChoice};
