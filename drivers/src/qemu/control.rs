//! QEMU's machine protocol: what starting a machine needs, and orders for one that runs, over the socket that its QEMU
//! listens on. That outlives the conductor that started the machine.

use super::QemuError;
use super::arguments::NETWORK_ID;
use serde_json::{Value, json};
use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;
use tokio::io::{AsyncBufRead, AsyncBufReadExt, AsyncWrite, AsyncWriteExt, BufReader};
use tokio::net::UnixStream;
use tokio::time::timeout;

/// How long QEMU may take to take an order.
const LIMIT: Duration = Duration::from_secs(10);

/// The commands for a machine.
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

/// Sends a command to a machine.
///
/// # Errors
///
/// [`QemuError::Control`].
pub(super) async fn send(folder: &Path, order: Order) -> Result<(), QemuError> {
    let Some(socket) = socket(folder) else {
        return Err(QemuError::Control {
            socket: folder.join("control.sock"),
            reason: "its name is too long for a socket; choose a shorter --state-dir".to_owned(),
        });
    };
    let sent = async {
        let mut stream = UnixStream::connect(&socket).await?;
        let (from, to) = stream.split();
        carry_out(BufReader::new(from), to, order.command()).await
    };
    let reason = match timeout(LIMIT, sent).await {
        Ok(Ok(())) => return Ok(()),
        Ok(Err(error)) => error.to_string(),
        Err(_) => format!("no answer within {} s", LIMIT.as_secs()),
    };
    Err(QemuError::Control { socket, reason })
}

/// Lets a stopped machine run, with its network link as asked. That QEMU answers is the proof
/// that it accepted its arguments.
///
/// # Errors
///
/// The end of the conversation, or QEMU's refusal.
pub(super) async fn let_go(
    mut from: impl AsyncBufRead + Unpin,
    mut to: impl AsyncWrite + Unpin,
    link_up: bool,
) -> io::Result<()> {
    ask(&mut from, &mut to, json!({"execute": "qmp_capabilities"})).await?;
    if !link_up {
        let arguments = json!({"name": NETWORK_ID, "up": false});
        ask(&mut from, &mut to, json!({"execute": "set_link", "arguments": arguments})).await?;
    }
    ask(&mut from, &mut to, json!({"execute": "cont"})).await
}

/// Has a machine that runs carry out a command without arguments.
///
/// # Errors
///
/// As [`let_go`].
async fn carry_out(
    mut from: impl AsyncBufRead + Unpin,
    mut to: impl AsyncWrite + Unpin,
    command: &str,
) -> io::Result<()> {
    ask(&mut from, &mut to, json!({"execute": "qmp_capabilities"})).await?;
    ask(&mut from, &mut to, json!({"execute": command})).await
}

/// Sends a command and skips everything (greeting, events) until its answer.
async fn ask(
    from: &mut (impl AsyncBufRead + Unpin),
    to: &mut (impl AsyncWrite + Unpin),
    command: Value,
) -> io::Result<()> {
    to.write_all(format!("{command}\n").as_bytes()).await?;
    to.flush().await?;
    let mut line = String::new();
    loop {
        line.clear();
        if from.read_line(&mut line).await? == 0 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        let answer: Value = serde_json::from_str(&line)?;
        if answer.get("return").is_some() {
            return Ok(());
        }
        if let Some(error) = answer.get("error") {
            return Err(io::Error::other(format!("QMP command {command} was refused: {error}")));
        }
    }
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
        let error = send(folder.path(), Order::PowerDown).await.unwrap_err().to_string();
        assert!(error.contains("control.sock"), "{error}");
    }

    async fn talk(answers: &str, link_up: bool) -> (io::Result<()>, String) {
        let mut sent = Vec::new();
        let result = let_go(answers.as_bytes(), &mut sent, link_up).await;
        (result, String::from_utf8(sent).unwrap())
    }

    #[tokio::test]
    async fn the_link_goes_down_before_the_machine_runs() {
        let answers =
            "{\"QMP\": {}}\n{\"return\": {}}\n{\"return\": {}}\n{\"event\": \"RESUME\"}\n{\"return\": {}}\n";
        let (result, sent) = talk(answers, false).await;
        result.unwrap();
        let order: Vec<_> =
            ["qmp_capabilities", "set_link", "cont"].map(|name| sent.find(name).unwrap()).into();
        assert!(order.is_sorted(), "{sent}");
        let (result, sent) = talk(answers, true).await;
        result.unwrap();
        assert!(!sent.contains("set_link"));
    }

    #[tokio::test]
    async fn an_order_is_sent_after_the_greeting() {
        let answers = "{\"QMP\": {}}\n{\"return\": {}}\n{\"event\": \"POWERDOWN\"}\n{\"return\": {}}\n";
        let mut sent = Vec::new();
        carry_out(answers.as_bytes(), &mut sent, "system_powerdown").await.unwrap();
        let sent = String::from_utf8(sent).unwrap();
        assert!(sent.find("qmp_capabilities").unwrap() < sent.find("system_powerdown").unwrap(), "{sent}");
    }

    #[tokio::test]
    async fn refusals_and_a_lost_partner_are_errors() {
        let (result, _) = talk("{\"QMP\": {}}\n{\"error\": {\"desc\": \"no such device\"}}\n", true).await;
        assert!(result.unwrap_err().to_string().contains("no such device"));
        let (result, _) = talk("{\"QMP\": {}}\n", true).await;
        assert_eq!(result.unwrap_err().kind(), io::ErrorKind::UnexpectedEof);
    }
}
