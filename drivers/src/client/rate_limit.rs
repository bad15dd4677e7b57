//! How often a BMC is asked: a rate limit with back-off.
//!
//! BMCs are small computers: some answer one request at a time, and lose their work when they get too many. Each BMC has
//! a [`RateLimiter`], which lets one client through at a time. A token bucket allows a burst of requests; one token is
//! added in each interval. A BMC that does not answer gets no request for a while. This back-off doubles with each
//! failure, with jitter, so that many BMCs that failed together are not asked again in the same moment.

use rand::Rng;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::sync::{Semaphore, SemaphorePermit};
use tokio::time::{Instant, sleep_until};

/// The rate limit of a BMC.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RateLimit {
    /// Mean time between two requests.
    pub interval: Duration,
    /// Requests that may follow each other without a pause when there were none before.
    pub burst: u32,
    /// Back-off after the first request without an answer.
    pub first_backoff: Duration,
    /// The longest back-off.
    pub longest_backoff: Duration,
}

impl Default for RateLimit {
    /// Five requests in a second, and a back-off of one to thirty seconds.
    fn default() -> Self {
        Self {
            interval: Duration::from_millis(200),
            burst: 10,
            first_backoff: Duration::from_secs(1),
            longest_backoff: Duration::from_secs(30),
        }
    }
}

impl RateLimit {
    /// The back-off after so many failures in a row, before jitter.
    fn backoff(&self, failures: u32) -> Duration {
        let doubled = 2_u32.saturating_pow(failures.saturating_sub(1));
        self.first_backoff.saturating_mul(doubled).min(self.longest_backoff)
    }
}

/// Limits the requests to one BMC.
#[derive(Debug)]
pub struct RateLimiter {
    rate_limit: RateLimit,
    exclusive: Semaphore,
    state: Mutex<State>,
}

#[derive(Debug)]
struct State {
    /// When the bucket will be full again.
    full_at: Instant,
    backs_off_until: Instant,
    failures: u32,
}

impl RateLimiter {
    /// One that has let no request through yet.
    pub fn new(rate_limit: RateLimit) -> Self {
        let now = Instant::now();
        let state = State { full_at: now, backs_off_until: now, failures: 0 };
        Self { rate_limit, exclusive: Semaphore::new(1), state: Mutex::new(state) }
    }

    /// Waits until no other client has a permit and the back-off is over. The caller sets the timeout.
    pub async fn acquire(&self) -> Permit<'_> {
        // It is never closed, so that there always is a permit.
        let permit = self.exclusive.acquire().await.ok();
        let backs_off_until = self.state().backs_off_until;
        sleep_until(backs_off_until).await;
        Permit { rate_limiter: self, _permit: permit, is_open: false }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The permit of one client to send requests to a BMC. One that is dropped after a request whose result was not
/// reported, because its caller timed out, counts as a request without an answer.
#[derive(Debug)]
pub struct Permit<'a> {
    rate_limiter: &'a RateLimiter,
    _permit: Option<SemaphorePermit<'a>>,
    is_open: bool,
}

impl Permit<'_> {
    /// Waits until the rate limit allows one more request, which the caller sends then.
    pub async fn ask(&mut self) {
        let RateLimit { interval, burst, .. } = self.rate_limiter.rate_limit;
        let at = {
            let mut state = self.rate_limiter.state();
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
        self.rate_limiter.state().failures = 0;
    }

    /// The BMC has not answered, or can do nothing now: the back-off begins, and is no shorter than it has asked for.
    pub fn failed(&mut self, asked_for: Option<Duration>) {
        self.is_open = false;
        let mut state = self.rate_limiter.state();
        state.failures = state.failures.saturating_add(1);
        let backoff = self.rate_limiter.rate_limit.backoff(state.failures);
        let backoff = backoff.mul_f64(rand::rng().random_range(0.5..1.0));
        let asked_for = asked_for.unwrap_or_default().min(self.rate_limiter.rate_limit.longest_backoff);
        state.backs_off_until = Instant::now() + backoff.max(asked_for);
    }
}

impl Drop for Permit<'_> {
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

    const RATE_LIMIT: RateLimit = RateLimit {
        interval: Duration::from_secs(1),
        burst: 3,
        first_backoff: Duration::from_secs(2),
        longest_backoff: Duration::from_secs(10),
    };

    #[tokio::test(start_paused = true)]
    async fn a_bucket_holds_a_burst_and_is_filled_by_and_by() {
        let (rate_limiter, start) = (RateLimiter::new(RATE_LIMIT), Instant::now());
        let mut asked = Vec::new();
        for _ in 0..6 {
            let mut permit = rate_limiter.acquire().await;
            permit.ask().await;
            permit.answered();
            asked.push(start.elapsed().as_secs());
        }
        assert_eq!(asked, [0, 0, 0, 1, 2, 3]);
        tokio::time::sleep(Duration::from_secs(60)).await;
        let start = Instant::now();
        for expected in [0, 0, 0, 1] {
            rate_limiter.acquire().await.ask().await;
            rate_limiter.state().backs_off_until = Instant::now();
            assert_eq!(start.elapsed().as_secs(), expected);
        }
    }

    #[tokio::test(start_paused = true)]
    async fn one_request_is_sent_at_a_time() {
        let (rate_limiter, exclusive, most) =
            (Arc::new(RateLimiter::new(RATE_LIMIT)), Arc::default(), Arc::default());
        let asking: Vec<_> = (0..8)
            .map(|_| {
                let (rate_limiter, exclusive, most): (_, Arc<AtomicUsize>, Arc<AtomicUsize>) =
                    (Arc::clone(&rate_limiter), Arc::clone(&exclusive), Arc::clone(&most));
                tokio::spawn(async move {
                    let mut permit = rate_limiter.acquire().await;
                    permit.ask().await;
                    most.fetch_max(exclusive.fetch_add(1, Ordering::SeqCst) + 1, Ordering::SeqCst);
                    tokio::time::sleep(Duration::from_millis(100)).await;
                    exclusive.fetch_sub(1, Ordering::SeqCst);
                    permit.answered();
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
        let rate_limiter = RateLimiter::new(RATE_LIMIT);
        for (backoff, is_dropped) in [(2.0, false), (4.0, true), (8.0, false), (10.0, true), (10.0, false)] {
            let mut permit = rate_limiter.acquire().await;
            permit.ask().await;
            if !is_dropped {
                permit.failed(None);
            }
            drop(permit);
            let before = Instant::now();
            drop(rate_limiter.acquire().await);
            let waited = before.elapsed().as_secs_f64();
            assert!((backoff * 0.5 - 0.01..=backoff + 0.01).contains(&waited), "{waited} of {backoff}");
        }
        let mut permit = rate_limiter.acquire().await;
        permit.answered();
        permit.failed(Some(Duration::from_secs(7)));
        drop(permit);
        let before = Instant::now();
        drop(rate_limiter.acquire().await);
        assert_eq!(before.elapsed().as_secs(), 7, "it had asked for more than the back-off");
    }
}
