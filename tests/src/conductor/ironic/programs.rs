//! The programs of an installed Ironic, and how they are started.

use anyhow::{Context, Result, ensure};
use std::env;
use std::ffi::OsString;
use std::fs::{self, File};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

/// Conductor and API in one, since release 18.
const TOGETHER: &[&str] = &["ironic"];
/// The same before.
const APART: &[&str] = &["ironic-conductor", "ironic-api"];

/// What its programs are started with.
#[derive(Debug)]
pub(super) struct Programs {
    environment: PathBuf,
    folder: PathBuf,
    configurations: Vec<PathBuf>,
    log: File,
    proxy: String,
    path: Option<OsString>,
}

impl Programs {
    /// Those of the environment, with what `configuration` says, by `proxy`. They write their log in the folder.
    pub(super) fn new(environment: &Path, folder: &Path, configuration: &str, proxy: &str) -> Result<Self> {
        let file = folder.join("ironic.conf");
        fs::write(&file, configuration)?;
        Ok(Self {
            environment: environment.to_owned(),
            folder: folder.to_owned(),
            configurations: vec![file],
            log: File::create(folder.join("ironic.log"))?,
            proxy: proxy.to_owned(),
            path: None,
        })
    }

    /// The same, but for what `configuration` says.
    pub(super) fn differing(mut self, configuration: &str) -> Result<Self> {
        let file = self.folder.join("differing.conf");
        fs::write(&file, configuration)?;
        self.configurations.push(file);
        Ok(self)
    }

    /// The same; they find programs in this folder before any other.
    pub(super) fn with_path(mut self, folder: &Path) -> Result<Self> {
        let others = env::var_os("PATH").unwrap_or_default();
        let all = [folder.to_owned()].into_iter().chain(env::split_paths(&others));
        self.path = Some(env::join_paths(all)?);
        Ok(self)
    }

    fn command(&self, name: &str) -> Result<Command> {
        let mut command = Command::new(self.environment.join("bin").join(name));
        for configuration in &self.configurations {
            command.arg("--config-file").arg(configuration);
        }
        command.stdin(Stdio::null()).stdout(self.log.try_clone()?).stderr(self.log.try_clone()?);
        command.env("http_proxy", &self.proxy).env("no_proxy", "127.0.0.1");
        command.envs(self.path.iter().map(|path| ("PATH", path)));
        Ok(command)
    }

    fn services(&self) -> &'static [&'static str] {
        let are_together = self.environment.join("bin").join(TOGETHER[0]).exists();
        if are_together { TOGETHER } else { APART }
    }

    /// Makes the tables of its database.
    pub(super) fn make_schema(&self) -> Result<()> {
        let status = self.command("ironic-dbsync")?.arg("create_schema").status();
        let status = status
            .with_context(|| format!("cannot start ironic-dbsync of {}", self.environment.display()))?;
        ensure!(status.success(), "ironic-dbsync ended with {status}");
        if self.services() == APART { self.let_write_beside_readers() } else { Ok(()) }
    }

    /// The API asks the conductor while it reads from the database itself, and the conductor then writes to it.
    fn let_write_beside_readers(&self) -> Result<()> {
        const ORDER: &str =
            "import sqlite3, sys; sqlite3.connect(sys.argv[1]).execute('PRAGMA journal_mode=WAL')";
        let mut python = Command::new(self.environment.join("bin/python"));
        let status = python.args(["-c", ORDER]).arg(self.folder.join("ironic.sqlite")).status()?;
        ensure!(status.success(), "Python ended with {status}");
        Ok(())
    }

    /// The first number of its release.
    pub(super) fn release(&self) -> Result<u32> {
        let output = self.command(self.services()[0])?.arg("--version").stdout(Stdio::piped()).output()?;
        let printed = String::from_utf8_lossy(&output.stdout);
        let number = printed.trim().split('.').next().and_then(|number| number.parse().ok());
        number.with_context(|| format!("ironic --version printed {printed:?}"))
    }

    /// Starts conductor and API.
    pub(super) fn start(&self) -> Result<Vec<Child>> {
        // Ironic signals its whole process group: the test must not be in it.
        let start = |name: &&str| self.command(name)?.process_group(0).spawn().context("cannot start ironic");
        self.services().iter().map(start).collect()
    }
}
