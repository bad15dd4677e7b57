//! A node as the REST interface shows it, as far as the commands read it.

use farrier_conductor::model::Erasure;
use farrier_conductor::model::{Activity, InterfaceKind, MacAddress, PowerState, ProvisionState};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

/// A node as the REST interface shows it.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct NodeRecord {
    pub(crate) uuid: String,
    pub(crate) name: Option<String>,
    pub(crate) provision_state: ProvisionState,
    pub(crate) power_state: Option<PowerState>,
    #[serde(default)]
    pub(crate) reservation: Option<String>,
    #[serde(default)]
    pub(crate) last_error: Option<String>,
    /// Everything else.
    #[serde(flatten)]
    pub(crate) others: Map<String, Value>,
}

/// A port as the REST interface shows it.
#[derive(Debug, Deserialize)]
pub(crate) struct PortRecord {
    pub(crate) address: MacAddress,
}

impl NodeRecord {
    /// What people call it.
    pub(crate) fn label(&self) -> &str {
        self.name.as_deref().unwrap_or(&self.uuid)
    }

    /// A text of the record.
    pub(crate) fn text(&self, field: &str) -> Option<&str> {
        self.others.get(field)?.as_str()
    }

    /// Whether a flag of the record is set.
    pub(crate) fn is(&self, field: &str) -> bool {
        self.others.get(field) == Some(&Value::Bool(true))
    }

    /// The keys of a map of the record.
    pub(crate) fn map(&self, field: &str) -> impl Iterator<Item = (&String, &Value)> {
        self.others.get(field).and_then(Value::as_object).into_iter().flatten()
    }

    /// The name of its interface of a kind.
    pub(crate) fn interface(&self, kind: InterfaceKind) -> Option<&str> {
        self.text(&kind.field())
    }

    /// The name of the step that is running.
    pub(crate) fn step(&self) -> Option<&str> {
        ["clean_step", "deploy_step", "service_step"]
            .iter()
            .find_map(|field| self.others.get(*field)?.get("step")?.as_str())
    }

    /// Whether its disks are proven to be erased, since it became available.
    pub(crate) fn erasure(&self) -> Option<Erasure> {
        let mark = self.others.get("driver_internal_info")?.get("erasure")?;
        serde_json::from_value(mark.clone()).ok()
    }

    /// Whether its operation is over, or held.
    pub(crate) fn rests(&self) -> bool {
        !matches!(self.provision_state.activity(), Activity::Work | Activity::Wait)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_record_is_read_whatever_else_is_in_it() {
        let record: NodeRecord = serde_json::from_value(json!({
            "uuid": "1", "name": null, "provision_state": "clean wait", "power_state": null, "maintenance": true,
            "clean_step": {"step": "erase_devices"}, "deploy_step": {}, "boot_interface": "ipxe",
            "driver_info": {"a": 1}, "new_field": [],
        }))
        .unwrap();
        assert_eq!((record.label(), record.step(), record.rests()), ("1", Some("erase_devices"), false));
        assert_eq!(record.interface(InterfaceKind::Boot), Some("ipxe"));
        assert!(record.is("maintenance") && !record.is("protected"));
        assert_eq!(record.map("driver_info").count(), 1);
    }
}
