//! Renews the leases of this process, all of them by one statement.

use crate::placement::own_leases::HeldLease;
use crate::services::Services;
use crate::store::{Lease, StoreError};
use std::collections::HashSet;
use std::sync::Weak;
use std::time::Duration;

/// Renews leases for as long as there is a conductor.
pub(crate) async fn renew_while_used(services: Weak<Services>) {
    while let Some(lease) = services.upgrade().map(|services| services.settings.lease) {
        tokio::time::sleep(pause(lease)).await;
        let Some(services) = services.upgrade() else { return };
        if let Err(error) = renew_all(&services).await {
            // They last for two more attempts.
            tracing::warn!("leases cannot be renewed: {error}");
        }
    }
}

async fn renew_all(services: &Services) -> Result<(), StoreError> {
    let held = services.own_leases.held();
    if held.is_empty() {
        return Ok(());
    }
    let leases: Vec<Lease> = held.iter().map(|held| held.lease.clone()).collect();
    let renewed = services.store.renew_all(&leases, services.terms().expires_at).await?;
    services.own_leases.count_renewed(renewed.len());
    let renewed: HashSet<_> = renewed.into_iter().collect();
    for held in held.iter().filter(|held| !renewed.contains(&held.lease.node)) {
        // Its task may have ended meanwhile. Else the store tells why it is lost.
        if !services.own_leases.holds(&held.lease) {
            continue;
        }
        if let Err(error) = renew(services, held).await {
            tracing::warn!("work on a node ends: {error}");
        }
    }
    Ok(())
}

/// Has the store confirm a lease, which lasts for a whole one from now on.
pub(super) async fn renew(services: &Services, held: &HeldLease) -> Result<(), StoreError> {
    let renewed = services.store.renew(&held.lease, services.terms().expires_at).await;
    services.own_leases.note(held, &renewed);
    renewed
}

/// Three attempts fit into a lease.
fn pause(lease: Duration) -> Duration {
    lease / 4
}
