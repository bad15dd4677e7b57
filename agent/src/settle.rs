//! Waiting until the devices are there: drivers are still being loaded when the network is up (F25).
//!
//! A disk that shows up after the disks were listed would be missing in an inventory, would not be
//! erased, and could not be chosen. Disks with several paths and arrays of software RAID are such disks: they
//! are put together as soon as their parts are there.

use farrier_disk::{iscsi_boot, multipath, raid};
use farrier_linux::sysfs;
use std::path::Path;
use std::thread;
use std::time::Duration;
use tokio::sync::OnceCell;
use tokio::time::{Instant, sleep};

/// How often to look.
const POLL: Duration = Duration::from_millis(250);
/// Time without a change after which nothing more is expected.
const QUIET: Duration = Duration::from_secs(3);
/// Longest wait; a device that comes and goes must not hold the agent.
const BUDGET: Duration = Duration::from_secs(60);
/// How often paths that the kernel has left are tried.
const REINSTATE: Duration = Duration::from_secs(5);

/// Folders in which each device has an entry, and each module.
const FOLDERS: [&str; 4] = ["sys/block", "sys/class/net", "sys/bus/usb/devices", "sys/module"];

/// Waits until no device and no module has come or gone for three seconds, a minute at most, and puts
/// the disks of the machine together whose files lie below `root`. What was waited for once is there.
pub async fn wait(root: &Path) {
    static SETTLED: OnceCell<()> = OnceCell::const_new();
    let settle = async {
        wait_below(root, QUIET, BUDGET).await;
        let sysfs = root.join("sys");
        if beside(&sysfs, log_in).await {
            wait_below(root, QUIET, BUDGET).await;
        }
        beside(&sysfs, put_together).await;
    };
    SETTLED.get_or_init(|| settle).await;
}

/// Runs what blocks on a thread of its own. A defect of it is told, and is no result.
async fn beside<T: Default + Send + 'static>(sysfs: &Path, work: fn(&Path) -> T) -> T {
    let sysfs = sysfs.to_owned();
    let outcome = tokio::task::spawn_blocking(move || work(&sysfs)).await;
    outcome.inspect_err(|error| tracing::error!("disks are not put together: {error}")).unwrap_or_default()
}

/// Logs in to the iSCSI disks of the firmware; true when there are some that are still to appear.
fn log_in(sysfs: &Path) -> bool {
    let outcome = iscsi_boot::log_in(sysfs);
    outcome.inspect_err(|error| tracing::error!("{error}")).unwrap_or(false)
}

/// Joins the paths to disks, then starts the arrays on these.
fn put_together(sysfs: &Path) {
    if let Err(error) = multipath::assemble(sysfs) {
        tracing::warn!("{error}");
    }
    if let Err(error) = raid::assemble::assemble(sysfs) {
        tracing::warn!("arrays are not started: {error}");
    }
    if multipath::is_used(sysfs) {
        let sysfs = sysfs.to_owned();
        thread::spawn(move || reinstate_paths(&sysfs));
    }
}

fn reinstate_paths(sysfs: &Path) -> ! {
    loop {
        thread::sleep(REINSTATE);
        if let Err(error) = multipath::reinstate(sysfs) {
            tracing::debug!(%error, "paths that failed are not tried");
        }
    }
}

async fn wait_below(root: &Path, quiet: Duration, budget: Duration) {
    let deadline = Instant::now() + budget;
    let mut seen = devices(root);
    let mut changed = Instant::now();
    while changed.elapsed() < quiet {
        if Instant::now() >= deadline {
            tracing::warn!("devices still come and go; those of this moment count");
            return;
        }
        sleep(POLL.min(quiet)).await;
        let now = devices(root);
        if now != seen {
            seen = now;
            changed = Instant::now();
        }
    }
}

fn devices(root: &Path) -> Vec<String> {
    FOLDERS.iter().flat_map(|folder| sysfs::entries(&root.join(folder))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn f25_a_late_disk_is_waited_for() {
        let root = tempfile::tempdir().unwrap();
        let started = Instant::now();
        let late = root.path().join("sys/block/sda");
        tokio::spawn(async move {
            sleep(Duration::from_secs(2)).await;
            std::fs::create_dir_all(late).unwrap();
        });
        wait_below(root.path(), QUIET, BUDGET).await;
        let waited = started.elapsed();
        assert!((Duration::from_secs(5)..Duration::from_secs(6)).contains(&waited), "{waited:?}");
    }

    #[tokio::test(start_paused = true)]
    async fn the_wait_has_a_bound() {
        let root = tempfile::tempdir().unwrap();
        let started = Instant::now();
        wait_below(root.path(), Duration::MAX, Duration::from_secs(10)).await;
        assert!(started.elapsed() < Duration::from_secs(11));
    }
}
