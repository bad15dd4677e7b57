//! The right of one task of this process to have the lease of a node.

use crate::services::Services;
use crate::store::{Lease, StoreError};
use std::sync::Arc;
use uuid::Uuid;

/// The right of one task of this process to have the lease of a node, until this is dropped.
pub(super) struct Claim {
    pub(super) services: Arc<Services>,
    node: Uuid,
}

impl Claim {
    /// Claims a node of which this process has no lease.
    ///
    /// # Errors
    ///
    /// [`StoreError::Held`].
    pub(super) fn of(services: &Arc<Services>, node: Uuid) -> Result<Self, StoreError> {
        match services.own_leases.claim(node) {
            true => Ok(Self { services: Arc::clone(services), node }),
            false => Err(StoreError::Held { node, holder: services.settings.conductor_name.clone() }),
        }
    }

    /// Claims a node whose lease was left.
    pub(super) fn of_left(services: &Arc<Services>, node: Uuid) -> Option<(Self, Lease)> {
        let lease = services.own_leases.claim_left(node)?;
        Some((Self { services: Arc::clone(services), node }, lease))
    }
}

impl Drop for Claim {
    fn drop(&mut self) {
        self.services.own_leases.end(self.node);
    }
}
