//! Reading and writing what has sectors.
//!
//! Whatever destroys data takes a [`WritableDisk`]: exclusively opened, and made by [`guard`](crate::guard) alone.

pub mod view;
mod writable;
pub mod zero;

pub use writable::{HandedOverDisk, WritableDisk};
