//! What a machine is made of, as its ramdisk or its BMC tells (sections 8.5 and 12.6): the report, and what [`hooks`] make
//! of it for the record of the node.

pub mod bmc_addresses;
pub(crate) mod cards;
pub mod hooks;
mod identities;
mod report;
mod settings;

pub use report::{BadReport, Claim, LOGS, Report};
pub use settings::{AddPorts, InspectionSettings, KeepPorts, UnknownChoice};
