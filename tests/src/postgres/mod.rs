//! A PostgreSQL server of a test, in a folder of its own, reached by a Unix socket or by TLS.

mod pooler;

pub use pooler::Pooler;

use crate::machine::free_port;
use anyhow::{Context, Result, bail, ensure};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use std::ffi::OsStr;
use std::fs::{self, File, Permissions};
use std::io::Write;
use std::net::Ipv4Addr;
use std::os::unix::fs::{MetadataExt, PermissionsExt, chown};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::thread;
use std::time::{Duration, Instant};

/// How long a server may take to start on a machine that has much else to do.
const PATIENCE: Duration = Duration::from_secs(120);
const POLL: Duration = Duration::from_millis(50);

/// How often a server is started whose port another program takes first.
const ATTEMPTS: u32 = 3;

/// Where Debian has the programs of each version.
const VERSIONS: &str = "/usr/lib/postgresql";

/// Files of a server in its folder: its certificate, the key of that, and what it says.
const CERTIFICATE: &str = "server.crt";
const KEY: &str = "server.key";
const LOG: &str = "log";

/// A server that runs until this is dropped.
#[derive(Debug)]
pub struct Cluster {
    files: Files,
    port: u16,
    server: Child,
    databases: AtomicU32,
}

impl Cluster {
    /// Makes the files of a server and starts it.
    ///
    /// # Errors
    ///
    /// PostgreSQL is not installed, or does not start.
    pub fn start() -> Result<Self> {
        Self::start_at(Ipv4Addr::LOCALHOST)
    }

    /// The same, of a server for the hosts in the network of an address of this host.
    ///
    /// # Errors
    ///
    /// As [`Self::start`].
    pub fn start_at(address: Ipv4Addr) -> Result<Self> {
        let files = Files::make(address)?;
        for _ in 0..ATTEMPTS {
            let port = free_port()?;
            if let Some(server) = files.serve(port)? {
                return Ok(Self { files, port, server, databases: AtomicU32::new(0) });
            }
        }
        bail!("the server does not start: {}", files.log())
    }

    /// The URL of a new database, by a Unix socket.
    ///
    /// # Errors
    ///
    /// The server does not make one.
    pub fn database(&self) -> Result<String> {
        let folder = self.files.folder.path().display();
        Ok(format!("{}?host={folder}", self.tls_database()?))
    }

    /// The URL of a new database, by TLS, without its parameters.
    ///
    /// # Errors
    ///
    /// The server does not make one.
    pub fn tls_database(&self) -> Result<String> {
        let name = format!("db{}", self.databases.fetch_add(1, Ordering::Relaxed));
        let made = self.files.sql(self.port, &format!("CREATE DATABASE {name}"))?;
        ensure!(made.status.success(), "{}", String::from_utf8_lossy(&made.stderr));
        Ok(format!("postgres://farrier@{}:{}/{name}", self.files.host(), self.port))
    }

    /// What a database answers to a statement: a line for each row, with its columns between bars.
    ///
    /// # Errors
    ///
    /// The server refuses it.
    pub fn ask(&self, database: &str, statement: &str) -> Result<String> {
        let mut psql = Command::new(self.files.programs.join("psql"));
        psql.args(["-X", "-At", "-v", "ON_ERROR_STOP=1", "-d", database, "-c", statement]);
        let answer = psql.output().context("cannot start psql")?;
        ensure!(answer.status.success(), "{}", String::from_utf8_lossy(&answer.stderr));
        Ok(String::from_utf8_lossy(&answer.stdout).into_owned())
    }

    /// File of the server's certificate, which has signed itself, for its host.
    pub fn certificate(&self) -> PathBuf {
        self.files.folder.path().join(CERTIFICATE)
    }
}

impl Drop for Cluster {
    fn drop(&mut self) {
        end(&mut self.server);
    }
}

/// Ends a server at once. One that is killed would leave its shared memory behind, for as long as the machine runs.
fn end(server: &mut Child) {
    kill(Pid::from_raw(server.id().cast_signed()), Signal::SIGQUIT).ok();
    drop(server.wait());
}

/// The files of a server, and the account that has them.
#[derive(Debug)]
struct Files {
    folder: tempfile::TempDir,
    address: Ipv4Addr,
    programs: PathBuf,
    account: Option<(u32, u32)>,
}

impl Files {
    fn make(address: Ipv4Addr) -> Result<Self> {
        let folder = tempfile::Builder::new().prefix("farrier-pg").tempdir_in("/tmp")?;
        let files = Self { folder, address, programs: programs()?, account: account()? };
        files.own(files.folder.path())?;
        let mut initdb = files.as_server("initdb");
        initdb.args(["--auth=trust", "--username=farrier", "--encoding=UTF8", "--no-sync", "-D"]);
        let made = initdb.arg(files.folder.path().join("data")).output().context("cannot start initdb")?;
        ensure!(made.status.success(), "{}", String::from_utf8_lossy(&made.stderr));
        if address != Ipv4Addr::LOCALHOST {
            let allowed = File::options().append(true).open(files.folder.path().join("data/pg_hba.conf"));
            writeln!(allowed?, "host all all {address}/24 trust")?;
        }
        let made = rcgen::generate_simple_self_signed([files.host()])?;
        let key = files.folder.path().join(KEY);
        fs::write(files.folder.path().join(CERTIFICATE), made.cert.pem())?;
        fs::write(&key, made.signing_key.serialize_pem())?;
        fs::set_permissions(&key, Permissions::from_mode(0o600))?;
        files.own(&key)?;
        Ok(files)
    }

