//! Neutron: its networks, ports and agents, as far as a conductor needs them.

use super::cloud::Cloud;
use super::error::OpenStackError;
use super::session::{Call, Session};
use super::settings::OpenStackSettings;
use super::vif::Vif;
use reqwest::{Method, Url};
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::sync::Arc;

/// Most pages of a list that are read.
const MOST_PAGES: usize = 100;

/// Where a network says on which physical one it is, and each of its segments.
const PHYSICAL_NETWORK: &str = "provider:physical_network";

/// A network of Neutron.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Network {
    /// Identity.
    pub id: String,
    /// The physical networks that it is on, as far as Neutron reports them.
    pub physical_networks: BTreeSet<String>,
}

/// Neutron, as one cloud has it. Clones are the same one.
#[derive(Debug, Clone)]
pub struct Neutron(Arc<Session>);

impl Neutron {
    /// That of a cloud.
    ///
    /// # Errors
    ///
    /// [`OpenStackError::CaFile`].
    pub fn new(cloud: Cloud, settings: OpenStackSettings) -> Result<Self, OpenStackError> {
        Ok(Self(Arc::new(Session::new(cloud, settings)?)))
    }

    /// The network with this name or UUID.
    ///
    /// # Errors
    ///
    /// [`OpenStackError::NoSuchNetwork`] where there is none or more than one, and any other [`OpenStackError`].
    pub async fn network(&self, network: &str) -> Result<Network, OpenStackError> {
        for key in ["id", "name"] {
            let found = self.list("networks", &[(key, network)]).await?;
            // A filter that is not known is passed over by some servers.
            let found: Vec<_> =
                found.iter().filter(|one| one[key] == network).filter_map(read_network).collect();
            match <[Network; 1]>::try_from(found) {
                Ok([network]) => return Ok(network),
                Err(none) if none.is_empty() => {}
                Err(several) => {
                    let network = network.to_owned();
                    return Err(OpenStackError::NoSuchNetwork { network, count: several.len() });
                }
            }
        }
        Err(OpenStackError::NoSuchNetwork { network: network.to_owned(), count: 0 })
    }

    /// The ports whose fields are these.
    ///
    /// # Errors
    ///
    /// Any [`OpenStackError`].
    pub async fn ports(&self, fields: &[(&str, &str)]) -> Result<Vec<Vif>, OpenStackError> {
        let found: Vec<_> = self.list("ports", fields).await?.iter().filter_map(Vif::read).collect();
        let is_meant = |vif: &Vif| fields.iter().all(|(name, value)| vif.text(name) == *value);
        Ok(found.into_iter().filter(is_meant).collect())
    }

    /// The port with this identity.
    ///
    /// # Errors
    ///
    /// Any [`OpenStackError`].
    pub async fn port(&self, id: &str) -> Result<Vif, OpenStackError> {
        self.port_by(Method::GET, path(id)?, None).await
    }

    /// Creates a port. It may have been created where this is answered by an error.
    ///
    /// # Errors
    ///
    /// Any [`OpenStackError`].
    pub async fn create_port(&self, fields: Value) -> Result<Vif, OpenStackError> {
        self.port_by(Method::POST, "ports".to_owned(), Some(fields)).await
    }

    /// Changes fields of a port.
    ///
    /// # Errors
    ///
    /// Any [`OpenStackError`].
    pub async fn update_port(&self, id: &str, fields: Value) -> Result<Vif, OpenStackError> {
        self.port_by(Method::PUT, path(id)?, Some(fields)).await
    }

    /// Deletes a port; nothing happens where there is none.
    ///
    /// # Errors
    ///
    /// Any [`OpenStackError`].
    pub async fn delete_port(&self, id: &str) -> Result<(), OpenStackError> {
        let call = Call { method: Method::DELETE, path: path(id)?, query: Vec::new(), body: None };
        match self.0.request(&call).await {
            Err(error) if !error.is_not_found() => Err(error),
            _ => Ok(()),
        }
    }

    /// Whether an agent of a host says that it is alive.
    ///
    /// # Errors
    ///
    /// Any [`OpenStackError`].
    pub async fn is_alive(&self, host: &str) -> Result<bool, OpenStackError> {
        let agents = self.list("agents", &[("host", host)]).await?;
        Ok(agents.iter().any(|agent| agent["host"] == host && agent["alive"] == true))
    }

