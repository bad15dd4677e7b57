//! The block layer of QEMU as an initiator: `qemu-nbd` logs in, and offers the disk on a socket that only this process
//! can reach. It needs no rights and makes no device, so nothing else on this host can take the disk for one of its own.
//!
//! What it opens is said by values of its options alone, none of which is a path of a disk: there is no way to have it
//! open one of this host's. It ends when the last connection does, so also with a conductor that was killed.

use super::error::IscsiError;
use super::initiator::{Initiator, Session};
use super::unit::LogicalUnit;
use farrier_disk::io::{CONNECTIONS, Expected};
use farrier_disk::{RemoteDisk, Sectors};
use farrier_linux::process::{Companion, accompany_with};
use std::cell::Cell;
use std::fs::{self, File, OpenOptions, Permissions};
use std::io::{self, Write};
use std::os::unix::fs::{OpenOptionsExt, PermissionsExt};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::thread;
use std::time::{Duration, Instant};
use tempfile::TempDir;

/// Time for the login.
const LOGIN: Duration = Duration::from_secs(60);
/// Time for the logout, and for the program to end.
const LOGOUT: Duration = Duration::from_secs(30);
/// Time for each request: a network that is away for half a minute ends nothing.
const REQUEST: Duration = Duration::from_secs(120);
/// Time for the program to end once it has ended a connection.
const LAST_WORDS: Duration = Duration::from_secs(5);
const POLL: Duration = Duration::from_millis(50);
/// Most characters of what the program said that an error shows.
const SHOWN: usize = 400;

/// Logs in by `qemu-nbd`.
#[derive(Debug, Clone)]
pub struct QemuInitiator {
    program: PathBuf,
}

impl Default for QemuInitiator {
    fn default() -> Self {
        Self { program: "/usr/bin/qemu-nbd".into() }
    }
}

/// The connections end before the program, and the program before its folder.
#[derive(Debug)]
struct QemuSession {
    disk: RemoteDisk,
    child: Companion,
    target: String,
    _folder: TempDir,
}

impl QemuInitiator {
    fn unusable(&self, source: io::Error) -> IscsiError {
        IscsiError::NoInitiator { program: self.program.display().to_string(), source }
    }
}

impl Initiator for QemuInitiator {
    fn require(&self) -> Result<(), IscsiError> {
        fs::metadata(&self.program).map(drop).map_err(|source| self.unusable(source))
    }

    fn log_in(
        &self,
        unit: &LogicalUnit,
        sizes: &[(u64, u32)],
        is_cancelled: &dyn Fn() -> bool,
    ) -> Result<Box<dyn Session>, IscsiError> {
        let folder = private_folder().map_err(|source| self.unusable(source))?;
        let [secret, socket, messages] =
            ["secret", "socket", "messages"].map(|name| folder.path().join(name));
        let started = private_file(&secret)
            .and_then(|mut file| file.write_all(unit.chap.secret.as_bytes()))
            .and_then(|()| private_file(&messages))
            .and_then(|messages| accompany_with(&self.program, &arguments(unit, &secret, &socket), messages));
        let mut child = started.map_err(|source| self.unusable(source))?;
        let no_login = |reason: String| IscsiError::Login {
            target: unit.target.to_string(),
            portal: unit.portal.to_string(),
            reason: format!("{reason}{}", said(&messages)),
        };
        let first = wait(&mut child, &socket, is_cancelled).map_err(no_login)?;
        // A connection that ends would end the program.
        let first = Cell::new(Some(first));
        let expected = Expected { name: unit.target.to_string(), sizes: sizes.to_vec(), patience: REQUEST };
        let connect = || first.take().map_or_else(|| UnixStream::connect(&socket), Ok);
        // It listens before it has logged in, and says nothing when it cannot.
        let disk = RemoteDisk::open(&expected, connect).map_err(|error| match error {
            farrier_disk::Error::Device { .. } if has_ended(&mut child) => {
                no_login("qemu-nbd says".to_owned())
            }
            error => error.into(),
        })?;
        Ok(Box::new(QemuSession { disk, child, target: unit.target.to_string(), _folder: folder }))
    }
}

impl Session for QemuSession {
    fn disk(&self) -> &dyn Sectors {
        &self.disk
    }

    fn log_out(self: Box<Self>) -> Result<(), IscsiError> {
        let Self { disk, mut child, target, _folder } = *self;
        let failed = |reason: String| IscsiError::Logout { target, reason };
        if let Err(error) = disk.close() {
            return Err(failed(error.to_string()));
        }
        let deadline = Instant::now() + LOGOUT;
        while Instant::now() < deadline {
            match child.try_wait() {
                Ok(None) => thread::sleep(POLL),
                Ok(Some(status)) if status.success() => return Ok(()),
                Ok(Some(status)) => return Err(failed(format!("qemu-nbd ended with {status}"))),
                Err(error) => return Err(failed(error.to_string())),
            }
        }
        Err(failed(format!("qemu-nbd did not end within {} s", LOGOUT.as_secs())))
    }
}

