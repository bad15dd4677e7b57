//! The disks that must never be touched (section 8.4).
//!
//! What an entry names is kept together with everything that would be lost with it: the arrays and
//! maps on a disk, and the disks under an array, whether it is assembled or not (D02).

use super::KeepReason;
use super::boot_media::BootMedia;
use crate::device::{BlockDevice, stack};
use crate::error::Error;
use crate::hints::Hints;
use crate::md::{array, superblock};
use crate::probe::ReadableDisk;
use farrier_protocol::lookup::Node;
use serde_json::Value;
use std::fmt;
use std::path::Path;

/// Where the list stands in a node's properties.
const KEY: &str = "skip_block_devices";

/// Key of an entry that names a software RAID volume instead of giving hints.
const VOLUME_NAME: &str = "volume_name";

/// The entries of a node's `skip_block_devices`, and the media of this boot.
#[derive(Debug, Clone)]
pub(super) struct SkipList {
    entries: Vec<Entry>,
    /// What the ramdisk came from. It is touched where the operator means it alone.
    pub media: BootMedia,
}

#[derive(Debug, Clone)]
enum Entry {
    Disks(Hints),
    Volume(String),
}

impl SkipList {
    /// Reads the list of a node.
    ///
    /// # Errors
    ///
    /// [`Error::InvalidSkipList`].
    pub fn of(node: &Node) -> Result<Self, Error> {
        let media = BootMedia::of_this_boot();
        let Some(value) = node.skip_block_devices() else { return Ok(Self { entries: Vec::new(), media }) };
        let entries = value.as_array().ok_or_else(|| invalid("it must be a list of hint objects"))?;
        let entries = entries.iter().map(Entry::parse).collect::<Result<_, _>>()?;
        Ok(Self { entries, media })
    }

    /// The list without the media of this boot, for an operator who means one of them.
    pub fn without_media(&self) -> Self {
        Self { media: BootMedia::default(), ..self.clone() }
    }

    /// Whether writing to `device` could harm what the list names, or a medium of this boot.
    pub fn excludes(&self, device: &BlockDevice) -> bool {
        self.reason(device).is_some()
    }

    /// Why `device` must not be written to.
    pub fn reason(&self, device: &BlockDevice) -> Option<KeepReason> {
        if self.names_around(device) {
            return Some(KeepReason::Skipped);
        }
        self.media.medium(device).map(KeepReason::BootMedium)
    }

    /// Whether the list names `device`, what lies on it, or what that or `device` lies on.
    fn names_around(&self, device: &BlockDevice) -> bool {
        if self.entries.is_empty() {
            return false;
        }
        let lies_on_named = |device: &BlockDevice| {
            self.names(device) || relatives(device, stack::below).iter().any(|disk| self.names(disk))
        };
        lies_on_named(device) || relatives(device, stack::above).iter().any(lies_on_named)
    }

    /// Whether software RAID must leave all of `device` alone: hints name it or what it lies on or under,
    /// or it is the array of a named volume.
    ///
    /// A disk with partitions of a named volume is not excluded: what is beside them may be another
    /// volume's (section 9.9). Its opener keeps those partitions. A hardware partition of an eMMC device is no disk for
    /// a volume: it fails with its neighbours.
    pub fn excludes_from_raid(&self, device: &BlockDevice) -> bool {
        let is_volume = || {
            array::name_of(device.directory())
                .is_some_and(|found| self.volumes().any(|name| superblock::is_named(&found, name)))
        };
        let lies_on_named = |device: &BlockDevice| {
            self.hints_name(device)
                || relatives(device, stack::below).iter().any(|disk| self.hints_name(disk))
        };
        device.hardware_partition().is_some()
            || self.media.medium(device).is_some()
            || is_volume()
            || lies_on_named(device)
            || relatives(device, stack::above).iter().any(lies_on_named)
    }

