//! Removing what would let old content be taken for a valid disk.

use crate::error::Error;
use crate::guard::WritableDisk;

/// Bytes at either end that hold boot code, partition tables and their backups on every common layout.
const END: u64 = 1 << 20;

/// Zeros the first and the last MiB, so that no partition table is left (section 6.3).
///
/// # Errors
///
/// [`Error::Device`].
pub fn wipe_ends(disk: &WritableDisk) -> Result<(), Error> {
    let length = END.min(disk.size());
    disk.zero_out(0, length)?;
    disk.zero_out(disk.size() - length, length)?;
    disk.flush()
}
