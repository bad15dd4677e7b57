//! Probing a disk: what it holds, its partition table, file system, LVM or RAID member, told without writing to it.
//!
//! Everything here reads whatever somebody else left, so nothing of it is believed before it is checked.

pub mod lvm;

use crate::device::BlockDevice;
use crate::error::Error;
use crate::map::{Ranges, Tables};
use crate::md::superblock::{self, Superblock};
use crate::table::{Geometry, Partition, PartitionKind, PartitionTable, read_exact_at, types};
use farrier_linux::blkid;
use lvm::PhysicalVolume;
use std::fs::File;
use std::io::{self, BufReader, Read, Seek};
use std::os::fd::{AsFd, BorrowedFd};
use std::path::PathBuf;

/// A file system that several machines use at the same time.
///
/// They are told by their first bytes alone: libblkid also wants valid and known contents, and a damaged
/// or newer one is still somebody's.
struct SharedFileSystem {
    name: &'static str,
    /// Where in its volume the mark lies.
    offset: u64,
    mark: &'static [u8],
}

const SHARED_FILE_SYSTEMS: &[SharedFileSystem] = &[
    SharedFileSystem { name: "GFS2", offset: 64 * 1024, mark: &[0x01, 0x16, 0x19, 0x70] },
    // The superblock lies in the third block, of 512 to 4096 bytes.
    SharedFileSystem { name: "OCFS2", offset: 2 * 512, mark: b"OCFSV2" },
    SharedFileSystem { name: "OCFS2", offset: 2 * 1024, mark: b"OCFSV2" },
    SharedFileSystem { name: "OCFS2", offset: 2 * 2048, mark: b"OCFSV2" },
    SharedFileSystem { name: "OCFS2", offset: 2 * 4096, mark: b"OCFSV2" },
    // The volume's member record and, on its first extent, the file system itself.
    SharedFileSystem { name: "VMFS", offset: 1 << 20, mark: &[0x0d, 0xd0, 0x01, 0xc0] },
    SharedFileSystem { name: "VMFS", offset: 2 << 20, mark: &[0x5e, 0xf1, 0xab, 0x2f] },
];

/// What a volume group is called that several machines use, whatever lies in it.
const SHARED_GROUP: &str = "a shared volume group of LVM";

/// A member of an array, on a disk or in one of its partitions.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Member {
    /// Identity of the array.
    pub array: [u8; 16],
    /// The file system of several machines that the array carries, if it begins on this member.
    pub shared: Option<&'static str>,
}

/// A disk that is only read. It may be in use meanwhile.
#[derive(Debug)]
pub struct ReadableDisk {
    source: BufReader<File>,
    path: PathBuf,
    geometry: Geometry,
}

/// For questions that only the disk itself can answer.
impl AsFd for ReadableDisk {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.source.get_ref().as_fd()
    }
}

impl ReadableDisk {
    /// Opens a disk for reading.
    ///
    /// # Errors
    ///
    /// [`Error::Device`].
    pub fn open(device: &BlockDevice) -> Result<Self, Error> {
        let path = PathBuf::from(&device.disk.name);
        let source = File::open(&path).map_err(|source| Error::Device {
            device: path.clone(),
            action: "opening it for reading".to_owned(),
            source,
        })?;
        let sector_size = device.disk.logical_sectors;
        let geometry = Geometry { size: device.disk.size, sector_size };
        Ok(Self { source: BufReader::new(source), path, geometry })
    }

    /// The partition table on it.
    ///
    /// # Errors
    ///
    /// [`Error::InvalidTable`] or [`Error::Device`].
    pub fn table(&mut self) -> Result<PartitionTable, Error> {
        PartitionTable::parse(&mut self.source, self.geometry).map_err(|error| error.of(&self.path))
    }

