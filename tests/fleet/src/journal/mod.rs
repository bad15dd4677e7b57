//! What machines were asked and did, and by whom: the proof that none was acted on by two at once, and that nothing was
//! done twice.

mod book;
mod entry;
mod judge;
mod leases;

pub use book::{Journal, JournalError};
pub use entry::{Entry, Side, Who};
pub use judge::{Overlap, Twice, done_twice, overlaps};
pub use leases::{LeaseChange, without_lease};
