//! Assembling arrays, multipath and iSCSI: disks that are put together of others, or logged in to, once these are
//! there.

use farrier_disk::list::multipath;
use farrier_disk::md;
use farrier_iscsi::firmware_boot;
use std::path::Path;
use std::sync::Once;
use std::thread;
use std::time::Duration;

/// How often paths that the kernel has left are tried.
const REINSTATE: Duration = Duration::from_secs(5);

/// Logs in to the iSCSI disks of the firmware; true when there are some that are still to appear.
pub fn log_in(sysfs: &Path) -> bool {
    let outcome = firmware_boot::log_in(sysfs);
    outcome.inspect_err(|error| tracing::error!("{error}")).unwrap_or(false)
}

/// Joins the paths to disks, then starts the arrays on these.
pub fn put_together(sysfs: &Path) {
    static REINSTATING: Once = Once::new();
    if let Err(error) = multipath::assemble(sysfs) {
        tracing::warn!("{error}");
    }
    if let Err(error) = md::assemble::assemble(sysfs) {
        tracing::warn!("arrays are not started: {error}");
    }
    if multipath::is_used(sysfs) {
        let sysfs = sysfs.to_owned();
        REINSTATING.call_once(|| drop(thread::spawn(move || reinstate_paths(&sysfs))));
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
