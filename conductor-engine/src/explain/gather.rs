//! Gathers what can be had of a machine that stays silent, within a time: each source is asked beside the others, and one that fails or is slow takes
//! nothing from them.

use crate::evidence::boot_trace::BootTrace;
use crate::evidence::diagnosis::{Diagnosis, LONGEST, MOST_ENTRIES, MOST_LINES, cause};
use crate::explain::screenshot;
use crate::services::Services;
use farrier_conductor::interfaces::InterfaceError;
use farrier_conductor::model::{Family, InterfaceKind, LogEntry, Node, masked_text};
use farrier_conductor::task::act::Call;
use farrier_conductor::untrusted::log::last_lines;
use std::time::Duration;
use time::OffsetDateTime;

/// How long before a node waits its machine may have been powered on, on its way.
const ON_THE_WAY: Duration = Duration::from_secs(120);

/// What can be had within `limit` of the machine of a node that waits for its agent.
pub(crate) async fn gather(services: &Services, node: &Node, limit: Duration) -> Diagnosis {
    let mut missing = Vec::new();
    let log = match event_log(services, node, limit).await {
        Ok(log) => log,
        Err(InterfaceError::Unsupported { .. }) => Vec::new(),
        Err(error) => {
            missing.push(told(&format!("event log: {error}")));
            Vec::new()
        }
    };
    let console = console_lines(services, node);
    // Without the trace there is one source less.
    let trace = services.boot_trace(node.uuid).await.ok().flatten();
    let host_name = trace.as_ref().and_then(BootTrace::host_name);
    let cause = cause(&log, &console, host_name, &services.callback_url(node));
    Diagnosis { at: services.now(), cause, log, console, screenshot: None, missing }
}

/// As [`gather`], with what is on the screen of the machine, which is kept.
pub(crate) async fn gather_all(services: &Services, node: &Node) -> Diagnosis {
    let words = gather(services, node, services.settings.diagnosis_timeout);
    let (mut words, screenshot) = tokio::join!(words, screenshot::keep(services, node));
    match screenshot {
        Ok(name) => words.screenshot = name,
        Err(reason) => words.missing.push(told(&format!("screen: {reason}"))),
    }
    words
}

/// The latest entries of the log of a machine's controller, since the operation began.
async fn event_log(
    services: &Services,
    node: &Node,
    limit: Duration,
) -> Result<Vec<LogEntry>, InterfaceError> {
    let Ok(management) = services.hardware.management(node) else { return Ok(Vec::new()) };
    let call = Call::of(node, InterfaceKind::Management, "get_event_log");
    let log = call.answer(limit, management.get_event_log(node, begun(node) - ON_THE_WAY)).await?;
    let surplus = log.len().saturating_sub(MOST_ENTRIES);
    let entry = |entry: LogEntry| LogEntry { said: told(&entry.said), ..entry };
    Ok(log.into_iter().skip(surplus).map(entry).collect())
}

fn begun(node: &Node) -> OffsetDateTime {
    let of_inspection =
        node.inspection_started_at.filter(|_| node.provision_state.family() == Some(Family::Inspect));
    of_inspection.unwrap_or(node.provision_updated_at)
}

/// The end of a machine's console, where it is written to a file.
fn console_lines(services: &Services, node: &Node) -> Vec<String> {
    let file = services.hardware.console(node).ok().and_then(|console| console.log_file(node));
    let lines = file.map(|file| last_lines(&file, MOST_LINES)).unwrap_or_default();
    lines.iter().map(|line| told(line)).collect()
}

/// A text of somebody else, in one line with an end, and without the secrets that kernel parameters hold.
fn told(text: &str) -> String {
    let plain: String = text.chars().map(|one| if one.is_control() { ' ' } else { one }).collect();
    masked_text(&plain).chars().take(LONGEST).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn s48_a_kernel_line_on_a_console_is_kept_without_its_secrets() {
        let line =
            "[    0.0] Command line: initrd=i ipa-agent-token=oats ipa-api-url=http://c rootpwd=x\u{7}";
        let expected =
            "[    0.0] Command line: initrd=i ipa-agent-token=****** ipa-api-url=http://c rootpwd=****** ";
        assert_eq!(told(line), expected);
        assert_eq!(told(&"x".repeat(1000)).len(), LONGEST);
    }
}
