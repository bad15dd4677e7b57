//! Orders for a machine that runs, over the socket that its QEMU listens on. It outlives the conductor that started the
//! machine.

use super::{QemuError, qmp};
use std::path::{Path, PathBuf};
use std::time::Duration;
use tokio::io::BufReader;
use tokio::net::UnixStream;
use tokio::time::timeout;

/// How long QEMU may take to take an order.
const LIMIT: Duration = Duration::from_secs(10);

/// What a machine can be told.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Order {
    /// Its power button is pressed.
    PowerDown,
}

impl Order {
    fn command(self) -> &'static str {
        match self {
            Self::PowerDown => "system_powerdown",
        }
    }
}

/// The socket of a machine; nothing where its folder has too long a name for one.
pub(super) fn socket(folder: &Path) -> Option<PathBuf> {
    super::socket(folder, "control.sock")
}

/// Tells a machine something.
///
/// # Errors
///
/// [`QemuError::Control`].
pub(super) async fn tell(folder: &Path, order: Order) -> Result<(), QemuError> {
    let Some(socket) = socket(folder) else {
        return Err(QemuError::Control {
            socket: folder.join("control.sock"),
            reason: "its name is too long for a socket; choose a shorter --state-dir".to_owned(),
        });
    };
    let told = async {
        let mut stream = UnixStream::connect(&socket).await?;
        let (from, to) = stream.split();
        qmp::tell(BufReader::new(from), to, order.command()).await
    };
    let reason = match timeout(LIMIT, told).await {
        Ok(Ok(())) => return Ok(()),
        Ok(Err(error)) => error.to_string(),
        Err(_) => format!("no answer within {} s", LIMIT.as_secs()),
    };
    Err(QemuError::Control { socket, reason })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_folder_with_a_long_name_has_no_socket() {
        assert_eq!(socket(Path::new("/state/n1")), Some("/state/n1/control.sock".into()));
        assert_eq!(socket(&Path::new("/").join("x".repeat(100))), None);
    }

    #[tokio::test]
    async fn a_machine_that_does_not_listen_is_named() {
        let folder = tempfile::tempdir().unwrap();
        let error = tell(folder.path(), Order::PowerDown).await.unwrap_err().to_string();
        assert!(error.contains("control.sock"), "{error}");
    }
}
