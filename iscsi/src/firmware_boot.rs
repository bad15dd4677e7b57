//! The iSCSI disks from which the firmware booted (section 9.2): they are named in a table that it left
//! (iSCSI Boot Firmware Table), and are there again after logging in to their targets.

use crate::error::Error;
use farrier_linux::modules::ModuleIndex;
use farrier_linux::process::ISCSISTART;
use farrier_linux::sysfs;
use std::path::Path;
use std::time::Duration;

/// Where the kernel shows the table, in sysfs.
const TABLE: &str = "firmware/ibft";
/// Name of the folder of each target, before its number.
const TARGET: &str = "target";
/// Where the kernel shows sessions with targets, in sysfs.
const SESSIONS: &str = "class/iscsi_session";
/// Carries iSCSI over TCP.
const TRANSPORT: &str = "iscsi_tcp";
/// Longest time for logging in to all targets; one that does not answer is asked for a minute.
const LIMIT: Duration = Duration::from_secs(90);

/// Logs in to the targets in the firmware's table that the sysfs mounted at `sysfs` shows; true when there
/// are such disks now that were not there before. Sessions that are there, whose they may be, are left alone
/// (F60).
///
/// # Errors
///
/// [`Error::FirmwareBoot`] when a target cannot be reached, or the program for it is missing.
pub fn log_in(sysfs: &Path) -> Result<bool, Error> {
    let Some(target) = first_target(&sysfs.join(TABLE)) else { return Ok(false) };
    if !sysfs::entries(&sysfs.join(SESSIONS)).is_empty() {
        return Ok(false);
    }
    let failed = |reason: String| Error::FirmwareBoot { target: target.clone(), reason };
    if !ISCSISTART.is_present() {
        let (path, package) = (ISCSISTART.path, ISCSISTART.package);
        return Err(failed(format!("pack {path} of {package} with farrier-image build --program {path}")));
    }
    ModuleIndex::of_running_kernel()
        .and_then(|index| index.load(TRANSPORT))
        .map_err(|error| failed(error.to_string()))?;
    tracing::info!(target, "logging in to the iSCSI disk from which the firmware booted");
    ISCSISTART.run(&["-b"], LIMIT).map_err(|error| failed(format!("{error}; check the target")))?;
    Ok(true)
}

/// The first target of the table with its address.
fn first_target(table: &Path) -> Option<String> {
    let entries = sysfs::entries(table);
    let target = table.join(entries.iter().find(|name| name.starts_with(TARGET))?);
    let attribute = |name: &str| sysfs::attribute(&target, name).unwrap_or_else(|| "?".to_owned());
    Some(format!("{} at {}:{}", attribute("target-name"), attribute("ip-addr"), attribute("port")))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    #[test]
    fn without_a_table_nobody_logs_in() {
        let sysfs = tempfile::tempdir().unwrap();
        assert!(!log_in(sysfs.path()).unwrap());
    }

    #[test]
    fn f60_sessions_of_others_are_left_alone() {
        let sysfs = tempfile::tempdir().unwrap();
        for folder in ["firmware/ibft/target0", "class/iscsi_session/session1"] {
            fs::create_dir_all(sysfs.path().join(folder)).unwrap();
        }
        assert!(!log_in(sysfs.path()).unwrap());
    }

    #[test]
    fn a_target_is_named_with_its_address() {
        let sysfs = tempfile::tempdir().unwrap();
        let target = sysfs.path().join("target0");
        fs::create_dir(&target).unwrap();
        for (file, text) in [("target-name", "iqn.2026-01.org.example:disk\n"), ("ip-addr", "192.0.2.9\n")] {
            fs::write(target.join(file), text).unwrap();
        }
        fs::write(target.join("port"), "3260\n").unwrap();
        let expected = "iqn.2026-01.org.example:disk at 192.0.2.9:3260";
        assert_eq!(first_target(sysfs.path()).as_deref(), Some(expected));
    }
}
