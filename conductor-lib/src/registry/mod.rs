//! The drivers of a conductor, and the interfaces of its nodes that work with tasks.

mod drivers;
mod families;
#[cfg(feature = "testing")]
pub mod testing;
mod unsupported;

pub use drivers::Drivers;
pub use families::Families;
pub use unsupported::Unsupported;
