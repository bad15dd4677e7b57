//! Assembling software RAID: starting the arrays that a scan of the disks finds (`mdadm --assemble --scan`).

use crate::error::Error;
use crate::list;
use crate::md::array::Array;
use crate::md::{mdadm, superblock};
use farrier_linux::blkid;
use farrier_linux::modules::ModuleIndex;
use farrier_linux::sysfs;
use std::fs::{self, File};
use std::io::{Seek, SeekFrom};
use std::path::Path;

/// Whether arrays start in a state in which nothing is written to their members before somebody writes to
/// them: no repair, no update of superblocks. So what is on the skip list stays as it is.
const START_UNTOUCHED: &str = "module/md_mod/parameters/start_ro";

/// Starts every array that has members among the disks in the sysfs mounted at `sysfs`. One that lacks too
/// many of them to work does not hold the others.
///
/// # Errors
///
/// [`Error::Device`] when the disks cannot be listed, [`Error::Raid`] when there are members and `mdadm` or
/// the kernel's driver is missing.
pub fn assemble(sysfs: &Path) -> Result<(), Error> {
    let devices = list::list(sysfs)?;
    let directories = devices.iter().flat_map(|device| device.directories());
    let mut nodes = directories.map(|directory| sysfs::node(&directory));
    let Some(member) = nodes.find(|path| is_member(path)) else { return Ok(()) };
    let failed = |reason: String| Error::Raid { device: member.clone(), reason };
    ModuleIndex::load_unasked("md_mod");
    let switch = sysfs.join(START_UNTOUCHED);
    fs::write(&switch, "1").map_err(|error| {
        failed(format!("is a member of an array, and the kernel has no driver for it ({error}); pack md_mod"))
    })?;
    let outcome = mdadm::assemble_all();
    // New arrays are to be put in order at once.
    fs::write(&switch, "0").map_err(|error| failed(format!("{} is not reset: {error}", switch.display())))?;
    outcome.map_err(|error| failed(error.to_string()))?;
    for array in Array::all(sysfs).iter().filter(|array| !array.is_active) {
        tracing::warn!(array = array.kernel_name, members = ?array.members, "too few members to start");
        mdadm::stop(&array.path())?;
    }
    Ok(())
}

/// A device that cannot be read is none.
fn is_member(path: &Path) -> bool {
    let signatures = File::open(path).and_then(|mut file| {
        let size = file.seek(SeekFrom::End(0))?;
        blkid::signatures(&file, 0, size)
    });
    signatures.is_ok_and(|found| found.iter().any(|signature| signature.kind == superblock::SIGNATURE))
}
