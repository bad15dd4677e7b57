//! The maps of a record: those that operators fill, with typed readers, and the notes of the conductor.

pub mod capabilities;
pub mod driver_info;
pub mod driver_internal_info;
pub mod erasure;
pub mod instance_info;
pub mod mask;
pub mod noted_export;
pub mod properties;
#[cfg(feature = "drivers")]
pub mod ramdisk_instance;
pub mod rescue_password;
pub mod typed_map;
