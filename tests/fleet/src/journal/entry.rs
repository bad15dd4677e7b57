//! A line of the journal.

use serde::{Deserialize, Serialize};
use std::fmt;
use std::net::SocketAddr;

/// Who or what was asked, or did something.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Side {
    /// The BMC was asked.
    Bmc,
    /// The agent was asked.
    Agent,
    /// The machine did something.
    Machine,
    /// A fault took effect.
    Fault,
    /// The driver of lives went on.
    Driver,
}

/// Who asked.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Who {
    /// The other end of the connection.
    pub peer: SocketAddr,
    /// The user that it named, or the number of its session, as the BMC knows it.
    pub user: Option<String>,
    /// What its program calls itself.
    pub program: Option<String>,
}

impl Who {
    /// The name of the conductor that asked, which is the comment in what its program calls itself.
    pub fn conductor(&self) -> Option<&str> {
        let (_, comment) = self.program.as_deref()?.split_once('(')?;
        comment.strip_suffix(')')
    }

    /// What is the same for all that one conductor asks: its address, without the port of a connection, and who it says it
    /// is.
    pub fn actor(&self) -> String {
        let said = [self.user.as_deref(), self.program.as_deref()];
        let said: Vec<_> = said.into_iter().flatten().collect();
        format!("{} {}", self.peer.ip(), said.join(" ")).trim_end().to_owned()
    }
}

/// A line of the journal.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Entry {
    /// Seconds since the fleet started.
    pub at: f64,
    /// Number of the machine.
    pub machine: u32,
    /// Number of the life that it is in.
    pub life: Option<u64>,
    /// Who or what this is about.
    pub side: Side,
    /// Who asked, where somebody did.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub by: Option<Who>,
    /// What was asked, or done.
    pub act: String,
    /// What came of it.
    pub outcome: String,
}

impl fmt::Display for Entry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { at, machine, side, act, outcome, .. } = self;
        write!(f, "{at:.3} s, machine {machine}: {side:?} {act}: {outcome}")?;
        match &self.by {
            Some(by) => write!(f, ", asked by {}", by.actor()),
            None => Ok(()),
        }
    }
}
