//! The BMCs of all nodes. Who it is that asks belongs to a BMC, so that a password that was changed is tried at once;
//! nodes whose machines have one BMC in common share its gate.

use super::bmc::Bmc;
use super::connection::{Connection, Description};
use super::settings::RedfishSettings;
use super::system::System;
use super::trust::Clients;
use crate::bmc::pace::Gate;
use farrier_conductor::interfaces::InterfaceError;
use farrier_conductor::model::Node;
use futures_util::future::join_all;
use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::time::{Duration, Instant};

/// Most BMCs that are remembered. One that is forgotten begins a new session when it is needed.
const MOST: usize = 4096;

/// How long the end of all sessions may take.
const FAREWELL: Duration = Duration::from_secs(5);

/// The BMCs that speak Redfish. Clones are the same ones; power, management and boot interfaces share them.
#[derive(Debug, Clone)]
pub struct Bmcs(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    settings: Arc<RedfishSettings>,
    clients: Clients,
    known: Mutex<Known>,
}

#[derive(Debug, Default)]
struct Known {
    bmcs: HashMap<Connection, (Arc<Bmc>, Instant)>,
    gates: HashMap<String, Weak<Gate>>,
}

impl Bmcs {
    /// None is known yet.
    pub fn new(settings: RedfishSettings) -> Self {
        let settings = Arc::new(settings);
        let clients = Clients::new(settings.ca_folders.clone());
        Self(Arc::new(Inner { settings, clients, known: Mutex::default() }))
    }

    /// How they are asked.
    pub(super) fn settings(&self) -> &RedfishSettings {
        &self.0.settings
    }

    /// The machine of a node, at its BMC.
    ///
    /// # Errors
    ///
    /// [`InterfaceError::DriverInfo`], and a file with authorities that cannot be used.
    pub(super) fn system(&self, node: &Node) -> Result<System, InterfaceError> {
        let description = Description::read(node)?;
        Ok(System::new(self.bmc(&description.connection)?, description.system))
    }

    fn bmc(&self, connection: &Connection) -> Result<Arc<Bmc>, InterfaceError> {
        let Inner { settings, clients, known } = &*self.0;
        let mut known = known.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((bmc, used)) = known.bmcs.get_mut(connection) {
            *used = Instant::now();
            return Ok(Arc::clone(bmc));
        }
        let http = clients.get(&connection.trust, settings.connect_timeout)?;
        let gate = known.gate(connection, settings);
        let bmc = Arc::new(Bmc::new(connection, http, gate, Arc::clone(settings)));
        known.make_room();
        known.bmcs.insert(connection.clone(), (Arc::clone(&bmc), Instant::now()));
        Ok(bmc)
    }

    /// Ends all sessions.
    pub(super) async fn leave(&self) {
        let bmcs: Vec<_> = {
            let mut known = self.0.known.lock().unwrap_or_else(PoisonError::into_inner);
            known.bmcs.drain().map(|(_, (bmc, _))| bmc).collect()
        };
        let all = join_all(bmcs.iter().map(|bmc| bmc.end_session()));
        if tokio::time::timeout(FAREWELL, all).await.is_err() {
            tracing::debug!("some BMCs did not answer when their sessions were ended");
        }
    }
}

impl Known {
    fn gate(&mut self, connection: &Connection, settings: &RedfishSettings) -> Arc<Gate> {
        let place = connection.address.to_string();
        if let Some(gate) = self.gates.get(&place).and_then(Weak::upgrade) {
            return gate;
        }
        let gate = Arc::new(Gate::new(settings.pace));
        self.gates.retain(|_, gate| gate.strong_count() > 0);
        self.gates.insert(place, Arc::downgrade(&gate));
        gate
    }

    /// Forgets the BMC that was not needed for the longest time, where there are too many.
    fn make_room(&mut self) {
        if self.bmcs.len() < MOST {
            return;
        }
        let longest = self.bmcs.iter().min_by_key(|(_, (_, used))| *used);
        if let Some(connection) = longest.map(|(connection, _)| connection.clone()) {
            self.bmcs.remove(&connection);
        }
    }
}
