//! Machines: their power, what they start from, and what is on their disks. Nothing here speaks to anybody.

mod boot;
mod power;
mod state;
mod troubles;

pub use boot::{Boot, BootSource, Holds, Override};
pub use power::{Power, Reset};
pub use state::{Disk, Drive, Machine};
