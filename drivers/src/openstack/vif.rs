//! A port of Neutron. Here it is a virtual interface, as Ironic has it, since a port is a network card.

use serde_json::Value;
use std::net::IpAddr;

/// What the type of a binding says that failed.
const BINDING_FAILED: &str = "binding_failed";

/// A port of Neutron, as last reported.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Vif {
    /// Identity.
    pub id: String,
    /// Everything that Neutron says of it.
    body: Value,
}

impl Vif {
    /// Reads one; nothing where it has no identity.
    pub(super) fn read(body: &Value) -> Option<Self> {
        let id = body["id"].as_str().filter(|id| !id.is_empty())?;
        Some(Self { id: id.to_owned(), body: body.clone() })
    }

    /// A field, as Neutron names it; null if it is missing.
    pub fn field(&self, name: &str) -> &Value {
        &self.body[name]
    }

    /// A field that is a text; empty if it is missing.
    pub fn text(&self, name: &str) -> &str {
        self.body[name].as_str().unwrap_or_default()
    }

    /// Whether a requested binding is missing.
    pub fn binding_failed(&self) -> bool {
        self.text("binding:vif_type") == BINDING_FAILED
    }

    /// Its addresses.
    pub fn addresses(&self) -> Vec<IpAddr> {
        let fixed = self.body["fixed_ips"].as_array().into_iter().flatten();
        fixed.filter_map(|fixed| fixed["ip_address"].as_str()?.parse().ok()).collect()
    }
}
