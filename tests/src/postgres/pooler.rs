//! PgBouncer before a server of a test: each transaction gets any of a few connections.

use super::{Cluster, PATIENCE, POLL};
use anyhow::{Context, Result, bail};
use std::fs::{self, File};
use std::os::unix::net::UnixStream;
use std::process::{Child, Stdio};
use std::thread;
use std::time::Instant;

/// The program of Debian's package.
const PROGRAM: &str = "/usr/sbin/pgbouncer";

/// Its files in the folder of the server.
const SETTINGS: &str = "pgbouncer.ini";
const USERS: &str = "pgbouncer.users";
const LOG: &str = "pgbouncer.log";

/// Connections to each database: less than a conductor opens.
const CONNECTIONS: u32 = 2;

/// A pooler in transaction mode that runs until this is dropped.
#[derive(Debug)]
pub struct Pooler<'a> {
    cluster: &'a Cluster,
    port: u16,
    process: Child,
}

impl<'a> Pooler<'a> {
    /// Starts one, with more lines of its settings.
    ///
    /// # Errors
    ///
    /// PgBouncer is not installed, or does not start.
    pub fn start(cluster: &'a Cluster, more: &str) -> Result<Self> {
        // Sockets are in the folder of the server, so no other program has the port.
        let port = cluster.port.checked_add(1).unwrap_or(cluster.port - 1);
        let folder = cluster.files.folder.path();
        let settings = format!(
            "[databases]\n* = host={folder} port={server}\n[pgbouncer]\nlisten_addr =\nlisten_port = {port}\n\
             unix_socket_dir = {folder}\nauth_type = trust\nauth_file = {folder}/{USERS}\npool_mode = transaction\n\
             default_pool_size = {CONNECTIONS}\nmax_client_conn = 500\n{more}\n",
            folder = folder.display(),
            server = cluster.port,
        );
        for (name, content) in [(SETTINGS, settings.as_str()), (USERS, "\"farrier\" \"\"\n")] {
            let file = folder.join(name);
            fs::write(&file, content)?;
            cluster.files.own(&file)?;
        }
        let mut pgbouncer = cluster.files.as_account(PROGRAM);
        pgbouncer.arg(folder.join(SETTINGS)).stdout(Stdio::null()).stderr(File::create(folder.join(LOG))?);
        let process = pgbouncer.spawn().context("PgBouncer is missing; run cargo xtask setup")?;
        let mut pooler = Self { cluster, port, process };
        let until = Instant::now() + PATIENCE;
        while UnixStream::connect(folder.join(format!(".s.PGSQL.{port}"))).is_err() {
            if pooler.process.try_wait()?.is_some() || Instant::now() > until {
                bail!("PgBouncer does not start: {}", fs::read_to_string(folder.join(LOG))?);
            }
            thread::sleep(POLL);
        }
        Ok(pooler)
    }

    /// The URL of a new database, by the pooler.
    ///
    /// # Errors
    ///
    /// The server does not make one.
    pub fn database(&self) -> Result<String> {
        Ok(self.before(&self.cluster.database()?))
    }

    /// The URL of a database by the pooler, from its URL by a Unix socket.
    pub fn before(&self, database: &str) -> String {
        database.replace(&format!(":{}/", self.cluster.port), &format!(":{}/", self.port))
    }
}

impl Drop for Pooler<'_> {
    fn drop(&mut self) {
        self.process.kill().ok();
        drop(self.process.wait());
    }
}
