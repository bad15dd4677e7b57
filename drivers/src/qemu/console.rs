//! The serial console of a machine: a log, and a socket for whoever types.

use super::description::{self, Description};
use super::{Folders, QemuError};
use async_trait::async_trait;
use farrier_conductor::interfaces::{ConsoleAccess, ConsoleInterface, Interface, InterfaceError, Properties};
use farrier_conductor::model::Node;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use tokio::io::AsyncWriteExt;
use tokio::net::UnixStream;

/// Tells where the consoles of local QEMU machines are.
#[derive(Debug)]
pub(super) struct QemuConsole {
    folders: Folders,
}

impl QemuConsole {
    pub(super) fn new(folders: Folders) -> Self {
        Self { folders }
    }
}

#[async_trait]
impl Interface for QemuConsole {
    fn get_properties(&self) -> Properties {
        description::CONSOLE
    }

    async fn validate(&self, node: &Node) -> Result<(), InterfaceError> {
        Description::read(node).map(drop)
    }
}

/// It is there for as long as the machine is on, whoever opens or closes it.
#[async_trait]
impl ConsoleInterface for QemuConsole {
    async fn start_console(&self, _node: &Node) -> Result<(), InterfaceError> {
        Ok(())
    }

    async fn stop_console(&self, _node: &Node) -> Result<(), InterfaceError> {
        Ok(())
    }

    async fn get_console(&self, node: &Node) -> Result<ConsoleAccess, InterfaceError> {
        Ok(ConsoleAccess { kind: "farrier".into(), url: format!("/farrier/v1/nodes/{}/console", node.uuid) })
    }

    async fn write_console(&self, node: &Node, typed: &[u8]) -> Result<(), InterfaceError> {
        let folder = self.folders.of(node);
        let socket = socket(&folder).unwrap_or(folder);
        let written = async { UnixStream::connect(&socket).await?.write_all(typed).await };
        let failed =
            |error: std::io::Error| QemuError::Control { socket: socket.clone(), reason: error.to_string() };
        Ok(written.await.map_err(failed)?)
    }

    fn log_file(&self, node: &Node) -> Option<PathBuf> {
        let description = Description::read(node).ok()?;
        Some(file(&description, &self.folders.of(node)))
    }
}

/// The file of the console of a machine.
pub(super) fn file(description: &Description, folder: &Path) -> PathBuf {
    description.console_log.clone().unwrap_or_else(|| folder.join("console.log"))
}

/// Where somebody can sit down at the console of a machine that is on; nothing where its folder has too long a name.
pub(super) fn socket(folder: &Path) -> Option<PathBuf> {
    super::socket(folder, "console.sock")
}

/// Puts the console of the last power-on aside, so that this one starts empty.
pub(super) fn fresh(console: &Path) -> Result<PathBuf, QemuError> {
    if let Some(folder) = console.parent() {
        std::fs::create_dir_all(folder).map_err(QemuError::file(folder))?;
    }
    let mut old = console.as_os_str().to_owned();
    old.push(".old");
    match std::fs::rename(console, &old) {
        Err(source) if source.kind() != ErrorKind::NotFound => {
            Err(QemuError::File { path: console.to_owned(), source })
        }
        _ => Ok(console.to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_console_is_fresh_and_the_old_one_kept() {
        let folder = tempfile::tempdir().unwrap();
        let console = folder.path().join("deep/console.log");
        assert_eq!(fresh(&console).unwrap(), console);
        std::fs::write(&console, "first").unwrap();
        fresh(&console).unwrap();
        assert!(!console.exists());
        assert_eq!(std::fs::read_to_string(folder.path().join("deep/console.log.old")).unwrap(), "first");
    }
}
