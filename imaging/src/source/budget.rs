//! How often a file is asked for, and after which pauses: a budget of requests that progress fills again, and
//! servers that say when to come back (`Retry-After`).

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// Bytes a second, pauses included, that are progress: what comes more slowly never ends.
const PROGRESS: u64 = 64 << 10;
/// Longest time that servers may ask to be left alone, all pauses for a file together.
pub(super) const LONGEST_REST: Duration = Duration::from_secs(3600);

/// The budget of requests for one file.
#[derive(Debug)]
pub(super) struct Budget(Mutex<State>);

#[derive(Debug)]
struct State {
    /// Requests in all.
    requests: u32,
    /// Requests since the last progress.
    spent: u32,
    /// How much of the file has ever come in a row from its beginning.
    furthest: u64,
    /// When progress was looked for the last time.
    looked: Instant,
    /// What is left of the longest rest.
    rest: Duration,
}

impl Budget {
    /// A budget of which nothing is spent.
    pub(super) fn new() -> Self {
        let (looked, rest) = (Instant::now(), LONGEST_REST);
        Self(Mutex::new(State { requests: 0, spent: 0, furthest: 0, looked, rest }))
    }

    /// Counts a request.
    pub(super) fn spend(&self) {
        let mut state = self.state();
        state.requests += 1;
        state.spent += 1;
    }

    /// Requests so far.
    pub(super) fn requests(&self) -> u32 {
        self.state().requests
    }

    /// Whether there are further requests after the first one and so many others.
    pub(super) fn has(&self, retries: u32) -> bool {
        self.state().spent <= retries
    }

    /// A download broke off after so many bytes from the beginning of the file. More than ever before, and no
    /// slower than what is progress, fills the budget.
    pub(super) fn broke_off(&self, received: u64) {
        self.state().broke_off(received, Instant::now());
    }

    /// How long to rest before the next request: the pause that is configured, or the longer one that the server
    /// asks for, as far as servers may.
    pub(super) fn rest(&self, pause: Duration, asked: Option<Duration>) -> Duration {
        let mut state = self.state();
        let further = asked.unwrap_or_default().saturating_sub(pause).min(state.rest);
        state.rest -= further;
        pause + further
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    fn broke_off(&mut self, received: u64, now: Instant) {
        let seconds = now.duration_since(self.looked).as_secs_f64();
        let gained = received.saturating_sub(self.furthest);
        if gained > 0 && gained as f64 >= seconds * PROGRESS as f64 {
            // The request that brought it.
            self.spent = self.spent.min(1);
        }
        self.furthest += gained;
        self.looked = now;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const GIB: u64 = 1 << 30;

    fn state(started: Instant) -> State {
        State { requests: 0, spent: 0, furthest: 0, looked: started, rest: LONGEST_REST }
    }

    #[test]
    fn g12_progress_fills_the_budget_and_nothing_else_does() {
        let minute = Duration::from_secs(60);
        type Received = fn(u64) -> u64;
        let rows: [(&str, Received, bool); 6] = [
            ("20 GiB each time", |number| number * 20 * GIB, true),
            ("4 MiB each time", |number| number * (4 << 20), true),
            ("a byte each time", |number| number, false),
            ("64 KiB a minute", |number| number * (64 << 10), false),
            ("never further than once", |_| 20 * GIB, false),
            ("nothing", |_| 0, false),
        ];
        for (what, received, lasts) in rows {
            let mut now = Instant::now();
            let mut state = state(now);
            for number in 1..=20 {
                state.spent += 1;
                now += minute;
                state.broke_off(received(number), now);
            }
            assert_eq!(state.spent <= 9, lasts, "{what}");
        }
    }

    #[test]
    fn g12_a_file_that_begins_anew_each_time_gets_further_or_ends() {
        let mut now = Instant::now();
        let mut state = state(now);
        let mut requests = 0;
        while state.spent <= 2 {
            state.spent += 1;
            requests += 1;
            now += Duration::from_secs(60);
            // The second half of the attempts comes no further than the first.
            state.broke_off(requests.min(10) * GIB, now);
        }
        assert_eq!(requests, 12);
    }

    #[test]
    fn a18_the_longer_pause_is_taken_until_an_hour_is_used_up() {
        let (budget, second) = (Budget::new(), Duration::from_secs(1));
        for (asked, expected) in
            [(None, 10), (Some(3), 10), (Some(120), 120), (Some(3600), 3500), (Some(3600), 10), (None, 10)]
        {
            let rest = budget.rest(10 * second, asked.map(Duration::from_secs));
            assert_eq!(rest.as_secs(), expected, "{asked:?}");
        }
        assert_eq!(Budget::new().rest(second, Some(Duration::MAX)), second + LONGEST_REST);
    }
}
