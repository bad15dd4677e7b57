//! The file system of an ephemeral partition (section 6.2).
//!
//! FAT is made here. The others are made by their own programs, on a loop device over the partition's place on
//! the disk: the disk stays held, it has no table yet, and no program can write beyond that place. Where this machine's
//! kernel does not have the disk, they are made in a file without content, and what that has then is copied.

use crate::filesystem;
use crate::io::Sectors;
use crate::io::view::DiskView;
use crate::io::zero::{Zeroing, is_zero};
use farrier_linux::aligned::AlignedBuffer;
use farrier_linux::process::{MKE2FS, Program, StartError};
use nix::errno::Errno;
use nix::unistd::{Whence, lseek};
use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::time::Duration;

/// The label by which deployed systems and operators know it.
const LABEL: &str = "ephemeral0";

/// Longest time for a program: without help of the disk, the tables of a large ext3 are written as zeros.
const LIMIT: Duration = Duration::from_secs(4 * 3600);

/// Bytes of the smallest block of these file systems.
const LEAST_BLOCK: u32 = 1024;

/// Bytes copied in one piece.
const PIECE: u64 = 1 << 20;

/// What makes a file system.
#[derive(Debug, Clone, Copy)]
struct Maker {
    format: &'static str,
    /// The program with its arguments before the label and the device, or nothing for what is made here.
    program: Option<(Program, &'static [&'static str])>,
}

const MAKERS: &[Maker] = &[
    // Unused tables are left to the kernel, which clears them while the file system is used for the first time.
    Maker {
        format: "ext4",
        program: Some((MKE2FS, &["-q", "-F", "-t", "ext4", "-E", "lazy_itable_init=1"])),
    },
    Maker { format: "ext3", program: Some((MKE2FS, &["-q", "-F", "-t", "ext3"])) },
    Maker { format: "ext2", program: Some((MKE2FS, &["-q", "-F", "-t", "ext2"])) },
    Maker { format: "vfat", program: None },
];

/// The format of an ephemeral partition.
#[derive(Debug, Clone, Copy)]
pub struct Format(Maker);

impl Format {
    /// The names of those that can be made.
    pub fn names() -> impl Iterator<Item = &'static str> {
        MAKERS.iter().map(|maker| maker.format)
    }

    /// The one of this name, as `ephemeral_format` has it, if it can be made.
    pub fn named(name: &str) -> Option<Self> {
        MAKERS.iter().find(|maker| maker.format == name).copied().map(Self)
    }

    /// Whether its program is there.
    ///
    /// # Errors
    ///
    /// [`StartError`] with the package to pack.
    pub fn require(&self) -> Result<(), StartError> {
        self.0.program.map_or(Ok(()), |(program, _)| program.require())
    }

    /// Makes the file system on `size` bytes from `start`, and looks for it on the disk.
    pub(crate) fn make(&self, disk: &dyn Sectors, start: u64, size: u64) -> io::Result<()> {
        match self.0.program {
            Some((program, arguments)) => match disk.loop_over(start, size).map_err(io::Error::other)? {
                Some(device) => {
                    run(program, arguments, device.path())?;
                    device.flush()?;
                }
                None => {
                    // A file does not tell what the sectors of the disk are, which no block may be smaller than.
                    let sectors = disk.sector_size().to_string();
                    let blocks = ["-b", sectors.as_str()];
                    let blocks: &[&str] = if disk.sector_size() < LEAST_BLOCK { &[] } else { &blocks };
                    let arguments = [arguments, blocks].concat();
                    make_elsewhere(disk, start, size, |file| run(program, &arguments, file))?;
                }
            },
            None => {
                let mut volume = DiskView::range(disk, start, size);
                filesystem::make_vfat(&mut volume, LABEL, disk.sector_size())?;
            }
        }
        let found = disk.signatures(start, size).map_err(io::Error::other)?;
        if found.iter().any(|signature| signature.kind == self.0.format) {
            return Ok(());
        }
        let found: Vec<_> = found.into_iter().map(|signature| signature.kind).collect();
        Err(io::Error::other(format!("made as {} it reads as {found:?}", self.0.format)))
    }
}

fn run(program: Program, arguments: &[&str], device: &Path) -> io::Result<()> {
    let device = device.to_string_lossy();
    let arguments = [arguments, &["-L", LABEL, device.as_ref()]].concat();
    program.run(&arguments, LIMIT).map(drop).map_err(io::Error::other)
}

/// Has `make` fill a file of `size` bytes, and copies what it has into a place on the disk. All of that is made zero
/// before: what `make` wants to be zero cannot be told from what it has not touched.
fn make_elsewhere(
    disk: &dyn Sectors,
    start: u64,
    size: u64,
    make: impl FnOnce(&Path) -> io::Result<()>,
) -> io::Result<()> {
    Zeroing::default().make(disk, start, size).map_err(io::Error::other)?;
    let file = tempfile::NamedTempFile::new()?;
    file.as_file().set_len(size)?;
    make(file.path())?;
    copy_data(file.as_file(), disk, start, size)
}

/// Copies what a file has other than zeros.
fn copy_data(file: &File, disk: &dyn Sectors, start: u64, size: u64) -> io::Result<()> {
    let mut buffer = AlignedBuffer::zeroed(PIECE as usize);
    let mut position = 0;
    while position < size {
        position = match lseek(file, position as i64, Whence::SeekData) {
            // Nothing but a hole is left.
            Err(Errno::ENXIO) => break,
            data => data? as u64 / PIECE * PIECE,
        };
        let piece = &mut buffer[..PIECE.min(size - position) as usize];
        file.read_exact_at(piece, position)?;
        if !is_zero(piece) {
            disk.write_all_at(piece, start + position).map_err(io::Error::other)?;
        }
        position += PIECE;
    }
    Ok(())
}

impl Default for Format {
    fn default() -> Self {
        Self(MAKERS[0])
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::io::MemoryDisk;

    const START: u64 = 8 << 20;
    const SIZE: u64 = 64 << 20;

    /// A disk that no kernel has, full of what would be taken for content.
    #[test]
    fn a_file_system_for_a_disk_of_another_machine_is_made_in_a_file() {
        for (sector_size, format) in [(512, "ext4"), (4096, "ext4"), (512, "ext2"), (512, "vfat")] {
            let disk = MemoryDisk::ones(96 << 20, sector_size);
            let made = Format::named(format).unwrap().make(&disk, START, SIZE);
            made.unwrap_or_else(|error| panic!("{format} on {sector_size}: {error}"));
            let ones = |offset| disk.content(offset, 1 << 20).iter().all(|byte| *byte == 0xff);
            assert!(ones(START - (1 << 20)) && ones(START + SIZE), "nothing else is touched");
            let copy = tempfile::NamedTempFile::new().unwrap();
            copy.as_file().write_all_at(&disk.content(START, SIZE as usize), 0).unwrap();
            if format != "vfat" {
                let check =
                    std::process::Command::new("/usr/sbin/e2fsck").arg("-fn").arg(copy.path()).output();
                let check = check.unwrap();
                assert!(check.status.success(), "{}", String::from_utf8_lossy(&check.stdout));
            }
        }
    }
}
