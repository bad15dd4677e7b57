//! What a driver does for the conductor: a trait for each kind of interface (sections 5, 6 and 9).
//!
//! An implementation has what it needs when it is made, and gets the node with each call. Methods that it lacks answer
//! that they are not supported, so that a driver writes only what its machines have. [`Noop`] is the interface of nodes
//! that need none.
//!
//! These work on a machine from outside, and get its node. Those that work with its agent too get a
//! [`Task`](crate::Task): [`DeployInterface`](crate::deploy::DeployInterface),
//! [`InspectInterface`](crate::in_band::InspectInterface), [`RescueInterface`](crate::in_band::RescueInterface).

pub mod agents;
pub mod base;
pub mod boot;
pub mod console;
pub mod dhcp;
pub mod indicator;
pub mod management;
pub mod network;
pub mod none;
pub mod outcome;
pub mod picture_format;
pub mod power;
pub mod raid;
pub mod storage;
pub mod vendor;

pub use agents::Agents;
pub use base::{Interface, InterfaceError, Properties};
pub use boot::{BootCapability, BootClient, BootContext, BootExtension, BootFile, BootInterface, BootNeed};
pub use console::{ConsoleAccess, ConsoleInterface};
pub use dhcp::{DhcpOption, DhcpProvider};
pub use indicator::{Indicator, IndicatorState};
pub use management::{BootDeviceSetting, FirmwareVersion, ManagementInterface, VirtualMedium};
pub use network::{NetworkInterface, NetworkKind};
pub use none::{Noop, RefusedSteps};
pub use outcome::{DriverStep, Outcome};
pub use picture_format::PictureFormat;
pub use power::{HandWork, InBandPower, PowerInterface};
pub use raid::RaidInterface;
pub use storage::StorageInterface;
pub use vendor::{VendorInterface, VendorMethod};
