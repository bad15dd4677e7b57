//! The record of a target in open-iscsi's folder. `iscsiadm` creates it, and the secret part is appended: an
//! argument list is seen by all of this host. The process that uses a record holds a lock on it, so what a killed one
//! left is known by its mark and by having no lock.

use super::unit::LogicalUnit;
use std::fs::{self, File, OpenOptions, Permissions, TryLockError};
use std::io::{self, Write};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

/// Line by which records of this program are known, which open-iscsi skips.
const MARK: &str = "# made by farrier for one deployment";
/// Seconds for the kernel to have a lost connection again before requests fail.
const PATIENCE: u32 = 120;

/// A record that is in use. Its lock ends with it.
#[derive(Debug)]
pub(super) struct Record(#[expect(dead_code, reason = "held for its lock")] File);

/// The file of a unit's record below the folder of records.
pub(super) fn path(records: &Path, unit: &LogicalUnit) -> PathBuf {
    let portal = format!("{},{},1", unit.portal.address(), unit.portal.port());
    records.join(unit.target.to_string()).join(portal).join("default")
}

/// What a record holds beside the defaults. A host that boots does not log in again.
fn text(unit: &LogicalUnit) -> String {
    let LogicalUnit { initiator, chap, .. } = unit;
    let (user, secret) = (&chap.user, &chap.secret);
    format!(
        "{MARK}\niface.initiatorname = {initiator}\nnode.startup = manual\n\
         node.session.timeo.replacement_timeout = {PATIENCE}\nnode.session.auth.authmethod = CHAP\n\
         node.session.auth.username = {user}\nnode.session.auth.password = {secret}\n"
    )
}

/// Appends to the record that `iscsiadm` has made, which its owner alone can read from now on.
///
/// # Errors
///
/// Whatever the system reports, as when there is no record.
pub(super) fn complete(file: &Path, unit: &LogicalUnit) -> io::Result<Record> {
    let mut record = OpenOptions::new().append(true).open(file)?;
    record.set_permissions(Permissions::from_mode(0o600))?;
    record.lock()?;
    record.write_all(text(unit).as_bytes())?;
    Ok(Record(record))
}

/// Names of the targets with unused records of this program.
pub(super) fn left(records: &Path) -> Vec<String> {
    let entries = |folder: &Path| fs::read_dir(folder).into_iter().flatten().flatten();
    let is_left = |target: &Path| entries(target).any(|portal| is_unused(&portal.path().join("default")));
    let left = entries(records).filter(|target| is_left(&target.path()));
    left.map(|target| target.file_name().to_string_lossy().into_owned()).collect()
}

fn is_unused(record: &Path) -> bool {
    let is_ours = fs::read_to_string(record).is_ok_and(|text| text.lines().any(|line| line == MARK));
    is_ours && File::open(record).is_ok_and(|file| !matches!(file.try_lock(), Err(TryLockError::WouldBlock)))
}

/// What is [`left`] once a lock is gone that has just been given up: a program that another thread of the tests starts
/// has it, too, until it is another program.
#[cfg(test)]
pub(super) fn left_soon(records: &Path) -> Vec<String> {
    use std::time::{Duration, Instant};
    let deadline = Instant::now() + Duration::from_secs(10);
    loop {
        let left = left(records);
        if !left.is_empty() || Instant::now() > deadline {
            return left;
        }
        std::thread::sleep(Duration::from_millis(1));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use farrier_conductor::deploy::disk_export::DiskExport;
    use uuid::Uuid;

    #[test]
    fn f60_a_record_is_completed_for_its_owner_and_known_as_left_once_nobody_uses_it() {
        let export = DiskExport::anew("https://[2001:db8::7]:9999", 3999, Uuid::nil()).unwrap();
        let unit = LogicalUnit::of(&export).unwrap();
        let records = tempfile::tempdir().unwrap();
        let file = path(records.path(), &unit);
        assert!(complete(&file, &unit).is_err(), "iscsiadm has made none");
        assert!(file.ends_with(format!("{}/2001:db8::7,3999,1/default", unit.target)));
        // That of an operator is left alone.
        let other = records.path().join("iqn.other/192.0.2.1,3260,1/default");
        for file in [&file, &other] {
            fs::create_dir_all(file.parent().unwrap()).unwrap();
            fs::write(file, "node.name = x\nnode.startup = automatic\n").unwrap();
        }
        let used = complete(&file, &unit).unwrap();
        let text = fs::read_to_string(&file).unwrap();
        for line in [
            format!("iface.initiatorname = {}", unit.initiator),
            format!("node.session.auth.username = {}", unit.chap.user),
            format!("node.session.auth.password = {}", unit.chap.secret),
        ] {
            assert!(text.lines().any(|one| one == line), "{text}");
        }
        assert!(text.starts_with("node.name = x\n"), "{text}");
        assert_eq!(fs::metadata(&file).unwrap().permissions().mode() & 0o777, 0o600);
        assert!(left(records.path()).is_empty(), "it is in use");
        drop(used);
        assert_eq!(left_soon(records.path()), [unit.target.to_string()]);
    }
}
