//! What a driver does for the conductor: a trait for each kind of interface (sections 5, 6 and 9).
//!
//! An implementation has what it needs when it is made, and gets the node with each call. Methods that it lacks answer
//! that they are not supported, so that a driver writes only what its machines have. [`Noop`] and [`Absent`] are the
//! interfaces of nodes that need none.
//!
//! Most work on a machine from outside, and get its node. Those that work with its agent too ([`deploy`], [`inspect`],
//! [`raid`], [`rescue`]) get a [`Task`](crate::Task).

pub mod base;
pub mod boot;
pub mod console;
pub mod deploy;
pub mod dhcp;
pub mod firmware_version;
pub mod indicator;
pub mod inspect;
pub mod management;
pub mod network;
pub mod none;
pub mod outcome;
pub mod picture_format;
pub mod power;
pub mod raid;
pub mod rescue;
pub mod steps;
pub mod storage;
pub mod vendor;

pub use base::{Interface, InterfaceError, Properties};
pub use boot::{BootCapability, BootClient, BootContext, BootFile, BootInterface, BootNeed};
pub use console::{ConsoleAccess, ConsoleInterface};
pub use deploy::DeployInterface;
pub use dhcp::{DhcpOption, DhcpProvider};
pub use firmware_version::FirmwareVersion;
pub use indicator::{Indicator, IndicatorState};
pub use inspect::InspectInterface;
pub use management::{BootDeviceSetting, ManagementInterface, VirtualMedium};
pub use network::{NetworkInterface, NetworkKind};
pub use none::{Absent, Noop, RefusedSteps};
pub use outcome::Outcome;
pub use picture_format::PictureFormat;
pub use power::{HandWork, InBandPower, PowerInterface};
pub use raid::RaidInterface;
pub use rescue::RescueInterface;
pub use steps::DriverStep;
pub use storage::StorageInterface;
pub use vendor::{VendorInterface, VendorMethod};
