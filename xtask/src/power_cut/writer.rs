//! Who writes the disk of a machine: its agent, or a conductor to whom the agent exports it.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::Result;
use clap::ValueEnum;
use farrier_tests::commanded_agent::CommandedAgent;
use farrier_tests::machine::free_port;
use farrier_tests::monitor::Monitor;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::subject::{Kind, Subject};
use crate::command::{command, run_quietly};

const TARGET: &str = "iqn.2026-01.org.example:disk";
const INITIATOR: &str = "iqn.2026-01.org.example:conductor";
const USER: &str = "conductor";
const SECRET: &str = "correct-horse-battery";

/// Who writes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ValueEnum)]
#[serde(rename_all = "snake_case")]
pub enum Writer {
    /// The agent, in the machine.
    Agent,
    /// The conductor, by iSCSI.
    Conductor,
}

/// The conductor's way to the disk.
pub struct Export {
    program: PathBuf,
    port: u16,
    order: PathBuf,
}

impl Writer {
    /// Both.
    pub const ALL: [Self; 2] = [Self::Agent, Self::Conductor];

    /// In the words of the page.
    pub fn name(self) -> &'static str {
        match self {
            Self::Agent => "agent",
            Self::Conductor => "conductor, by iSCSI",
        }
    }
}

impl Export {
    /// Opens a port to the machine with this monitor; `program` writes, and is told what in a file in `folder`.
    pub fn new(monitor: &mut Monitor, program: &Path, folder: &Path) -> Result<Self> {
        let port = free_port()?;
        let line = format!("hostfwd_add net tcp:127.0.0.1:{port}-:{port}");
        monitor.execute("human-monitor-command", &json!({"command-line": line}))?;
        Ok(Self { program: program.to_owned(), port, order: folder.join("order.json") })
    }

    /// Has the agent export the disk, writes it, and has the export ended whatever came of it.
    pub fn deploy(&self, agent: &CommandedAgent, subject: &Subject, limit: Duration) -> Result<()> {
        let wipes = subject.kind != Kind::PreserveEphemeral;
        agent.succeed("iscsi.start_iscsi_target", &self.parameters(wipes), limit)?;
        let mut order = subject.arguments();
        order["export"] = json!({"portal": {"host": "127.0.0.1", "port": self.port}, "target": TARGET,
            "initiator": INITIATOR, "chap_user": USER, "chap_password": SECRET});
        // There is one alone.
        let hardware = agent.order("poll.get_hardware_info", &json!({}))?;
        order["disk"] = hardware["command_result"]["disks"][0].clone();
        fs::write(&self.order, order.to_string())?;
        let written = run_quietly(command(&self.program).arg(&self.order));
        let ended = agent.succeed("iscsi.stop_iscsi_target", &json!({}), limit);
        written?;
        ended.map(drop)
    }

    fn parameters(&self, wipes: bool) -> Value {
        json!({"iqn": TARGET, "portal_port": self.port, "wipe_disk_metadata": wipes, "chap_user": USER,
            "chap_password": SECRET, "initiators": [INITIATOR]})
    }
}
