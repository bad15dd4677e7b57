//! open-iscsi as an initiator, for throughput: the kernel of this host logs in, as root, and the disk is a device here
//! while it is written.
//!
//! The device is that of the session which was logged in, by names that are new for each deployment; the disks of
//! this host are never listed. Whatever ends a session logs out and deletes its record (lesson F60), and what a killed
//! conductor left goes before the next login.

use super::error::IscsiError;
use super::initiator::{Initiator, Session};
use super::program::{Program, private_folder};
use super::proof::matching;
use super::record::{self, Record};
use super::unit::LogicalUnit;
use farrier_disk::iscsi_session::{SessionDisk, SessionName};
use farrier_disk::{Sectors, WritableDisk};
use farrier_protocol::inventory::Disk;
use std::io;
use std::path::PathBuf;
use std::thread;
use std::time::{Duration, Instant};

/// Time for one run of `iscsiadm`: a host that does not answer is given up before.
const LIMIT: Duration = Duration::from_secs(150);
/// Time for the disk to appear after the login.
const APPEARANCE: Duration = Duration::from_secs(30);
/// How often to look for it.
const POLL: Duration = Duration::from_millis(100);

/// Logs in by `iscsiadm`, for which `iscsid` has to run.
#[derive(Debug, Clone)]
pub struct OpenIscsiInitiator {
    program: Program,
    records: PathBuf,
    sysfs: PathBuf,
}

impl Default for OpenIscsiInitiator {
    fn default() -> Self {
        Self {
            program: Program { path: "/usr/sbin/iscsiadm".into(), packages: "open-iscsi" },
            records: "/etc/iscsi/nodes".into(),
            sysfs: "/sys".into(),
        }
    }
}

/// A record with perhaps a session. Dropping it logs out and deletes the record.
#[derive(Debug)]
struct Login {
    initiator: OpenIscsiInitiator,
    target: String,
    is_ended: bool,
    /// Until both are gone.
    _record: Option<Record>,
}

/// The disk is closed before its session ends.
#[derive(Debug)]
struct OpenIscsiSession {
    disk: WritableDisk,
    login: Login,
}

impl Initiator for OpenIscsiInitiator {
    fn name(&self) -> &'static str {
        "open-iscsi"
    }

    fn require(&self) -> Result<(), IscsiError> {
        self.program.require()?;
        let unusable = |reason: &str| Err(self.program.unusable(io::Error::other(reason)));
        if !nix::unistd::geteuid().is_root() {
            return unusable("it needs root; or use the initiator of QEMU");
        }
        match self.sysfs.join("class/iscsi_transport/tcp").exists() {
            true => Ok(()),
            false => unusable("the kernel has no iSCSI over TCP; load the module iscsi_tcp"),
        }
    }

    fn log_in(
        &self,
        unit: &LogicalUnit,
        disks: &[Disk],
        is_cancelled: &dyn Fn() -> bool,
    ) -> Result<Box<dyn Session>, IscsiError> {
        self.end_what_is_left();
        let login = self.begin(unit, is_cancelled)?;
        let disk = self.appearance(unit, is_cancelled)?;
        let found = matching(unit, disks, disk.serial().unwrap_or_default())?;
        let sizes: Vec<_> = found.iter().map(|disk| (disk.size, disk.logical_sectors)).collect();
        Ok(Box::new(OpenIscsiSession { disk: disk.open(&sizes)?, login }))
    }

    fn end_what_is_left(&self) {
        for target in record::left(&self.records) {
            match self.end(&target) {
                Ok(()) => tracing::info!(target, "the iSCSI session that a conductor left is ended"),
                Err(reason) => tracing::warn!(
                    target,
                    "the iSCSI session that a conductor left cannot be ended: \
                    {reason}"
                ),
            }
        }
    }
}

