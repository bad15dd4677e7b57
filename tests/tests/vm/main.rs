//! What only a booted machine shows: the ramdisk in virtual machines, by subject.
//!
//! `cargo xtask test vm` builds what is booted and deployed, and says where it is. One program for all of them: each
//! more would be linked on its own.

#![allow(clippy::unwrap_used)]

mod bad_boot;
mod barrier;
mod boot_loader;
mod boot_media;
mod burn_in;
mod clean;
mod conductor_iscsi;
mod conductor_rescue;
mod console;
mod container;
mod crash;
mod debian;
mod deploy;
mod doctor;
mod erase;
mod examples;
mod firmware;
mod hostility;
mod inspection;
mod inventory;
mod iscsi_boot;
mod iscsi_export;
mod multipath;
mod netboot;
mod network;
mod openapi;
mod pstore;
mod raid;
mod reproducible;
mod rescue;
mod silence;
mod virtual_media;
mod write;
