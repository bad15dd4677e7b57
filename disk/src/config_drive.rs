//! Config drives: a small file system with the instance's first settings (section 6.5).

mod content;
mod text;

use crate::error::Error;
use crate::filesystem;
use crate::io::Sectors;
use crate::io::view::DiskView;
use crate::table::{self, Partition, PartitionTable};
use crate::tree;
use farrier_linux::aligned::AlignedBuffer;
use flate2::read::MultiGzDecoder;
use std::io::{self, Cursor, Read};

/// Largest config drive, and size of the partition made for one, in bytes.
pub const MAX_SIZE: u64 = 64 << 20;

/// Label by which a deployed system finds its config drive.
const LABEL: &str = "config-2";

/// Sector size of ISO 9660; a disk with larger ones cannot carry it.
const ISO_SECTOR: u32 = 2048;

/// Bytes written and read back at once; a multiple of every sector size.
const CHUNK: usize = 1 << 20;

/// Label of a drive that was made anew as FAT, which knows capitals only.
const REBUILT_LABEL: &str = "CONFIG-2";

/// Room that a file system takes besides the files in it, in bytes.
const FILE_SYSTEM_ROOM: u64 = 2 << 20;

/// First bytes of a gzip member.
const GZIP: &[u8] = &[0x1f, 0x8b];

/// A decoded config drive whose content was recognised.
#[derive(Debug, Clone)]
pub struct ConfigDrive {
    content: Vec<u8>,
    kind: ContentKind,
    is_always_rebuilt: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum ContentKind {
    Iso9660,
    Fat { sector_size: u32 },
}

impl ConfigDrive {
    /// Decodes base64 of gzip, as conductors send it. Foreign characters such as line ends are dropped. Only what
    /// it unpacks to takes memory, and that is `limit` bytes at most, and never more than [`MAX_SIZE`].
    ///
    /// # Errors
    ///
    /// [`Error::InvalidConfigDrive`]: not base64, not gzip, larger than that (checked while decoding), or neither
    /// ISO 9660 nor FAT (D10).
    pub fn decode(text: &str, limit: u64) -> Result<Self, Error> {
        Self::unpack(text::decoded(text.as_bytes()), limit)
    }

    /// Takes a drive as a server sends it: that same text, or gzip, ISO 9660 or FAT as it is. The
    /// content decides, because some binary content can be read as base64 too.
    ///
    /// # Errors
    ///
    /// As [`ConfigDrive::decode`].
    pub fn from_download(bytes: Vec<u8>, limit: u64) -> Result<Self, Error> {
        if bytes.starts_with(GZIP) {
            return Self::unpack(&bytes[..], limit);
        }
        // Text has no zeros: what has some is not searched for letters of base64.
        if ContentKind::of(&bytes).is_some() || bytes.contains(&0) {
            return Self::from_content(bytes, limit);
        }
        Self::unpack(text::decoded(&bytes), limit)
    }

    fn unpack(packed: impl Read, limit: u64) -> Result<Self, Error> {
        let (mut content, mut decoder) = (Vec::new(), MultiGzDecoder::new(packed));
        let mut read = |bytes| {
            let read = decoder.by_ref().take(bytes).read_to_end(&mut content);
            read.map_err(|error| not_unpacked(&error))?;
            Ok(ContentKind::of(&content).is_some())
        };
        // What is no drive by its beginning is not unpacked to its end.
        if read(content::BEGINNING as u64)? {
            read(limit.min(MAX_SIZE) + 1)?;
        }
        Self::from_content(content, limit)
    }

    fn from_content(content: Vec<u8>, limit: u64) -> Result<Self, Error> {
        let limit = limit.min(MAX_SIZE);
        if content.len() as u64 > limit {
            let otherwise = if limit < MAX_SIZE { ", or give the machine more memory" } else { "" };
            let size = limit >> 20;
            return Err(invalid(format!(
                "it is larger than {size} MiB when unpacked; make it smaller{otherwise}"
            )));
        }
        let kind = ContentKind::of(&content).ok_or_else(|| {
            invalid(
                "its content is neither ISO 9660 nor FAT; make it with the label config-2 in one of the two",
            )
        })?;
        Ok(Self { content, kind, is_always_rebuilt: false })
    }

