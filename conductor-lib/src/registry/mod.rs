//! The drivers of a conductor, and the interfaces of its nodes that work with tasks.

mod absent;
mod drivers;
mod families;
#[cfg(feature = "testing")]
pub mod testing;

pub use absent::Absent;
pub use drivers::Drivers;
pub use families::Families;
