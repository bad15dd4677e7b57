//! Reading and writing what has sectors.
//!
//! Whatever destroys data takes [`Sectors`], which nothing can be but a [`WritableDisk`], exclusively opened and
//! made by [`guard`](crate::guard) and [`iscsi_session`](crate::iscsi_session) alone, a [`RemoteDisk`] of a session
//! that is proven, a [`Section`] of one of them, or memory in a test.

#[cfg(any(test, feature = "memory"))]
mod memory;
mod nbd;
pub(crate) mod part;
mod remote;
mod section;
mod sectors;
pub mod view;
mod writable;
pub mod zero;

#[cfg(any(test, feature = "memory"))]
pub use memory::MemoryDisk;
pub use remote::{CONNECTIONS, Expected, RemoteDisk};
pub use section::Section;
pub use sectors::Sectors;
pub use writable::{HandedOverDisk, WritableDisk};
