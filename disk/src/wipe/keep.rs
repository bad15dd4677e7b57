//! Content that must not be erased (section 9.8).

use crate::error::Error;
use crate::guard::WritableDisk;
use crate::probe;
use crate::table::Geometry;
use crate::view::DiskView;

/// Volume label of the medium with the agent's parameters.
const PARAMETERS_LABEL: &str = "ir-vfd-dev";

/// Whether this is the virtual floppy from which the machine got its parameters.
pub fn is_virtual_media(disk: &WritableDisk) -> Result<bool, Error> {
    let found = probe::signatures(disk, 0, disk.size())?;
    let is_parameters = |label: &String| label.eq_ignore_ascii_case(PARAMETERS_LABEL);
    Ok(found.iter().any(|signature| signature.label.as_ref().is_some_and(is_parameters)))
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
