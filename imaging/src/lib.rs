//! The write path: source → digest → unpacking → format → sparse direct writer → read-back.
//!
//! An image is written as it arrives, with bounded memory and without a temporary copy, whatever its
//! format. The first and the last MiB of the disk, with boot code, partition table and its backup, are
//! held back until the digest of all that was received matches: nothing on the disk can boot before
//! the image is proven (P01). A failed write leaves a disk without a partition table.
//!
//! This crate knows neither which disk is right nor which node it works for.

pub mod access;
pub mod cancel;
pub mod checksum;
pub mod error;
pub mod format;
#[cfg(any(test, feature = "fuzzing"))]
pub mod in_memory;
pub mod pipeline;
pub mod progress;
pub mod qcow2;
pub mod readback;
pub mod shown_url;
pub mod source;
pub mod target;

mod attempt;
mod buffers;
mod classify;
mod compression;
mod mirrors;
mod order;
mod queue;
mod settings;
mod unpack;
mod writer;

#[cfg(test)]
#[path = "../../disk/tests/support/mod.rs"]
mod disk_support;

pub use error::Error;

/// Bytes that travel through the pipeline in one piece; for fuzzing fewer, so that small inputs have several.
pub(crate) const CHUNK: usize = if cfg!(feature = "fuzzing") { 64 << 10 } else { 1 << 20 };
