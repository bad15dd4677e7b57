//! Which disks may be destroyed: the choice of the root disk, the plan of erasing, and the only way to
//! open a disk for writing.

mod beside;
mod boot_media;
mod coverage;
mod erase;
#[cfg(test)]
pub(crate) mod fake_machine;
mod installed;
mod leftovers;
mod raid;
mod reservation;
mod shared;
mod skip_list;
mod survey;
mod volumes;

pub use beside::{Beside, StoppedVolumes};
pub use boot_media::BootMedium;
pub use erase::{ErasePlan, EraseTarget, KeepReason, KeptDisk, plan_erase};
pub use installed::RootPartition;
pub use raid::{
    BootPartition, RaidArray, RaidDisk, RaidPlan, RaidTarget, kept_volumes, open_array, plan_raid,
};
pub use survey::{Obstacle, Survey, SurveyedDisk, survey};

use crate::device::usage::Usage;
use crate::device::{BlockDevice, HardwarePartition, stack};
use crate::error::Error;
use crate::hints::{Hints, Verdict, gib_text};
use crate::io::WritableDisk;
use crate::md::array;
use farrier_linux::sysfs;
use farrier_protocol::lookup::Node;
use serde_json::Value;
use skip_list::SkipList;
use std::fmt::Display;
use std::path::PathBuf;
use volumes::{Volumes, stop_arrays};

/// Smallest disk that the default rule takes, in bytes (section 8.1).
const SMALLEST_DEFAULT: u64 = 4 << 30;

/// The disk chosen to carry the operating system. Nothing has been opened yet.
#[derive(Debug, Clone)]
pub struct RootDisk {
    choice: Choice,
    /// Whether the operator consents to the loss of a shared file system.
    consents: bool,
    volumes: Volumes,
}

/// A disk that was chosen, as it was then.
#[derive(Debug, Clone)]
struct Choice {
    device: BlockDevice,
    skip_list: SkipList,
    scope: Scope,
}

/// What of a device is at stake.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Scope {
    /// All of it.
    Whole,
    /// What is no part of a kept volume of software RAID.
    Raid,
}

/// What a node says about its root disk.
struct Criteria {
    skip_list: SkipList,
    hints: Option<Hints>,
    volumes: Volumes,
}

