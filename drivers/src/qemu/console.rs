//! The serial console of a machine: a log, and a socket for input.

use super::description::{self, Description};
use super::{Folders, QemuError, QemuSettings};
use async_trait::async_trait;
use farrier_conductor::interfaces::{ConsoleAccess, ConsoleInterface, Interface, InterfaceError, Properties};
use farrier_conductor::model::Node;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use tokio::io::AsyncWriteExt;
use tokio::net::UnixStream;

/// Finds the consoles of local QEMU machines.
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
        Description::read(node, self.folders.settings()).map(drop)
    }
}

/// It exists as long as the machine is on, open or closed.
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
        let settings = self.folders.settings();
        match Description::read(node, settings).ok()?.console_log {
            // Whatever has its name now.
            Some(named) => settings.allowed.take(&named).ok(),
            None => Some(own_file(&self.folders.of(node))),
        }
    }
}

/// The console file of a machine that is about to start.
pub(super) fn file(
    description: &Description,
    settings: &QemuSettings,
    folder: &Path,
) -> Result<PathBuf, InterfaceError> {
    let Some(named) = &description.console_log else { return Ok(own_file(folder)) };
    settings.allowed.place(named).map_err(|reason| InterfaceError::driver_info("qemu_console_log", reason))
}

fn own_file(folder: &Path) -> PathBuf {
    folder.join("console.log")
}

/// The console socket of a machine that is on; nothing if its folder has too long a name.
pub(super) fn socket(folder: &Path) -> Option<PathBuf> {
    super::socket(folder, "console.sock")
}

/// Puts the console of the last power-on aside, so that this one starts empty.
pub(super) fn fresh(console: &Path) -> Result<PathBuf, QemuError> {
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
        let console = folder.path().join("console.log");
        assert_eq!(fresh(&console).unwrap(), console);
        std::fs::write(&console, "first").unwrap();
        fresh(&console).unwrap();
        assert!(!console.exists());
        assert_eq!(std::fs::read_to_string(folder.path().join("console.log.old")).unwrap(), "first");
    }
}
