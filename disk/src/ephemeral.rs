//! The file system of an ephemeral partition (section 6.2).
//!
//! FAT is made here. The others are made by their own programs, on a loop device over the partition's place on
//! the disk: the disk stays held, it has no table yet, and no program can write beyond that place.

use crate::filesystem;
use crate::io::Sectors;
use crate::io::view::DiskView;
use farrier_linux::process::{MKE2FS, Program, StartError};
use std::io;
use std::time::Duration;

/// The label by which deployed systems and operators know it.
const LABEL: &str = "ephemeral0";

/// Longest time for a program: without help of the disk, the tables of a large ext3 are written as zeros.
const LIMIT: Duration = Duration::from_secs(4 * 3600);

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
            Some((program, arguments)) => {
                let device = disk.loop_over(start, size).map_err(io::Error::other)?;
                let device = device.path().to_string_lossy();
                let arguments = [arguments, &["-L", LABEL, device.as_ref()]].concat();
                program.run(&arguments, LIMIT).map_err(io::Error::other)?;
            }
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

impl Default for Format {
    fn default() -> Self {
        Self(MAKERS[0])
    }
}
