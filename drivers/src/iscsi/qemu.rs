//! The block layer of QEMU as an initiator: `qemu-nbd` logs in, and offers the disk on a socket that only this process
//! can reach. It needs no rights and makes no device, so nothing else on this host can take the disk for one of its own.
//!
//! What it opens is said by values of its options alone, none of which is a path of a disk: there is no way to have it
//! open one of this host's. It ends when the last connection does, so also with a conductor that was killed. It tells
//! the size of the disk and not its serial number, which is asked for before.

use super::error::IscsiError;
use super::initiator::{Initiator, Session};
use super::program::{Program, Running, private_file, private_folder};
use super::proof::Inquiry;
use super::unit::LogicalUnit;
use farrier_disk::io::{CONNECTIONS, Expected};
use farrier_disk::{RemoteDisk, Sectors};
use farrier_protocol::inventory::Disk;
use std::cell::Cell;
use std::io::Write;
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::time::Duration;
use tempfile::TempDir;

/// Time for the login.
const LOGIN: Duration = Duration::from_secs(60);
/// Time for the logout, and for the program to end.
const LOGOUT: Duration = Duration::from_secs(30);
/// Time for each request: a network that is away for half a minute ends nothing.
const REQUEST: Duration = Duration::from_secs(120);
/// Time for the program to end once it has ended a connection.
const LAST_WORDS: Duration = Duration::from_secs(5);

/// Logs in by `qemu-nbd`.
#[derive(Debug, Clone)]
pub struct QemuInitiator {
    program: Program,
    inquiry: Inquiry,
}

impl Default for QemuInitiator {
    fn default() -> Self {
        let packages = "qemu-utils and qemu-block-extra";
        let program = Program { path: "/usr/bin/qemu-nbd".into(), packages };
        Self { program, inquiry: Inquiry::default() }
    }
}

/// The connections end before the program, and the program before its folder.
#[derive(Debug)]
struct QemuSession {
    disk: RemoteDisk,
    running: Running,
    target: String,
    _folder: TempDir,
}

impl Initiator for QemuInitiator {
    fn name(&self) -> &'static str {
        "qemu"
    }

    fn require(&self) -> Result<(), IscsiError> {
        self.program.require()?;
        self.inquiry.0.require()
    }

    fn log_in(
        &self,
        unit: &LogicalUnit,
        disks: &[Disk],
        is_cancelled: &dyn Fn() -> bool,
    ) -> Result<Box<dyn Session>, IscsiError> {
        let folder = private_folder().map_err(|source| self.program.unusable(source))?;
        let disks = self.inquiry.find(unit, disks, folder.path(), is_cancelled)?;
        Ok(Box::new(self.connect(unit, &disks, folder, is_cancelled)?))
    }
}

impl QemuInitiator {
    /// Logs in to what is known to be one of these disks.
    fn connect(
        &self,
        unit: &LogicalUnit,
        disks: &[&Disk],
        folder: TempDir,
        is_cancelled: &dyn Fn() -> bool,
    ) -> Result<QemuSession, IscsiError> {
        let [secret, socket, messages] =
            ["secret", "socket", "messages"].map(|name| folder.path().join(name));
        private_file(&secret)
            .and_then(|mut file| file.write_all(unit.chap.secret.as_bytes()))
            .map_err(|source| self.program.unusable(source))?;
        let mut running = self.program.start(&arguments(unit, &secret, &socket), &[], messages)?;
        let first = wait(&mut running, &socket, is_cancelled).map_err(|reason| unit.no_login(reason))?;
        // A connection that ends would end the program.
        let first = Cell::new(Some(first));
        let sizes = disks.iter().map(|disk| (disk.size, disk.logical_sectors)).collect();
        let expected = Expected { name: unit.target.to_string(), sizes, patience: REQUEST };
        let connect = || first.take().map_or_else(|| UnixStream::connect(&socket), Ok);
        // It listens before it has logged in, and says nothing when it cannot.
        let disk = RemoteDisk::open(&expected, connect).map_err(|error| match error {
            farrier_disk::Error::Device { .. } if running.wait(LAST_WORDS, &|| false).is_ok() => {
                unit.no_login(running.said())
            }
            error => error.into(),
        })?;
        Ok(QemuSession { disk, running, target: unit.target.to_string(), _folder: folder })
    }
}

impl Session for QemuSession {
    fn disk(&self) -> &dyn Sectors {
        &self.disk
    }

    fn log_out(self: Box<Self>) -> Result<(), IscsiError> {
        let Self { disk, mut running, target, _folder } = *self;
        let failed = |reason: String| IscsiError::Logout { target, reason };
        if let Err(error) = disk.close() {
            return Err(failed(error.to_string()));
        }
        match running.wait(LOGOUT, &|| false) {
            Ok(status) if status.success() => Ok(()),
            Ok(status) => Err(failed(format!("qemu-nbd ended with {status}"))),
            Err(reason) => Err(failed(reason)),
        }
    }
}

