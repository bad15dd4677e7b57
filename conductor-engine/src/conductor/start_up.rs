//! How a conductor begins and ends (section 12.3).

use crate::conductor::{Conductor, Inner};
use crate::error::Error;
use crate::lease::renew_while_used;
use crate::services::{ENDED, Services};
use crate::store::{Filter, NodeColumn, Selection};
use crate::workers::Workers;
use farrier_conductor::model::InterfaceKind;
use farrier_conductor::task::act::Call;
use std::sync::Arc;

impl Conductor {
    /// What an earlier conductor of this name left unfinished is gone on with: that one, should it still run, can write
    /// nothing any more.
    pub(crate) async fn begin(services: Services) -> Result<Self, Error> {
        let services = Arc::new(services);
        services.store.expire_all(&services.settings.conductor_name).await?;
        tokio::spawn(renew_while_used(Arc::downgrade(&services)));
        let workers = Workers::new(Arc::clone(&services));
        let conductor = Self(Arc::new(Inner { services, workers }));
        conductor.attend().await?;
        Ok(conductor)
    }

    /// Ends what must not outlive the conductor.
    pub async fn shut_down(&self) {
        for (_, power) in &self.services().hardware.interfaces.power.0 {
            power.shut_down().await;
        }
        for (_, console) in &self.services().hardware.interfaces.console.0 {
            console.shut_down().await;
        }
    }

    /// Opens the consoles again that were open when the last conductor ended. One that cannot be opened keeps nothing from the
    /// others.
    ///
    /// # Errors
    ///
    /// [`Error::Store`].
    pub(crate) async fn open_consoles(&self) -> Result<(), Error> {
        let column = NodeColumn::named("console_enabled").expect("it is a column");
        let with_console = Selection::all(vec![Filter::Flag(column, true)]);
        for node in self.store().identities(&with_console).await? {
            let record = match self.store().get(node).await {
                Ok(Some(record)) => record,
                Ok(None) => continue,
                Err(error) => {
                    tracing::error!(%node, "the console cannot be opened: {error}");
                    continue;
                }
            };
            let label = record.node.label();
            match self.services().hardware.console(&record.node) {
                Ok(console) => {
                    let call = Call::of(&record.node, InterfaceKind::Console, "start_console");
                    let limit = self.settings().interface_timeout;
                    if let Err(error) = call.answer(limit, console.start_console(&record.node)).await {
                        tracing::warn!(node = %label, "the console cannot be opened: {error}");
                    }
                }
                Err(error) => tracing::warn!(node = %label, "the console cannot be opened: {error}"),
            }
        }
        Ok(())
    }

    /// Has a worker for each node that needs one and has none.
    ///
    /// # Errors
    ///
    /// [`Error::Store`].
    pub(crate) async fn attend(&self) -> Result<(), Error> {
        let unattended = self.store().unattended(ENDED).await?;
        for node in unattended.into_iter().chain(self.services().own_leases.left()) {
            self.workers().attend(node);
        }
        Ok(())
    }
}
