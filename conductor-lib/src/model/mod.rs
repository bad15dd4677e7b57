//! The records of a node, its ports and its agent, and the states a node moves through.
//!
//! Maps that operators fill are maps with typed readers ([`DriverInfo`], [`InstanceInfo`], [`Properties`]); the
//! conductor's own notes are fields, with a place for everything else ([`DriverInternalInfo`]). Either way a key that
//! this conductor does not know stays.

mod agent_session;
pub mod clock;
mod inspection_data;
mod log_entry;
mod mac_address;
mod name;
pub mod node;
pub mod states;
pub mod steps;
pub mod typed_maps;

pub use agent_session::AgentSession;
pub use farrier_protocol::error_code::{ErrorCode, split_code};
pub use inspection_data::InspectionData;
pub use log_entry::LogEntry;
pub use mac_address::{MacAddress, ParseMacAddressError};
pub use name::is_name;
pub use node::instance_uuid::{InstanceUuid, OtherInstance};
pub use node::interfaces::{InterfaceKind, NodeInterfaces};
pub use node::port::Port;
pub use node::port_group::PortGroup;
pub use node::traits::{BadTrait, check_trait};
pub use node::{InitialState, NewNode, Node};
pub use states::boot_device::BootDevice;
pub use states::faults::Fault;
pub use states::power_action::PowerAction;
pub use states::transitions::Event;
pub use states::{Activity, Family, PowerState, ProvisionState};
pub use steps::step::{PlannedStep, RequestedStep, StepId, StepKind};
pub use steps::step_plan::StepPlan;
pub use typed_maps::capabilities::{BootMode, Capabilities};
pub use typed_maps::driver_info::DriverInfo;
pub use typed_maps::driver_internal_info::{BootFallback, DriverInternalInfo};
pub use typed_maps::erasure::Erasure;
pub use typed_maps::instance_info::InstanceInfo;
pub use typed_maps::mask::{mask_value, masked_text};
pub use typed_maps::noted_export::NotedExport;
pub use typed_maps::properties::Properties;
#[cfg(feature = "drivers")]
pub use typed_maps::ramdisk_instance::RamdiskInstance;
pub use typed_maps::rescue_password::PasswordHashAlgorithm;
pub use typed_maps::typed_map::BadValue;