    /// Its bytes.
    pub fn size(&self) -> u64 {
        self.content.len() as u64
    }

    /// Has the drive rebuilt as FAT on each kind of disk (option `config_drive_rebuild`).
    pub fn always_rebuilt(self, is_always_rebuilt: bool) -> Self {
        Self { is_always_rebuilt, ..self }
    }

    /// Bytes of the partition that takes the drive on a disk with these sectors, in whole MiB.
    pub fn partition_size(&self, sector_size: u32) -> u64 {
        let room = if self.is_rebuilt_for(sector_size) { FILE_SYSTEM_ROOM } else { 0 };
        (self.content.len() as u64 + room).next_multiple_of(1 << 20)
    }

    /// Makes sure that a system on this disk will be able to read the drive. Call it before the image
    /// is written, so that nothing is destroyed in vain (F11).
    ///
    /// # Errors
    ///
    /// [`Error::InvalidConfigDrive`]: the drive must be rebuilt and its files cannot be read.
    pub fn require_fits(&self, disk: &dyn Sectors) -> Result<(), Error> {
        if !self.is_rebuilt_for(disk.sector_size()) {
            return Ok(());
        }
        let mut bytes = 0;
        self.visit(&mut |_, node| {
            if let tree::Node::File(content) = node {
                bytes += io::copy(content, &mut io::sink())?;
            }
            Ok(())
        })
        .map_err(|error| invalid(format!("its files cannot be read to convert it to FAT: {error}")))?;
        if bytes + FILE_SYSTEM_ROOM > MAX_SIZE {
            return Err(invalid("its files do not fit into 64 MiB of FAT; make it smaller"));
        }
        Ok(())
    }

    /// Whether Linux could not mount the drive as it is: a file system has no sectors smaller than its disk's.
    fn is_rebuilt_for(&self, sector_size: u32) -> bool {
        let own = match self.kind {
            ContentKind::Iso9660 => ISO_SECTOR,
            ContentKind::Fat { sector_size } => sector_size,
        };
        self.is_always_rebuilt || sector_size > own
    }

    fn visit(&self, visit: &mut tree::Visitor<'_>) -> io::Result<()> {
        match self.kind {
            ContentKind::Iso9660 => tree::visit_iso(&self.content, MAX_SIZE, visit),
            ContentKind::Fat { .. } => tree::visit_fat(&mut Cursor::new(&self.content), visit),
        }
    }

    /// Puts the drive on a disk that carries a whole-disk image and reads it back.
    ///
    /// A partition labelled `config-2` is used where the image has one, else a new one is made at the
    /// end of the disk.
    ///
    /// # Errors
    ///
    /// [`Error::NoPlaceForConfigDrive`], [`Error::InvalidConfigDrive`], [`Error::Corrupted`],
    /// [`Error::InvalidTable`] or [`Error::Device`].
    pub fn write_to(&self, disk: &dyn Sectors) -> Result<Partition, Error> {
        self.require_fits(disk)?;
        let table = PartitionTable::read(disk)?;
        let partition = match labelled_partition(disk, &table)? {
            Some(partition) => partition,
            None => table.add_at_end(disk, MAX_SIZE)?,
        };
        self.write_into(disk, &partition)?;
        table::rescan(disk);
        Ok(partition)
    }

    /// Puts the drive into a partition that is there for it and reads it back.
    ///
    /// # Errors
    ///
    /// As [`ConfigDrive::write_to`].
    pub(crate) fn write_into(&self, disk: &dyn Sectors, partition: &Partition) -> Result<(), Error> {
        if self.is_rebuilt_for(disk.sector_size()) {
            return self.rebuild(disk, partition);
        }
        if partition.size < self.content.len() as u64 {
            return Err(Error::NoPlaceForConfigDrive {
                device: disk.path().to_owned(),
                reason: format!(
                    "partition {} is labelled {LABEL} but has only {} bytes of the {} needed; use another image",
                    partition.number,
                    partition.size,
                    self.content.len()
                ),
            });
        }
        self.write_content(disk, partition)?;
        self.verify(disk, partition)
    }

