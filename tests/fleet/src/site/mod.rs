//! The conductors of a site that a fleet has in its hands, so that faults can strike them: they are started, killed, held
//! still, cut off from the network, and given a wrong clock.

mod conductor;
mod error;
mod file;
mod network;
mod process;

pub use error::SiteError;
pub use file::{ConductorEntry, SiteFile};
pub use process::{peak_kib, processor_seconds};

use crate::fault::{Class, Kind};
use crate::file::FleetFile;
use conductor::Conductor;
use std::path::PathBuf;
use std::time::Duration;
use tokio::sync::Mutex;

/// How long the conductors are left alone after a strike: agents repeat a report for 28 s (contract, 10.2).
const RECOVERY: Duration = Duration::from_secs(8);

/// A site whose conductors run. Dropping it ends them.
#[derive(Debug)]
pub struct Site {
    conductors: Vec<Mutex<Conductor>>,
    endpoints: Vec<(String, Option<PathBuf>)>,
    /// One conductor is struck at a time: with two of them, one goes on.
    striking: Mutex<()>,
}

impl Site {
    /// Starts the conductors of a site for a fleet, and waits until each serves its node API.
    ///
    /// # Errors
    ///
    /// [`SiteError`].
    pub async fn start(site: &SiteFile, fleet: &FleetFile) -> Result<Self, SiteError> {
        site.check(fleet)?;
        if site.isolated {
            network::prepare(fleet.network.first_address, fleet.machines)?;
        }
        let (mut conductors, mut endpoints) = (Vec::new(), Vec::new());
        for (number, entry) in site.conductor.iter().enumerate() {
            let conductor = Conductor::start(number, entry, site).await?;
            endpoints.push((conductor.url(), entry.token_file.clone()));
            conductors.push(Mutex::new(conductor));
        }
        Ok(Self { conductors, endpoints, striking: Mutex::default() })
    }

    /// URL of the node API of each conductor, with the file of its token.
    pub fn endpoints(&self) -> &[(String, Option<PathBuf>)] {
        &self.endpoints
    }

    /// Strikes one of the conductors, chosen by a number, for a while, and brings it back.
    ///
    /// # Errors
    ///
    /// The conductor does not come back, or a program that the fault needs fails.
    pub async fn strike(&self, number: u64, kind: Kind, lasts: Duration) -> Result<(), SiteError> {
        let _turn = self.striking.lock().await;
        let place = usize::try_from(number).unwrap_or_default() % self.conductors.len().max(1);
        let struck = match self.conductors.get(place) {
            Some(conductor) => conductor.lock().await.strike(kind, lasts).await,
            None => Ok(()),
        };
        // Strikes in a row would keep a conductor away for longer than one of them lasts.
        tokio::time::sleep(RECOVERY).await;
        struck
    }

    /// Seconds of a processor that the conductors have used, and the most memory that one of them had, in KiB.
    pub async fn usage(&self) -> (f64, u64) {
        let (mut seconds, mut most) = (0.0, 0);
        for conductor in &self.conductors {
            let (used, peak) = conductor.lock().await.usage();
            seconds += used;
            most = most.max(peak);
        }
        (seconds, most)
    }
}

/// Whether a site can be struck by all classes of faults that a fleet file has.
///
/// # Errors
///
/// [`SiteError::NoConductors`], [`SiteError::NoPostgresql`].
pub fn check(site: Option<&SiteFile>, fleet: &FleetFile) -> Result<(), SiteError> {
    let rates = fleet.rates();
    match site {
        Some(site) => site.check(fleet),
        None if rates.contains_key(&Class::Database) => Err(SiteError::NoPostgresql),
        None if rates.contains_key(&Class::Conductor) => Err(SiteError::NoConductors),
        None => Ok(()),
    }
}
