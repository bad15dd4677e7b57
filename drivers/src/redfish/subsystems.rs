//! What services have had since Redfish 2020.4 in the place of Thermal and Power: resources of their own for each fan and
//! power supply, and one for temperatures. They are returned in the format of their predecessors.

use super::client::bmc::Bmc;
use super::client::error::RedfishError;
use super::client::resource::Resource;
use serde_json::{Value, json};

/// Most fans or power supplies of an enclosure that are read.
const MOST: usize = 32;

/// What an enclosure has instead of the resource of this link; nothing where it has nothing.
///
/// # Errors
///
/// [`RedfishError`].
pub(super) async fn read(
    bmc: &Bmc,
    enclosure: &Resource,
    link: &str,
) -> Result<Option<Resource>, RedfishError> {
    let Some(path) = enclosure.link(&format!("{link}Subsystem")) else { return Ok(None) };
    let subsystem = bmc.get(path).await?;
    let fans = members(bmc, subsystem.link("/Fans")).await;
    let metrics = one(bmc, subsystem.link("/ThermalMetrics")).await;
    let temperatures = metrics.as_ref().map(temperatures).unwrap_or_default();
    let mut supplies = Vec::new();
    for supply in members(bmc, subsystem.link("/PowerSupplies")).await {
        supplies.push(power_supply(bmc, &supply).await);
    }
    let fans: Vec<_> = fans.iter().map(fan).collect();
    let body = json!({"Fans": fans, "Temperatures": temperatures, "PowerSupplies": supplies});
    Ok(Some(Resource::new(path, None, body)))
}

/// What is in a collection. What cannot be read takes nothing from the rest.
async fn members(bmc: &Bmc, collection: Option<&str>) -> Vec<Resource> {
    let Some(collection) = collection else { return Vec::new() };
    let paths = bmc.members(collection).await.inspect_err(|error| tracing::debug!("{error}"));
    let mut members = Vec::new();
    for path in paths.unwrap_or_default().iter().take(MOST) {
        members.extend(one(bmc, Some(path)).await);
    }
    members
}

async fn one(bmc: &Bmc, path: Option<&str>) -> Option<Resource> {
    bmc.get(path?).await.inspect_err(|error| tracing::debug!("{error}")).ok()
}

fn fan(fan: &Resource) -> Value {
    let (rpm, percent) = (fan.at("/SpeedPercent/SpeedRPM"), fan.at("/SpeedPercent/Reading"));
    let (reading, units) = if rpm.is_null() { (percent, "Percent") } else { (rpm, "RPM") };
    json!({
        "MemberId": fan.at("/Id"), "Reading": reading, "ReadingUnits": units, "Status": fan.at("/Status"),
        "PhysicalContext": fan.at("/PhysicalContext"), "SerialNumber": fan.at("/SerialNumber"),
    })
}

fn temperatures(metrics: &Resource) -> Vec<Value> {
    let readings = metrics.at("/TemperatureReadingsCelsius").as_array().into_iter().flatten();
    let read = readings.map(|one| {
        json!({
            "MemberId": one["DeviceName"], "ReadingCelsius": one["Reading"],
            "PhysicalContext": one["PhysicalContext"],
        })
    });
    read.collect()
}

async fn power_supply(bmc: &Bmc, supply: &Resource) -> Value {
    let mut read = json!({
        "MemberId": supply.at("/Id"), "PowerCapacityWatts": supply.at("/PowerCapacityWatts"),
        "SerialNumber": supply.at("/SerialNumber"), "Status": supply.at("/Status"),
    });
    if let Some(metrics) = one(bmc, supply.link("/Metrics")).await {
        read["LineInputVoltage"] = metrics.at("/InputVoltage/Reading").clone();
        read["LastPowerOutputWatts"] = metrics.at("/OutputPowerWatts/Reading").clone();
    }
    read
}
