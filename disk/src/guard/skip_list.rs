//! The disks that must never be touched (section 8.4).
//!
//! What an entry names is kept together with everything that would be lost with it: the arrays and
//! maps on a disk, and the disks under an array, whether it is assembled or not (D02).

use crate::device::BlockDevice;
use crate::error::Error;
use crate::hints::Hints;
use crate::{raid, stack};
use farrier_protocol::lookup::Node;
use serde_json::Value;
use std::fs::File;
use std::io::{self, Seek, SeekFrom};
use std::path::Path;

/// Key of an entry that names a software RAID volume instead of giving hints.
const VOLUME_NAME: &str = "volume_name";

/// The entries of a node's `skip_block_devices`.
#[derive(Debug, Clone)]
pub(super) struct SkipList(Vec<Entry>);

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
        let Some(value) = node.skip_block_devices() else { return Ok(Self(Vec::new())) };
        let entries = value.as_array().ok_or_else(|| invalid("it must be a list of hint objects"))?;
        entries.iter().map(Entry::parse).collect::<Result<_, _>>().map(Self)
    }

    /// Whether writing to `device` could harm what the list names.
    pub fn excludes(&self, device: &BlockDevice) -> bool {
        if self.0.is_empty() {
            return false;
        }
        let lies_on_named = |device: &BlockDevice| {
            self.names(device) || relatives(device, stack::below).iter().any(|disk| self.names(disk))
        };
        lies_on_named(device) || relatives(device, stack::above).iter().any(lies_on_named)
    }

    fn names(&self, device: &BlockDevice) -> bool {
        self.0.iter().any(|entry| match entry {
            Entry::Disks(hints) => hints.mismatch(device).is_none(),
            Entry::Volume(name) => carries_member(device, name),
        })
    }
}

impl Entry {
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

/// Whether the disk, or one of its partitions, is a member of the array `name`.
///
/// A device that cannot be read may be one.
fn carries_member(device: &BlockDevice, name: &str) -> bool {
    device.directories().iter().any(|directory| match member_of(directory) {
        Ok(found) => found.is_some_and(|found| raid::is_named(&found, name)),
        Err(error) => {
            tracing::warn!(device = %directory.display(), %error, "kept: it may belong to the array {name}");
            true
        }
    })
}

fn member_of(directory: &Path) -> io::Result<Option<String>> {
    let name = directory.file_name().unwrap_or_default().to_string_lossy().replace('!', "/");
    let mut device = File::open(Path::new("/dev").join(name))?;
    let size = device.seek(SeekFrom::End(0))?;
    raid::array_name(&mut device, size)
}

fn invalid(reason: impl Into<String>) -> Error {
    Error::InvalidSkipList { reason: reason.into() }
}