    async fn port_by(
        &self,
        method: Method,
        path: String,
        fields: Option<Value>,
    ) -> Result<Vif, OpenStackError> {
        let body = fields.map(|fields| json!({"port": fields}));
        let call = Call { method, path, query: Vec::new(), body };
        let reply = self.0.request(&call).await?;
        Vif::read(&reply.body["port"])
            .ok_or_else(|| OpenStackError::Nonsense { request: reply.request, what: "no port".to_owned() })
    }

    /// All pages of a list. The next one is where the answer says, at the same path.
    async fn list(&self, what: &str, fields: &[(&str, &str)]) -> Result<Vec<Value>, OpenStackError> {
        let mut items = Vec::new();
        let mut marker: Option<String> = None;
        for _ in 0..MOST_PAGES {
            let mut query = fields.to_vec();
            query.extend(marker.as_deref().map(|marker| ("marker", marker)));
            let call = Call { method: Method::GET, path: what.to_owned(), query, body: None };
            let reply = self.0.request(&call).await?;
            let nonsense = |what: &str| OpenStackError::Nonsense {
                request: reply.request.clone(),
                what: what.to_owned(),
            };
            let page = reply.body[what].as_array().ok_or_else(|| nonsense("no list"))?;
            items.extend(page.iter().cloned());
            let next = next_marker(&reply.body[format!("{what}_links")]);
            match next {
                None => return Ok(items),
                Some(next) if page.is_empty() || Some(&next) == marker.as_ref() => {
                    return Err(nonsense("a page that leads to itself"));
                }
                next => marker = next,
            }
        }
        let what = format!("more than {MOST_PAGES} pages");
        Err(OpenStackError::Nonsense { request: format!("GET {what}"), what })
    }
}

/// Where the next page begins, by its link. The link itself is not followed: a proxy may have another address, and the
/// token goes to no host that an answer names.
fn next_marker(links: &Value) -> Option<String> {
    let next = links.as_array()?.iter().find(|link| link["rel"] == "next")?;
    let url = Url::parse(next["href"].as_str()?).ok()?;
    url.query_pairs().find(|(key, _)| key == "marker").map(|(_, marker)| marker.into_owned())
}

fn read_network(body: &Value) -> Option<Network> {
    let segments = body["segments"].as_array().into_iter().flatten().chain([body]);
    let physical_networks = segments.filter_map(|segment| segment[PHYSICAL_NETWORK].as_str());
    let physical_networks = physical_networks.filter(|name| !name.is_empty()).map(str::to_owned).collect();
    Some(Network { id: body["id"].as_str()?.to_owned(), physical_networks })
}

/// The path of a port, whose identity leads nowhere else.
fn path(id: &str) -> Result<String, OpenStackError> {
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_');
    match !id.is_empty() && id.len() <= 64 && id.bytes().all(is_plain) {
        true => Ok(format!("ports/{id}")),
        false => Err(OpenStackError::NoIdentity(id.to_owned())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_identity_leads_nowhere_else() {
        assert_eq!(path("1be26c0b-03f2").unwrap(), "ports/1be26c0b-03f2");
        for id in ["", "..", "a/b", "a?b", "a b", "%2e", "ä", &"a".repeat(65)] {
            let error = path(id).unwrap_err().to_string();
            assert!(error.ends_with("is no identity that Neutron gives; give the UUID"), "{error}");
        }
    }

    #[test]
    fn a_network_is_on_the_physical_networks_of_its_segments() {
        for (body, expected) in [
            (json!({"id": "n", "provider:physical_network": "rack1"}), vec!["rack1"]),
            (json!({"id": "n", "provider:physical_network": null}), vec![]),
            (
                json!({"id": "n", "segments": [{"provider:physical_network": "b"}, {"provider:physical_network": "a"}]}),
                vec!["a", "b"],
            ),
        ] {
            let network = read_network(&body).unwrap();
            assert_eq!(network.physical_networks.iter().collect::<Vec<_>>(), expected);
        }
    }
}
