//! The records of a node, its ports, its agent and its order, and the states a node moves through.
//!
//! Maps that operators fill are maps with typed readers ([`DriverInfo`], [`InstanceInfo`], [`Properties`]); the
//! conductor's own notes are fields, with a place for everything else ([`DriverInternalInfo`]). Either way a key that
//! this conductor does not know stays.

mod agent_session;
mod allocation;
mod boot_device;
mod capabilities;
mod driver_info;
mod driver_internal_info;
mod faults;
pub(crate) mod history;
mod inspection_data;
mod instance_info;
mod instance_uuid;
mod interfaces;
mod log_entry;
mod mac_address;
mod mask;
mod node;
mod noted_export;
mod order;
mod permission;
mod port;
mod power_action;
mod properties;
mod ramdisk_instance;
mod rescue_password;
mod resource;
pub mod states;
mod step;
mod step_plan;
mod switched_deploy;
mod traits;
pub mod transitions;
mod typed_map;

pub use agent_session::AgentSession;
pub use allocation::{Allocation, AllocationState};
pub use boot_device::BootDevice;
pub use capabilities::{BootMode, Capabilities};
pub use driver_info::DriverInfo;
pub use driver_internal_info::{BootFallback, DriverInternalInfo};
pub use faults::Fault;
pub use history::{HistoryEntry, HistoryKind, Severity};
pub use inspection_data::InspectionData;
pub use instance_info::InstanceInfo;
pub use instance_uuid::{InstanceUuid, OtherInstance};
pub use interfaces::{InterfaceKind, NodeInterfaces};
pub use log_entry::LogEntry;
pub use mac_address::{MacAddress, ParseMacAddressError};
pub(crate) use mask::mask_value;
pub use mask::masked_text;
pub use node::{InitialState, NewNode, Node};
pub use noted_export::NotedExport;
pub use order::{Order, Verb};
pub use permission::Forbidden;
pub use port::Port;
pub use power_action::PowerAction;
pub use properties::Properties;
pub use ramdisk_instance::RamdiskInstance;
pub use rescue_password::PasswordHashAlgorithm;
pub use resource::{Resource, ResourceKind};
pub use states::{Activity, Family, PowerState, ProvisionState};
pub use step::{PlannedStep, RequestedStep, StepId, StepKind};
pub use step_plan::StepPlan;
pub use traits::{BadTrait, check_trait};
pub use transitions::Event;
pub use typed_map::BadValue;