impl OpenIscsiInitiator {
    fn begin(&self, unit: &LogicalUnit, is_cancelled: &dyn Fn() -> bool) -> Result<Login, IscsiError> {
        let (target, portal) = (unit.target.to_string(), unit.portal.to_string());
        let named = ["--targetname", &target, "--portal"];
        let mut login =
            Login { initiator: self.clone(), target: target.clone(), is_ended: false, _record: None };
        let failed = |reason: String| unit.no_login(reason);
        let with_group = format!("{portal},1");
        self.run(&[&named[..], &[&with_group, "--op", "new"]].concat(), is_cancelled).map_err(failed)?;
        let file = record::path(&self.records, unit);
        login._record = Some(
            record::complete(&file, unit).map_err(|error| failed(format!("{}: {error}", file.display())))?,
        );
        let log_in = [&named[..], &[&portal, "--login"]].concat();
        self.run(&log_in, is_cancelled).map_err(failed)?;
        Ok(login)
    }

    /// The disk of the session, once it is there with its serial number.
    fn appearance(
        &self,
        unit: &LogicalUnit,
        is_cancelled: &dyn Fn() -> bool,
    ) -> Result<SessionDisk, IscsiError> {
        let address = unit.portal.address().to_owned();
        let name = SessionName { target: unit.target.to_string(), address, port: unit.portal.port() };
        let deadline = Instant::now() + APPEARANCE;
        while !is_cancelled() {
            if let Some(disk) = name.disk(&self.sysfs)?.filter(|disk| disk.serial().is_some()) {
                return Ok(disk);
            }
            if Instant::now() >= deadline {
                let limit = APPEARANCE.as_secs();
                return Err(unit.no_login(format!("the session has no disk within {limit} s")));
            }
            thread::sleep(POLL);
        }
        Err(unit.no_login("it is not wanted any more"))
    }

    /// Logs out of a target, and deletes its record whether that worked or not.
    fn end(&self, target: &str) -> Result<(), String> {
        let named = ["--targetname", target];
        let has_session = SessionName::is_there(&self.sysfs, target);
        let logged_out = match has_session {
            true => self.run(&[&named[..], &["--logout"]].concat(), &|| false),
            false => Ok(()),
        };
        let deleted = match self.records.join(target).exists() {
            true => self.run(&[&named[..], &["--op", "delete"]].concat(), &|| false),
            false => Ok(()),
        };
        logged_out.and(deleted)
    }

    fn run(&self, arguments: &[&str], is_cancelled: &dyn Fn() -> bool) -> Result<(), String> {
        let folder = private_folder().map_err(|error| error.to_string())?;
        let arguments: Vec<_> =
            ["--mode", "node"].iter().chain(arguments).map(|&text| text.to_owned()).collect();
        let running = self.program.start(&arguments, &[], folder.path().join("messages"));
        let mut running = running.map_err(|error| error.to_string())?;
        match running.wait(LIMIT, is_cancelled)?.success() {
            true => Ok(()),
            false => Err(running.said()),
        }
    }
}

impl Login {
    fn end(&mut self) -> Result<(), String> {
        self.is_ended = true;
        self.initiator.end(&self.target)
    }
}

impl Drop for Login {
    fn drop(&mut self) {
        if !self.is_ended
            && let Err(reason) = self.end()
        {
            tracing::warn!(target = self.target, "the iSCSI session was not ended: {reason}");
        }
    }
}

impl Session for OpenIscsiSession {
    fn disk(&self) -> &dyn Sectors {
        &self.disk
    }

