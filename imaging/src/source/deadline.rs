//! Until when a download has to be done, all requests together (F01).

use crate::error::Error;
use std::time::{Duration, Instant};

/// A moment, and how long it was away when it was set.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Deadline {
    at: Instant,
    limit: Duration,
}

impl Deadline {
    /// So long from now.
    pub(super) fn after(limit: Duration) -> Self {
        Self { at: Instant::now() + limit, limit }
    }

    /// What is left until then; nothing once it is over.
    pub(super) fn left(self) -> Duration {
        self.at.saturating_duration_since(Instant::now())
    }

    /// The failure of the download of `url`, once it is over.
    pub(super) fn require(self, url: &str) -> Result<(), Error> {
        if self.left().is_zero() {
            return Err(Error::TooSlow { url: url.to_owned(), seconds: self.limit.as_secs() });
        }
        Ok(())
    }
}