    /// Makes a FAT file system with the drive's files (D11), and reads each file back.
    fn rebuild(&self, disk: &dyn Sectors, partition: &Partition) -> Result<(), Error> {
        disk.zero_out(partition.start, partition.size)?;
        let mut volume = DiskView::range(disk, partition.start, partition.size).with_memory();
        filesystem::make_vfat(&mut volume, REBUILT_LABEL, disk.sector_size())
            .and_then(|()| tree::copy_to_fat(&mut volume, &mut |visit| self.visit(visit)))
            .map_err(|error| Error::NoPlaceForConfigDrive {
                device: disk.path().to_owned(),
                reason: format!(
                    "the conversion to FAT in partition {} failed: {error}; make it smaller",
                    partition.number
                ),
            })?;
        disk.flush()?;
        let mut volume = DiskView::range(disk, partition.start, partition.size).with_memory();
        let is_equal = tree::is_in_fat(&mut volume, &mut |visit| self.visit(visit)).unwrap_or_default();
        is_equal
            .then_some(())
            .ok_or_else(|| Error::Corrupted { device: disk.path().to_owned(), what: "the config drive" })
    }

    fn write_content(&self, disk: &dyn Sectors, partition: &Partition) -> Result<(), Error> {
        // What lies behind the content must not be taken for a file system either.
        disk.zero_out(partition.start, partition.size)?;
        let mut buffer = AlignedBuffer::zeroed(CHUNK);
        for (index, chunk) in self.content.chunks(CHUNK).enumerate() {
            let padded = chunk.len().next_multiple_of(disk.sector_size() as usize);
            buffer[..chunk.len()].copy_from_slice(chunk);
            buffer[chunk.len()..padded].fill(0);
            disk.write_all_at(&buffer[..padded], partition.start + (index * CHUNK) as u64)?;
        }
        disk.flush()
    }

    fn verify(&self, disk: &dyn Sectors, partition: &Partition) -> Result<(), Error> {
        let mut buffer = AlignedBuffer::zeroed(CHUNK);
        for (index, chunk) in self.content.chunks(CHUNK).enumerate() {
            let padded = chunk.len().next_multiple_of(disk.sector_size() as usize);
            disk.read_exact_at(&mut buffer[..padded], partition.start + (index * CHUNK) as u64)?;
            if buffer[..chunk.len()] != *chunk {
                return Err(Error::Corrupted { device: disk.path().to_owned(), what: "the config drive" });
            }
        }
        Ok(())
    }
}

impl ContentKind {
    fn of(content: &[u8]) -> Option<Self> {
        if content::is_iso9660(content) {
            return Some(Self::Iso9660);
        }
        content::fat_sector_size(content).map(|sector_size| Self::Fat { sector_size })
    }
}

/// The drive's address, where a conductor sends that instead of the drive.
pub fn url(text: &str) -> Option<&str> {
    let text = text.trim();
    let is_url =
        |scheme: &str| text.get(..scheme.len()).is_some_and(|start| start.eq_ignore_ascii_case(scheme));
    (is_url("http://") || is_url("https://")).then_some(text)
}

fn not_unpacked(error: &io::Error) -> Error {
    let reason = if text::is_at_fault(error) { "is not base64" } else { "cannot be unpacked" };
    invalid(format!("it {reason} ({error}); send base64 of gzip"))
}

/// The partition the image itself provides for a config drive.
fn labelled_partition(disk: &dyn Sectors, table: &PartitionTable) -> Result<Option<Partition>, Error> {
    let mut found = Vec::new();
    for partition in table.partitions() {
        let signatures = disk.signatures(partition.start, partition.size)?;
        let labels = signatures.iter().filter_map(|signature| signature.label.as_ref());
        if labels.into_iter().any(|label| label.eq_ignore_ascii_case(LABEL)) {
            found.push(partition);
        }
    }
    let mut found = found.into_iter();
    match (found.next(), found.next()) {
        (Some(first), Some(second)) => Err(Error::NoPlaceForConfigDrive {
            device: disk.path().to_owned(),
            reason: format!(
                "partitions {} and {} are both labelled {LABEL}; use an image with one of them",
                first.number, second.number
            ),
        }),
        (first, _) => Ok(first.cloned()),
    }
}

fn invalid(reason: impl Into<String>) -> Error {
    Error::InvalidConfigDrive { reason: reason.into() }
}

#[cfg(test)]
mod tests;
