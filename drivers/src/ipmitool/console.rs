//! The console interface `ipmitool`: the serial console by the BMC (serial over LAN), kept in a log for as long as it is
//! open.

use super::bmcs::Bmcs;
use super::connection::{self, Connection};
use super::ring::{self, Ring};
use super::sol::Console;
use async_trait::async_trait;
use farrier_conductor::interfaces::{ConsoleAccess, ConsoleInterface, Interface, InterfaceError, Properties};
use farrier_conductor::model::Node;
use std::collections::HashMap;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};
use uuid::Uuid;

/// The folder below the state directory.
const FOLDER: &str = "consoles";

/// A console cannot be used.
#[derive(Debug, thiserror::Error)]
enum ConsoleError {
    #[error("{path} cannot be used for the log of the console: {source}; check that it may be written")]
    Log { path: PathBuf, source: io::Error },
    #[error("the console is not open; open it by `farrier console NODE --open`")]
    Closed,
    #[error("the console does not react to input; see the last lines of the console for the cause")]
    Stuck,
}

/// Opens consoles by ipmitool.
#[derive(Debug)]
pub struct IpmiConsole {
    bmcs: Bmcs,
    folder: PathBuf,
    open: Mutex<HashMap<Uuid, (Connection, Console)>>,
}

impl IpmiConsole {
    /// Opens those of the machines of these BMCs, and keeps their logs below `state_dir`.
    pub fn new(bmcs: Bmcs, state_dir: &Path) -> Self {
        Self { bmcs, folder: state_dir.join(FOLDER), open: Mutex::default() }
    }

    fn open(&self) -> MutexGuard<'_, HashMap<Uuid, (Connection, Console)>> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn log(&self, node: &Node) -> PathBuf {
        self.folder.join(format!("{}.log", node.uuid))
    }
}

#[async_trait]
impl Interface for IpmiConsole {
    fn get_properties(&self) -> Properties {
        connection::KEYS
    }

    async fn validate(&self, node: &Node) -> Result<(), InterfaceError> {
        Connection::read(node).map(drop)
    }
}

#[async_trait]
impl ConsoleInterface for IpmiConsole {
    async fn start_console(&self, node: &Node) -> Result<(), InterfaceError> {
        let bmc = self.bmcs.bmc(node)?;
        let is_same = |(connection, _): &(Connection, Console)| *connection == bmc.connection;
        if self.open().get(&node.uuid).is_some_and(is_same) {
            return Ok(());
        }
        // Another password, or another BMC.
        self.stop_console(node).await?;
        let (path, settings) = (self.log(node), self.bmcs.settings());
        let log = Ring::open(path.clone(), settings.console_log_bytes);
        let log = log.map_err(|source| InterfaceError::driver(ConsoleError::Log { path, source }))?;
        let connection = bmc.connection.clone();
        let console = Console::open(bmc, log, settings.console_reopening);
        self.open().insert(node.uuid, (connection, console));
        Ok(())
    }

    async fn stop_console(&self, node: &Node) -> Result<(), InterfaceError> {
        let open = self.open().remove(&node.uuid);
        if let Some((_, console)) = open {
            console.close().await;
        }
        Ok(())
    }

    async fn get_console(&self, node: &Node) -> Result<ConsoleAccess, InterfaceError> {
        Ok(ConsoleAccess { kind: "farrier".into(), url: format!("/farrier/v1/nodes/{}/console", node.uuid) })
    }

    async fn write_console(&self, node: &Node, typed: &[u8]) -> Result<(), InterfaceError> {
        let written = self.open().get(&node.uuid).map(|(_, console)| console.write(typed));
        match written {
            Some(true) => Ok(()),
            Some(false) => Err(InterfaceError::driver(ConsoleError::Stuck)),
            None => Err(InterfaceError::driver(ConsoleError::Closed)),
        }
    }

    fn log_file(&self, node: &Node) -> Option<PathBuf> {
        Some(self.log(node)).filter(|log| log.exists())
    }

    async fn forget(&self, node: &Node) -> Result<(), InterfaceError> {
        self.stop_console(node).await?;
        for path in [ring::old(&self.log(node)), self.log(node)] {
            match std::fs::remove_file(&path) {
                Err(source) if source.kind() != io::ErrorKind::NotFound => {
                    return Err(InterfaceError::driver(ConsoleError::Log { path, source }));
                }
                _ => {}
            }
        }
        Ok(())
    }

    async fn shut_down(&self) {
        let open: Vec<_> = self.open().drain().collect();
        let farewells = open.into_iter().map(|(_, (_, console))| tokio::spawn(console.close()));
        for farewell in farewells.collect::<Vec<_>>() {
            drop(farewell.await);
        }
    }
}