    /// A sentence for each entry that names nothing among `devices` nor on or under them: a disk that was to be
    /// kept may not be.
    pub fn warnings(&self, devices: &[BlockDevice]) -> Vec<String> {
        let is_named = |entry: &Entry, device: &BlockDevice| {
            let around = [stack::above, stack::below].into_iter().flat_map(|way| relatives(device, way));
            entry.names(device) || around.into_iter().any(|other| entry.names(&other))
        };
        let idle = self.entries.iter().filter(|entry| !devices.iter().any(|device| is_named(entry, device)));
        idle.map(|entry| {
            format!(
                "the entry {entry} of {KEY} matches no disk and protects none; compare it with the inventory"
            )
        })
        .collect()
    }

    /// Writes the warnings into the log.
    pub fn warn(&self, devices: &[BlockDevice]) {
        self.warnings(devices).iter().for_each(|warning| tracing::warn!("{warning}"));
    }

    /// Names of the software RAID volumes on the list.
    pub fn volumes(&self) -> impl Iterator<Item = &str> {
        self.entries.iter().filter_map(|entry| match entry {
            Entry::Volume(name) => Some(name.as_str()),
            Entry::Disks(_) => None,
        })
    }

    fn names(&self, device: &BlockDevice) -> bool {
        self.entries.iter().any(|entry| entry.names(device))
    }

    fn hints_name(&self, device: &BlockDevice) -> bool {
        self.entries
            .iter()
            .any(|entry| matches!(entry, Entry::Disks(hints) if hints.mismatch(device).is_none()))
    }
}

impl fmt::Display for Entry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Disks(hints) => hints.fmt(f),
            Self::Volume(name) => write!(f, "{VOLUME_NAME} {name:?}"),
        }
    }
}

impl Entry {
    /// Whether it names the device itself, or the volume that it is a member of.
    fn names(&self, device: &BlockDevice) -> bool {
        match self {
            Self::Disks(hints) => hints.mismatch(device).is_none(),
            Self::Volume(name) => carries_member(device, name),
        }
    }

    fn parse(entry: &Value) -> Result<Self, Error> {
        let object = entry.as_object().ok_or_else(|| invalid(format!("{entry} is not an object")))?;
        if let Some(name) = object.get(VOLUME_NAME) {
            let name = name.as_str().filter(|name| !name.is_empty());
            return name
                .map(|name| Self::Volume(name.to_owned()))
                .ok_or_else(|| invalid(format!("entry {entry} must have a text as {VOLUME_NAME}")));
        }
        let hints = Hints::parse_object(object)
            .map_err(|error| invalid(format!("entry {entry} cannot be read: {error}")))?;
        // An entry without hints would match every disk and names none.
        if hints.is_empty() {
            return Err(invalid("an entry is empty"));
        }
        Ok(Self::Disks(hints))
    }
}

fn relatives(device: &BlockDevice, related: fn(&Path) -> Vec<std::path::PathBuf>) -> Vec<BlockDevice> {
    related(device.directory()).iter().filter_map(|directory| device.relative(directory)).collect()
}

/// Whether the disk, or one of its partitions, is a member of the array `name`: one of those that the kernel shows, or
/// that any copy of its table names, because the kernel shows none where a table is damaged.
///
/// A device that cannot be read may be one.
fn carries_member(device: &BlockDevice, name: &str) -> bool {
    let name_of = |directory: &Path| directory.file_name().unwrap_or_default().to_string_lossy().into_owned();
    let is_shown = device.directories().iter().any(|directory| match array::member_of(&name_of(directory)) {
        Ok(found) => found.is_some_and(|found| superblock::is_named(&found, name)),
        Err(error) => {
            tracing::warn!(device = %directory.display(), %error, "kept: it may belong to the array {name}");
            true
        }
    });
    is_shown || device.disk.size > 0 && is_in_table(device, name)
}

fn is_in_table(device: &BlockDevice, name: &str) -> bool {
    match ReadableDisk::open(device).and_then(|mut disk| disk.array_names()) {
        Ok(names) => names.iter().any(|found| superblock::is_named(found, name)),
        Err(error) => {
            tracing::warn!(device = device.disk.name, %error, "kept: it may belong to the array {name}");
            true
        }
    }
}

fn invalid(reason: impl Into<String>) -> Error {
    Error::InvalidSkipList { reason: reason.into() }
}