/// The secret is in a file, because every user of this host sees the arguments of programs. Names of iSCSI and addresses hold
/// no commas, which would begin another option.
fn arguments(unit: &LogicalUnit, secret: &Path, socket: &Path) -> Vec<String> {
    let LogicalUnit { portal, target, initiator, chap } = unit;
    let user = &chap.user;
    let path = |path: &Path| path.display().to_string();
    vec![
        format!("--socket={}", path(socket)),
        format!("--shared={CONNECTIONS}"),
        "--discard=unmap".to_owned(),
        format!("--object=secret,id=chap,file={}", path(secret).replace(',', ",,")),
        "--image-opts".to_owned(),
        format!(
            "driver=iscsi,transport=tcp,portal={portal},target={target},lun=1,initiator-name={initiator},\
             user={user},password-secret=chap"
        ),
    ]
}

/// A connection to the program, once it listens.
fn wait(running: &mut Running, socket: &Path, is_cancelled: &dyn Fn() -> bool) -> Result<UnixStream, String> {
    running.until(LOGIN, is_cancelled, "answer", |running| match UnixStream::connect(socket) {
        Ok(stream) => Ok(Some(stream)),
        Err(_) if running.ended()?.is_some() => Err(running.said()),
        Err(_) => Ok(None),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use farrier_conductor::deploy::disk_export::DiskExport;
    use farrier_iscsi::target::IscsiName;
    use std::fs;
    use std::os::unix::fs::PermissionsExt;
    use std::slice;
    use uuid::Uuid;

    fn unit() -> LogicalUnit {
        let export = DiskExport::anew("https://[2001:db8::7]:9999", 3260, Uuid::nil()).unwrap();
        LogicalUnit::of(&export).unwrap()
    }

    #[test]
    fn the_secret_is_in_a_file_of_ours_and_no_argument_leads_to_a_disk_of_this_host() {
        let unit = unit();
        let arguments =
            arguments(&unit, Path::new("/run/a,b/secret"), Path::new("/run/a,b/socket")).join(" ");
        assert!(!arguments.contains(&unit.chap.secret));
        assert!(arguments.contains("file=/run/a,,b/secret "), "{arguments}");
        assert!(arguments.contains("driver=iscsi,transport=tcp,portal=[2001:db8::7]:3260,target=iqn."));
        for name in ["iqn.2026-01.org.example:x,driver=file,filename=/dev/sda", "/dev/sda", "../sda", "x y"] {
            assert!(IscsiName::parse("iqn", name).is_err(), "{name}");
        }
        let folder = private_folder().unwrap();
        let file = private_file(&folder.path().join("secret")).unwrap();
        assert_eq!(file.metadata().unwrap().permissions().mode() & 0o777, 0o600);
        assert_eq!(fs::metadata(folder.path()).unwrap().permissions().mode() & 0o777, 0o700);
    }

    /// Programs that tell no serial number, and offer nothing: what they say is told, and nothing of them stays.
    #[test]
    fn f60_a_login_that_fails_leaves_nothing_behind() {
        let unit = unit();
        let disk = Disk { size: 1 << 20, logical_sectors: 512, ..Disk::default() };
        let programs = |qemu: &str, inquiry: &str| QemuInitiator {
            program: Program { path: qemu.into(), packages: "qemu-utils and qemu-block-extra" },
            inquiry: Inquiry(Program { path: inquiry.into(), packages: "libiscsi-bin" }),
        };
        for (qemu, inquiry, packages) in [
            ("/nonexistent/x", "/bin/false", "install qemu-utils and qemu-block-extra"),
            ("/bin/false", "/nonexistent/x", "install libiscsi-bin"),
        ] {
            let error = programs(qemu, inquiry).require().unwrap_err().to_string();
            assert!(error.ends_with(packages), "{error}");
        }
        let unknown = programs("/bin/yes", "/bin/false").log_in(&unit, slice::from_ref(&disk), &|| false);
        let mut errors = vec![(unknown.unwrap_err(), "false says nothing")];
        for (qemu, is_cancelled, expected) in
            [("/bin/false", false, "false says nothing"), ("/bin/yes", true, "not wanted")]
        {
            let initiator = programs(qemu, "/bin/false");
            let connected = initiator.connect(&unit, &[&disk], private_folder().unwrap(), &|| is_cancelled);
            errors.push((connected.unwrap_err(), expected));
        }
        for (error, expected) in errors {
            assert!(matches!(error, IscsiError::Login { .. }), "{error}");
            let text = error.to_string();
            assert!(text.contains(expected) && !text.contains(&unit.chap.secret), "{text}");
        }
    }
}
