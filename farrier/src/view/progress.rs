//! How a deployment is shown: a progress bar on terminals, else a log, or JSON lines.

use crate::client::record::NodeRecord;
use farrier_conductor::EventKind;
use farrier_engine::evidence::events::Event;
use farrier_protocol::progress::{Phase, Progress};
use indicatif::{HumanBytes, HumanDuration, ProgressBar, ProgressStyle};
use serde_json::json;
use std::io::{IsTerminal, Write};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// Seconds between two progress lines of a log.
const LOG_INTERVAL: f64 = 5.0;

/// Shows the events of one deployment.
pub(crate) struct Report {
    view: View,
    started: Option<f64>,
}

enum View {
    Json,
    Bar(ProgressBar),
    Log { phase: Phase, at: f64 },
}

impl Report {
    pub(crate) fn new(json: bool) -> Self {
        let view = match json {
            true => View::Json,
            false if std::io::stderr().is_terminal() => View::Bar(bar()),
            false => View::Log { phase: Phase::Idle, at: 0.0 },
        };
        Self { view, started: None }
    }

    /// Shows which node was taken for the deployment.
    pub(crate) fn taken(&mut self, node: &NodeRecord) -> anyhow::Result<()> {
        match self.view {
            View::Json => {
                let at = SystemTime::now().duration_since(UNIX_EPOCH)?.as_secs_f64();
                println!(
                    "{}",
                    json!({"event": "node_taken", "at": at, "node": node.uuid, "name": node.name})
                );
            }
            View::Bar(_) | View::Log { .. } => println!("node {} ({})", node.label(), node.uuid),
        }
        Ok(std::io::stdout().flush()?)
    }

    /// Shows one event.
    pub(crate) fn print(&mut self, event: &Event) -> anyhow::Result<()> {
        let since_start = event.at - *self.started.get_or_insert(event.at);
        let stamp = format!("[{since_start:6.1} s]");
        let mut out = std::io::stdout();
        match (&mut self.view, &event.kind) {
            (View::Json, _) => writeln!(out, "{}", serde_json::to_string(event)?)?,
            (View::Bar(bar), EventKind::Progress(progress)) => draw(bar, progress),
            // The command itself ends with the error's line, on the same terminal.
            (View::Bar(bar), EventKind::Failed { .. }) => bar.finish_and_clear(),
            (View::Bar(bar), kind) => {
                bar.println(format!("{stamp} {}", sentence(kind)));
                if matches!(kind, EventKind::Active) {
                    bar.finish_and_clear();
                }
            }
            (View::Log { phase, at }, EventKind::Progress(progress)) => {
                if progress.phase != *phase || event.at - *at >= LOG_INTERVAL {
                    (*phase, *at) = (progress.phase, event.at);
                    writeln!(out, "{stamp} {}", progress_line(progress))?;
                }
            }
            (View::Log { .. }, kind) => writeln!(out, "{stamp} {}", sentence(kind))?,
        }
        Ok(out.flush()?)
    }
}

fn bar() -> ProgressBar {
    let style = ProgressStyle::with_template("{prefix:>9} {wide_bar} {percent:>3} % {msg}");
    ProgressBar::new(0).with_style(style.expect("the template is well-formed"))
}

fn draw(bar: &ProgressBar, progress: &Progress) {
    bar.set_length(progress.total_bytes.unwrap_or(progress.bytes));
    bar.set_position(progress.bytes);
    bar.set_prefix(phase_name(progress.phase));
    bar.set_message(amounts(progress));
}

fn progress_line(progress: &Progress) -> String {
    format!("{} {}", phase_name(progress.phase), amounts(progress))
}

/// Bytes done, bytes expected, rate and time left, as far as they are known.
fn amounts(progress: &Progress) -> String {
    let mut text = HumanBytes(progress.bytes).to_string();
    if let Some(total) = progress.total_bytes {
        text += &format!(" of {}", HumanBytes(total));
    }
    if progress.bytes_per_second > 0 {
        text += &format!(", {}/s", HumanBytes(progress.bytes_per_second));
    }
    if let Some(seconds) = progress.eta_seconds {
        text += &format!(", {} left", HumanDuration(Duration::from_secs(seconds)));
    }
    text
}

fn phase_name(phase: Phase) -> &'static str {
    match phase {
        Phase::Idle => "waiting",
        Phase::Writing => "writing",
        Phase::Verifying => "verifying",
        Phase::Finishing => "finishing",
        Phase::Done => "done",
        Phase::Failed => "failed",
    }
}

fn sentence(kind: &EventKind) -> String {
    match kind {
        EventKind::PowerOn => "machine powered on with the ramdisk".to_owned(),
        EventKind::FirstHeartbeat => "first heartbeat of the agent".to_owned(),
        EventKind::WriteStarted => "writing the image".to_owned(),
        EventKind::Progress(progress) => progress_line(progress),
        EventKind::ImageWritten => "image written".to_owned(),
        EventKind::ImageVerified { .. } => "image verified".to_owned(),
        EventKind::BootEntry => "boot entry written".to_owned(),
        EventKind::PoweredOff => "machine powered off".to_owned(),
        EventKind::Booting => "machine powered on from its disk".to_owned(),
        EventKind::Retried { at: Some(step) } => format!("resuming at step {step}"),
        EventKind::Retried { at: None } => "starting again, because the agent is gone".to_owned(),
        EventKind::Active => "node active".to_owned(),
        EventKind::Failed { error } => format!("deployment failed: {error}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_progress_line_shows_what_is_known() {
        let mut progress = Progress { phase: Phase::Writing, bytes: 3 << 20, ..Progress::default() };
        assert_eq!(progress_line(&progress), "writing 3.00 MiB");
        progress.total_bytes = Some(6 << 20);
        progress.bytes_per_second = 1 << 20;
        progress.eta_seconds = Some(3);
        assert_eq!(progress_line(&progress), "writing 3.00 MiB of 6.00 MiB, 1.00 MiB/s, 3 seconds left");
    }

    #[test]
    fn the_bar_takes_every_phase() {
        let bar = bar();
        for phase in [Phase::Writing, Phase::Verifying, Phase::Finishing] {
            draw(&bar, &Progress { phase, bytes: 1, total_bytes: Some(2), ..Progress::default() });
        }
        assert_eq!(bar.position(), 1);
    }
}
