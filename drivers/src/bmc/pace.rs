//! How often a BMC is spoken to.
//!
//! BMCs are small computers: some answer one question at a time, and forget their work when they are asked too much.
//! A request to a BMC waits at its [`Gate`]. Behind the gate there is one at a time. A bucket holds the
//! questions that may be asked in a row; it is filled by one for each interval. A BMC that does not answer rests, twice as
//! long each time, and not to the second, so that many of them are not asked in the same moment again.

use rand::Rng;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::sync::{Semaphore, SemaphorePermit};
use tokio::time::{Instant, sleep_until};

/// How often a BMC may be asked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Pace {
    /// Mean time between two questions.
    pub interval: Duration,
    /// Questions that may follow each other without a pause when there were none before.
    pub burst: u32,
    /// How long a BMC rests when it has not answered.
    pub first_rest: Duration,
    /// The longest pause.
    pub longest_rest: Duration,
}

impl Default for Pace {
    /// Five questions in a second, and rests of one to thirty seconds.
    fn default() -> Self {
        Self {
            interval: Duration::from_millis(200),
            burst: 10,
            first_rest: Duration::from_secs(1),
            longest_rest: Duration::from_secs(30),
        }
    }
}

impl Pace {
    /// The rest after so many failures in a row, before chance has its say.
    fn rest(&self, failures: u32) -> Duration {
        let doubled = 2_u32.saturating_pow(failures.saturating_sub(1));
        self.first_rest.saturating_mul(doubled).min(self.longest_rest)
    }
}

/// What stands before one BMC.
#[derive(Debug)]
pub struct Gate {
    pace: Pace,
    behind: Semaphore,
    state: Mutex<State>,
}

#[derive(Debug)]
struct State {
    /// When the bucket will be full again.
    full_at: Instant,
    rests_until: Instant,
    failures: u32,
}

impl Gate {
    /// A gate without requests so far.
    pub fn new(pace: Pace) -> Self {
        let now = Instant::now();
        let state = State { full_at: now, rests_until: now, failures: 0 };
        Self { pace, behind: Semaphore::new(1), state: Mutex::new(state) }
    }

    /// Waits until no other request is behind the gate and the pause of the BMC is over. The caller sets the timeout.
    pub async fn pass(&self) -> Flight<'_> {
        // It is never closed, so that there always is a permit.
        let permit = self.behind.acquire().await.ok();
        let rests_until = self.state().rests_until;
        sleep_until(rests_until).await;
        Flight { gate: self, _permit: permit, is_open: false }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A request behind the gate of a BMC. One that ends between a question and what is said of its answer, since its caller
/// has no more time, counts as a question without an answer.
#[derive(Debug)]
pub struct Flight<'a> {
    gate: &'a Gate,
    _permit: Option<SemaphorePermit<'a>>,
    is_open: bool,
}

impl Flight<'_> {
    /// Waits until one more question may be asked, which is asked then.
    pub async fn ask(&mut self) {
        let Pace { interval, burst, .. } = self.gate.pace;
        let at = {
            let mut state = self.gate.state();
            let now = Instant::now();
            let full_at = state.full_at.max(now);
            state.full_at = full_at + interval;
            now.max(full_at - (interval * burst.saturating_sub(1)).min(full_at - now))
        };
        sleep_until(at).await;
        self.is_open = true;
    }

    /// The BMC has answered, whatever it said.
    pub fn answered(&mut self) {
        self.is_open = false;
        self.gate.state().failures = 0;
    }

    /// The BMC has not answered, or can do nothing now: it rests, for as long as it has asked for at least.
    pub fn failed(&mut self, asked_for: Option<Duration>) {
        self.is_open = false;
        let mut state = self.gate.state();
        state.failures = state.failures.saturating_add(1);
        let rest = self.gate.pace.rest(state.failures);
        let rest = rest.mul_f64(rand::rng().random_range(0.5..1.0));
        let asked_for = asked_for.unwrap_or_default().min(self.gate.pace.longest_rest);
        state.rests_until = Instant::now() + rest.max(asked_for);
    }
}

impl Drop for Flight<'_> {
    fn drop(&mut self) {
        if self.is_open {
            self.failed(None);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Arc;
    use std::sync::atomic::{AtomicUsize, Ordering};

    const PACE: Pace = Pace {
        interval: Duration::from_secs(1),
        burst: 3,
        first_rest: Duration::from_secs(2),
        longest_rest: Duration::from_secs(10),
    };

    #[tokio::test(start_paused = true)]
    async fn a_bucket_holds_a_burst_and_is_filled_by_and_by() {
        let (gate, start) = (Gate::new(PACE), Instant::now());
        let mut asked = Vec::new();
        for _ in 0..6 {
            let mut flight = gate.pass().await;
            flight.ask().await;
            flight.answered();
            asked.push(start.elapsed().as_secs());
        }
        assert_eq!(asked, [0, 0, 0, 1, 2, 3]);
        tokio::time::sleep(Duration::from_secs(60)).await;
        let start = Instant::now();
        for expected in [0, 0, 0, 1] {
            gate.pass().await.ask().await;
            gate.state().rests_until = Instant::now();
            assert_eq!(start.elapsed().as_secs(), expected);
        }
    }

    #[tokio::test(start_paused = true)]
    async fn there_is_one_behind_the_gate() {
        let (gate, behind, most) = (Arc::new(Gate::new(PACE)), Arc::default(), Arc::default());
        let asking: Vec<_> = (0..8)
            .map(|_| {
                let (gate, behind, most): (_, Arc<AtomicUsize>, Arc<AtomicUsize>) =
                    (Arc::clone(&gate), Arc::clone(&behind), Arc::clone(&most));
                tokio::spawn(async move {
                    let mut flight = gate.pass().await;
                    flight.ask().await;
                    most.fetch_max(behind.fetch_add(1, Ordering::SeqCst) + 1, Ordering::SeqCst);
                    tokio::time::sleep(Duration::from_millis(100)).await;
                    behind.fetch_sub(1, Ordering::SeqCst);
                    flight.answered();
                })
            })
            .collect();
        for one in asking {
            one.await.unwrap();
        }
        assert_eq!(most.load(Ordering::SeqCst), 1);
    }

    #[tokio::test(start_paused = true)]
    async fn a_bmc_that_does_not_answer_rests_ever_longer() {
        let gate = Gate::new(PACE);
        for (rest, is_given_up) in [(2.0, false), (4.0, true), (8.0, false), (10.0, true), (10.0, false)] {
            let mut flight = gate.pass().await;
            flight.ask().await;
            if !is_given_up {
                flight.failed(None);
            }
            drop(flight);
            let before = Instant::now();
            drop(gate.pass().await);
            let rested = before.elapsed().as_secs_f64();
            assert!((rest * 0.5 - 0.01..=rest + 0.01).contains(&rested), "{rested} of {rest}");
        }
        let mut flight = gate.pass().await;
        flight.answered();
        flight.failed(Some(Duration::from_secs(7)));
        drop(flight);
        let before = Instant::now();
        drop(gate.pass().await);
        assert_eq!(before.elapsed().as_secs(), 7, "it had asked for more than its turn");
    }
}
