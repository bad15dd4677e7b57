//! The inspect interface `redfish`: the inventory of a machine from its BMC, without the ramdisk.

use super::client::bmcs::Bmcs;
use super::client::connection::{self, Description};
use super::client::error::RedfishError;
use super::client::resource::Resource;
use super::system::System;
use async_trait::async_trait;
use farrier_conductor::in_band::{self, InspectInterface};
use farrier_conductor::interfaces::{Interface, InterfaceError, Outcome, Properties};
use farrier_conductor::inventory::{AddPorts, InspectionSettings};
use farrier_conductor::model::{InspectionData, Node};
use farrier_conductor::{Error, Task};
use serde_json::{Map, Value, json};

/// Most members of a collection that are read.
const MOST: usize = 64;

/// Inspects machines by their BMCs.
#[derive(Debug)]
pub struct RedfishInspect {
    bmcs: Bmcs,
}

impl RedfishInspect {
    /// Inspects the machines of these BMCs.
    pub fn new(bmcs: Bmcs) -> Self {
        Self { bmcs }
    }

    /// The inventory from the BMC of a node, in the format of the ramdisk.
    async fn inventory(&self, node: &Node) -> Result<Map<String, Value>, InterfaceError> {
        let system = self.bmcs.system(node)?;
        let seen = system.read().await?;
        let processor = members(&system, &seen, "/Processors").await?.into_iter().next();
        let architecture = processor.as_ref().and_then(|it| architecture(it.text("/InstructionSet")?));
        let mut inventory = Map::new();
        inventory.insert("interfaces".into(), interfaces(&system, &seen).await?.into());
        inventory.insert("disks".into(), disks(&system, &seen).await?.into());
        let count = seen.at("/ProcessorSummary/LogicalProcessorCount");
        let count = if count.is_null() { seen.at("/ProcessorSummary/Count") } else { count };
        inventory.insert(
            "cpu".into(),
            json!({"count": count, "model_name": seen.at("/ProcessorSummary/Model"), "architecture": architecture}),
        );
        let gib = seen.at("/MemorySummary/TotalSystemMemoryGiB").as_f64().unwrap_or_default();
        inventory.insert("memory".into(), json!({"physical_mb": (gib * 1024.0) as u64}));
        inventory.insert(
            "system_vendor".into(),
            json!({
                "manufacturer": seen.at("/Manufacturer"), "product_name": seen.at("/Model"),
                "serial_number": seen.at("/SerialNumber"), "system_uuid": seen.at("/UUID"),
            }),
        );
        let mode = super::boot_override::mode(&seen).map(|mode| mode.as_str());
        inventory.insert("boot".into(), json!({"current_boot_mode": mode}));
        Ok(inventory)
    }
}

/// What a link of a machine leads to. A member that cannot be read takes nothing from the others.
async fn members(system: &System, seen: &Resource, link: &str) -> Result<Vec<Resource>, RedfishError> {
    let Some(collection) = seen.link(link) else { return Ok(Vec::new()) };
    let paths = system.bmc.members(collection).await?;
    Ok(each(system, paths.iter().map(String::as_str)).await)
}

/// What can be read of these paths.
async fn each(system: &System, paths: impl IntoIterator<Item = &str>) -> Vec<Resource> {
    let mut found = Vec::new();
    for path in paths.into_iter().take(MOST) {
        match system.bmc.get(path).await {
            Ok(member) => found.push(member),
            Err(error) => tracing::warn!("{path} is left out of an inspection: {error}"),
        }
    }
    found
}

/// The network cards, each with the address by which the network knows it.
async fn interfaces(system: &System, seen: &Resource) -> Result<Vec<Value>, RedfishError> {
    let cards = members(system, seen, "/EthernetInterfaces").await?;
    let read = cards.iter().filter_map(|card| {
        let address = card.text("/PermanentMACAddress").or(card.text("/MACAddress"))?;
        Some(json!({
            "name": card.at("/Id"), "mac_address": address.to_ascii_lowercase(), "speed_mbps": card.at("/SpeedMbps"),
            "has_carrier": card.text("/LinkStatus").map(|status| status == "LinkUp"),
        }))
    });
    Ok(read.collect())
}

/// The drives of its storage controllers.
async fn disks(system: &System, seen: &Resource) -> Result<Vec<Value>, RedfishError> {
    let mut found = Vec::new();
    for controller in members(system, seen, "/Storage").await? {
        for drive in each(system, controller.links("/Drives")).await {
            found.push(json!({
                "name": drive.at("/Name"), "size": drive.at("/CapacityBytes"), "model": drive.at("/Model"),
                "serial": drive.at("/SerialNumber"), "vendor": drive.at("/Manufacturer"),
                "rotational": drive.text("/MediaType").map(|kind| kind == "HDD"),
            }));
        }
    }
    Ok(found)
}

/// An instruction set, as the property `cpu_arch` has it.
fn architecture(instructions: &str) -> Option<&'static str> {
    match instructions {
        "x86-64" => Some("x86_64"),
        "x86" => Some("i686"),
        "ARM-A64" => Some("aarch64"),
        "PowerISA" => Some("ppc64le"),
        _ => None,
    }
}

#[async_trait]
impl Interface for RedfishInspect {
    fn get_properties(&self) -> Properties {
        connection::KEYS
    }

    async fn validate(&self, node: &Node) -> Result<(), InterfaceError> {
        Description::read(node).map(drop)
    }
}

#[async_trait]
impl InspectInterface for RedfishInspect {
    async fn inspect_hardware(&self, task: &mut Task) -> Result<Outcome, Error> {
        let inventory = self.inventory(&task.node).await?;
        let data = InspectionData { inventory, plugin_data: Map::new() };
        // A BMC tells of no card whether the machine boots from it.
        let settings = InspectionSettings { add_ports: AddPorts::All, ..task.settings().inspection.clone() };
        in_band::take_over(task, data, &settings).await?;
        Ok(Outcome::Done)
    }
}

#[cfg(test)]
mod tests {
    use super::architecture;

    #[test]
    fn instruction_sets_are_architectures() {
        for (instructions, expected) in
            [("x86-64", Some("x86_64")), ("ARM-A64", Some("aarch64")), ("OEM", None)]
        {
            assert_eq!(architecture(instructions), expected, "{instructions}");
        }
    }
}
