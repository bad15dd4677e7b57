//! What logs in to an exported disk.

use super::error::IscsiError;
use super::unit::LogicalUnit;
use farrier_disk::Sectors;
use farrier_protocol::inventory::Disk;
use std::fmt::Debug;

/// Logs in to exported disks.
pub trait Initiator: Debug + Send + Sync {
    /// What nodes choose it by.
    fn name(&self) -> &'static str;

    /// Whether it can be used on this host.
    ///
    /// # Errors
    ///
    /// [`IscsiError::NoInitiator`] with the packages to install.
    fn require(&self) -> Result<(), IscsiError>;

    /// Logs in, and makes sure that the disk is one of the machine's, by its serial number and size. Blocks, until it is
    /// there or `is_cancelled`. The session is of the calling thread, with which it ends.
    ///
    /// # Errors
    ///
    /// [`IscsiError::NoInitiator`], [`IscsiError::Login`], or [`IscsiError::Disk`] when it is another disk.
    fn log_in(
        &self,
        unit: &LogicalUnit,
        disks: &[Disk],
        is_cancelled: &dyn Fn() -> bool,
    ) -> Result<Box<dyn Session>, IscsiError>;

    /// Ends what a conductor that was killed has left on this host, where something can be left. Blocks.
    fn end_what_is_left(&self) {}
}

/// A session with an exported disk. Dropping it cuts it off.
pub trait Session: Debug {
    /// The disk.
    fn disk(&self) -> &dyn Sectors;

    /// Logs out.
    ///
    /// # Errors
    ///
    /// [`IscsiError::Logout`]; the session is at its end nevertheless.
    fn log_out(self: Box<Self>) -> Result<(), IscsiError>;
}