    fn log_out(self: Box<Self>) -> Result<(), IscsiError> {
        let Self { disk, mut login } = *self;
        let flushed = disk.flush().map_err(|error| error.to_string());
        drop(disk);
        let ended = login.end();
        flushed.and(ended).map_err(|reason| IscsiError::Logout { target: login.target.clone(), reason })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use farrier_conductor::deploy::disk_export::DiskExport;
    use std::fs::{self, Permissions};
    use std::os::unix::fs::PermissionsExt;
    use std::path::Path;
    use tempfile::TempDir;
    use uuid::Uuid;

    fn unit() -> LogicalUnit {
        LogicalUnit::of(&DiskExport::anew("https://192.0.2.7:9999", 3260, Uuid::nil()).unwrap()).unwrap()
    }

    /// An initiator in a folder, with a program that keeps its arguments, makes records and sessions, and ends so when it
    /// is asked to log in.
    fn initiator(folder: &Path, unit: &LogicalUnit, login: &str) -> OpenIscsiInitiator {
        let (records, sysfs) = (folder.join("nodes"), folder.join("sys"));
        fs::create_dir_all(&records).unwrap();
        let target = records.join(unit.target.to_string());
        let record = record::path(&records, unit);
        let session = sysfs.join("class/iscsi_session/session1");
        let script = format!(
            "#!/bin/sh\necho \"$@\" >> {calls}\ncase \"$*\" in\n\
             *new) mkdir -p {above} && : > {record};;\n\
             *--login) mkdir -p {session} && echo {name} > {session}/targetname; {login};;\n\
             *--logout) rm -r {session};;\n*delete) rm -r {target};;\nesac\n",
            calls = folder.join("calls").display(),
            above = record.parent().unwrap().display(),
            record = record.display(),
            session = session.display(),
            target = target.display(),
            name = unit.target,
        );
        let path = folder.join("iscsiadm");
        fs::write(&path, script).unwrap();
        fs::set_permissions(&path, Permissions::from_mode(0o755)).unwrap();
        OpenIscsiInitiator { program: Program { path, packages: "open-iscsi" }, records, sysfs }
    }

    fn folder() -> TempDir {
        tempfile::tempdir().unwrap()
    }

    #[test]
    fn f60_a_login_that_fails_or_is_not_wanted_any_more_leaves_neither_session_nor_record() {
        for (login, expected) in [("echo no route >&2; exit 8", "no route"), ("exit 0", "not wanted")] {
            let (folder, unit) = (folder(), unit());
            let initiator = initiator(folder.path(), &unit, login);
            // Nobody wants it once there is a session.
            let session = folder.path().join("sys/class/iscsi_session/session1/targetname");
            let is_cancelled = || login == "exit 0" && fs::read(&session).is_ok_and(|text| !text.is_empty());
            let error = initiator.log_in(&unit, &[], &is_cancelled).unwrap_err().to_string();
            assert!(error.contains(expected) && !error.contains(&unit.chap.secret), "{error}");
            let calls = fs::read_to_string(folder.path().join("calls")).unwrap();
            assert!(calls.contains("--logout") && calls.trim_end().ends_with("--op delete"), "{calls}");
            for hidden in [&unit.chap.secret, &unit.chap.user, &unit.initiator.to_string()] {
                assert!(!calls.contains(hidden.as_str()), "{calls}");
            }
            assert_eq!(fs::read_dir(&initiator.records).unwrap().count(), 0);
            assert_eq!(fs::read_dir(folder.path().join("sys/class/iscsi_session")).unwrap().count(), 0);
        }
    }

    #[test]
    fn f60_what_a_killed_conductor_left_goes_before_the_next_login() {
        let (folder, left, next) = (folder(), unit(), unit());
        let initiator = initiator(folder.path(), &left, "exit 0");
        let mut login = initiator.begin(&left, &|| false).unwrap();
        // As when it is killed: nothing is run, and the lock ends.
        login.is_ended = true;
        drop(login);
        assert_eq!(record::left_soon(&initiator.records), [left.target.to_string()]);
        assert!(
            initiator.log_in(&next, &[], &|| false).is_err(),
            "the program makes the record of the other"
        );
        let calls = fs::read_to_string(folder.path().join("calls")).unwrap();
        let named = |verb: &str| calls.find(&format!("--targetname {} {verb}", left.target)).unwrap();
        assert!(named("--logout") < named("--op delete"));
        assert!(named("--op delete") < calls.find(&next.target.to_string()).unwrap(), "{calls}");
    }

    #[test]
    fn what_is_missing_is_reported_on_one_line() {
        let (folder, unit) = (folder(), unit());
        let mut initiator = initiator(folder.path(), &unit, "exit 0");
        let error = initiator.require().unwrap_err().to_string();
        let expected =
            if nix::unistd::geteuid().is_root() { "load the module iscsi_tcp" } else { "needs root" };
        assert!(error.contains(expected), "{error}");
        initiator.program.path = "/nonexistent/iscsiadm".into();
        let error = initiator.require().unwrap_err().to_string();
        assert!(error.ends_with("install open-iscsi") && !error.contains('\n'), "{error}");
    }
}
