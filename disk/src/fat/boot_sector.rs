//! The first sector of a FAT volume, by the rules of Linux (`fs/fat/inode.c`, `fat_read_bpb` and `fat_fill_super`).
//!
//! Linux asks for less than the specification: FAT32 is what has no 16-bit length of its tables, however few clusters
//! it has, and the 16-bit number of sectors counts wherever it is not zero.

use std::io;

/// Bytes that describe the volume, whatever its sectors have.
pub const LENGTH: usize = 512;
/// Bytes of an entry of a folder.
pub const ENTRY: u64 = 32;
/// Number of the first cluster.
pub const FIRST_CLUSTER: u32 = 2;

/// Most clusters of FAT12 and FAT16.
const MOST_FAT12: u64 = 4084;
const MOST_FAT16: u64 = 65524;
const MOST_FAT32: u64 = 0x0fff_fff6;

/// Says that an identifier follows, alone or with a label.
const WITH_IDENTIFIER: [u8; 2] = [0x28, WITH_LABEL];
const WITH_LABEL: u8 = 0x29;
/// What formatters write where there is no label.
const NO_LABEL: &[u8; 11] = b"NO NAME    ";

/// The width of the entries of a table.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Width {
    /// Twelve bits.
    Fat12,
    /// Sixteen bits.
    Fat16,
    /// Thirty-two bits, of which four are reserved.
    Fat32,
}

/// Where the root folder is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Root {
    /// A range of bytes of its own.
    Fixed {
        /// First byte.
        offset: u64,
        /// Bytes.
        length: u64,
    },
    /// A chain, as every other folder.
    Chain(u32),
}

/// What the first sector says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BootSector {
    /// Width of the tables' entries.
    pub width: Width,
    /// Bytes of a logical sector.
    pub sector_size: u32,
    /// Bytes of a cluster.
    pub cluster_size: u64,
    /// First byte of the first table.
    pub table: u64,
    /// The root folder.
    pub root: Root,
    /// First byte of the first cluster.
    pub clusters_at: u64,
    /// Clusters.
    pub clusters: u32,
    /// The label beside the identifier, padded with blanks.
    pub label: Option<[u8; 11]>,
    /// The volume identifier; zero where there is none.
    pub identifier: u32,
}

impl BootSector {
    /// Reads the sector.
    ///
    /// # Errors
    ///
    /// It describes no FAT volume that Linux would mount.
    pub fn parse(sector: &[u8; LENGTH]) -> io::Result<Self> {
        let small = |offset: usize| u64::from(u16::from_le_bytes([sector[offset], sector[offset + 1]]));
        let large = |offset: usize| small(offset) | small(offset + 2) << 16;
        let (sector_size, sectors_per_cluster) = (small(11), u64::from(sector[13]));
        let (reserved, tables, entries) = (small(14), u64::from(sector[16]), small(17));
        let is_media = |byte: u8| byte == 0xf0 || byte >= 0xf8;
        if !sector_size.is_power_of_two() || !(512..=4096).contains(&sector_size) {
            return Err(no_fat("its sectors have no possible size"));
        }
        if !sectors_per_cluster.is_power_of_two() || reserved == 0 || tables == 0 || !is_media(sector[21]) {
            return Err(no_fat("its first sector describes no FAT volume"));
        }
        let is_fat32 = small(22) == 0;
        let table_length = if is_fat32 { large(36) } else { small(22) };
        let sectors = if small(19) == 0 { large(32) } else { small(19) };
        let root_at = reserved + tables * table_length;
        let data = root_at + (entries * ENTRY).div_ceil(sector_size);
        let clusters = sectors.checked_sub(data).ok_or_else(|| no_fat("its tables do not fit into it"))?;
        let clusters = clusters / sectors_per_cluster;
        let (width, most, bits) = match clusters {
            _ if is_fat32 => (Width::Fat32, MOST_FAT32, 32),
            0..=MOST_FAT12 => (Width::Fat12, MOST_FAT12, 12),
            _ => (Width::Fat16, MOST_FAT16, 16),
        };
        let described = (table_length * sector_size * 8 / bits).saturating_sub(FIRST_CLUSTER.into());
        let clusters = u32::try_from(clusters.min(described)).unwrap_or(u32::MAX);
        if u64::from(clusters) > most || clusters == 0 {
            return Err(no_fat("it has an impossible number of clusters"));
        }
        let root = match width {
            Width::Fat32 => Root::Chain(large(44) as u32),
            _ => Root::Fixed { offset: root_at * sector_size, length: entries * ENTRY },
        };
        let extension = if is_fat32 { 66 } else { 38 };
        let (label, identifier) = identity(&sector[extension..]);
        Ok(Self {
            width,
            sector_size: sector_size as u32,
            cluster_size: sectors_per_cluster * sector_size,
            table: reserved * sector_size,
            root,
            clusters_at: data * sector_size,
            clusters,
            label,
            identifier,
        })
    }

    /// First byte of a cluster; nothing when the volume has no such cluster.
    pub fn offset_of(&self, cluster: u32) -> Option<u64> {
        let index = cluster.checked_sub(FIRST_CLUSTER).filter(|index| *index < self.clusters)?;
        Some(self.clusters_at + u64::from(index) * self.cluster_size)
    }
}

/// Label and identifier in the extension of the sector.
fn identity(extension: &[u8]) -> (Option<[u8; 11]>, u32) {
    if !WITH_IDENTIFIER.contains(&extension[0]) {
        return (None, 0);
    }
    let identifier = u32::from_le_bytes([extension[1], extension[2], extension[3], extension[4]]);
    let mut label = [b' '; 11];
    label.copy_from_slice(&extension[5..16]);
    let is_label = extension[0] == WITH_LABEL && label != *NO_LABEL;
    (is_label.then_some(label), identifier)
}

fn no_fat(reason: &str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, format!("it is no FAT file system that Linux reads: {reason}"))
}
