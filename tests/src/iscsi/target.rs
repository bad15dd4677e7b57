//! A server of iSCSI disks on this machine, for one run: tgt, which needs nothing of the kernel.

use crate::machine::free_port;
use anyhow::{Context, Result, bail};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

/// Time for the server to listen.
const PATIENCE: Duration = Duration::from_secs(30);
const POLL: Duration = Duration::from_millis(50);
/// Name of the only target.
pub const NAME: &str = "iqn.2026-01.org.example:disk";

/// The server with one disk. Dropping it ends it.
#[derive(Debug)]
pub struct IscsiTarget {
    server: Child,
    port: u16,
    control: PathBuf,
}

impl IscsiTarget {
    /// Serves the file `disk` on a free port of the loopback address, to everybody; the socket by which the
    /// server is told so lies in `folder`.
    ///
    /// # Errors
    ///
    /// tgt is not installed, or does not start.
    pub fn start(disk: &Path, folder: &Path) -> Result<Self> {
        let (port, control) = (free_port()?, folder.join("tgt"));
        let server = Command::new("tgtd")
            .args(["--foreground", "--iscsi", &format!("portal=127.0.0.1:{port}")])
            .env("TGT_IPC_SOCKET", &control)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .context("cannot start tgtd")?;
        let target = Self { server, port, control };
        let started = Instant::now();
        while let Err(error) = target.tell(&["--mode", "target", "--op", "new", "--targetname", NAME]) {
            if started.elapsed() > PATIENCE {
                return Err(error);
            }
            thread::sleep(POLL);
        }
        let file = disk.display().to_string();
        target.tell(&["--mode", "logicalunit", "--op", "new", "--lun", "1", "--backing-store", &file])?;
        target.tell(&["--mode", "target", "--op", "bind", "--initiator-address", "ALL"])?;
        Ok(target)
    }

    /// The disk as iPXE names it, for a machine on QEMU's user network.
    pub fn guest_uri(&self) -> String {
        format!("iscsi:10.0.2.2:tcp:{}:1:{NAME}", self.port)
    }

    /// The port on the loopback address.
    pub fn port(&self) -> u16 {
        self.port
    }

    /// Lets in only who proves to be this user with this secret.
    ///
    /// # Errors
    ///
    /// The server refuses.
    pub fn require_chap(&self, user: &str, secret: &str) -> Result<()> {
        let mut tell = Command::new("tgtadm");
        tell.args([
            "--lld",
            "iscsi",
            "--mode",
            "account",
            "--op",
            "new",
            "--user",
            user,
            "--password",
            secret,
        ]);
        let made = tell.env("TGT_IPC_SOCKET", &self.control).status().context("cannot start tgtadm")?;
        if !made.success() {
            bail!("tgtadm makes no account: {made}");
        }
        self.tell(&["--mode", "account", "--op", "bind", "--user", user])
    }

    /// Gives the disk a serial number, of at most 36 characters.
    ///
    /// # Errors
    ///
    /// The server refuses.
    pub fn set_serial(&self, serial: &str) -> Result<()> {
        let serial = format!("scsi_sn={serial}");
        self.tell(&["--mode", "logicalunit", "--op", "update", "--lun", "1", "--params", &serial])
    }

    /// How many connections initiators have.
    ///
    /// # Errors
    ///
    /// The server does not tell.
    pub fn connections(&self) -> Result<usize> {
        let told = self.ask(&["--mode", "conn", "--op", "show"])?;
        Ok(told.matches("Connection:").count())
    }

    fn tell(&self, arguments: &[&str]) -> Result<()> {
        self.ask(arguments).map(drop)
    }

    fn ask(&self, arguments: &[&str]) -> Result<String> {
        let mut tell = Command::new("tgtadm");
        tell.args(["--lld", "iscsi", "--tid", "1"]).args(arguments).env("TGT_IPC_SOCKET", &self.control);
        let output = tell.output().context("cannot start tgtadm")?;
        if !output.status.success() {
            bail!("tgtadm {arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
        }
        Ok(String::from_utf8_lossy(&output.stdout).into_owned())
    }
}

impl Drop for IscsiTarget {
    fn drop(&mut self) {
        // It may have ended by itself.
        self.server.kill().ok();
        self.server.wait().ok();
    }
}
