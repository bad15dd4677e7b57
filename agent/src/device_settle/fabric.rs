//! The targets that Fibre Channel adapters know of, asked for their disks.
//!
//! A target is known when its port has logged in, and its disks some time later, when the transport's own queue
//! gets to it. Nothing shows that. A scan that is ordered by hand asks each target that is known and returns when
//! all have answered (`fc_user_scan`), behind the scans that are under way.

use super::facts::{self, Awaited};
use farrier_linux::sysfs;
use std::fs;
use std::path::Path;
use std::thread::{self, JoinHandle};

/// Every channel, target and unit.
const EVERYTHING: &str = "- - -";

/// The scans of all adapters whose link is up, each on a thread of its own: one that hangs delays no other.
pub struct Scans(Vec<(Awaited, JoinHandle<()>)>);

impl Scans {
    /// Begins them, in the sysfs mounted there.
    pub fn begin(sysfs: &Path) -> Self {
        let adapters = sysfs.join("class/fc_host");
        let is_up = |name: &String| {
            sysfs::attribute(&adapters.join(name), "port_state").is_some_and(|state| state == "Online")
        };
        let begin = |name: String| {
            let (controller, module) = facts::controller(&adapters.join(&name), &name);
            let file = sysfs.join("class/scsi_host").join(&name).join("scan");
            let scan = move || {
                if let Err(error) = fs::write(&file, EVERYTHING) {
                    tracing::warn!("{} cannot be scanned: {error}", file.display());
                }
            };
            (Awaited::Driver(module, vec![controller]), thread::spawn(scan))
        };
        Self(sysfs::entries(&adapters).into_iter().filter(is_up).map(begin).collect())
    }

    /// Those that have not ended.
    pub fn awaited(&self) -> Vec<Awaited> {
        self.0.iter().filter(|(_, scan)| !scan.is_finished()).map(|(awaited, _)| awaited.clone()).collect()
    }
}
