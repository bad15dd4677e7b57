//! What the volumes of a node's software RAID are for (section 8.1).

use crate::device::BlockDevice;
use crate::error::Error;
use crate::raid::config::{ESP_NAME, RaidConfig};
use crate::raid::{array, mdadm, superblock};
use crate::stack;
use farrier_protocol::lookup::Node;
use std::path::Path;

/// Names of the volumes that were made for a node, or are wanted, by their purpose.
///
/// They are known by their superblocks: which process made them, and on which boot, does not matter.
#[derive(Debug, Clone, Default)]
pub(super) struct Volumes {
    root: Vec<String>,
    others: Vec<String>,
}

impl Volumes {
    /// Reads what the node's record says; nothing where it does not say what a volume is for.
    pub fn of(node: &Node) -> Self {
        let made = if node.raid_config.get("logical_disks").is_some() {
            &node.raid_config
        } else {
            &node.target_raid_config
        };
        let (root, others) = RaidConfig::purposes(made);
        Self { root, others }
    }

    /// Whether the operating system goes onto this device.
    pub fn is_root(&self, device: &BlockDevice) -> bool {
        is_one_of(device.directory(), &self.root)
    }

    /// Whether the device is a volume for something else, or one of its disks.
    pub fn reserve(&self, device: &BlockDevice) -> bool {
        let directory = device.directory();
        std::iter::once(directory.to_owned())
            .chain(stack::above(directory))
            .any(|array| is_one_of(&array, &self.others))
    }

    /// Stops the arrays on a device that are no volumes of the node.
    ///
    /// # Errors
    ///
    /// [`Error::Raid`] when one is in use.
    pub fn stop_others(&self, device: &BlockDevice) -> Result<(), Error> {
        let mut known = vec![ESP_NAME.to_owned()];
        known.extend(self.root.iter().chain(&self.others).cloned());
        for array in stack::above(device.directory()) {
            let Some(name) = array.file_name().filter(|_| array.join("md").is_dir()) else { continue };
            if !is_one_of(&array, &known) {
                tracing::warn!(disk = device.disk.name, array = %name.display(), "stopping what lies on the disk");
                mdadm::stop(&Path::new("/dev").join(name))?;
            }
        }
        Ok(())
    }
}

fn is_one_of(array: &Path, names: &[String]) -> bool {
    let is_named = |found: &str| names.iter().any(|name| superblock::is_named(found, name));
    !names.is_empty() && array::name_of(array).is_some_and(|found| is_named(&found))
}
