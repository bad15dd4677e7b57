//! The virtual drives of a machine, as they can be read.

use crate::redfish::client::error::RedfishError;
use crate::redfish::client::resource::Resource;
use crate::redfish::quirks::Quirk;
use crate::redfish::system::System;
use tokio::time::sleep;

/// Virtual drives.
#[derive(Debug, Default)]
pub(super) struct Drives {
    /// Those that could be read.
    pub(super) seen: Vec<Resource>,
    /// Paths of those that could not be read.
    unread: Vec<String>,
    /// Why the last of them could not.
    pub(super) failure: Option<RedfishError>,
}

impl Drives {
    /// Adds the drives of a collection.
    async fn add_all(&mut self, system: &System, place: Option<&str>) {
        let Some(place) = place else { return };
        match system.bmc.members(place).await {
            Ok(members) => {
                for drive in members {
                    self.add(system, &drive).await;
                }
            }
            Err(error) => self.fail(error),
        }
    }

    async fn add(&mut self, system: &System, path: &str) {
        match system.bmc.get(path).await {
            Ok(drive) => self.seen.push(drive),
            Err(error) => {
                self.unread.push(path.to_owned());
                self.fail(error);
            }
        }
    }

    /// Reads those again that could not be read: once may be chance.
    pub(super) async fn read_again(&mut self, system: &System) {
        if self.unread.is_empty() {
            return;
        }
        sleep(system.bmc.settings.refusal_pause).await;
        self.failure = None;
        for drive in std::mem::take(&mut self.unread) {
            self.add(system, &drive).await;
        }
    }

    fn fail(&mut self, error: RedfishError) {
        tracing::debug!("{error}");
        self.failure = Some(error);
    }
}

/// The drives of the machine, or else those of what manages it. Where none can be read, why not.
pub(super) async fn drives(system: &System) -> Result<Drives, RedfishError> {
    let machine = system.read().await?;
    let mut drives = Drives::default();
    let own = machine.link("/VirtualMedia").filter(|_| system.bmc.minds(Quirk::MediaOnSystem));
    drives.add_all(system, own).await;
    if drives.seen.is_empty() {
        for manager in system.managers(&machine).await? {
            match system.bmc.get(&manager).await {
                Ok(manager) => drives.add_all(system, manager.link("/VirtualMedia")).await,
                Err(error) => drives.fail(error),
            }
            if !drives.seen.is_empty() {
                break;
            }
        }
    }
    match drives.failure.take_if(|_| drives.seen.is_empty()) {
        Some(failure) => Err(failure),
        None => Ok(drives),
    }
}
