//! `farrier history`: what happened to a node.

use crate::client::NodeApi;
use crate::view::table::{none, table};
use crate::view::times_of_day::text;
use clap::Args;
use farrier_engine::records::HistoryEntry;

/// Options of `farrier history`.
#[derive(Debug, Args)]
#[group(id = "remembering")]
pub(crate) struct History {
    /// Name or UUID of the node.
    node: String,
    /// Show the detail, the conductor and the user of each event.
    #[arg(long)]
    long: bool,
    /// Print the history as JSON.
    #[arg(long)]
    json: bool,
}

impl History {
    pub(crate) async fn run(&self, api: &NodeApi) -> anyhow::Result<()> {
        let entries = api.history(&self.node).await?;
        match (self.json, self.long) {
            (true, _) => println!("{}", serde_json::to_string_pretty(&entries)?),
            (false, true) => print!("{}", long(&entries)),
            (false, false) => print!("{}", short(&entries)),
        }
        Ok(())
    }
}

fn short(entries: &[HistoryEntry]) -> String {
    let row = |entry: &HistoryEntry| {
        [entry.uuid.to_string(), text(entry.created_at), entry.severity.to_string(), entry.event.clone()]
    };
    table(["uuid", "created_at", "severity", "event"], entries.iter().map(row))
}

fn long(entries: &[HistoryEntry]) -> String {
    let row = |entry: &HistoryEntry| {
        [
            entry.uuid.to_string(),
            text(entry.created_at),
            entry.severity.to_string(),
            entry.event_type.to_string(),
            entry.event.clone(),
            entry.conductor.clone(),
            none(entry.user.as_deref()),
        ]
    };
    let columns = ["uuid", "created_at", "severity", "event_type", "event", "conductor", "user"];
    table(columns, entries.iter().map(row))
}
