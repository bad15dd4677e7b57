//! Which disks may be destroyed: the choice of the root disk, the plan of erasing, and the only way to
//! open a disk for writing.

mod erase;
mod usage;
mod writable;

pub use erase::{ErasePlan, EraseTarget, plan_erase};
pub use writable::WritableDisk;

use crate::device::BlockDevice;
use crate::error::Error;
use crate::hints::{Hints, gib_text};
use farrier_protocol::lookup::Node;
use serde_json::Value;
use std::fmt::Display;

/// Smallest disk that the default rule takes, in bytes (section 8.1).
const SMALLEST_DEFAULT: u64 = 4 << 30;

/// Key that marks an entry of `skip_block_devices` as the name of a RAID volume instead of hints.
const VOLUME_NAME: &str = "volume_name";

/// The disk chosen to carry the operating system. Nothing has been opened yet.
#[derive(Debug, Clone)]
pub struct RootDisk(Choice);

/// A disk that was chosen, as it was then.
#[derive(Debug, Clone)]
struct Choice {
    device: BlockDevice,
    skip_list: SkipList,
}

/// Chooses the root disk of `node` among `devices` (sections 8.1 and 8.4).
///
/// With hints it is the first device that satisfies all of them, else the smallest of at least 4 GiB,
/// ties by name (F26). Disks on the skip list are never chosen.
///
/// # Errors
///
/// [`Error::NoDisk`], [`Error::NoFittingDisk`] naming each disk with the reason against it,
/// [`Error::InvalidHint`] or [`Error::InvalidSkipList`].
pub fn choose_root_disk(node: &Node, devices: &[BlockDevice]) -> Result<RootDisk, Error> {
    if devices.is_empty() {
        return Err(Error::NoDisk);
    }
    let skip_list = SkipList::of(node)?;
    let hints = node.root_device().map(Hints::parse).transpose()?.filter(|hints| !hints.is_empty());
    let mut candidates = devices.iter().filter(|device| !skip_list.excludes(device));
    let chosen = match &hints {
        Some(hints) => candidates.find(|device| hints.mismatch(device).is_none()),
        None => candidates
            .filter(|device| device.disk.size >= SMALLEST_DEFAULT)
            .min_by_key(|device| (device.disk.size, &device.disk.name)),
    };
    match chosen {
        Some(device) => Ok(RootDisk(Choice { device: device.clone(), skip_list })),
        None => Err(no_fitting_disk(hints.as_ref(), devices, &skip_list)),
    }
}

impl RootDisk {
    /// The chosen device.
    pub fn device(&self) -> &BlockDevice {
        &self.0.device
    }

    /// Opens the disk for writing, for this process alone.
    ///
    /// The device is described again and must still be the chosen one and not be excluded (D01). A disk
    /// that is busy for a moment, as after a rescan, is tried again for a bounded time (F09).
    ///
    /// # Errors
    ///
    /// [`Error::ChangedSinceChosen`], [`Error::InUse`], [`Error::ReadOnly`], or [`Error::Device`] when
    /// the device cannot be opened. Nothing is written in any case.
    pub fn open(&self) -> Result<WritableDisk, Error> {
        self.0.open()
    }
}

impl Choice {
    fn open(&self) -> Result<WritableDisk, Error> {
        let now = self.device.describe_again()?;
        if let Some(reason) = self.difference(&now) {
            return Err(Error::ChangedSinceChosen { device: now.disk.name, reason });
        }
        WritableDisk::open(&now)
    }

    fn difference(&self, now: &BlockDevice) -> Option<String> {
        let changed = |what: &str, before: &dyn Display, after: &dyn Display| {
            Some(format!("its {what} was {before} and is {after}"))
        };
        let (before, after) = (&self.device, now);
        if before.disk.size != after.disk.size {
            return changed("size", &gib_text(before.disk.size), &gib_text(after.disk.size));
        }
        if before.serials != after.serials {
            return changed("serial", &before.serials.join(" or "), &after.serials.join(" or "));
        }
        if before.wwns != after.wwns {
            return changed("wwn", &before.wwns.join(" or "), &after.wwns.join(" or "));
        }
        self.skip_list.excludes(now).then(|| "it is on the list of skipped disks".to_owned())
    }
}

/// The disks that must never be touched (section 8.4).
#[derive(Debug, Clone)]
struct SkipList(Vec<Hints>);

impl SkipList {
    fn of(node: &Node) -> Result<Self, Error> {
        let Some(value) = node.skip_block_devices() else { return Ok(Self(Vec::new())) };
        let invalid = |reason: String| Error::InvalidSkipList { reason };
        let entries =
            value.as_array().ok_or_else(|| invalid("it must be a list of hint objects".to_owned()))?;
        let mut skipped = Vec::new();
        for entry in entries {
            let object = entry.as_object().ok_or_else(|| invalid(format!("{entry} is not an object")))?;
            if object.contains_key(VOLUME_NAME) {
                continue;
            }
            let hints = Hints::parse(&Value::Object(object.clone()))
                .map_err(|error| invalid(format!("entry {entry} cannot be read: {error}")))?;
            // An entry without hints would match every disk and names none.
            if hints.is_empty() {
                return Err(invalid("an entry is empty".to_owned()));
            }
            skipped.push(hints);
        }
        Ok(Self(skipped))
    }

    fn excludes(&self, device: &BlockDevice) -> bool {
        self.0.iter().any(|hints| hints.mismatch(device).is_none())
    }
}

fn no_fitting_disk(hints: Option<&Hints>, devices: &[BlockDevice], skip_list: &SkipList) -> Error {
    let wanted = match hints {
        Some(hints) => format!("the root device hints {hints}"),
        None => format!("the default rule of at least {}", gib_text(SMALLEST_DEFAULT)),
    };
    let verdict = |device: &BlockDevice| {
        let name = &device.disk.name;
        if skip_list.excludes(device) {
            return format!("{name}: on the list of skipped disks");
        }
        match hints.and_then(|hints| hints.mismatch(device)) {
            Some(mismatch) => format!("{name}: {mismatch}"),
            None => format!("{name}: size is {}", gib_text(device.disk.size)),
        }
    };
    Error::NoFittingDisk { wanted, verdicts: devices.iter().map(verdict).collect::<Vec<_>>().join("; ") }
}

#[cfg(test)]
mod tests;
