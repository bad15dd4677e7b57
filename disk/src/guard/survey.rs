//! What speaks for and against each disk as the root disk, for people to read before anything happens.

use super::{BootMedium, Criteria, KeepReason, consents, leftovers, shared};
use crate::device::BlockDevice;
use crate::device::usage::{self, Usage};
use crate::error::Error;
use crate::hints::Verdict;
use crate::probe::ReadableDisk;
use farrier_protocol::inventory::Disk;
use farrier_protocol::lookup::Node;
use serde::Serialize;
use std::fmt;

/// Every disk with what is known of it, and the one that would be written.
#[derive(Debug, Serialize)]
pub struct Survey {
    /// The rule that chooses, in words.
    pub wanted: String,
    /// Name of the chosen disk; nothing when none fits.
    pub chosen: Option<String>,
    /// The disks in the order in which they are considered.
    pub disks: Vec<SurveyedDisk>,
    /// A sentence for each entry of the skip list that names no disk, and for each thing on another disk that may be
    /// taken for what belongs to the new system.
    pub warnings: Vec<String>,
}

/// One disk of a survey.
#[derive(Debug, Serialize)]
pub struct SurveyedDisk {
    /// The disk as inventories show it.
    #[serde(flatten)]
    pub disk: Disk,
    /// What each hint, or the default rule, says of it.
    pub verdicts: Vec<Verdict>,
    /// What keeps it from being chosen or written; none on a disk that is free.
    pub obstacles: Vec<Obstacle>,
    /// Type of its partition table: `gpt`, `msdos`, `none`, or `damaged`; nothing when it cannot be read.
    pub table: Option<&'static str>,
    /// Number of its partitions.
    pub partitions: usize,
}

/// Why a disk must not be written.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(tag = "kind", content = "detail", rename_all = "snake_case")]
pub enum Obstacle {
    /// The node's `skip_block_devices` names it, or what lies on it or under it.
    SkipList,
    /// The ramdisk came from it.
    BootMedium(BootMedium),
    /// It is a boot area of an eMMC device, or, without hints, another hardware partition of one.
    HardwarePartition,
    /// It is a volume of software RAID for something else, or carries members of these arrays.
    Raid(Vec<String>),
    /// It is an array that is no volume of the node. What it holds goes with its disks.
    ForeignArray,
    /// A process of this machine uses it.
    InUse(String),
    /// It refuses writes.
    ReadOnly,
    /// Other machines may be using this: a file system on it or in an array on it, or they have reserved it.
    Shared(String),
    /// It cannot be read.
    Unreadable(String),
}

impl fmt::Display for Obstacle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::SkipList => f.write_str("on the list of skipped disks"),
            Self::BootMedium(medium) => medium.fmt(f),
            Self::HardwarePartition => f.write_str("a hardware partition of an eMMC device"),
            Self::Raid(arrays) if arrays.is_empty() => {
                f.write_str("not the root volume of the software RAID")
            }
            Self::Raid(arrays) => write!(f, "a member of {}", arrays.join(", ")),
            Self::ForeignArray => KeepReason::ForeignArray.fmt(f),
            Self::InUse(user) => write!(f, "in use: {user}"),
            Self::ReadOnly => f.write_str("read-only"),
            Self::Shared(name) => write!(f, "carries {name}, which other machines may be using"),
            Self::Unreadable(reason) => write!(f, "cannot be read: {reason}"),
        }
    }
}

/// Looks at every device as the choice of the root disk does, and only looks.
///
/// # Errors
///
/// [`Error::InvalidHint`] or [`Error::InvalidSkipList`].
pub fn survey(node: &Node, devices: &[BlockDevice]) -> Result<Survey, Error> {
    let criteria = Criteria::of(node)?;
    let root = criteria.choose(devices);
    let chosen = root.map(|device| device.disk.name.clone());
    let consents = consents(node);
    let look = |device: &BlockDevice| {
        let mut found = SurveyedDisk {
            disk: device.disk.clone(),
            verdicts: criteria.verdicts(device),
            obstacles: Vec::new(),
            table: None,
            partitions: 0,
        };
        found.obstacles.extend(criteria.exclusion(device));
        if let Some(user) = Usage::read(&device.disk.name)?.user_of(device) {
            found.obstacles.push(Obstacle::InUse(user));
        }
        if usage::is_read_only(device) {
            found.obstacles.push(Obstacle::ReadOnly);
        }
        if let Err(error) = found.look_inside(device, consents) {
            found.obstacles.push(Obstacle::Unreadable(error.to_string()));
        }
        Ok(found)
    };
    let disks = devices.iter().map(look).collect::<Result<_, Error>>()?;
    let mut warnings = criteria.skip_list.warnings(devices);
    warnings
        .extend(root.map(|root| leftovers::warnings(root, &criteria.skip_list, devices)).unwrap_or_default());
    Ok(Survey { wanted: criteria.wanted(), chosen, disks, warnings })
}

impl Survey {
    /// The chosen disk, when nothing keeps it from being written.
    pub fn target(&self) -> Option<&SurveyedDisk> {
        let chosen = self.disks.iter().find(|disk| Some(&disk.disk.name) == self.chosen.as_ref());
        chosen.filter(|disk| disk.obstacles.is_empty())
    }
}

impl SurveyedDisk {
    fn look_inside(&mut self, device: &BlockDevice, consents: bool) -> Result<(), Error> {
        if let Some(content) = shared::find(device, &[])?.filter(|_| !consents) {
            self.obstacles.push(Obstacle::Shared(content));
        }
        (self.table, self.partitions) = match ReadableDisk::open(device)?.table() {
            Ok(table) => (Some(table.name()), table.partitions().len()),
            Err(Error::InvalidTable { .. }) => (Some("damaged"), 0),
            Err(error) => return Err(error),
        };
        Ok(())
    }
}
