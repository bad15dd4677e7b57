//! What a ramdisk posts (section 8.5).

use crate::inventory::cards;
use crate::inventory::identities::Identities;
use crate::model::{InspectionData, MacAddress};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use farrier_protocol::json::JsonError;
use serde::de::{DeserializeSeed, Error as _};
use serde_json::{Map, Value};
use std::io::Read;
use std::net::IpAddr;
use uuid::Uuid;

/// A report that cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{field}: {reason}")]
pub struct BadReport {
    /// The field of the report.
    pub field: String,
    /// What is wrong, and what would be right.
    pub reason: String,
}

impl BadReport {
    fn new(field: impl Into<String>, reason: impl Into<String>) -> Self {
        Self { field: field.into(), reason: reason.into() }
    }
}

/// What a ramdisk posts: what its machine is made of, and by which of it the node is known.
#[derive(Debug, Clone, PartialEq)]
pub struct Report {
    /// What it says.
    pub data: InspectionData,
    /// Addresses of the machine's network cards.
    pub addresses: Vec<MacAddress>,
    /// Addresses of its BMC.
    pub bmc_addresses: Vec<IpAddr>,
    /// The ramdisk's logs, an archive, where it sent some.
    pub logs: Option<Vec<u8>>,
}

/// By which of a report its node is known, and what the ramdisk proves to be that of the node by.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Claim {
    /// The node that it names.
    pub node_uuid: Option<Uuid>,
    /// Addresses of the machine's network cards.
    pub addresses: Vec<MacAddress>,
    /// Addresses of its BMC.
    pub bmc_addresses: Vec<IpAddr>,
    /// The token of its agent.
    pub token: Option<String>,
}

/// The key of the ramdisk's logs in what it posts. They have megabytes, and are kept as files.
pub const LOGS: &str = "logs";

impl Report {
    /// Reads the body of a request.
    ///
    /// # Errors
    ///
    /// [`BadReport`] when it has no inventory, or that has no network card.
    pub fn read(mut body: Map<String, Value>) -> Result<Self, BadReport> {
        let Some(Value::Object(inventory)) = body.remove("inventory") else {
            return Err(BadReport::new("inventory", "must be an object; use the collector default"));
        };
        check_interfaces(&inventory)?;
        let bmc_addresses = bmc_addresses(&inventory)?;
        let addresses = cards::read(&inventory).into_iter().map(|card| card.address).collect();
        let logs = body.remove(LOGS);
        let logs = logs.as_ref().and_then(Value::as_str).filter(|encoded| !encoded.is_empty());
        let logs = logs.and_then(|encoded| STANDARD.decode(encoded.trim()).ok());
        Ok(Self { data: InspectionData { inventory, plugin_data: body }, addresses, bmc_addresses, logs })
    }

    /// Reads by which of it its node is known, of a text that becomes values only when that is known.
    ///
    /// # Errors
    ///
    /// As [`Self::read`]; [`JsonError`] for a text that is no report.
    pub fn identified(text: impl Read) -> Result<Result<Self, BadReport>, JsonError> {
        let mut deserializer = serde_json::Deserializer::from_reader(text);
        match Identities(0).deserialize(&mut deserializer)? {
            Value::Object(identities) => Ok(Self::read(identities)),
            _ => Err(serde_json::Error::custom("it is no object").into()),
        }
    }

    /// By which of it its node is known.
    pub fn claim(&self, node_uuid: Option<Uuid>, token: Option<String>) -> Claim {
        let (addresses, bmc_addresses) = (self.addresses.clone(), self.bmc_addresses.clone());
        Claim { node_uuid, addresses, bmc_addresses, token }
    }
}

/// Each must have an address, of whatever form: those of InfiniBand cards are none that a port can have.
fn check_interfaces(inventory: &Map<String, Value>) -> Result<(), BadReport> {
    let interfaces = inventory.get("interfaces").and_then(Value::as_array);
    let Some(interfaces) = interfaces.filter(|interfaces| !interfaces.is_empty()) else {
        let reason = "must be a list of at least one network interface";
        return Err(BadReport::new("inventory.interfaces", reason));
    };
    match interfaces.iter().position(|interface| !interface["mac_address"].is_string()) {
        Some(index) => {
            Err(BadReport::new(format!("inventory.interfaces[{index}].mac_address"), "must be a text"))
        }
        None => Ok(()),
    }
}

