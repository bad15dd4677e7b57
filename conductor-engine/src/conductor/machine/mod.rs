//! What operators ask of a machine, at once: by its BMC, by its interfaces, and by the disks that its agent exports.

mod bmc_calls;
mod disk_exports;
mod driver_calls;
