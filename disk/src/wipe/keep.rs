//! Content that must not be erased (section 9.8).

use crate::error::Error;
use crate::guard::WritableDisk;
use crate::probe;
use crate::table::{self, Geometry};
use crate::view::DiskView;

/// Volume label of the medium with the agent's parameters.
const PARAMETERS_LABEL: &[u8] = b"ir-vfd-dev ";
/// Where FAT12 and FAT16, and FAT32, keep their volume label.
const FAT_LABELS: [u64; 2] = [43, 71];

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
pub fn require_unprotected(disk: &WritableDisk) -> Result<(), Error> {
    let geometry = Geometry { size: disk.size(), sector_size: disk.sector_size() };
    let found = probe::shared_file_system(&mut DiskView::whole(disk), geometry);
    let device = || disk.path().to_owned();
    match found {
        Ok(None) => Ok(()),
        Ok(Some(content)) => Err(Error::Protected { device: device(), content }),
        Err(source) => Err(Error::Device {
            device: device(),
            action: "looking for shared file systems".to_owned(),
            source,
        }),
    }
}
