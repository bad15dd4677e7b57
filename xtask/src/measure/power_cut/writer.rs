//! Who writes the disk of a machine: its agent, or a conductor to whom the agent exports it.

use std::path::Path;
use std::time::Duration;

use anyhow::Result;
use clap::ValueEnum;
use farrier_tests::agent::commanded::CommandedAgent;
use farrier_tests::iscsi::initiator::LogicalUnit;
use farrier_tests::machine::free_port;
use farrier_tests::machine::monitor::Monitor;
use serde::{Deserialize, Serialize};
use serde_json::json;

use super::subject::{Kind, Subject};
use crate::measure::exported_disk::ExportedDisk;

const TARGET: &str = "iqn.2026-01.org.example:disk";

/// Who writes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ValueEnum)]
#[serde(rename_all = "snake_case")]
pub enum Writer {
    /// The agent, in the machine.
    Agent,
    /// The conductor, by iSCSI.
    Conductor,
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

/// The conductor's way to the disk of the machine with this monitor, by a port that is opened to it; `program` writes,
/// and is told what in a file in `folder`.
pub fn export(monitor: &mut Monitor, program: &Path, folder: &Path) -> Result<ExportedDisk> {
    let port = free_port()?;
    let line = format!("hostfwd_add net tcp:127.0.0.1:{port}-:{port}");
    monitor.execute("human-monitor-command", &json!({"command-line": line}))?;
    Ok(ExportedDisk {
        unit: LogicalUnit::new(port, TARGET),
        writer: program.to_owned(),
        order: folder.join("order.json"),
    })
}

/// Has the agent export its disk, and writes it.
pub fn deploy(disk: &ExportedDisk, agent: &CommandedAgent, subject: &Subject, limit: Duration) -> Result<()> {
    let parameters = json!({"iqn": TARGET, "portal_port": disk.unit.port,
        "wipe_disk_metadata": subject.kind != Kind::PreserveEphemeral});
    let mut order = subject.arguments();
    order["disk"] = ExportedDisk::of(agent)?;
    disk.write(agent, parameters, order, limit)
}