    /// The file system on it that other machines may be using (D03), but for those in the partitions `kept`.
    ///
    /// # Errors
    ///
    /// [`Error::Device`].
    pub fn shared_file_system(&mut self, kept: &[Partition]) -> Result<Option<&'static str>, Error> {
        shared_file_system(&mut self.source, self.geometry, kept)
            .map_err(|source| self.failed("looking for shared file systems", source))
    }

    /// The members of arrays on it, but for those in the partitions `kept`.
    ///
    /// # Errors
    ///
    /// [`Error::Device`].
    pub fn members(&mut self, kept: &[Partition]) -> Result<Vec<Member>, Error> {
        members(&mut self.source, self.geometry, kept)
            .map_err(|source| self.failed("looking for members of arrays", source))
    }

    /// Whether it or one of its partitions is a member of an array of any format.
    ///
    /// # Errors
    ///
    /// [`Error::Device`].
    pub fn has_member(&mut self) -> Result<bool, Error> {
        self.look_for_member().map_err(|source| self.failed("looking for members of arrays", source))
    }

    /// Names of the arrays that it and the partitions of every copy of its table are members of.
    ///
    /// # Errors
    ///
    /// [`Error::Device`].
    pub(crate) fn array_names(&mut self) -> Result<Vec<String>, Error> {
        self.find_array_names().map_err(|source| self.failed("looking for members of arrays", source))
    }

    fn find_array_names(&mut self) -> io::Result<Vec<String>> {
        let tables = Tables::parse(&mut self.source, self.geometry)?;
        let whole = Partition::at(0, self.geometry.size);
        let mut names = Vec::new();
        for volume in std::iter::once(&whole).chain(tables.named()) {
            let found = Superblock::find(&mut self.source, volume.start, volume.size)?;
            names.extend(found.map(|found| found.name));
        }
        Ok(names)
    }

    /// Every copy of a partition table on it.
    ///
    /// # Errors
    ///
    /// [`Error::Device`].
    pub fn tables(&mut self) -> Result<Tables, Error> {
        Tables::parse(&mut self.source, self.geometry)
            .map_err(|source| self.failed("reading its partition tables", source))
    }

    /// Its bytes.
    pub(crate) fn source(&mut self) -> &mut (impl Read + Seek + use<>) {
        &mut self.source
    }

    /// Of a disk whose table is believed, what stale tables name tells nothing: clearing it for that would cost what
    /// the table leads to.
    fn look_for_member(&mut self) -> io::Result<bool> {
        let tables = Tables::parse(&mut self.source, self.geometry)?;
        let mut volumes = vec![Partition::at(0, self.geometry.size)];
        volumes.extend(match tables.live(&self.path) {
            Ok(table) => table.partitions().to_vec(),
            Err(_) => tables.volumes(),
        });
        for volume in volumes.into_iter().filter(|one| one.size > 0) {
            if Superblock::find(&mut self.source, volume.start, volume.size)?.is_some() {
                return Ok(true);
            }
            let signatures = blkid::signatures(self.source.get_ref(), volume.start, volume.size)?;
            if signatures.iter().any(|signature| signature.kind == superblock::SIGNATURE) {
                return Ok(true);
            }
        }
        Ok(false)
    }

    fn failed(&self, action: &str, source: io::Error) -> Error {
        Error::Device { device: self.path.clone(), action: action.to_owned(), source }
    }
}

/// The file system in a disk or in one of its partitions that several machines use, but for those in `kept`.
///
/// Of an array, whether it runs or not, its first member shows what it carries.
///
/// # Errors
///
/// Whatever reading brings.
pub fn shared_file_system(
    source: &mut (impl Read + Seek),
    geometry: Geometry,
    kept: &[Partition],
) -> io::Result<Option<&'static str>> {
    for volume in volumes(source, geometry, kept)? {
        let mut found = announced(&volume);
        if found.is_none() {
            found = shared_content(source, volume.start, volume.size)?;
        }
        if found.is_none() {
            found = member(source, &volume)?.and_then(|member| member.shared);
        }
        if found.is_some() {
            return Ok(found);
        }
    }
    Ok(None)
}

/// The members of arrays that a disk and its partitions are, but for those in `kept`.
fn members(
    source: &mut (impl Read + Seek),
    geometry: Geometry,
    kept: &[Partition],
) -> io::Result<Vec<Member>> {
    let volumes = volumes(source, geometry, kept)?;
    volumes.iter().filter_map(|volume| member(source, volume).transpose()).collect()
}

