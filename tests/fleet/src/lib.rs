//! A fleet of simulated machines for any Ironic: thousands of agents that speak the contract of the Ironic Python Agent and
//! of BMCs that speak Redfish in one process, faults that follow from a seed, a journal of what was asked of each machine,
//! and a driver that leads machines through their lives.
//!
//! Nothing here uses a conductor's own code: what it proves of one, it proves of another.

pub mod address;
pub mod agent;
pub mod bmc;
pub mod drive;
pub mod fault;
pub mod file;
pub mod fleet;
pub mod http;
pub mod journal;
pub mod life;
pub mod machine;
pub mod seed;
pub mod site;

pub use file::FleetFile;
pub use fleet::Fleet;
