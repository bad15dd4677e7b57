//! Waiting until the devices are there: drivers are still being loaded when the network is up (F25).
//!
//! A disk that shows up after the disks were listed would be missing in an inventory, would not be
//! erased, and could not be chosen. Arrays of software RAID are such disks: they are started as soon as
//! their members are there.

use farrier_disk::raid::assemble::assemble;
use farrier_linux::sysfs;
use std::path::Path;
use std::time::Duration;
use tokio::sync::OnceCell;
use tokio::time::{Instant, sleep};

/// How often to look.
const POLL: Duration = Duration::from_millis(250);
/// Time without a change after which nothing more is expected.
const QUIET: Duration = Duration::from_secs(3);
/// Longest wait; a device that comes and goes must not hold the agent.
const BUDGET: Duration = Duration::from_secs(60);

/// Folders in which each device has an entry, and each module.
const FOLDERS: [&str; 4] = ["sys/block", "sys/class/net", "sys/bus/usb/devices", "sys/module"];

/// Waits until no device and no module has come or gone for three seconds, a minute at most, and starts
/// the arrays of the machine whose files lie below `root`. What was waited for once is there.
pub async fn wait(root: &Path) {
    static SETTLED: OnceCell<()> = OnceCell::const_new();
    let settle = async {
        wait_below(root, QUIET, BUDGET).await;
        let sysfs = root.join("sys");
        match tokio::task::spawn_blocking(move || assemble(&sysfs)).await {
            Ok(Ok(())) => {}
            Ok(Err(error)) => tracing::warn!("arrays are not started: {error}"),
            Err(error) => tracing::error!("arrays are not started: {error}"),
        }
    };
    SETTLED.get_or_init(|| settle).await;
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
