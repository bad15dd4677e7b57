//! Ends leases that nobody renews, whatever the clocks of their hosts say: a lease has expired when this conductor saw it
//! unchanged for as long as a lease lasts, by a clock that does not jump.

use crate::error::Error;
use crate::services::{ENDED, Services};
use crate::store::Held;
use std::collections::HashMap;
use std::sync::Arc;
use std::time::Instant;
use time::OffsetDateTime;
use uuid::Uuid;

/// Looks at all leases but those of this process several times in the time that one lasts.
pub(crate) struct ExpiredLeases {
    services: Arc<Services>,
    /// The leases with their epochs, when they were to expire, and since when they are like this.
    seen: HashMap<Uuid, (i64, OffsetDateTime, Instant)>,
}

impl ExpiredLeases {
    pub(crate) fn new(services: Arc<Services>) -> Self {
        Self { services, seen: HashMap::new() }
    }

    /// Ends the leases that did not change for as long as a lease lasts.
    ///
    /// # Errors
    ///
    /// [`Error::Store`].
    pub(crate) async fn pass(&mut self) -> Result<(), Error> {
        let before = std::mem::take(&mut self.seen);
        for held in self.services.store.held().await? {
            let Held { node, epoch, expires_at, .. } = held;
            // One that a conductor ended when it started is free already.
            if self.services.own_leases.knows(node) || expires_at <= ENDED {
                continue;
            }
            let since = match before.get(&node) {
                Some((known, expiry, since)) if (*known, *expiry) == (epoch, expires_at) => *since,
                _ => Instant::now(),
            };
            if since.elapsed() < self.services.settings.lease {
                self.seen.insert(node, (epoch, expires_at, since));
            } else if self.services.store.expire(&held).await? {
                tracing::warn!(%node, "conductor {} is silent; its lease ends", held.holder);
            }
        }
        Ok(())
    }
}