/// The secret is in a file, as everybody on this host sees the arguments of programs. Names of iSCSI and addresses hold
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

/// Whether the program has ended, or does so at once.
fn has_ended(child: &mut Companion) -> bool {
    let deadline = Instant::now() + LAST_WORDS;
    while Instant::now() < deadline {
        match child.try_wait() {
            Ok(None) => thread::sleep(POLL),
            ended => return ended.is_ok(),
        }
    }
    false
}

/// A connection to the program, once it listens.
fn wait(child: &mut Companion, socket: &Path, is_cancelled: &dyn Fn() -> bool) -> Result<UnixStream, String> {
    let deadline = Instant::now() + LOGIN;
    loop {
        if let Ok(stream) = UnixStream::connect(socket) {
            return Ok(stream);
        }
        match child.try_wait() {
            Ok(Some(_)) => return Err("qemu-nbd says".to_owned()),
            Err(error) => return Err(error.to_string()),
            Ok(None) if is_cancelled() => return Err("it is not wanted any more".to_owned()),
            Ok(None) if Instant::now() >= deadline => {
                return Err(format!("no answer within {} s", LOGIN.as_secs()));
            }
            Ok(None) => thread::sleep(POLL),
        }
    }
}

/// What the program said, on one line.
fn said(messages: &Path) -> String {
    let text = fs::read_to_string(messages).unwrap_or_default();
    let line: String = text.split_whitespace().collect::<Vec<_>>().join(" ").chars().take(SHOWN).collect();
    if line.is_empty() { line } else { format!(": {line}") }
}

fn private_folder() -> io::Result<TempDir> {
    tempfile::Builder::new().prefix("farrier-iscsi-").permissions(Permissions::from_mode(0o700)).tempdir()
}

fn private_file(path: &Path) -> io::Result<File> {
    OpenOptions::new().write(true).create_new(true).mode(0o600).open(path)
}

#[cfg(test)]
mod tests {
    use super::super::unit::Portal;
    use super::*;
    use farrier_disk::iscsi_target::{Chap, IscsiName};
    use uuid::Uuid;

    #[test]
    fn the_secret_is_in_a_file_of_ours_and_no_argument_leads_to_a_disk_of_this_host() {
        let unit = LogicalUnit::anew("https://[2001:db8::7]:9999", 3260, Uuid::nil()).unwrap();
        let arguments =
            arguments(&unit, Path::new("/run/a,b/secret"), Path::new("/run/a,b/socket")).join(" ");
        assert!(!arguments.contains(&unit.chap.secret));
        assert!(arguments.contains("file=/run/a,,b/secret "), "{arguments}");
        assert!(arguments.contains("driver=iscsi,transport=tcp,portal=[2001:db8::7]:3260,target=iqn."));
        for name in ["iqn.2026-01.org.example:x,driver=file,filename=/dev/sda", "/dev/sda", "../sda", "x y"] {
            assert!(IscsiName::parse("iqn", name).is_err(), "{name}");
        }
        assert!(LogicalUnit::anew("https://h,filename=/dev/sda:9999", 3260, Uuid::nil()).is_err());
        let folder = private_folder().unwrap();
        let file = private_file(&folder.path().join("secret")).unwrap();
        assert_eq!(file.metadata().unwrap().permissions().mode() & 0o777, 0o600);
        assert_eq!(fs::metadata(folder.path()).unwrap().permissions().mode() & 0o777, 0o700);
    }

    /// A program that offers nothing: what it says is told, and nothing of it stays.
    #[test]
    fn f60_a_login_that_fails_leaves_nothing_behind() {
        let unit = LogicalUnit {
            portal: Portal::new("127.0.0.1", 1).unwrap(),
            target: IscsiName::parse("iqn", "iqn.2026-01.org.example:x").unwrap(),
            initiator: IscsiName::parse("iqn", "iqn.2026-01.org.example:y").unwrap(),
            chap: Chap::new("ann", "correct-horse-battery").unwrap(),
        };
        let missing = QemuInitiator { program: "/nonexistent/qemu-nbd".into() };
        let error = missing.require().unwrap_err().to_string();
        assert!(error.contains("qemu-utils and qemu-block-extra"), "{error}");
        for (program, is_cancelled) in [("/bin/false", false), ("/bin/yes", true)] {
            let initiator = QemuInitiator { program: program.into() };
            let error = initiator.log_in(&unit, &[(1 << 20, 512)], &|| is_cancelled).unwrap_err();
            assert!(matches!(error, IscsiError::Login { .. }), "{error}");
            assert!(!error.to_string().contains("battery"), "{error}");
        }
    }
}