/// The disk as a whole, and all that any copy of a table on it calls a partition, without what lies in those of `kept`.
fn volumes(
    source: &mut (impl Read + Seek),
    geometry: Geometry,
    kept: &[Partition],
) -> io::Result<Vec<Partition>> {
    let tables = Tables::parse(source, geometry)?;
    let stays: Ranges = kept.iter().map(|one| one.start..one.start + one.size).collect();
    let mut volumes = vec![Partition::at(0, geometry.size)];
    volumes.retain(|whole| !kept.contains(whole));
    volumes.extend(
        tables.volumes().into_iter().filter(|one| !stays.overlap(&(one.start..one.start + one.size))),
    );
    Ok(volumes)
}

/// The member of an array that a volume is.
fn member(source: &mut (impl Read + Seek), volume: &Partition) -> io::Result<Option<Member>> {
    let Some(superblock) = Superblock::find(source, volume.start, volume.size)? else { return Ok(None) };
    let shared = match volume.size.checked_sub(superblock.data) {
        Some(size) => shared_content(source, volume.start + superblock.data, size)?,
        None => None,
    };
    Ok(Some(Member { array: superblock.array, shared }))
}

/// What several machines share in `size` bytes from `start`: a file system, there or at the first extent of a
/// physical volume, or a volume group with all that is in it.
fn shared_content(
    source: &mut (impl Read + Seek),
    start: u64,
    size: u64,
) -> io::Result<Option<&'static str>> {
    if let Some(name) = marked(source, start, size)? {
        return Ok(Some(name));
    }
    let Some(volume) = PhysicalVolume::find(source, start, size)? else { return Ok(None) };
    if volume.is_shared {
        return Ok(Some(SHARED_GROUP));
    }
    let data = volume.data.and_then(|data| Some((data, size.checked_sub(data)?)));
    data.map_or(Ok(None), |(data, size)| marked(source, start + data, size))
}

/// The shared file system by whose first bytes `size` bytes from `start` are marked.
fn marked(source: &mut (impl Read + Seek), start: u64, size: u64) -> io::Result<Option<&'static str>> {
    for system in SHARED_FILE_SYSTEMS {
        let mut found = vec![0; system.mark.len()];
        if system.offset + found.len() as u64 > size {
            continue;
        }
        read_exact_at(source, start + system.offset, &mut found)?;
        if found == system.mark {
            return Ok(Some(system.name));
        }
    }
    Ok(None)
}

