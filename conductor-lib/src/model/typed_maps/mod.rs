//! The maps of a record: those that operators fill, with typed readers, and the notes of the conductor.

pub(crate) mod capabilities;
pub(crate) mod driver_info;
pub(crate) mod driver_internal_info;
pub(crate) mod instance_info;
pub(crate) mod mask;
pub(crate) mod noted_export;
pub(crate) mod properties;
pub(crate) mod ramdisk_instance;
pub(crate) mod rescue_password;
pub(crate) mod typed_map;
