//! What makes a deployed system start: the firmware's boot entries, the boot loaders that an image lacks, and the
//! firmware mode of the node.

pub mod bootloader;
pub mod entry;
pub mod error;
pub mod firmware;
pub mod machine;
pub mod mode;

pub use error::Error;
