//! What a conductor is made of.

use super::Conductor;
use crate::error::Error;
use crate::limits::Limits;
use crate::placement::Placement;
use crate::services::{POWER_SLOTS, Services};
use crate::store::Store;
use farrier_conductor::model::clock::{Clock, SystemClock};
use farrier_conductor::model::{NewNode, Node};
use farrier_conductor::{Drivers, Settings};
use std::sync::Arc;
use tokio::sync::Semaphore;

/// A conductor that is about to start.
pub struct Builder {
    settings: Settings,
    store: Arc<dyn Store>,
    drivers: Drivers,
    clock: Arc<dyn Clock>,
}

impl Conductor {
    /// A conductor over the nodes of a store, whose machines these drivers control.
    pub fn builder(settings: Settings, store: Arc<dyn Store>, drivers: Drivers) -> Builder {
        Builder { settings, store, drivers, clock: Arc::new(SystemClock) }
    }
}

impl Builder {
    /// Uses another clock than the system's.
    #[must_use]
    pub fn clock(mut self, clock: impl Clock + 'static) -> Self {
        self.clock = Arc::new(clock);
        self
    }

    /// Starts the conductor. It resumes the operations of an earlier one of its name.
    ///
    /// # Errors
    ///
    /// [`Hardware`](Error::Task) with everything that cannot work together, [`Unresolved`](Error::Task) when nodes
    /// cannot be discovered with the hardware type that is set, [`Error::NameTaken`] while another process runs under
    /// its name, [`Error::Store`].
    pub async fn start(self) -> Result<Conductor, Error> {
        let Self { settings, store, drivers, clock } = self;
        let (hardware, families) = drivers.build(&settings)?;
        if let Some(driver) = settings.inspection.discovery_driver.clone() {
            let discovered = Node::enrol(NewNode { driver, ..NewNode::default() }, clock.now());
            hardware.composition.resolve_all(&discovered)?;
        }
        let placement = Placement::new(&settings, &hardware.composition);
        let limits = Limits::new(&settings.operations);
        let (events, state_times, boot_journal, own_leases, consoles, phase) = Default::default();
        let power_slots = Semaphore::new(POWER_SLOTS);
        let services = Services {
            settings,
            store,
            hardware,
            families,
            events,
            state_times,
            boot_journal,
            own_leases,
            power_slots,
            placement,
            consoles,
            limits,
            phase,
            clock,
        };
        Conductor::begin(services).await
    }
}
