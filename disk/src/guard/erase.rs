//! Which disks of a node lose their metadata (section 9.8).

use super::skip_list::SkipList;
use super::{Choice, WritableDisk};
use crate::device::BlockDevice;
use crate::error::Error;
use farrier_linux::sysfs;
use farrier_protocol::lookup::Node;

/// The disks to erase and those to keep. Nothing has been opened yet.
#[derive(Debug)]
pub struct ErasePlan {
    /// Disks to erase.
    pub targets: Vec<EraseTarget>,
    /// Names of the disks to keep, each with the reason.
    pub kept: Vec<(String, &'static str)>,
}

/// A disk to erase.
#[derive(Debug)]
pub struct EraseTarget(Choice);

/// Plans to erase every disk of `node` among `devices` that is not on the skip list and accepts writes.
///
/// # Errors
///
/// [`Error::InvalidSkipList`]: no disk is erased without knowing which ones to keep.
pub fn plan_erase(node: &Node, devices: &[BlockDevice]) -> Result<ErasePlan, Error> {
    let skip_list = SkipList::of(node)?;
    let mut plan = ErasePlan { targets: Vec::new(), kept: Vec::new() };
    // Last name first, so that an array comes before the disks it may lie on.
    for device in devices.iter().rev() {
        let reason = if skip_list.excludes(device) {
            Some("on the list of skipped disks")
        } else {
            is_read_only(device).then_some("read-only")
        };
        match reason {
            Some(reason) => plan.kept.push((device.disk.name.clone(), reason)),
            None => plan
                .targets
                .push(EraseTarget(Choice { device: device.clone(), skip_list: skip_list.clone() })),
        }
    }
    Ok(plan)
}

impl EraseTarget {
    /// The device to erase.
    pub fn device(&self) -> &BlockDevice {
        &self.0.device
    }

    /// Opens the disk for writing, under the rules of [`RootDisk::open`](super::RootDisk::open).
    ///
    /// # Errors
    ///
    /// As there. Nothing is written in any case.
    pub fn open(&self) -> Result<WritableDisk, Error> {
        WritableDisk::open(&self.0.confirm()?)
    }
}

fn is_read_only(device: &BlockDevice) -> bool {
    let directories = device.directories();
    directories.first().is_some_and(|directory| sysfs::number::<u8>(directory, "ro") == Some(1))
}
