//! What the volumes of a node's software RAID are for (section 8.1).

use crate::device::{BlockDevice, stack};
use crate::error::Error;
use crate::md::config::{ESP_NAME, RaidConfig};
use crate::md::{array, mdadm, superblock};
use farrier_protocol::lookup::Node;
use std::path::{Path, PathBuf};

/// Names of the volumes that were made for a node, or are wanted, and whether each is the root volume where
/// that is stated.
///
/// They are known by their superblocks: which process made them, and on which boot, does not matter.
#[derive(Debug, Clone, Default)]
pub(super) struct Volumes(Vec<(String, Option<bool>)>);

impl Volumes {
    /// Reads what the node's record says.
    pub fn of(node: &Node) -> Self {
        let made = if node.raid_config.get("logical_disks").is_some() {
            &node.raid_config
        } else {
            &node.target_raid_config
        };
        Self(RaidConfig::names(made))
    }

    /// Whether the operating system goes onto this device.
    pub fn is_root(&self, device: &BlockDevice) -> bool {
        self.have(device.directory(), Some(true))
    }

    /// Whether the device is a volume for something else, or one of its disks.
    pub fn reserve(&self, device: &BlockDevice) -> bool {
        let directory = device.directory();
        std::iter::once(directory.to_owned())
            .chain(stack::above(directory))
            .any(|array| self.have(&array, Some(false)))
    }

    /// Whether the array in `directory` of sysfs is a volume of the node, or the mirror from which its
    /// volumes boot. An earlier user of the machine may have made arrays as well.
    pub fn own(&self, directory: &Path) -> bool {
        let is_own = |found: String| {
            let mut names = self.0.iter().map(|(name, _)| name.as_str()).chain([ESP_NAME]);
            names.any(|name| superblock::is_named(&found, name))
        };
        !self.0.is_empty() && array::name_of(directory).is_some_and(is_own)
    }

    /// Names of the running volumes of the node that lie on a device.
    pub fn on(&self, device: &BlockDevice) -> Vec<String> {
        let mut arrays = array::arrays_on(device.directory());
        arrays.retain(|array| self.own(&device.directory().with_file_name(array)));
        arrays
    }

    fn have(&self, array: &Path, purpose: Option<bool>) -> bool {
        let mut names = self.0.iter().filter(|(_, found)| *found == purpose).map(|(name, _)| name).peekable();
        names.peek().is_some()
            && array::name_of(array).is_some_and(|found| names.any(|name| superblock::is_named(&found, name)))
    }
}

/// Stops the arrays on a device but for those that `stays` says it of, those that lie on others first (D20).
///
/// # Errors
///
/// [`Error::Raid`] when one is in use.
pub(super) fn stop_arrays(device: &BlockDevice, stays: impl Fn(&Path) -> bool) -> Result<(), Error> {
    let mut others = stack::above(device.directory());
    others.retain(|above| array::is_array(above) && !stays(above));
    array::sort_for_removal(&mut others, PathBuf::clone);
    for array in others {
        let name = array.file_name().unwrap_or_default();
        tracing::warn!(disk = device.disk.name, array = %name.display(), "stopping the array that uses the disk");
        match mdadm::stop(&Path::new("/dev").join(name)) {
            // Whoever opened another one of its disks may have been faster.
            Err(error) if array::is_array(&array) => return Err(error),
            _ => {}
        }
    }
    Ok(())
}
