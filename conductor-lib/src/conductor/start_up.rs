//! How a conductor begins, and what it does for as long as it runs (sections 12.3 and 12.4).

use super::workers::Workers;
use super::{Conductor, Inner};
use crate::clock::Clock;
use crate::deploy::DeployInterface;
use crate::deploy::direct::Direct;
use crate::error::Error;
use crate::events::EventLog;
use crate::services::{Drivers, Services};
use crate::settings::Settings;
use crate::store::Store;
use std::sync::{Arc, Mutex};
use tokio::time::MissedTickBehavior;

impl Conductor {
    /// A conductor over these nodes. What an earlier one of its name left unfinished is gone on with: that one, should
    /// it still run, can write nothing any more.
    ///
    /// # Errors
    ///
    /// [`Error::Store`].
    pub async fn start(
        settings: Settings,
        store: Arc<dyn Store>,
        drivers: Drivers,
        clock: Arc<dyn Clock>,
    ) -> Result<Self, Error> {
        let events = EventLog::default();
        let left_leases = Mutex::default();
        let services = Arc::new(Services { settings, store, drivers, events, left_leases, clock });
        services.store.expire_all(&services.settings.conductor_name).await?;
        let deploy: Arc<dyn DeployInterface> = Arc::new(Direct);
        let workers = Workers::new(Arc::clone(&services), deploy);
        let conductor = Self(Arc::new(Inner { services, workers }));
        conductor.attend().await?;
        Ok(conductor)
    }

    /// Looks, for as long as it is polled, for nodes that nobody attends to: their conductor is no more, or an order
    /// came by way of another one.
    pub async fn run(&self) {
        let mut ticks = tokio::time::interval(self.settings().check_interval);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            ticks.tick().await;
            if let Err(error) = self.attend().await {
                tracing::error!("nodes that nobody attends to cannot be looked for: {error}");
            }
        }
    }

    /// Ends what must not outlive the conductor.
    pub async fn shut_down(&self) {
        for driver in self.services().drivers.values() {
            driver.shut_down().await;
        }
    }

    async fn attend(&self) -> Result<(), Error> {
        let unattended = self.store().unattended(self.now()).await?;
        for node in unattended.into_iter().chain(self.services().left()) {
            self.0.workers.attend(node);
        }
        Ok(())
    }
}
