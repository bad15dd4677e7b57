//! How nodes are shown.

use crate::client::record::{NodeRecord, PortRecord};
use crate::view::table::{flag, none, table};
use farrier_conductor::model::InterfaceKind;

/// All nodes, in the columns of `baremetal node list`, and whether their disks are proven to be erased.
pub(crate) fn list(nodes: &[NodeRecord]) -> String {
    let columns =
        ["UUID", "Name", "Instance UUID", "Power State", "Provisioning State", "Maintenance", "Erasure"];
    let row = |node: &NodeRecord| {
        [
            node.uuid.clone(),
            none(node.name.as_deref()),
            none(node.text("instance_uuid")),
            none(node.power_state.map(|state| state.as_str())),
            node.provision_state.to_string(),
            flag(node.is("maintenance")),
            node.erasure().map_or_else(
                || none(None),
                |mark| if mark.is_proven { "proven" } else { "not proven" }.to_owned(),
            ),
        ]
    };
    table(columns, nodes.iter().map(row))
}

/// One node, a line for each field that is set.
pub(crate) fn one(node: &NodeRecord, ports: &[PortRecord]) -> String {
    let mut text = String::new();
    let mut line = |key: &str, value: &str| text += &format!("{key:20} {value}\n");
    line("uuid", &node.uuid);
    line("name", node.name.as_deref().unwrap_or("-"));
    line("driver", node.text("driver").unwrap_or("-"));
    for kind in InterfaceKind::ALL {
        if let Some(name) = node.interface(*kind) {
            line(&kind.field(), name);
        }
    }
    line("provision_state", node.provision_state.as_str());
    line("power_state", node.power_state.map_or("unknown", |state| state.as_str()));
    line("step", node.step().unwrap_or("-"));
    if let Some(mark) = node.erasure() {
        line("erasure", &mark.to_string());
    }
    if node.is("maintenance") {
        line("maintenance", node.text("maintenance_reason").unwrap_or("yes"));
    }
    line("last_error", node.last_error.as_deref().unwrap_or("-"));
    for port in ports {
        line("port", port.address.as_str());
    }
    for name in ["driver_info", "properties", "instance_info"] {
        for (key, value) in node.map(name) {
            let text = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
            line(name, &format!("{key}={text}"));
        }
    }
    text
}
