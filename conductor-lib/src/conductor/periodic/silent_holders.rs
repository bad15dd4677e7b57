//! Ends leases that nobody renews, whatever the clock says: it may have been ahead when they were taken, and would keep
//! the nodes of a conductor that is no more for as long as it was.

use crate::error::Error;
use crate::services::Services;
use crate::store::{StoreError, Terms};
use std::collections::HashMap;
use std::sync::Arc;
use time::OffsetDateTime;
use uuid::Uuid;

/// Looks at all leases of others once in the time that one lasts: whoever lives renews its own several times in between.
pub(super) struct SilentHolders {
    services: Arc<Services>,
    /// The leases as they were a round ago: their epochs, and when they were to expire.
    seen: HashMap<Uuid, (i64, OffsetDateTime)>,
}

impl SilentHolders {
    pub(super) fn new(services: Arc<Services>) -> Self {
        Self { services, seen: HashMap::new() }
    }

    /// Ends the leases that are as they were a round ago.
    ///
    /// # Errors
    ///
    /// [`Error::Store`].
    pub(super) async fn round(&mut self) -> Result<(), Error> {
        let before = std::mem::take(&mut self.seen);
        for record in self.services.store.list().await? {
            let uuid = record.node.uuid;
            let own = &self.services.settings.conductor_name;
            let holder = record.node.reservation.as_ref().filter(|holder| *holder != own);
            let (Some(holder), Some(until)) = (holder, record.lease_expires_at) else { continue };
            if before.get(&uuid) != Some(&(record.epoch, until)) {
                self.seen.insert(uuid, (record.epoch, until));
                continue;
            }
            let terms = Terms { now: until, ..self.services.terms() };
            match self.services.store.take(uuid, &terms).await {
                Ok((lease, _)) => {
                    tracing::warn!(node = %record.node.name, "conductor {holder} is silent; its lease ends");
                    self.services.store.release(&lease).await?;
                }
                Err(StoreError::Held { .. } | StoreError::Gone(_)) => {}
                Err(error) => return Err(error.into()),
            }
        }
        Ok(())
    }
}
