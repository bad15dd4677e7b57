//! What an operator in front of the machine sees: a calm screen on VGA, a line now and then on serial
//! consoles, plain text on both.

mod milestones;
mod screen;

use crate::agent::Agent;
use farrier_hardware::inventory::nics;
use farrier_init::logging;
use farrier_linux::console::Screens;
use farrier_linux::netlink;
use farrier_protocol::progress::Progress;
use milestones::Milestones;
use screen::Painter;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tokio::time::{Instant, MissedTickBehavior, interval};

/// How often to look: what changes faster is not shown.
const TICK: Duration = Duration::from_secs(1);

/// What a machine does that waits for its conductor.
pub const READY: &str = "ready for commands";

/// What the agent is doing, in words, and what it waits for meanwhile.
#[derive(Debug, Default)]
pub struct Status(Mutex<(String, Option<String>)>);

impl Status {
    /// Says what is being done from now on.
    pub fn say(&self, doing: impl Into<String>) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).0 = doing.into();
    }

    /// Says what is waited for, or that the wait is over.
    pub fn wait_for(&self, awaited: Option<String>) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).1 = awaited;
    }

    fn doing(&self) -> String {
        let (doing, awaited) = self.0.lock().unwrap_or_else(PoisonError::into_inner).clone();
        awaited.unwrap_or(doing)
    }
}

/// One look at the agent.
#[derive(Debug, Clone, Default, PartialEq)]
struct View {
    node: String,
    addresses: String,
    doing: String,
    progress: Progress,
    trouble: String,
}

impl View {
    fn of(agent: &Agent) -> Self {
        let node = agent.node().map(|node| node.uuid.to_string());
        let nics = || nics::mac_addresses(&nics::network_interfaces().unwrap_or_default());
        let addresses = netlink::addresses().unwrap_or_default();
        let addresses: Vec<_> =
            addresses.iter().map(|one| format!("{} {}/{}", one.interface, one.address, one.prefix)).collect();
        Self {
            node: node.unwrap_or_else(|_| format!("not known yet; hardware addresses {}", nics().join(", "))),
            addresses: if addresses.is_empty() { "none yet".to_owned() } else { addresses.join(", ") },
            doing: agent.status.doing(),
            progress: agent.progress.snapshot(),
            trouble: logging::last_trouble(),
        }
    }
}

/// Keeps the consoles up to date, for ever. Only for a machine whose consoles are the agent's.
pub async fn show(agent: Arc<Agent>) {
    let mut screens = Screens::open(screen::ROWS);
    let mut painter = Painter::default();
    let mut milestones = Milestones::default();
    let started = Instant::now();
    let mut ticks = interval(TICK);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        ticks.tick().await;
        let view = View::of(&agent);
        if let Some(line) = milestones.line(&view.progress, started.elapsed()) {
            tracing::info!("{line}");
        }
        if !screens.is_empty() {
            for (row, text) in painter.changes(&view) {
                screens.write(row, &text);
            }
        }
    }
}