/// The shared file system that a partition's type tells of.
fn announced(partition: &Partition) -> Option<&'static str> {
    match partition.kind {
        PartitionKind::Gpt { type_guid: types::gpt::GPFS, .. } => Some("GPFS"),
        PartitionKind::Gpt { type_guid: types::gpt::VMFS, .. }
        | PartitionKind::Mbr { type_id: types::mbr::VMFS, .. } => Some("VMFS"),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::io::Cursor;

    const SIZE: u64 = 4 << 20;

    fn found(content: Vec<u8>) -> Option<&'static str> {
        let geometry = Geometry { size: content.len() as u64, sector_size: 512 };
        shared_file_system(&mut Cursor::new(content), geometry, &[]).unwrap()
    }

    /// A disk with one partition of type `kind` from its second MiB on.
    fn partitioned(kind: u8) -> Vec<u8> {
        let mut content = vec![0; 2 * SIZE as usize];
        content[450] = kind;
        content[454..458].copy_from_slice(&2048_u32.to_le_bytes());
        content[458..462].copy_from_slice(&8192_u32.to_le_bytes());
        content[510..512].copy_from_slice(&[0x55, 0xaa]);
        content
    }

    #[test]
    fn d03_every_shared_file_system_is_told_on_disks_and_in_partitions() {
        for system in SHARED_FILE_SYSTEMS {
            for (mut content, start) in [(vec![0; SIZE as usize], 0), (partitioned(0x83), 1 << 20)] {
                assert_eq!(found(content.clone()), None);
                let offset = start + system.offset as usize;
                content[offset..offset + system.mark.len()].copy_from_slice(system.mark);
                assert_eq!(found(content), Some(system.name));
            }
        }
        assert_eq!(found(partitioned(types::mbr::VMFS)), Some("VMFS"));
    }

    /// Writes the superblock of a member of the array 7, whose data begin at this sector of the member.
    fn write_superblock(content: &mut [u8], start: usize, data: u64) {
        let superblock = start + 4096;
        content[superblock..superblock + 5].copy_from_slice(&[0xfc, 0x4e, 0x2b, 0xa9, 1]);
        content[superblock + 16] = 7;
        content[superblock + 128..superblock + 136].copy_from_slice(&data.to_le_bytes());
    }

    #[test]
    fn d03_d20_what_an_array_carries_shows_on_its_first_member() {
        for (mut content, start) in [(vec![0; SIZE as usize], 0), (partitioned(0xfd), 1 << 20)] {
            write_superblock(&mut content, start, 2048);
            let geometry = Geometry { size: content.len() as u64, sector_size: 512 };
            let array = std::array::from_fn(|byte| if byte == 0 { 7 } else { 0 });
            let mut disk = Cursor::new(content);
            assert_eq!(members(&mut disk, geometry, &[]).unwrap(), [Member { array, shared: None }]);
            assert_eq!(shared_file_system(&mut disk, geometry, &[]).unwrap(), None);
            let mark = start + (1 << 20) + 64 * 1024;
            disk.get_mut()[mark..mark + 4].copy_from_slice(&[0x01, 0x16, 0x19, 0x70]);
            assert_eq!(members(&mut disk, geometry, &[]).unwrap(), [Member { array, shared: Some("GFS2") }]);
            assert_eq!(shared_file_system(&mut disk, geometry, &[]).unwrap(), Some("GFS2"));
            let kept = volumes(&mut disk, geometry, &[]).unwrap();
            let kept = [kept.into_iter().find(|one| one.start == start as u64).unwrap()];
            assert_eq!(shared_file_system(&mut disk, geometry, &kept).unwrap(), None);
            assert_eq!(members(&mut disk, geometry, &kept).unwrap(), []);
        }
    }

    #[test]
    fn x06_what_lies_in_logical_volumes_shows_in_their_group_and_at_its_first_extent() {
        let plain = lvm::tests::group("status = [\"RESIZEABLE\", \"READ\", \"WRITE\"]");
        let shared = lvm::tests::group("status = [\"RESIZEABLE\"]\nlock_type = \"sanlock\"");
        for (mut content, start, is_member) in [
            (vec![0; SIZE as usize], 0, false),
            (partitioned(0x8e), 1 << 20, false),
            // In an array that does not run.
            (vec![0; SIZE as usize], 1 << 20, true),
        ] {
            if is_member {
                write_superblock(&mut content, 0, 2048);
            }
            lvm::tests::write_volume(&mut content, start, &plain);
            assert_eq!(found(content.clone()), None, "a group of one machine");
            let mark = start + lvm::tests::DATA + 64 * 1024;
            content[mark..mark + 4].copy_from_slice(&[0x01, 0x16, 0x19, 0x70]);
            assert_eq!(found(content.clone()), Some("GFS2"), "at the first extent");
            content[mark..mark + 4].fill(0);
            lvm::tests::write_volume(&mut content, start, &shared);
            assert_eq!(found(content), Some(SHARED_GROUP), "wherever its file system lies");
        }
    }

    #[test]
    fn d03_a_superblock_may_say_anything_of_its_data() {
        for data in [0, SIZE / 512 - 1, SIZE / 512, SIZE / 512 + 1, u64::MAX / 512, u64::MAX] {
            let mut content = vec![0; SIZE as usize];
            write_superblock(&mut content, 0, data);
            assert_eq!(found(content), None, "{data}");
        }
    }

    #[test]
    fn d03_a_damaged_table_does_not_hide_a_shared_volume() {
        let mut content = vec![0; SIZE as usize];
        content[512..520].copy_from_slice(b"EFI PART");
        content[64 * 1024..64 * 1024 + 4].copy_from_slice(&[0x01, 0x16, 0x19, 0x70]);
        assert_eq!(found(content), Some("GFS2"));
    }

    proptest! {
        #[test]
        fn any_bytes_can_be_looked_at(content in proptest::collection::vec(any::<u8>(), 0..6000)) {
            let mut content = content;
            found(content.clone());
            if content.len() >= 1024 {
                content[510..512].copy_from_slice(&[0x55, 0xaa]);
                content[512..520].copy_from_slice(b"EFI PART");
                found(content);
            }
        }
    }
}
