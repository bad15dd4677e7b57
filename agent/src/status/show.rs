//! Keeping the consoles up to date.

use super::milestones::Milestones;
use super::screen::{self, Painter};
use super::view::View;
use crate::agent::Agent;
use farrier_linux::console::Screens;
use std::sync::Arc;
use std::time::Duration;
use tokio::time::{Instant, MissedTickBehavior, interval};

/// How often to look: what changes faster is not shown.
const TICK: Duration = Duration::from_secs(1);

/// Keeps the consoles up to date, for ever. Only for a machine whose consoles are the agent's.
pub async fn forever(agent: Arc<Agent>) {
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
