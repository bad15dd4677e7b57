//! How far a deployment is.

use farrier_protocol::progress::{Phase, Progress};
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::{Duration, Instant};

/// Shared by the thread that works and those that watch.
#[derive(Debug, Clone, Default)]
pub struct ProgressHandle(Arc<Mutex<State>>);

#[derive(Debug, Default)]
struct State {
    phase: Phase,
    bytes: u64,
    total: Option<u64>,
    started: Option<Instant>,
    resting_until: Option<Instant>,
}

impl ProgressHandle {
    /// Begins a phase; counting starts again.
    pub fn enter(&self, phase: Phase, total: Option<u64>) {
        *self.state() = State { phase, bytes: 0, total, started: Some(Instant::now()), resting_until: None };
    }

    /// A server is asked again then; nothing once it is.
    pub(crate) fn rest_until(&self, end: Option<Instant>) {
        self.state().resting_until = end;
    }

    /// Bytes done in this phase.
    pub(crate) fn set_bytes(&self, bytes: u64) {
        self.state().bytes = bytes;
    }

    /// The state of this moment.
    pub fn snapshot(&self) -> Progress {
        let state = self.state();
        let elapsed = state.started.map(|started| started.elapsed()).unwrap_or_default();
        describe(&state, elapsed)
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
    }
}

fn describe(state: &State, elapsed: Duration) -> Progress {
    let seconds = elapsed.as_secs_f64();
    let rate = if seconds > 0.0 { state.bytes as f64 / seconds } else { 0.0 };
    let remaining = state.total.map(|total| total.saturating_sub(state.bytes));
    let eta_seconds =
        remaining.filter(|_| rate >= 1.0).map(|remaining| (remaining as f64 / rate).ceil() as u64);
    Progress {
        phase: state.phase,
        bytes: state.bytes,
        total_bytes: state.total,
        bytes_per_second: rate as u64,
        eta_seconds,
        retry_in_seconds: state
            .resting_until
            .map(|end| end.saturating_duration_since(Instant::now()).as_secs_f64().ceil() as u64),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rate_and_remaining_time() {
        let state =
            |bytes, total| State { phase: Phase::Writing, bytes, total, started: None, resting_until: None };
        for (state, seconds, rate, eta) in [
            (state(0, Some(100)), 0, 0, None),
            (state(0, Some(100)), 5, 0, None),
            (state(50, Some(100)), 5, 10, Some(5)),
            (state(100, Some(100)), 10, 10, Some(0)),
            (state(50, None), 5, 10, None),
        ] {
            let progress = describe(&state, Duration::from_secs(seconds));
            assert_eq!((progress.bytes_per_second, progress.eta_seconds), (rate, eta));
        }
    }

    #[test]
    fn a_new_phase_counts_anew() {
        let handle = ProgressHandle::default();
        assert_eq!(handle.snapshot(), Progress::default());
        handle.enter(Phase::Writing, Some(10));
        handle.set_bytes(7);
        handle.enter(Phase::Verifying, None);
        let progress = handle.snapshot();
        assert_eq!((progress.phase, progress.bytes, progress.total_bytes), (Phase::Verifying, 0, None));
    }
}
