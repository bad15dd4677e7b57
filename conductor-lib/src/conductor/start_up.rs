//! How a conductor begins and ends (section 12.3).

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

    /// Ends what must not outlive the conductor.
    pub async fn shut_down(&self) {
        for driver in self.services().drivers.values() {
            driver.shut_down().await;
        }
    }

    /// Has a worker for each node that needs one and has none.
    ///
    /// # Errors
    ///
    /// [`Error::Store`].
    pub(super) async fn attend(&self) -> Result<(), Error> {
        let unattended = self.store().unattended(self.now()).await?;
        for node in unattended.into_iter().chain(self.services().left()) {
            self.0.workers.attend(node);
        }
        Ok(())
    }
}
