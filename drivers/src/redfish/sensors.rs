//! What the sensors of a machine say, in the words of Ironic: by kind, and by name and place.

use super::client::error::RedfishError;
use super::client::resource::Resource;
use super::subsystems;
use super::system::System;
use serde_json::{Map, Value, json};

/// Most enclosures that are asked.
const MOST_ENCLOSURES: usize = 16;

/// A kind of sensors: its name, the list of a resource of the enclosure, and the fields of each with Ironic's names.
type Kind = (&'static str, &'static str, &'static str, &'static [(&'static str, &'static str)]);

const KINDS: &[Kind] = &[
    (
        "Fan",
        "/Thermal",
        "/Fans",
        &[
            ("MemberId", "identity"),
            ("Reading", "reading"),
            ("ReadingUnits", "reading_units"),
            ("MaxReadingRange", "max_reading_range"),
            ("MinReadingRange", "min_reading_range"),
            ("PhysicalContext", "physical_context"),
            ("SerialNumber", "serial_number"),
        ],
    ),
    (
        "Temperature",
        "/Thermal",
        "/Temperatures",
        &[
            ("MemberId", "identity"),
            ("ReadingCelsius", "reading_celsius"),
            ("MaxReadingRangeTemp", "max_reading_range_temp"),
            ("MinReadingRangeTemp", "min_reading_range_temp"),
            ("SensorNumber", "sensor_number"),
            ("PhysicalContext", "physical_context"),
        ],
    ),
    (
        "Power",
        "/Power",
        "/PowerSupplies",
        &[
            ("PowerCapacityWatts", "power_capacity_watts"),
            ("LineInputVoltage", "line_input_voltage"),
            ("LastPowerOutputWatts", "last_power_output_watts"),
            ("SerialNumber", "serial_number"),
        ],
    ),
];

/// Reads the sensors. An enclosure that cannot be read takes nothing from the others.
///
/// # Errors
///
/// [`RedfishError`] when the machine cannot be read.
pub(super) async fn read(system: &System) -> Result<Map<String, Value>, RedfishError> {
    let seen = system.read().await?;
    let mut found = Map::from_iter(KINDS.iter().map(|(name, ..)| ((*name).to_owned(), json!({}))));
    for place in system.enclosures(&seen).await?.iter().take(MOST_ENCLOSURES) {
        let Ok(enclosure) = system.bmc.get(place).await else { continue };
        let identity = enclosure.text("/Id").unwrap_or(place);
        for link in ["/Thermal", "/Power"] {
            match resource(system, &enclosure, link).await {
                Ok(Some(resource)) => collect(&mut found, link, &resource, identity),
                Ok(None) => {}
                Err(error) => tracing::debug!("{error}"),
            }
        }
    }
    Ok(found)
}

/// The resource with sensors of an enclosure, or what newer services have in its place.
async fn resource(
    system: &System,
    enclosure: &Resource,
    link: &str,
) -> Result<Option<Resource>, RedfishError> {
    match enclosure.link(link) {
        Some(path) => system.bmc.get(path).await.map(Some),
        None => subsystems::read(&system.bmc, enclosure, link).await,
    }
}

fn collect(found: &mut Map<String, Value>, link: &str, resource: &Resource, place: &str) {
    for (name, _, list, fields) in KINDS.iter().filter(|(_, of, ..)| *of == link) {
        for (index, sensor) in resource.at(list).as_array().into_iter().flatten().enumerate() {
            let identity = sensor["MemberId"].as_str().map_or_else(|| index.to_string(), str::to_owned);
            let named = fields.iter().map(|(theirs, ours)| ((*ours).to_owned(), sensor[*theirs].clone()));
            let mut values = Map::from_iter(named);
            for (theirs, ours) in [("State", "state"), ("Health", "health")] {
                values.insert(ours.to_owned(), sensor["Status"][theirs].clone());
            }
            found[*name][format!("{identity}@{place}")] = Value::Object(values);
        }
    }
}
