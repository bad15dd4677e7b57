//! What ATA disks say of themselves, which inquiry data have no room for.

use crate::device::command_set::ATA_VENDOR;
use farrier_linux::ata::IdentifyData;
use farrier_linux::scsi::ScsiDevice;
use farrier_linux::sysfs;
use std::fs::{self, OpenOptions};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

/// Where the kernel describes the devices of this machine.
const SYSFS: &str = "/sys";

/// The identify data of the disk in `directory`; nothing for one that is no ATA disk or does not answer.
///
/// The kernel keeps them where it asked for them; else the disk is asked, which neither wakes it nor changes
/// anything.
pub fn identify(directory: &Path) -> Option<IdentifyData> {
    let device = directory.join("device");
    let kept = || IdentifyData::of_page(&fs::read(device.join("vpd_pg89")).ok()?);
    (sysfs::attribute(&device, "vendor")? == ATA_VENDOR).then(|| kept().or_else(|| ask(directory))).flatten()
}

fn ask(directory: &Path) -> Option<IdentifyData> {
    // Device nodes are those of the machine, whichever tree describes them.
    if !directory.canonicalize().ok()?.starts_with(SYSFS) {
        return None;
    }
    let node = sysfs::node(directory);
    let file = OpenOptions::new().read(true).custom_flags(libc::O_NONBLOCK | libc::O_CLOEXEC).open(&node);
    let data = IdentifyData::read(&ScsiDevice::new(&file.ok()?));
    data.map_err(|error| tracing::info!(disk = %node.display(), "its model may be cut: {error}")).ok()
}
