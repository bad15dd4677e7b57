//! Content that must not be erased (section 9.8).

use crate::error::Error;
use crate::guard::WritableDisk;
use crate::table::{self, Partition, PartitionKind};
use uuid::Uuid;

/// Volume label of the medium with the agent's parameters.
const PARAMETERS_LABEL: &[u8] = b"ir-vfd-dev ";
/// Where FAT12 and FAT16, and FAT32, keep their volume label.
const FAT_LABELS: [u64; 2] = [43, 71];

const GPFS: Uuid = Uuid::from_u128(0x37affc90_ef7d_4e96_91c3_2d7ae055b174);
const VMFS: Uuid = Uuid::from_u128(0xaa31e02a_400f_11db_9590_000c2911d1b8);
const VMFS_MBR: u8 = 0xfb;
/// Where GFS2 keeps its superblock in a volume, and what that begins with.
const GFS2_SUPERBLOCK: u64 = 64 * 1024;
const GFS2_MAGIC: [u8; 4] = [0x01, 0x16, 0x19, 0x70];

/// Whether this is the virtual floppy from which the machine got its parameters.
pub fn is_virtual_media(disk: &WritableDisk) -> Result<bool, Error> {
    for offset in FAT_LABELS {
        let mut label = [0; PARAMETERS_LABEL.len()];
        table::read_at(disk, offset, &mut label)?;
        if label.eq_ignore_ascii_case(PARAMETERS_LABEL) {
            return Ok(true);
        }
    }
    Ok(false)
}

/// Refuses a disk with a cluster file system: other machines may be using it at this moment.
pub fn require_unprotected(disk: &WritableDisk, partitions: &[Partition]) -> Result<(), Error> {
    let protected = |content| Error::Protected { device: disk.path().to_owned(), content };
    for partition in partitions {
        match partition.kind {
            PartitionKind::Gpt { type_guid: GPFS, .. } => return Err(protected("GPFS")),
            PartitionKind::Gpt { type_guid: VMFS, .. } | PartitionKind::Mbr { type_id: VMFS_MBR, .. } => {
                return Err(protected("VMFS"));
            }
            _ => {}
        }
    }
    for start in std::iter::once(0).chain(partitions.iter().map(|partition| partition.start)) {
        let mut magic = [0; GFS2_MAGIC.len()];
        if start + GFS2_SUPERBLOCK + GFS2_MAGIC.len() as u64 <= disk.size() {
            table::read_at(disk, start + GFS2_SUPERBLOCK, &mut magic)?;
        }
        if magic == GFS2_MAGIC {
            return Err(protected("GFS2"));
        }
    }
    Ok(())
}
