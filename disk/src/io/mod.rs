//! Reading and writing what has sectors.
//!
//! Whatever destroys data takes [`Sectors`], which nothing can be but a [`WritableDisk`], exclusively opened and
//! made by [`guard`](crate::guard) alone, a [`Section`] of one, or memory in a test.

#[cfg(any(test, feature = "memory"))]
mod memory;
mod section;
mod sectors;
pub mod view;
mod writable;
pub mod zero;

#[cfg(any(test, feature = "memory"))]
pub use memory::MemoryDisk;
pub use section::Section;
pub use sectors::Sectors;
pub use writable::{HandedOverDisk, WritableDisk};
