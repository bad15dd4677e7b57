//! The EFI system partition of a root volume, on every disk of it (section 7.5).
//!
//! Firmware knows no arrays. The copies are members of a mirror whose superblocks lie at their ends, so
//! that each looks like a plain FAT volume, and the deployed system keeps all in step (D19).

use super::create::{free_numbers, require_complete};
use crate::error::Error;
use crate::fat::Fat;
use crate::guard::{self, BootPartition, RootDisk};
use crate::io::view::DiskView;
use crate::io::{Sectors, WritableDisk};
use crate::md::MemberDevice;
use crate::md::array::Array;
use crate::md::config::{ESP_NAME, Level};
use crate::md::mdadm::{self, Format};
use crate::table::Partition;
use crate::tree::{self, Visitor};
use crate::{filesystem, wipe};
use std::io::{self, Read, Seek};
use std::path::{Path, PathBuf};

/// The mirror.
#[derive(Debug)]
pub struct Mirror {
    /// The array, open for writing.
    pub disk: WritableDisk,
    /// Its members.
    pub copies: Vec<BootPartition>,
}

impl Mirror {
    /// Finds the mirror that belongs to a root volume, or makes it.
    ///
    /// # Errors
    ///
    /// [`Error::NoEsp`] when a disk of the volume has no place for it, [`Error::Raid`] or
    /// [`Error::Device`].
    pub fn open(root: &RootDisk) -> Result<Self, Error> {
        let copies = root.boot_partitions()?;
        let members: Vec<_> = copies.iter().map(|copy| copy.device.clone()).collect();
        let running = copies.iter().find_map(|copy| copy.array.clone());
        let array = match running {
            Some(name) => {
                let found = Array::all(Path::new("/sys")).into_iter().find(|one| one.kernel_name == name);
                found.ok_or(Error::NoSuchDevice { device: name })?
            }
            None => make(&members)?,
        };
        Ok(Self { disk: guard::open_array(&array, &members)?, copies })
    }

    /// Takes over the files, label and identity of the volume `original` on `disk`, unless an earlier call
    /// did so and removed it (D18).
    ///
    /// # Errors
    ///
    /// [`Error::UnreadableEsp`] when there are files in neither, [`Error::Corrupted`] when the copy differs,
    /// [`Error::Device`].
    pub fn take_over(&self, disk: &dyn Sectors, original: &Partition) -> Result<(), Error> {
        let mut source = DiskView::range(disk, original.start, original.size).with_memory();
        let mut target = DiskView::whole(&self.disk).with_memory();
        let unreadable = |error| Error::UnreadableEsp {
            device: disk.path().to_owned(),
            number: original.number,
            source: error,
        };
        let identity = match Identity::read(&mut source) {
            Err(_) if Identity::read(&mut target).is_ok() => return Ok(()),
            identity => identity.map_err(unreadable)?,
        };
        wipe::zero_signatures(&self.disk, &Partition::at(0, self.disk.size()))?;
        let mut show = |visit: &mut Visitor<'_>| tree::visit_fat(&mut source, visit);
        let is_equal = identity
            .make(&mut target, self.disk.sector_size())
            .and_then(|()| tree::copy_to_fat(&mut target, &mut show))
            .and_then(|()| self.disk.flush().map_err(io::Error::other))
            .and_then(|()| tree::is_in_fat(&mut DiskView::whole(&self.disk).with_memory(), &mut show));
        match is_equal {
            Ok(true) => Ok(()),
            Ok(false) => Err(Error::Corrupted { device: self.path(), what: "the EFI system partition" }),
            Err(source) => {
                let action = "copying the EFI system partition to it".to_owned();
                Err(Error::Device { device: self.path(), action, source })
            }
        }
    }

    fn path(&self) -> PathBuf {
        self.disk.path().to_owned()
    }
}

/// Makes the mirror. What its members hold is the mirror's: a call that was interrupted may have filled it, and only
/// [`Mirror::take_over`] can tell.
fn make(members: &[MemberDevice]) -> Result<Array, Error> {
    let device = Path::new("/dev").join(format!("md{}", free_numbers().next().unwrap_or_default()));
    mdadm::create(&device, ESP_NAME, Level::Raid1, Format::AtEnd, members)?;
    require_complete(&device, members)
}

/// The label of a volume that has none.
const NO_LABEL: [u8; 11] = [b' '; 11];

/// By what a FAT volume is known.
struct Identity {
    label: [u8; 11],
    identifier: u32,
}

impl Identity {
    fn read(volume: &mut (impl Read + Seek)) -> io::Result<Self> {
        let mut fat = Fat::open(volume)?;
        Ok(Self { label: fat.label()?.unwrap_or(NO_LABEL), identifier: fat.identifier() })
    }

    fn make(&self, volume: &mut DiskView<'_>, sector_size: u32) -> io::Result<()> {
        filesystem::make_vfat_as(volume, self.label, self.identifier, sector_size)
    }
}
