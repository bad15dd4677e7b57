//! Looking at devices as they come up.

use super::fabric::Scans;
use super::facts::{self, Awaited};
use farrier_linux::sysfs;
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// Time without a change after which nothing more is expected once all facts hold.
pub const QUIET: Duration = Duration::from_secs(3);

/// Disks on USB are left alone for so many seconds after they were plugged in, and nothing shows that one is still
/// to come.
const USB_DELAY: (&str, &str) = ("sys/module/usb_storage/parameters", "delay_use");
/// How long looking at one takes then.
const USB_LOOK: Duration = Duration::from_secs(2);

/// Folders in which each device has an entry, and each module.
const FOLDERS: [&str; 4] = ["sys/block", "sys/class/net", "sys/bus/usb/devices", "sys/module"];

/// How far the devices of a machine are.
#[derive(Debug, PartialEq, Eq)]
pub enum Look {
    /// All are there.
    Over,
    /// Nothing is known to be missing, but the machine has not been quiet for long enough. Devices that came or went in
    /// the meantime, by their names.
    Restless(Vec<String>),
    /// These are still coming up.
    Awaiting(Vec<Awaited>),
}

/// A look at devices, again and again.
pub struct Watch {
    root: PathBuf,
    seen: BTreeSet<String>,
    changed: Vec<String>,
    quiet_since: Instant,
    scans: Option<Scans>,
}

impl Watch {
    /// Begins at this time to watch the machine whose files lie below `root`.
    pub fn begin(root: &Path, now: Instant) -> Self {
        Self {
            root: root.to_owned(),
            seen: devices(root),
            changed: Vec::new(),
            quiet_since: now,
            scans: None,
        }
    }

    /// How far the devices are at this time.
    pub fn look(&mut self, now: Instant) -> Look {
        if !self.root.join("sys").exists() {
            return Look::Over;
        }
        let mut awaited = facts::awaited(&self.root);
        if awaited.is_empty() {
            let scans = self.scans.get_or_insert_with(|| Scans::begin(&self.root.join("sys")));
            awaited = scans.awaited();
        }
        let present = devices(&self.root);
        if present != self.seen {
            self.changed = present.symmetric_difference(&self.seen).cloned().collect();
            self.seen = present;
            self.quiet_since = now;
        }
        if !awaited.is_empty() {
            self.quiet_since = now;
        }
        match awaited.is_empty() {
            false => Look::Awaiting(awaited),
            true if now.duration_since(self.quiet_since) < quiet(&self.root) => {
                Look::Restless(self.changed.clone())
            }
            true => Look::Over,
        }
    }
}

/// How long nothing may change before nothing more is expected in the machine whose files lie below `root`.
pub fn quiet(root: &Path) -> Duration {
    let (folder, name) = USB_DELAY;
    let delay = sysfs::number::<u32>(&root.join(folder), name).unwrap_or_default();
    QUIET.max(Duration::from_secs(delay.into()) + USB_LOOK)
}

/// The folder and the name of each.
fn devices(root: &Path) -> BTreeSet<String> {
    let mut names = BTreeSet::new();
    for folder in FOLDERS {
        let class = folder.trim_start_matches("sys/");
        names.extend(sysfs::entries(&root.join(folder)).iter().map(|name| format!("{class}/{name}")));
    }
    names
}
