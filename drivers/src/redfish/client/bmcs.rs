//! The BMCs of all nodes. Who it is that asks belongs to a BMC, so that a password that was changed is tried at once;
//! nodes whose machines have one BMC in common share its rate limiter.

use super::bmc::Bmc;
use super::connection::{Connection, Description};
use super::settings::RedfishSettings;
use super::trust::Clients;
use crate::client::rate_limit::RateLimiter;
use crate::redfish::system::System;
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
    rate_limiters: HashMap<String, Weak<RateLimiter>>,
}

impl Bmcs {
    /// None is known yet.
    pub fn new(settings: RedfishSettings) -> Self {
        let settings = Arc::new(settings);
        let clients = Clients::new(&settings);
        Self(Arc::new(Inner { settings, clients, known: Mutex::default() }))
    }

    /// How they are asked.
    pub(in crate::redfish) fn settings(&self) -> &RedfishSettings {
        &self.0.settings
    }

    /// The machine of a node, at its BMC.
    ///
    /// # Errors
    ///
    /// [`InterfaceError::DriverInfo`], and a file with authorities that cannot be used.
    pub(in crate::redfish) fn system(&self, node: &Node) -> Result<System, InterfaceError> {
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
        let http = clients.get(&connection.trust)?;
        let rate_limiter = known.rate_limiter(connection, settings);
        let bmc = Arc::new(Bmc::new(connection, http, rate_limiter, Arc::clone(settings)));
        known.make_room();
        known.bmcs.insert(connection.clone(), (Arc::clone(&bmc), Instant::now()));
        Ok(bmc)
    }

    /// Ends all sessions.
    pub(in crate::redfish) async fn leave(&self) {
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
    fn rate_limiter(&mut self, connection: &Connection, settings: &RedfishSettings) -> Arc<RateLimiter> {
        let place = connection.address.to_string();
        if let Some(rate_limiter) = self.rate_limiters.get(&place).and_then(Weak::upgrade) {
            return rate_limiter;
        }
        let rate_limiter = Arc::new(RateLimiter::new(settings.rate_limit));
        self.rate_limiters.retain(|_, rate_limiter| rate_limiter.strong_count() > 0);
        self.rate_limiters.insert(place, Arc::downgrade(&rate_limiter));
        rate_limiter
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
