//! A PostgreSQL server of a test, in a folder of its own, reached by a Unix socket.

use std::os::unix::fs::MetadataExt;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

/// How long a server may take to start on a machine that has much else to do.
const START: Duration = Duration::from_secs(120);

/// Where Debian has the programs of a version.
const VERSIONS: &str = "/usr/lib/postgresql";

/// A server that runs until this ends.
#[derive(Debug)]
pub struct Cluster {
    folder: tempfile::TempDir,
    programs: PathBuf,
    server: Child,
    databases: AtomicU32,
}

impl Cluster {
    /// Makes the files of a server and starts it.
    ///
    /// # Panics
    ///
    /// When there is no PostgreSQL, or it does not start.
    pub fn start() -> Self {
        let programs = programs();
        let folder = tempfile::Builder::new().prefix("farrier-pg").tempdir_in("/tmp").unwrap();
        let data = folder.path().join("data");
        own(folder.path());
        let log = folder.path().join("log");
        let initdb = as_server(&programs.join("initdb"))
            .args(["--auth=trust", "--username=farrier", "--encoding=UTF8", "--no-sync", "-D"])
            .arg(&data)
            .output()
            .unwrap();
        assert!(initdb.status.success(), "{}", String::from_utf8_lossy(&initdb.stderr));
        let server = as_server(&programs.join("postgres"))
            .arg("-D")
            .arg(&data)
            .arg("-k")
            .arg(folder.path())
            .args(["-c", "listen_addresses=", "-c", "fsync=off", "-c", "max_connections=300"])
            .args(["-c", "shared_buffers=16MB"])
            .stdout(Stdio::null())
            .stderr(std::fs::File::create(&log).unwrap())
            .spawn()
            .unwrap();
        let mut cluster = Self { folder, programs, server, databases: AtomicU32::new(0) };
        cluster.wait();
        cluster
    }

    fn wait(&mut self) {
        let end = Instant::now() + START;
        while !self.sql("SELECT 1").status.success() {
            let ended = self.server.try_wait().unwrap();
            let log = std::fs::read_to_string(self.folder.path().join("log")).unwrap();
            assert!(ended.is_none() && Instant::now() < end, "the server did not start: {log}");
            std::thread::sleep(Duration::from_millis(50));
        }
    }

    fn sql(&self, statement: &str) -> std::process::Output {
        let mut psql = Command::new(self.programs.join("psql"));
        psql.args(["-X", "-U", "farrier", "-d", "postgres", "-h"]).arg(self.folder.path());
        psql.args(["-c", statement]).output().unwrap()
    }

    /// The URL of a new database.
    ///
    /// # Panics
    ///
    /// When the server does not make one.
    pub fn database(&self) -> String {
        let name = format!("db{}", self.databases.fetch_add(1, Ordering::Relaxed));
        let made = self.sql(&format!("CREATE DATABASE {name}"));
        assert!(made.status.success(), "{}", String::from_utf8_lossy(&made.stderr));
        format!("postgres://farrier@localhost/{name}?host={}", self.folder.path().display())
    }
}

impl Drop for Cluster {
    fn drop(&mut self) {
        drop(self.server.kill());
        drop(self.server.wait());
    }
}

/// The programs of the newest version that there is.
fn programs() -> PathBuf {
    let versions = std::fs::read_dir(VERSIONS).expect("no PostgreSQL; run cargo xtask setup");
    let number = |path: &PathBuf| path.file_name()?.to_str()?.parse::<u32>().ok();
    let newest = versions.map(|entry| entry.unwrap().path()).max_by_key(number);
    newest.expect("no PostgreSQL; run cargo xtask setup").join("bin")
}

/// A program that does not run as root, which the server refuses.
fn as_server(program: &Path) -> Command {
    let mut command = Command::new(program);
    if let Some((user, group)) = server_account() {
        command.uid(user).gid(group);
    }
    command
}

/// Gives a folder to the account of the server.
fn own(folder: &Path) {
    if let Some((user, group)) = server_account() {
        std::os::unix::fs::chown(folder, Some(user), Some(group)).unwrap();
    }
}

/// The account `postgres`, which the package makes, where this runs as root.
fn server_account() -> Option<(u32, u32)> {
    if std::fs::metadata("/proc/self").unwrap().uid() != 0 {
        return None;
    }
    let accounts = std::fs::read_to_string("/etc/passwd").unwrap();
    let line = accounts.lines().find(|line| line.starts_with("postgres:")).expect("no account postgres");
    let mut numbers = line.split(':').skip(2).map(|number| number.parse().unwrap());
    Some((numbers.next().unwrap(), numbers.next().unwrap()))
}