    /// Starts the server, and waits until it answers. Nothing when it ends before.
    fn serve(&self, port: u16) -> Result<Option<Child>> {
        let folder = self.folder.path();
        let mut server = self
            .as_server("postgres")
            .arg("-D")
            .arg(folder.join("data"))
            .arg("-k")
            .arg(folder)
            .args(["-p", &port.to_string(), "-c", "ssl=on"])
            .args(["-c", &format!("listen_addresses={}", self.host())])
            .args(["-c", &format!("ssl_cert_file={}", folder.join(CERTIFICATE).display())])
            .args(["-c", &format!("ssl_key_file={}", folder.join(KEY).display())])
            .args(["-c", "fsync=off", "-c", "max_connections=300", "-c", "shared_buffers=16MB"])
            .stdout(Stdio::null())
            .stderr(File::create(folder.join(LOG))?)
            .spawn()
            .context("cannot start postgres")?;
        let until = Instant::now() + PATIENCE;
        while !self.sql(port, "SELECT 1")?.status.success() {
            if server.try_wait()?.is_some() {
                return Ok(None);
            }
            if Instant::now() > until {
                end(&mut server);
                bail!("the server does not answer: {}", self.log());
            }
            thread::sleep(POLL);
        }
        Ok(Some(server))
    }

    /// Where the server is reached, as its certificate has it.
    fn host(&self) -> String {
        match self.address {
            Ipv4Addr::LOCALHOST => "localhost".to_owned(),
            address => address.to_string(),
        }
    }

    fn sql(&self, port: u16, statement: &str) -> Result<Output> {
        let mut psql = Command::new(self.programs.join("psql"));
        psql.args(["-X", "-U", "farrier", "-d", "postgres", "-p", &port.to_string(), "-h"]);
        psql.arg(self.folder.path()).args(["-c", statement]).output().context("cannot start psql")
    }

    fn log(&self) -> String {
        fs::read_to_string(self.folder.path().join(LOG)).unwrap_or_default()
    }

    /// A program of the server.
    fn as_server(&self, program: &str) -> Command {
        self.as_account(self.programs.join(program))
    }

    /// A program that does not run as root, which the server refuses.
    fn as_account(&self, program: impl AsRef<OsStr>) -> Command {
        let mut command = Command::new(program);
        if let Some((user, group)) = self.account {
            command.uid(user).gid(group);
        }
        command
    }

    /// Gives a file or folder to the account of the server.
    fn own(&self, path: &Path) -> Result<()> {
        match self.account {
            Some((user, group)) => Ok(chown(path, Some(user), Some(group))?),
            None => Ok(()),
        }
    }
}

/// The programs of the newest version that there is.
fn programs() -> Result<PathBuf> {
    let missing = "PostgreSQL is missing; run cargo xtask setup";
    let versions = fs::read_dir(VERSIONS).context(missing)?.filter_map(|entry| Some(entry.ok()?.path()));
    let number = |path: &PathBuf| path.file_name()?.to_str()?.parse::<u32>().ok();
    Ok(versions.max_by_key(number).context(missing)?.join("bin"))
}

/// The account `postgres`, which the package makes, where this runs as root.
fn account() -> Result<Option<(u32, u32)>> {
    if fs::metadata("/proc/self")?.uid() != 0 {
        return Ok(None);
    }
    let account = nix::unistd::User::from_name("postgres")?.context("there is no account postgres")?;
    Ok(Some((account.uid.as_raw(), account.gid.as_raw())))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn process_a_server_that_ends_leaves_no_shared_memory() {
        let cluster = Cluster::start().unwrap();
        let id = cluster.server.id().to_string();
        let maps = fs::read_to_string(format!("/proc/{id}/maps")).unwrap();
        let mapped = maps.split_whitespace().filter(|word| word.starts_with("/dev/shm/"));
        let mapped: Vec<_> = mapped.map(PathBuf::from).collect();
        // The fifth column is the process that made a segment.
        let segments = || {
            let table = fs::read_to_string("/proc/sysvipc/shm").unwrap();
            table.lines().filter(|line| line.split_whitespace().nth(4) == Some(&id)).count()
        };
        assert!(segments() > 0 || !mapped.is_empty());
        drop(cluster);
        assert_eq!(segments(), 0);
        assert!(mapped.iter().all(|file| !file.exists()), "{mapped:?}");
    }
}
