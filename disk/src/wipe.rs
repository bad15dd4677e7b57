//! Wiping metadata, as `wipefs` and `sgdisk --zap-all` do: removing the tables, superblocks and signatures that would
//! let old content be taken for a valid disk.

use crate::error::Error;
use crate::io::Sectors;
use crate::io::zero::is_zero;
use crate::table::{self, Partition, PartitionTable};
use farrier_linux::aligned::AlignedBuffer;

/// Bytes at either end that hold boot code, partition tables and their backups on every common layout.
const TABLES: u64 = 1 << 20;
/// Bytes at either end that hold signatures of file systems, volumes and arrays: a copy of a LUKS
/// header lies deepest.
const SIGNATURES: u64 = 5 << 20;

/// Volume label of the medium with the agent's parameters.
const PARAMETERS_LABEL: &str = "ir-vfd-dev";

/// What became of a disk that was to be erased.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Erased {
    /// Its metadata is gone.
    Yes,
    /// It is the medium that carries the agent's parameters, and is untouched.
    VirtualMedia,
}

/// Zeros the first and the last MiB, so that no partition table is left (section 6.3). The first sector
/// goes before all others: whatever interrupts this, the old table leads to everything it did, or is gone.
///
/// # Errors
///
/// [`Error::Device`].
pub fn wipe_ends(disk: &dyn Sectors) -> Result<(), Error> {
    disk.zero_out(0, disk.sector_size().into())?;
    disk.flush()?;
    zero_ends(disk, 0, disk.size(), TABLES)?;
    disk.flush()
}

/// Removes every signature from a disk: those inside its partitions first, because nobody finds them
/// any more once the table is gone, and a later partition in the same place would revive them (D20).
///
/// # Errors
///
/// [`Error::Device`]; [`Error::Corrupted`] when the disk still shows old content.
pub fn erase_metadata(disk: &dyn Sectors) -> Result<Erased, Error> {
    if is_virtual_media(disk)? {
        return Ok(Erased::VirtualMedia);
    }
    let partitions = partitions(disk)?;
    for partition in &partitions {
        zero_signatures(disk, partition)?;
    }
    zero_ends(disk, 0, disk.size(), SIGNATURES)?;
    disk.flush()?;
    require_blank(disk)?;
    table::rescan(disk);
    Ok(Erased::Yes)
}

/// Whether this is the virtual floppy from which the machine got its parameters, which is not erased.
///
/// # Errors
///
/// [`Error::Device`].
pub fn is_virtual_media(disk: &dyn Sectors) -> Result<bool, Error> {
    let found = disk.signatures(0, disk.size())?;
    let is_parameters = |label: &String| label.eq_ignore_ascii_case(PARAMETERS_LABEL);
    Ok(found.iter().any(|signature| signature.label.as_ref().is_some_and(is_parameters)))
}

/// A table that cannot be read names no partitions, and must not make its disk impossible to erase.
fn partitions(disk: &dyn Sectors) -> Result<Vec<Partition>, Error> {
    match PartitionTable::read(disk) {
        Ok(table) => Ok(table.partitions().to_vec()),
        Err(error @ Error::InvalidTable { .. }) => {
            tracing::warn!("{error}; erasing the ends of the disk only");
            Ok(Vec::new())
        }
        Err(error) => Err(error),
    }
}

/// Zeros both ends of a partition, where its signatures are.
pub fn zero_signatures(disk: &dyn Sectors, partition: &Partition) -> Result<(), Error> {
    zero_ends(disk, partition.start, partition.size, SIGNATURES)
}

fn zero_ends(disk: &dyn Sectors, start: u64, size: u64, length: u64) -> Result<(), Error> {
    let start = start.min(disk.size());
    let size = size.min(disk.size() - start);
    let length = length.min(size);
    disk.zero_out(start, length)?;
    disk.zero_out(start + size - length, length)
}

fn require_blank(disk: &dyn Sectors) -> Result<(), Error> {
    let length = TABLES.min(disk.size());
    let mut content = AlignedBuffer::zeroed(length as usize);
    for offset in [0, disk.size() - length] {
        disk.read_exact_at(&mut content, offset)?;
        if !is_zero(&content) {
            return Err(Error::Corrupted { device: disk.path().to_owned(), what: "the erased end" });
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests;
