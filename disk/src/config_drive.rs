//! Config drives: a small file system with the instance's first settings (section 6.5).

mod label;

use crate::error::Error;
use crate::guard::WritableDisk;
use crate::table::{self, Partition, PartitionTable};
use crate::view::DiskView;
use base64::Engine;
use base64::engine::general_purpose::STANDARD_NO_PAD;
use farrier_linux::aligned::AlignedBuffer;
use flate2::read::MultiGzDecoder;
use std::io::Read;

/// Largest config drive, and size of the partition made for one, in bytes.
pub const MAX_SIZE: u64 = 64 << 20;

/// Label by which a deployed system finds its config drive.
const LABEL: &str = "config-2";

/// Sector size of ISO 9660; a disk with larger ones cannot carry it.
const ISO_SECTOR: u32 = 2048;

/// Bytes written and read back at once; a multiple of every sector size.
const CHUNK: usize = 1 << 20;

/// A decoded config drive whose content was recognised.
#[derive(Debug, Clone)]
pub struct ConfigDrive {
    content: Vec<u8>,
    kind: ContentKind,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum ContentKind {
    Iso9660,
    Fat { sector_size: u32 },
}

impl ConfigDrive {
    /// Decodes base64 of gzip, as conductors send it. Foreign characters such as line ends are dropped.
    ///
    /// # Errors
    ///
    /// [`Error::InvalidConfigDrive`]: not base64, not gzip, larger than 64 MiB (looked at while
    /// decoding), or neither ISO 9660 nor FAT (D10).
    pub fn decode(text: &str) -> Result<Self, Error> {
        if text.trim_start().to_ascii_lowercase().starts_with("http") && text.contains("://") {
            let reason = "a URL is not supported yet; send the config drive itself, as base64 of gzip";
            return Err(invalid(reason));
        }
        let letters: Vec<u8> =
            text.bytes().filter(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'/')).collect();
        let packed = STANDARD_NO_PAD
            .decode(letters)
            .map_err(|error| invalid(format!("it is not base64 ({error}); send base64 of gzip")))?;
        let mut content = Vec::new();
        MultiGzDecoder::new(packed.as_slice())
            .take(MAX_SIZE + 1)
            .read_to_end(&mut content)
            .map_err(|error| invalid(format!("it cannot be unpacked ({error}); send base64 of gzip")))?;
        Self::from_content(content)
    }

    fn from_content(content: Vec<u8>) -> Result<Self, Error> {
        if content.len() as u64 > MAX_SIZE {
            return Err(invalid("it is larger than 64 MiB when unpacked; make it smaller"));
        }
        let kind = if label::is_iso9660(&content) {
            ContentKind::Iso9660
        } else if let Some(sector_size) = label::fat_sector_size(&content) {
            ContentKind::Fat { sector_size }
        } else {
            return Err(invalid(
                "its content is neither ISO 9660 nor FAT; make it with the label config-2 in one of the two",
            ));
        };
        Ok(Self { content, kind })
    }

    /// Makes sure that a system on this disk will be able to read the drive. Call it before the image
    /// is written, so that nothing is destroyed in vain (F11).
    ///
    /// # Errors
    ///
    /// [`Error::NoPlaceForConfigDrive`].
    pub fn require_fits(&self, disk: &WritableDisk) -> Result<(), Error> {
        let (name, sector_size) = match self.kind {
            ContentKind::Iso9660 => ("ISO 9660", ISO_SECTOR),
            ContentKind::Fat { sector_size } => ("FAT", sector_size),
        };
        if disk.sector_size() <= sector_size {
            return Ok(());
        }
        Err(Error::NoPlaceForConfigDrive {
            device: disk.path().to_owned(),
            reason: format!(
                "a {name} drive with sectors of {sector_size} bytes cannot be mounted from sectors of {} bytes; \
                 send one that is FAT with the disk's sector size",
                disk.sector_size()
            ),
        })
    }

    /// Puts the drive on a disk that carries a whole-disk image and reads it back.
    ///
    /// A partition labelled `config-2` is used where the image has one, else a new one is made at the
    /// end of the disk.
    ///
    /// # Errors
    ///
    /// [`Error::NoPlaceForConfigDrive`], [`Error::Corrupted`], [`Error::InvalidTable`] or
    /// [`Error::Device`].
    pub fn write_to(&self, disk: &WritableDisk) -> Result<Partition, Error> {
        self.require_fits(disk)?;
        let table = PartitionTable::read(disk)?;
        let partition = match labelled_partition(disk, &table)? {
            Some(partition) => partition,
            None => table.add_at_end(disk, MAX_SIZE)?,
        };
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
        self.write_content(disk, &partition)?;
        self.verify(disk, &partition)?;
        table::rescan(disk);
        Ok(partition)
    }

    fn write_content(&self, disk: &WritableDisk, partition: &Partition) -> Result<(), Error> {
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

    fn verify(&self, disk: &WritableDisk, partition: &Partition) -> Result<(), Error> {
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

/// The partition the image itself provides for a config drive.
fn labelled_partition(disk: &WritableDisk, table: &PartitionTable) -> Result<Option<Partition>, Error> {
    let has_label = |partition: &&Partition| {
        let mut view = DiskView::range(disk, partition.start, partition.size);
        label::read(&mut view).is_some_and(|label| label.eq_ignore_ascii_case(LABEL))
    };
    let mut found = table.partitions().iter().filter(has_label);
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
