//! The machine of a node, at its BMC: a ComputerSystem, and what belongs to it.

use super::client::bmc::{Bmc, has_status};
use super::client::error::RedfishError;
use super::client::resource::Resource;
use super::quirks::Quirk;
use reqwest::StatusCode;
use serde_json::Map;
use std::sync::Arc;

/// Most pages of a collection that are read.
const MOST_PAGES: usize = 16;

/// Most resources that are asked whether they belong to a machine.
const MOST_RELATED: usize = 16;

/// The machine of a node.
#[derive(Debug, Clone)]
pub(super) struct System {
    pub(super) bmc: Arc<Bmc>,
    path: Option<String>,
}

impl System {
    pub(super) fn new(bmc: Arc<Bmc>, path: Option<String>) -> Self {
        Self { bmc, path }
    }

    /// Reads it as it is now.
    ///
    /// # Errors
    ///
    /// [`RedfishError`].
    pub(super) async fn read(&self) -> Result<Resource, RedfishError> {
        let path = self.path().await?;
        let read = self.bmc.get(&path).await;
        if read.as_ref().is_err_and(|error| has_status(error, StatusCode::NOT_FOUND)) {
            self.bmc.forget_only_system();
        }
        read
    }

    /// Its path: what the node says, or that of the only machine there is.
    async fn path(&self) -> Result<String, RedfishError> {
        if let Some(path) = self.path.clone().or_else(|| self.bmc.only_system()) {
            return Ok(path);
        }
        let root = self.bmc.root().await?;
        let systems = root.link("/Systems").ok_or_else(|| {
            self.lacks("no machines", "correct redfish_address: this is no BMC of a machine")
        })?;
        let members = self.bmc.members(systems).await?;
        match members.as_slice() {
            [only] => {
                self.bmc.note_only_system(only);
                Ok(only.clone())
            }
            [] => Err(self.lacks("no machines", "look at the BMC")),
            several => {
                let what = format!("several machines: {}", several.join(", "));
                Err(self.lacks(&what, "set redfish_system_id to one of them"))
            }
        }
    }

    /// The paths of what manages it.
    ///
    /// # Errors
    ///
    /// [`RedfishError`].
    pub(super) async fn managers(&self, seen: &Resource) -> Result<Vec<String>, RedfishError> {
        self.related(seen, "/Links/ManagedBy", "/Managers", "/Links/ManagerForServers").await
    }

    /// The paths of its enclosures.
    ///
    /// # Errors
    ///
    /// [`RedfishError`].
    pub(super) async fn enclosures(&self, seen: &Resource) -> Result<Vec<String>, RedfishError> {
        self.related(seen, "/Links/Chassis", "/Chassis", "/Links/ComputerSystems").await
    }

    /// What belongs to it, as it says, or else as what is in a collection says.
    async fn related(
        &self,
        seen: &Resource,
        link: &str,
        collection: &str,
        back: &str,
    ) -> Result<Vec<String>, RedfishError> {
        let mut found: Vec<_> = seen.links(link).into_iter().map(str::to_owned).collect();
        if !found.is_empty() {
            return Ok(found);
        }
        let root = self.bmc.root().await?;
        let Some(collection) = root.link(collection) else { return Ok(found) };
        for path in self.bmc.members(collection).await?.into_iter().take(MOST_RELATED) {
            let related = self.bmc.get(&path).await.inspect_err(|error| tracing::debug!("{error}"));
            if related.is_ok_and(|related| related.links(back).contains(&seen.path())) {
                found.push(path);
            }
        }
        Ok(found)
    }

    /// The BMC has, or has not, something.
    pub(super) fn lacks(&self, what: &str, advice: &'static str) -> RedfishError {
        RedfishError::Lacks { bmc: self.bmc.label(), what: what.to_owned(), advice }
    }

    /// Whether the machine has a quirk of its maker that is put up with. The maker of its BMC is named by the root, and that
    /// of the machine may be its seller.
    pub(super) async fn has_quirk(&self, quirk: Quirk, seen: &Resource) -> bool {
        let root = self.bmc.root().await.inspect_err(|error| tracing::debug!("{error}")).ok();
        let of_root = root.iter().flat_map(|root| makers(root, "/Vendor"));
        let makers: Vec<_> = of_root.chain(makers(seen, "/Manufacturer")).collect();
        self.bmc.settings.quirks.of_maker(quirk, &makers, seen.text("/Model"))
    }
}

/// Those who made something, as it says: by a property, and by their own parts of it.
fn makers<'a>(resource: &'a Resource, property: &str) -> Vec<&'a str> {
    let own = resource.at("/Oem").as_object().into_iter().flat_map(Map::keys).map(String::as_str);
    resource.text(property).into_iter().chain(own).collect()
}

impl Bmc {
    /// The paths of all that is in a collection.
    ///
    /// # Errors
    ///
    /// [`RedfishError`].
    pub(super) async fn members(&self, collection: &str) -> Result<Vec<String>, RedfishError> {
        let (mut found, mut next) = (Vec::new(), Some(collection.to_owned()));
        for _ in 0..MOST_PAGES {
            let Some(path) = next else { break };
            let page = self.get(&path).await?;
            found.extend(page.links("/Members").into_iter().map(str::to_owned));
            next = page.text("/Members@odata.nextLink").map(str::to_owned);
        }
        Ok(found)
    }
}
