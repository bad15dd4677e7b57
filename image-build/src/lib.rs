//! Builds what a node boots to be deployed: kernel, initial ramdisk and their description.
//!
//! The same inputs always give the same bytes.

mod build;
mod closure;
mod compress;
mod cpio;
mod error;
mod executable;
mod kmod_index;
mod manifest;
mod modinfo;
mod module_tree;
mod ramdisk;
mod select;

pub use build::{Inputs, build};
pub use error::BuildError;
pub use manifest::{FileRecord, Manifest, ModuleRecord, ProgramRecord, Selection};
