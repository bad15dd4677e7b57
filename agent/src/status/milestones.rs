//! When a line about the progress is due: at each new phase, at each tenth, and after half a minute
//! without one.

use super::screen::sentence;
use farrier_protocol::progress::{Phase, Progress};
use std::time::Duration;

/// Longest silence while something is under way.
const SILENCE: Duration = Duration::from_secs(30);

/// What the last line said.
#[derive(Debug, Default)]
pub struct Milestones {
    phase: Phase,
    tenths: u64,
    at: Duration,
}

impl Milestones {
    /// The line that is due at a time since the start, if one is.
    pub fn line(&mut self, progress: &Progress, now: Duration) -> Option<String> {
        let tenths = progress.total_bytes.map_or(0, |total| progress.bytes * 10 / total.max(1));
        let is_new = progress.phase != self.phase;
        let is_under_way = matches!(progress.phase, Phase::Writing | Phase::Verifying);
        let is_due = is_under_way && (tenths > self.tenths || now >= self.at + SILENCE);
        if !is_new && !is_due {
            return None;
        }
        *self = Self { phase: progress.phase, tenths, at: now };
        (progress.phase != Phase::Idle).then(|| sentence(progress))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_deployment_is_a_handful_of_lines() {
        let mut milestones = Milestones::default();
        let mut lines = Vec::new();
        let mut tell = |phase, bytes, total_bytes, second| {
            let progress = Progress { phase, bytes, total_bytes, ..Progress::default() };
            lines.extend(milestones.line(&progress, Duration::from_secs(second)).map(|_| (phase, second)));
        };
        tell(Phase::Idle, 0, None, 0);
        for second in 1..=200 {
            // A tenth in twenty seconds.
            tell(Phase::Writing, second - 1, Some(200), second);
        }
        for second in 201..=300 {
            tell(Phase::Verifying, second, None, second);
        }
        tell(Phase::Done, 0, None, 301);
        tell(Phase::Done, 0, None, 302);
        tell(Phase::Idle, 0, None, 303);
        let writing: Vec<_> = (0..10).map(|tenth| (Phase::Writing, 1 + 20 * tenth)).collect();
        let verifying: Vec<_> = [201, 231, 261, 291].map(|second| (Phase::Verifying, second)).into();
        assert_eq!(lines, [writing, verifying, vec![(Phase::Done, 301)]].concat());
    }
}
