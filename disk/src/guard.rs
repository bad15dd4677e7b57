//! Which disks may be destroyed: the choice of the root disk, the plan of erasing, and the only way to
//! open a disk for writing.

mod erase;
mod skip_list;
mod survey;
mod usage;
mod writable;

pub use erase::{ErasePlan, EraseTarget, KeepReason, KeptDisk, plan_erase};
pub use survey::{Obstacle, Survey, SurveyedDisk, survey};
pub use writable::WritableDisk;

use crate::device::BlockDevice;
use crate::error::Error;
use crate::hints::{Hints, Verdict, gib_text};
use crate::probe::ReadableDisk;
use farrier_protocol::lookup::Node;
use serde_json::Value;
use skip_list::SkipList;
use std::fmt::Display;

/// Smallest disk that the default rule takes, in bytes (section 8.1).
const SMALLEST_DEFAULT: u64 = 4 << 30;

/// The disk chosen to carry the operating system. Nothing has been opened yet.
#[derive(Debug, Clone)]
pub struct RootDisk {
    choice: Choice,
    /// Whether the operator consents to the loss of a shared file system.
    consents: bool,
}

/// A disk that was chosen, as it was then.
#[derive(Debug, Clone)]
struct Choice {
    device: BlockDevice,
    skip_list: SkipList,
}

/// What a node says about its root disk.
struct Criteria {
    skip_list: SkipList,
    hints: Option<Hints>,
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
    let criteria = Criteria::of(node)?;
    let device = criteria.choose(devices).ok_or_else(|| criteria.no_fitting_disk(devices))?.clone();
    Ok(RootDisk { choice: Choice { device, skip_list: criteria.skip_list }, consents: consents(node) })
}

/// Whether the operator of `node` said that file systems of several machines may be destroyed on it
/// (section 9.8). Only an explicit yes counts.
pub fn consents(node: &Node) -> bool {
    let is_yes = |value: &Value| match value {
        Value::Bool(answer) => *answer,
        Value::String(text) => text.eq_ignore_ascii_case("true"),
        _ => false,
    };
    // The contract names the first, the documentation for operators the second.
    [&node.driver_internal_info, &node.driver_info]
        .into_iter()
        .any(|map| map.get("wipe_special_filesystems").is_some_and(is_yes))
}

impl Criteria {
    fn of(node: &Node) -> Result<Self, Error> {
        let hints = node.root_device().map(Hints::parse).transpose()?.filter(|hints| !hints.is_empty());
        Ok(Self { skip_list: SkipList::of(node)?, hints })
    }

    fn choose<'a>(&self, devices: &'a [BlockDevice]) -> Option<&'a BlockDevice> {
        let fits = |device: &&BlockDevice| {
            self.verdicts(device).iter().all(|verdict| verdict.holds) && !self.skip_list.excludes(device)
        };
        let mut fitting = devices.iter().filter(fits);
        match self.hints {
            Some(_) => fitting.next(),
            None => fitting.min_by_key(|device| (device.disk.size, &device.disk.name)),
        }
    }

    /// What each hint, or the default rule, says of a device.
    fn verdicts(&self, device: &BlockDevice) -> Vec<Verdict> {
        let by_default = || Verdict {
            hint: "size",
            wanted: format!(">= {} GiB by default", SMALLEST_DEFAULT >> 30),
            actual: gib_text(device.disk.size),
            holds: device.disk.size >= SMALLEST_DEFAULT,
        };
        self.hints.as_ref().map_or_else(|| vec![by_default()], |hints| hints.verdicts(device))
    }

    /// What is wanted, in words.
    fn wanted(&self) -> String {
        match &self.hints {
            Some(hints) => format!("the root device hints {hints}"),
            None => format!("the default rule of at least {}", gib_text(SMALLEST_DEFAULT)),
        }
    }

    fn no_fitting_disk(&self, devices: &[BlockDevice]) -> Error {
        let verdict = |device: &BlockDevice| {
            let name = &device.disk.name;
            match self.verdicts(device).into_iter().find(|verdict| !verdict.holds) {
                _ if self.skip_list.excludes(device) => format!("{name}: {}", Obstacle::SkipList),
                Some(verdict) => format!("{name}: {verdict}"),
                None => format!("{name}: fits"),
            }
        };
        let verdicts = devices.iter().map(verdict).collect::<Vec<_>>().join("; ");
        Error::NoFittingDisk { wanted: self.wanted(), verdicts }
    }
}

impl RootDisk {
    /// The chosen device.
    pub fn device(&self) -> &BlockDevice {
        &self.choice.device
    }

    /// Opens the disk for writing, for this process alone.
    ///
    /// The device is described again and must still be the chosen one and not be excluded (D01). A disk
    /// that is busy for a moment, as after a rescan, is tried again for a bounded time (F09). A file
    /// system that other machines may be using keeps it closed, unless the operator consents (D03).
    ///
    /// # Errors
    ///
    /// [`Error::ChangedSinceChosen`], [`Error::InUse`], [`Error::ReadOnly`], [`Error::Protected`], or
    /// [`Error::Device`] when the device cannot be opened. Nothing is written in any case.
    pub fn open(&self) -> Result<WritableDisk, Error> {
        let device = self.choice.confirm()?;
        usage::require_unused(&device)?;
        let shared = if self.consents { None } else { ReadableDisk::open(&device)?.shared_file_system()? };
        match shared {
            Some(content) => Err(Error::Protected { device: device.disk.name.into(), content }),
            None => WritableDisk::open(&device),
        }
    }
}

impl Choice {
    /// The device as it is now, when it still is the one that was chosen.
    fn confirm(&self) -> Result<BlockDevice, Error> {
        let now = self.device.describe_again()?;
        match self.difference(&now) {
            Some(reason) => Err(Error::ChangedSinceChosen { device: now.disk.name, reason }),
            None => Ok(now),
        }
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
        self.skip_list.excludes(now).then(|| format!("it is {}", Obstacle::SkipList))
    }
}

#[cfg(test)]
mod tests;
