//! Recognising ISO 9660 and FAT in memory.

/// Where ISO 9660 keeps its first volume descriptor.
const DESCRIPTOR: usize = 32768;
const ISO_MAGIC: &[u8] = b"CD001";

/// Bytes of a drive that tell which of the two it is, if any.
pub const BEGINNING: usize = DESCRIPTOR + 1 + ISO_MAGIC.len();

/// Bytes of a boot sector that tell about FAT.
const BOOT_SECTOR: usize = 512;

/// Whether the content is an ISO 9660 file system.
pub fn is_iso9660(content: &[u8]) -> bool {
    content.get(DESCRIPTOR + 1..).is_some_and(|rest| rest.starts_with(ISO_MAGIC))
}

/// Sector size of a FAT file system; nothing when the content is none.
pub fn fat_sector_size(content: &[u8]) -> Option<u32> {
    let boot = content.get(..BOOT_SECTOR)?;
    let sector_size = u32::from(u16::from_le_bytes([boot[11], boot[12]]));
    let jumps = matches!(boot[0], 0xeb | 0xe9);
    let sane = sector_size.is_power_of_two()
        && (512..=4096).contains(&sector_size)
        && boot[13].is_power_of_two()
        && matches!(boot[16], 1 | 2)
        && boot[21] >= 0xf0;
    (jumps && sane && boot.ends_with(&[0x55, 0xaa])).then_some(sector_size)
}
