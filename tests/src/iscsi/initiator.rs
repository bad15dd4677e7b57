//! Initiators of iSCSI on this machine that need nothing of the kernel: QEMU's block layer and the tools of libiscsi.

use anyhow::{Context, Result, bail};
use std::net::Ipv4Addr;
use std::process::{Child, Command, Output, Stdio};

/// Name by which QEMU and the tools log in.
pub const NAME: &str = "iqn.2026-01.org.example:host";

/// A logical unit as an initiator on this machine sees it.
#[derive(Debug, Clone)]
pub struct LogicalUnit {
    /// Port of the loopback address that leads to the portal.
    pub port: u16,
    /// Name of the target.
    pub target: String,
    /// User and secret.
    pub chap: Option<(String, String)>,
    /// Name by which the initiator logs in.
    pub initiator: String,
}

impl LogicalUnit {
    /// That of the target behind the port, for everybody.
    pub fn new(port: u16, target: &str) -> Self {
        Self { port, target: target.to_owned(), chap: None, initiator: NAME.to_owned() }
    }

    /// Its URL.
    pub fn url(&self) -> String {
        let login = self.chap.iter().map(|(user, secret)| format!("{user}%{secret}@")).collect::<String>();
        format!("iscsi://{login}{}:{}/{}/1", Ipv4Addr::LOCALHOST, self.port, self.target)
    }

    /// Has `qemu-io` do something such as `write -P 7 0 1M`, and returns what it wrote.
    ///
    /// # Errors
    ///
    /// It cannot log in, or not do it.
    pub fn io(&self, order: &str) -> Result<String> {
        text(self.qemu_io(order).output().context("cannot start qemu-io")?)
    }

    /// Begins what [`LogicalUnit::io`] does. Whoever drops the child ends it.
    ///
    /// # Errors
    ///
    /// qemu-io is not installed.
    pub fn begin_io(&self, order: &str) -> Result<Child> {
        self.qemu_io(order)
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .context("cannot start qemu-io")
    }

    fn qemu_io(&self, order: &str) -> Command {
        let login = self.chap.iter().map(|(user, secret)| format!(",user={user},password={secret}"));
        let portal = format!("{}:{}", Ipv4Addr::LOCALHOST, self.port);
        let disk = format!(
            "driver=iscsi,transport=tcp,portal={portal},target={},lun=1,initiator-name={}{}",
            self.target,
            self.initiator,
            login.collect::<String>()
        );
        let mut qemu_io = Command::new("qemu-io");
        // Past the cache of QEMU, which would read and write beside what is asked for.
        qemu_io.args(["--cache", "none", "--image-opts", "-c", order, &disk]).stdin(Stdio::null());
        if order.starts_with("read") {
            qemu_io.arg("--read-only");
        }
        qemu_io
    }

    /// Runs a tool of libiscsi with the URL behind its arguments, and returns what it wrote.
    ///
    /// # Errors
    ///
    /// It is not installed, or ends with a failure.
    pub fn tool(&self, tool: &str, arguments: &[&str]) -> Result<String> {
        let mut tool_run = Command::new(tool);
        tool_run
            .args(["--initiator-name", &self.initiator])
            .args(arguments)
            .arg(self.url())
            .stdin(Stdio::null());
        text(tool_run.output().with_context(|| format!("cannot start {tool}"))?)
    }

    /// The names of the targets behind the portal, as a discovery lists them.
    ///
    /// # Errors
    ///
    /// Nobody listens there.
    pub fn discover(&self) -> Result<String> {
        let portal = format!("iscsi://{}:{}", Ipv4Addr::LOCALHOST, self.port);
        let mut list = Command::new("iscsi-ls");
        list.args(["--initiator-name", &self.initiator, &portal]).stdin(Stdio::null());
        text(list.output().context("cannot start iscsi-ls")?)
    }
}

/// qemu-io tells of failures by its output alone.
fn text(output: Output) -> Result<String> {
    let text =
        format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    if !output.status.success() || text.contains("failed:") || text.contains("can't open") {
        bail!("{}: {text}", output.status);
    }
    Ok(text)
}
