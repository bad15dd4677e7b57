//! What is built: agents and ramdisks, the systems that they deploy, and others to compare with.

pub mod debian_packages;
pub mod debian_tree;
pub mod dist;
pub mod instance_image;
pub mod ironic_environment;
pub mod kernel_package;
pub mod libblkid;
pub mod python_manager;
pub mod python_ramdisk;
pub mod unpacked_kernel;
pub mod zig;
