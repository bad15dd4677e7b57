//! The ports of the Neutron, which keep their state.

use axum::http::Method;
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};

/// What may be said of a port.
const FIELDS: [&str; 12] = [
    "name",
    "network_id",
    "mac_address",
    "device_id",
    "device_owner",
    "admin_state_up",
    "fixed_ips",
    "security_groups",
    "extra_dhcp_opts",
    "binding:host_id",
    "binding:profile",
    "binding:vnic_type",
];

#[derive(Debug, Default)]
pub struct Ports {
    pub all: BTreeMap<String, Value>,
    /// Hosts that nothing binds ports on.
    pub unbound_hosts: BTreeSet<String>,
    count: u32,
}

impl Ports {
    pub fn create(&mut self, body: &Value) -> (u16, Value) {
        self.count += 1;
        let count = self.count;
        let mut port = json!({
            "id": format!("port-{count}"), "name": "", "device_id": "", "device_owner": "", "admin_state_up": true,
            "mac_address": format!("fa:16:3e:00:00:{count:02x}"), "binding:host_id": "", "binding:profile": {},
            "binding:vnic_type": "normal", "security_groups": ["default"], "extra_dhcp_opts": [],
            "fixed_ips": [{"subnet_id": "subnet-1", "ip_address": format!("192.0.2.{count}")}],
        });
        if body["network_id"].as_str().is_none_or(str::is_empty) {
            return (400, refusal("HTTPBadRequest", "network_id is missing"));
        }
        match self.change(&mut port, body) {
            Ok(()) => {
                self.all.insert(format!("port-{count}"), port.clone());
                (201, json!({"port": port}))
            }
            Err(refused) => refused,
        }
    }

    pub fn one(&mut self, method: &Method, id: &str, body: &Value) -> (u16, Value) {
        let Some(mut port) = self.all.get(id).cloned() else {
            return (404, refusal("PortNotFound", &format!("Port {id} could not be found.")));
        };
        match *method {
            Method::DELETE => {
                self.all.remove(id);
                return (204, Value::Null);
            }
            Method::PUT => {
                if let Err(refused) = self.change(&mut port, body) {
                    return refused;
                }
                self.all.insert(id.to_owned(), port.clone());
            }
            _ => {}
        }
        (200, json!({"port": port}))
    }

    fn change(&mut self, port: &mut Value, body: &Value) -> Result<(), (u16, Value)> {
        let body = body.as_object().unwrap();
        if let Some(name) = body.keys().find(|name| !FIELDS.contains(&name.as_str())) {
            return Err((400, refusal("HTTPBadRequest", &format!("Unrecognized attribute(s) '{name}'"))));
        }
        let was_bound = port["binding:host_id"] != "";
        for (name, value) in body {
            match name.as_str() {
                "mac_address" if was_bound => {
                    let message = "Unable to complete operation on port: it is already bound";
                    return Err((409, refusal("PortBound", message)));
                }
                "mac_address" => self.change_address(port, value)?,
                "extra_dhcp_opts" => change_options(port, value),
                _ => port[name] = value.clone(),
            }
        }
        let host = port["binding:host_id"].as_str().unwrap_or_default();
        let vif_type = match host {
            "" => "unbound",
            host if self.unbound_hosts.contains(host) => "binding_failed",
            _ => "other",
        };
        port["status"] = if vif_type == "other" { "ACTIVE" } else { "DOWN" }.into();
        port["binding:vif_type"] = vif_type.into();
        Ok(())
    }

    fn change_address(&mut self, port: &mut Value, address: &Value) -> Result<(), (u16, Value)> {
        self.count += 1;
        let made = Value::from(format!("fa:16:3e:00:01:{:02x}", self.count));
        let address = if address.is_null() { &made } else { address };
        let is_taken =
            self.all.values().any(|other| other["mac_address"] == *address && other["id"] != port["id"]);
        if is_taken {
            return Err((409, refusal("MacAddressInUse", "The mac address is in use")));
        }
        port["mac_address"] = address.clone();
        Ok(())
    }
}

/// Options are changed one by one; one whose value is null ends.
fn change_options(port: &mut Value, body: &Value) {
    let mut options = port["extra_dhcp_opts"].as_array().unwrap().clone();
    for option in body.as_array().unwrap() {
        let key = |one: &Value| (one["opt_name"].clone(), one["ip_version"].as_u64().unwrap_or(4));
        options.retain(|one| key(one) != key(option));
        if !option["opt_value"].is_null() {
            options.push(option.clone());
        }
    }
    port["extra_dhcp_opts"] = options.into();
}

pub fn refusal(kind: &str, message: &str) -> Value {
    json!({"NeutronError": {"type": kind, "message": message, "detail": ""}})
}