/// Those that are one: a BMC without has `0.0.0.0` and `::/0`.
fn bmc_addresses(inventory: &Map<String, Value>) -> Result<Vec<IpAddr>, BadReport> {
    let mut addresses = Vec::new();
    for key in ["bmc_address", "bmc_v6address"] {
        match inventory.get(key) {
            None | Some(Value::Null) => {}
            Some(Value::String(text)) => {
                let address = text.split('/').next().and_then(|text| text.parse::<IpAddr>().ok());
                addresses.extend(address.filter(|address| !address.is_unspecified()));
            }
            Some(_) => return Err(BadReport::new(format!("inventory.{key}"), "must be a text or null")),
        }
    }
    Ok(addresses)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn read(body: Value) -> Result<Report, String> {
        let Value::Object(body) = body else { panic!("{body} is no object") };
        Report::read(body).map_err(|error| error.to_string())
    }

    #[test]
    fn what_identifies_a_machine_is_read() {
        let report = read(json!({
            "inventory": {
                "interfaces": [
                    {"name": "eth0", "mac_address": "52-54-00-AB-00-01"},
                    {"name": "ib0", "mac_address": "a0:00:02:20:fe:80:00:00:00:00:00:00:00:02:c9:03:00:00:00:01"},
                ],
                "bmc_address": "198.51.100.10", "bmc_v6address": "2001:db8::10/64",
            },
            "error": null, "boot_interface": "01-52-54-00-ab-00-01",
        }))
        .unwrap();
        assert_eq!(report.addresses, ["52:54:00:ab:00:01".parse().unwrap()]);
        assert_eq!(
            report.bmc_addresses,
            ["198.51.100.10", "2001:db8::10"].map(|text| text.parse::<IpAddr>().unwrap())
        );
        let keys: Vec<_> = report.data.plugin_data.keys().map(String::as_str).collect();
        assert_eq!(keys, ["boot_interface", "error"]);
        assert_eq!(report.data.inventory["interfaces"].as_array().unwrap().len(), 2);
    }

    #[test]
    fn a_bmc_without_an_address_has_none() {
        for (v4, v6) in
            [(json!("0.0.0.0"), json!("::/0")), (json!(null), json!("")), (json!("?"), json!(null))]
        {
            let inventory =
                json!({"interfaces": [{"mac_address": "x"}], "bmc_address": v4, "bmc_v6address": v6});
            assert_eq!(read(json!({"inventory": inventory})).unwrap().bmc_addresses, [] as [IpAddr; 0]);
        }
    }

    #[test]
    fn what_cannot_be_used_is_named() {
        let card = json!([{"mac_address": "52:54:00:00:00:01"}]);
        for (body, field) in [
            (json!({}), "inventory: "),
            (json!({"inventory": null}), "inventory: "),
            (json!({"inventory": []}), "inventory: "),
            (json!({"inventory": {}}), "inventory.interfaces: "),
            (json!({"inventory": {"interfaces": {}}}), "inventory.interfaces: "),
            (json!({"inventory": {"interfaces": []}}), "inventory.interfaces: "),
            (json!({"inventory": {"interfaces": [{}]}}), "inventory.interfaces[0].mac_address: "),
            (json!({"inventory": {"interfaces": ["x"]}}), "inventory.interfaces[0].mac_address: "),
            (json!({"inventory": {"interfaces": card, "bmc_address": 7}}), "inventory.bmc_address: "),
            (json!({"inventory": {"interfaces": card, "bmc_v6address": []}}), "inventory.bmc_v6address: "),
        ] {
            let error = read(body.clone()).unwrap_err();
            assert!(error.starts_with(field), "{body}: {error}");
        }
    }
}
