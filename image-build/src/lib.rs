//! Builds what a node boots to be deployed: kernel, initial ramdisk and their description.
//!
//! The same inputs always give the same bytes.

mod additions;
mod boot_loader;
mod build;
mod closure;
mod compress;
mod cpio;
mod der;
mod error;
mod executable;
mod firmware;
mod iso;
mod kernel_image;
mod kernel_package;
mod kmod_index;
mod manifest;
mod media;
mod modinfo;
mod module_tree;
mod netboot;
mod output;
mod package;
mod packer;
mod ramdisk;
mod role;
mod select;
mod signing;
mod uki;

pub use additions::Additions;
pub use build::{Inputs, MediaInputs, build, rebuild_media};
pub use error::BuildError;
pub use firmware::{Firmware, FirmwareInputs};
pub use kernel_package::KernelPackage;
pub use manifest::{Addition, FileRecord, Manifest, ModuleRecord, PackedFile, ProgramRecord, Selection};
pub use media::Format;
pub use role::Role;
pub use signing::SigningFiles;
