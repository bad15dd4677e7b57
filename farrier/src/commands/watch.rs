//! `farrier watch`: all nodes, as they are now and as they change.

use crate::client::NodeApi;
use crate::client::record::NodeRecord;
use crate::failure;
use crate::view::table::{flag, none, table};
use crate::view::times_of_day::text;
use clap::Args;
use console::Term;
use farrier_conductor::model::clock::in_two_units;
use std::collections::HashMap;
use std::io::{IsTerminal, Write};
use std::time::Duration;
use time::OffsetDateTime;
use time::format_description::well_known::Rfc3339;

/// Options of `farrier watch`.
#[derive(Debug, Args)]
#[group(id = "watching")]
pub(crate) struct Watch {
    /// Print the table once, and exit.
    #[arg(long)]
    once: bool,
    /// Print one JSON object for each node, and for each change.
    #[arg(long)]
    json: bool,
    /// Refresh interval, in seconds.
    #[arg(long, value_name = "SECONDS", default_value_t = 1, value_parser = clap::value_parser!(u64).range(1..))]
    interval: u64,
}

impl Watch {
    pub(crate) async fn run(&self, api: &NodeApi) -> anyhow::Result<()> {
        let mut nodes = api.list().await?;
        let (mut lines, mut screen) = (Lines::default(), Screen::new());
        loop {
            let now = OffsetDateTime::now_utc();
            match (self.json, self.once || screen.is_terminal) {
                (true, _) => lines.print(&nodes, |node| serde_json::to_string(node).unwrap_or_default())?,
                (false, true) if self.once => print!("{}", shown(&nodes, now)),
                (false, true) => screen.draw(&shown(&nodes, now))?,
                (false, false) => lines.print(&nodes, |node| line(node, now))?,
            }
            if self.once {
                return Ok(());
            }
            tokio::time::sleep(Duration::from_secs(self.interval)).await;
            // A conductor that restarts is waited for.
            match api.list().await {
                Ok(now) => nodes = now,
                Err(error) => eprintln!("farrier: {}", failure::line(&error)),
            }
        }
    }
}

/// The columns of `baremetal node list`, and what a node is doing.
fn shown(nodes: &[NodeRecord], now: OffsetDateTime) -> String {
    let row = |node: &NodeRecord| {
        [
            node.label().to_owned(),
            node.provision_state.to_string(),
            since(node).map_or_else(|| none(None), |since| in_two_units(now - since)),
            none(node.power_state.map(|state| state.as_str())),
            flag(node.is("maintenance")),
            none(node.reservation.as_deref()),
            doing(node),
        ]
    };
    let columns =
        ["Name", "Provisioning State", "For", "Power State", "Maintenance", "Reservation", "Step or Error"];
    table(columns, nodes.iter().map(row))
}

fn since(node: &NodeRecord) -> Option<OffsetDateTime> {
    OffsetDateTime::parse(node.text("provision_updated_at")?, &Rfc3339).ok()
}

fn doing(node: &NodeRecord) -> String {
    node.step().or(node.last_error.as_deref()).unwrap_or_default().to_owned()
}

/// What a change of a node looks like in a log.
fn line(node: &NodeRecord, now: OffsetDateTime) -> String {
    let mut parts = vec![text(now), node.label().to_owned(), node.provision_state.to_string()];
    parts.extend(node.power_state.map(|state| state.to_string()));
    if node.is("maintenance") {
        parts.push(
            node.text("fault").map_or("maintenance".to_owned(), |fault| format!("maintenance ({fault})")),
        );
    }
    parts.push(doing(node));
    parts.retain(|part| !part.is_empty());
    parts.join("  ").chars().filter(|c| !c.is_control()).collect()
}

/// What was said of each node last, so that only what changes is said.
#[derive(Default)]
struct Lines(HashMap<String, String>);

impl Lines {
    fn print(&mut self, nodes: &[NodeRecord], say: impl Fn(&NodeRecord) -> String) -> anyhow::Result<()> {
        let mut out = std::io::stdout();
        for change in self.changes(nodes) {
            match change {
                Change::To(node) => writeln!(out, "{}", say(node))?,
                Change::Gone(name) => writeln!(out, "{}  {name}  gone", text(OffsetDateTime::now_utc()))?,
            }
        }
        Ok(out.flush()?)
    }

    /// Nodes that are not as they were, and those that are gone.
    fn changes<'a>(&mut self, nodes: &'a [NodeRecord]) -> Vec<Change<'a>> {
        let mut changes = Vec::new();
        let mut known = std::mem::take(&mut self.0);
        for node in nodes {
            // The time is no change.
            let state = line(node, OffsetDateTime::UNIX_EPOCH);
            if known.remove(&node.uuid).as_ref() != Some(&state) {
                changes.push(Change::To(node));
            }
            self.0.insert(node.uuid.clone(), state);
        }
        let gone = known.into_values().map(|state| state.split("  ").nth(1).unwrap_or_default().to_owned());
        changes.extend(gone.map(Change::Gone));
        changes
    }
}

enum Change<'a> {
    To(&'a NodeRecord),
    /// The name that it had.
    Gone(String),
}

/// A terminal whose picture is redrawn each time.
struct Screen {
    term: Term,
    is_terminal: bool,
}

impl Screen {
    fn new() -> Self {
        Self { term: Term::stdout(), is_terminal: std::io::stdout().is_terminal() }
    }

    /// As many lines, and as much of each, as there is room for.
    fn draw(&mut self, picture: &str) -> anyhow::Result<()> {
        let (height, width) = self.term.size();
        self.term.clear_screen()?;
        for line in picture.lines().take(usize::from(height.saturating_sub(1))) {
            let line: String = line.chars().take(usize::from(width)).collect();
            self.term.write_line(&line)?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};

    fn nodes(states: &[(&str, &str)]) -> Vec<NodeRecord> {
        let node = |(name, state): &(&str, &str)| {
            json!({
                "uuid": name, "name": name, "provision_state": state, "power_state": "power on", "last_error": null,
                "clean_step": {"step": "erase_devices"}, "provision_updated_at": "1970-01-01T00:00:00Z",
            })
        };
        serde_json::from_value(Value::Array(states.iter().map(node).collect())).unwrap()
    }

    #[test]
    fn only_what_changes_is_said() {
        let mut lines = Lines::default();
        let mut said = |states: &[(&str, &str)]| {
            let nodes = nodes(states);
            let said: Vec<_> = lines
                .changes(&nodes)
                .into_iter()
                .map(|change| match change {
                    Change::To(node) => format!("{} {}", node.label(), node.provision_state),
                    Change::Gone(name) => format!("{name} gone"),
                })
                .collect();
            said.join(", ")
        };
        assert_eq!(said(&[("a", "available"), ("b", "clean wait")]), "a available, b clean wait");
        assert_eq!(said(&[("a", "available"), ("b", "clean wait")]), "");
        assert_eq!(said(&[("a", "available"), ("b", "cleaning")]), "b cleaning");
        assert_eq!(said(&[("b", "cleaning")]), "a gone");
    }

    #[test]
    fn the_table_has_the_columns_of_baremetal_and_what_is_done() {
        let now = OffsetDateTime::UNIX_EPOCH + time::Duration::minutes(2);
        let expected = "\
Name  Provisioning State  For    Power State  Maintenance  Reservation  Step or Error
a     clean wait          2 min  power on     False        None         erase_devices
";
        assert_eq!(shown(&nodes(&[("a", "clean wait")]), now), expected);
    }
}
