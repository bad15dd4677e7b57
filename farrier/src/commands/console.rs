//! `farrier console`: what the serial console of a machine shows, and typing at it.

use crate::client::NodeApi;
use anyhow::Context;
use clap::Args;
use nix::sys::termios::{self, SetArg, Termios};
use std::io::{IsTerminal, Read, Write};
use std::time::Duration;
use tokio::sync::mpsc::{Receiver, channel};

/// How often it is looked whether the machine has said more.
const LOOK_INTERVAL: Duration = Duration::from_millis(300);

/// What ends it: Ctrl and ], as of telnet.
const END: u8 = 0x1d;

/// Options of `farrier console`.
#[derive(Debug, Args)]
#[group(id = "sitting")]
pub(crate) struct Console {
    /// Name or UUID of the node.
    node: String,
    /// Open the console first; the conductor logs it until it is closed.
    #[arg(long)]
    open: bool,
    /// Close the console, and exit.
    #[arg(long, conflicts_with = "open")]
    close: bool,
    /// Print the end of the log, and exit.
    #[arg(long, conflicts_with = "close")]
    no_follow: bool,
}

impl Console {
    pub(crate) async fn run(&self, api: &NodeApi) -> anyhow::Result<()> {
        if self.open || self.close {
            api.set_console(&self.node, self.open).await?;
        }
        if self.close {
            return Ok(());
        }
        let end = self.look(api, None).await?;
        if self.no_follow {
            return Ok(());
        }
        self.attend(api, end).await
    }

    /// Shows the log from an offset on, and returns the next offset.
    async fn look(&self, api: &NodeApi, from: Option<u64>) -> anyhow::Result<u64> {
        let part = api.console(&self.node, from).await?;
        // What a machine says goes to the terminal as it is, as it would at the machine.
        let mut out = std::io::stdout();
        out.write_all(part.text.as_bytes())?;
        out.flush()?;
        Ok(part.next)
    }

    async fn attend(&self, api: &NodeApi, mut place: u64) -> anyhow::Result<()> {
        let mut typing = keyboard()?;
        loop {
            tokio::select! {
                () = tokio::time::sleep(LOOK_INTERVAL) => place = self.look(api, Some(place)).await?,
                typed = typed(&mut typing) => match typed {
                    Some(typed) => api.type_at_console(&self.node, typed).await?,
                    None => return Ok(()),
                },
            }
        }
    }
}

/// A terminal that passes on each key, until this is dropped.
struct Keyboard {
    before: Termios,
    typed: Receiver<Vec<u8>>,
}

/// The keyboard, where there is one.
fn keyboard() -> anyhow::Result<Option<Keyboard>> {
    let stdin = std::io::stdin();
    if !stdin.is_terminal() {
        return Ok(None);
    }
    eprintln!("[farrier: Ctrl and ] end this]");
    let before = termios::tcgetattr(&stdin).context("the settings of the terminal cannot be read")?;
    let mut raw = before.clone();
    termios::cfmakeraw(&mut raw);
    termios::tcsetattr(&stdin, SetArg::TCSADRAIN, &raw).context("the terminal cannot be set to raw mode")?;
    let (pass_on, typed) = channel(64);
    // A thread of its own: reading from a terminal cannot be called off.
    std::thread::spawn(move || {
        let mut bytes = [0; 256];
        while let Ok(count @ 1..) = std::io::stdin().lock().read(&mut bytes) {
            let is_end = bytes[..count].contains(&END);
            if is_end || pass_on.blocking_send(bytes[..count].to_vec()).is_err() {
                return;
            }
        }
    });
    Ok(Some(Keyboard { before, typed }))
}

/// What is typed next; nothing at the end. Where there is no keyboard nothing ever is.
async fn typed(keyboard: &mut Option<Keyboard>) -> Option<Vec<u8>> {
    match keyboard {
        Some(keyboard) => keyboard.typed.recv().await,
        None => std::future::pending().await,
    }
}

impl Drop for Keyboard {
    fn drop(&mut self) {
        termios::tcsetattr(std::io::stdin(), SetArg::TCSADRAIN, &self.before).ok();
        eprintln!();
    }
}
