//! A disk that an agent exports by iSCSI, written by a program of ours.

use std::fs;
use std::path::PathBuf;
use std::time::Duration;

use anyhow::Result;
use farrier_tests::agent::commanded::CommandedAgent;
use farrier_tests::iscsi::initiator::LogicalUnit;
use serde_json::{Value, json};

use crate::host::command::{command, run_quietly};

const USER: &str = "conductor";
const SECRET: &str = "correct-horse-battery";

/// The disk, and who writes it.
pub struct ExportedDisk {
    /// It, once it is exported.
    pub unit: LogicalUnit,
    /// The example `write_exported_disk` of the library.
    pub writer: PathBuf,
    /// A file, in which the writer is told what to write.
    pub order: PathBuf,
}

impl ExportedDisk {
    /// The only disk of the machine, as its agent lists it.
    pub fn of(agent: &CommandedAgent) -> Result<Value> {
        let hardware = agent.order("poll.get_hardware_info", &json!({}))?;
        Ok(hardware["command_result"]["disks"][0].clone())
    }

    /// Has the agent export the disk with these parameters, to this initiator alone; has it written by the order; and
    /// has the export ended, whatever came of it.
    pub fn write(
        &self,
        agent: &CommandedAgent,
        mut parameters: Value,
        mut order: Value,
        limit: Duration,
    ) -> Result<()> {
        let LogicalUnit { port, target, initiator, .. } = &self.unit;
        parameters["initiators"] = json!([initiator]);
        parameters["chap_user"] = json!(USER);
        parameters["chap_password"] = json!(SECRET);
        order["export"] = json!({"portal": {"host": "127.0.0.1", "port": port}, "target": target,
            "initiator": initiator, "chap_user": USER, "chap_password": SECRET});
        fs::write(&self.order, order.to_string())?;
        agent.succeed("iscsi.start_iscsi_target", &parameters, limit)?;
        let written = run_quietly(command(&self.writer).arg(&self.order));
        let ended = agent.succeed("iscsi.stop_iscsi_target", &json!({}), limit);
        written?;
        ended.map(drop)
    }
}