/// Chooses the root disk of `node` among `devices` (sections 8.1 and 8.4).
///
/// The root volume of software RAID goes first. With hints it is the first device that satisfies all of
/// them, else the smallest of at least 4 GiB, ties by name (F26); then disks of the node's own arrays are left
/// out, and arrays of others, whose disks are candidates themselves. Disks on the skip list, other volumes
/// of software RAID and the disks of these are never chosen; a medium of this boot is where hints identify it.
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
    criteria.skip_list.warn(devices);
    let device = criteria.choose(devices).ok_or_else(|| criteria.no_fitting_disk(devices))?.clone();
    let is_meant = criteria.means(&device);
    let skip_list = if is_meant { criteria.skip_list.without_media() } else { criteria.skip_list };
    let choice = Choice::whole(device, skip_list);
    Ok(RootDisk { choice, consents: consents(node), volumes: criteria.volumes })
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
        Ok(Self { skip_list: SkipList::of(node)?, hints, volumes: Volumes::of(node) })
    }

    fn choose<'a>(&self, devices: &'a [BlockDevice]) -> Option<&'a BlockDevice> {
        let is_open = |device: &&BlockDevice| self.exclusion(device).is_none();
        if let Some(root) = devices.iter().filter(is_open).find(|device| self.volumes.is_root(device)) {
            return Some(root);
        }
        let fits = |device: &&BlockDevice| self.verdicts(device).iter().all(|verdict| verdict.holds);
        let mut fitting = devices.iter().filter(is_open).filter(fits);
        match self.hints {
            Some(_) => fitting.next(),
            None => fitting.min_by_key(|device| (device.disk.size, &device.disk.name)),
        }
    }

    /// Why a device must not be chosen, whatever the hints say. A disk that hints name may carry arrays
    /// that nobody wants any more, and be one; the default rule knows the node's own arrays only.
    fn exclusion(&self, device: &BlockDevice) -> Option<Obstacle> {
        match self.skip_list.reason(device) {
            Some(KeepReason::BootMedium(_)) if self.means(device) => {}
            Some(KeepReason::BootMedium(medium)) => return Some(Obstacle::BootMedium(medium)),
            Some(_) => return Some(Obstacle::SkipList),
            None => {}
        }
        // Hints that name a model, or a serial number, are those of the areas of an eMMC device as well.
        let area = device.hardware_partition();
        if area == Some(HardwarePartition::Boot) || (area.is_some() && self.hints.is_none()) {
            return Some(Obstacle::HardwarePartition);
        }
        if self.volumes.reserve(device) {
            return Some(Obstacle::Raid(array::arrays_on(device.directory())));
        }
        if self.hints.is_some() {
            return None;
        }
        if array::is_array(device.directory()) && !self.volumes.own(device.directory()) {
            return Some(Obstacle::ForeignArray);
        }
        Some(self.volumes.on(device)).filter(|own| !own.is_empty()).map(Obstacle::Raid)
    }

    /// Whether the hints mean this device and no other, whatever it is. Kernel names go to whichever disk is found
    /// first, and sizes and models are those of many.
    fn means(&self, device: &BlockDevice) -> bool {
        self.hints.as_ref().is_some_and(|hints| hints.identify(device))
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
            let fault = self.verdicts(device).into_iter().find(|verdict| !verdict.holds);
            match (self.exclusion(device), fault) {
                (Some(obstacle), _) => format!("{name}: {obstacle}"),
                (None, Some(verdict)) => format!("{name}: {verdict}"),
                (None, None) => format!("{name}: fits"),
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

    /// The disks whose firmware would start it: those that it is made of, by name, or itself.
    pub fn boot_disks(&self) -> Vec<BlockDevice> {
        let below = if self.is_array() { stack::below(self.device().directory()) } else { Vec::new() };
        let mut disks: Vec<_> = below.iter().filter_map(|disk| self.device().relative(disk)).collect();
        disks.sort_by(|one, other| one.disk.name.cmp(&other.disk.name));
        if disks.is_empty() {
            disks.push(self.device().clone());
        }
        disks
    }

    /// Device nodes of the disk, of those that it is made of, and of the partitions of all.
    pub fn block_devices(&self) -> Vec<PathBuf> {
        let below = stack::below(self.device().directory());
        let others = below.iter().filter_map(|disk| self.device().relative(disk));
        let disks = std::iter::once(self.device().clone()).chain(others);
        disks.flat_map(|disk| disk.directories()).map(|directory| sysfs::node(&directory)).collect()
    }

    /// Opens the disk for writing, for this process alone.
    ///
    /// The device is described again and must still be the chosen one and not be excluded (D01). What other
    /// machines may be using, a file system on it or in an array on it, or the disk itself where they have
    /// reserved it, keeps it closed, unless the operator consents (D03). Then arrays on it that are no volumes of
    /// the node are stopped: they would go with it. A disk that is busy for a moment, as after a rescan, is tried
    /// again for a bounded time (F09).
    ///
    /// # Errors
    ///
    /// [`Error::ChangedSinceChosen`], [`Error::InUse`], [`Error::ReadOnly`], [`Error::Protected`], or
    /// [`Error::Device`] when the device cannot be opened. Nothing is written in any case.
    pub fn open(&self) -> Result<WritableDisk, Error> {
        let device = self.choice.confirm()?;
        if !self.consents {
            shared::require_none(&device)?;
        }
        stop_arrays(&device, |array| self.volumes.own(array))?;
        WritableDisk::open(&device)
    }

    /// The device node of the disk, for the kernel to let others read. It is still the chosen disk, and no other
    /// process of this machine uses it; nothing keeps others from writing to it: the kernel must do that.
    ///
    /// # Errors
    ///
    /// [`Error::ChangedSinceChosen`] or [`Error::InUse`].
    pub fn free_to_read(&self) -> Result<PathBuf, Error> {
        let device = self.choice.confirm()?;
        match Usage::read(&device.disk.name)?.user_of(&device) {
            Some(user) => Err(Error::InUse { device: device.disk.name, user }),
            None => Ok(device.disk.name.into()),
        }
    }
}

impl Choice {
    fn whole(device: BlockDevice, skip_list: SkipList) -> Self {
        Self { device, skip_list, scope: Scope::Whole }
    }

    fn is_excluded(&self, device: &BlockDevice) -> bool {
        match self.scope {
            Scope::Whole => self.skip_list.excludes(device),
            Scope::Raid => self.skip_list.excludes_from_raid(device),
        }
    }

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
        if let Some(medium) = self.skip_list.media.medium(now) {
            return Some(format!("it is {medium}"));
        }
        self.is_excluded(now).then(|| format!("it is {}", Obstacle::SkipList))
    }
}

#[cfg(test)]
mod tests;
