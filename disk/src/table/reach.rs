//! How far partition tables reach, and what new ones leave free.

use super::first_sector::ENTRY_COUNT;

/// A MiB, at whose multiples new partitions begin.
pub const MIB: u64 = 1 << 20;

/// Room behind the last new partition, for the backup of a GPT.
pub const TAIL: u64 = MIB;

/// Most partitions of an MBR without an extended one.
pub const MBR_PARTITIONS: usize = ENTRY_COUNT;

/// End of what an MBR reaches, in sectors (D14).
pub const MBR_SECTORS: u64 = 1 << 32;

/// End in bytes of what every reader of an MBR reaches, whatever the sectors of the disk (section 6.5).
pub const MBR_BYTES: u64 = MBR_SECTORS * 512;
