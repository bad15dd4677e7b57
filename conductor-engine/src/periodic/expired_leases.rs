//! Ends leases that nobody renews, whatever the clock says: it may have been ahead when they were taken, and would keep
//! the nodes of a conductor that is no more for as long as it was.

use crate::error::Error;
use crate::services::Services;
use crate::store::{Held, StoreError, Terms};
use std::collections::HashMap;
use std::sync::Arc;
use time::OffsetDateTime;
use uuid::Uuid;

/// Looks at all leases of others once in the time that one lasts: a live conductor renews its own several times in
/// between.
pub(crate) struct ExpiredLeases {
    services: Arc<Services>,
    /// The leases as they were a pass ago: their epochs, and when they were to expire.
    seen: HashMap<Uuid, (i64, OffsetDateTime)>,
}

impl ExpiredLeases {
    pub(crate) fn new(services: Arc<Services>) -> Self {
        Self { services, seen: HashMap::new() }
    }

    /// Ends the leases that are as they were a pass ago.
    ///
    /// # Errors
    ///
    /// [`Error::Store`].
    pub(crate) async fn pass(&mut self) -> Result<(), Error> {
        let before = std::mem::take(&mut self.seen);
        for Held { node, holder, epoch, expires_at } in self.services.store.held().await? {
            if holder == self.services.settings.conductor_name {
                continue;
            }
            if before.get(&node) != Some(&(epoch, expires_at)) {
                self.seen.insert(node, (epoch, expires_at));
                continue;
            }
            let terms = Terms { now: expires_at, ..self.services.terms() };
            match self.services.store.take(node, &terms).await {
                Ok((lease, record)) => {
                    tracing::warn!(node = %record.node.label(), "conductor {holder} is silent; its lease ends");
                    self.services.store.release(&lease).await?;
                }
                Err(StoreError::Held { .. } | StoreError::Gone(_)) => {}
                Err(error) => return Err(error.into()),
            }
        }
        Ok(())
    }
}
