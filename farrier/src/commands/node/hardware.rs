//! Firmware versions, sensors and indicators of a machine, from its BMC.

use crate::client::NodeApi;
use crate::failure::{NOT_AVAILABLE, UNREADABLE_RESPONSE, WithCode, coded};
use crate::view::table::{none, table};
use anyhow::Context;
use clap::ValueEnum;
use farrier_conductor::interfaces::IndicatorState;
use serde_json::{Map, Value};

/// State of an indicator.
#[derive(Debug, Clone, Copy, ValueEnum)]
pub(crate) enum Light {
    /// On; blinking if the LED can only blink.
    On,
    /// Off.
    Off,
    /// Blinking; on if the LED cannot blink.
    Blinking,
}

impl Light {
    /// What is wanted, the best first.
    fn wishes(self) -> &'static [IndicatorState] {
        match self {
            Self::On => &[IndicatorState::On, IndicatorState::Blinking],
            Self::Off => &[IndicatorState::Off],
            Self::Blinking => &[IndicatorState::Blinking, IndicatorState::On],
        }
    }
}

/// Sets the first suitable indicator of a machine, so that an operator finds it.
pub(crate) async fn locate(api: &NodeApi, node: &str, light: Light) -> anyhow::Result<()> {
    for component in api.indicator_components(node).await? {
        for indicator in api.indicators(node, &component).await? {
            let state = light.wishes().iter().find(|state| indicator.states.contains(state));
            if let Some(state) = state {
                api.set_indicator(node, &indicator, *state).await?;
                println!("the indicator {}/{} is {state}", indicator.component, indicator.name);
                return Ok(());
            }
        }
    }
    let text = format!("the BMC of {node} has no identify LED; locate the machine by its serial number");
    Err(coded(NOT_AVAILABLE, text))
}

/// The versions of firmware, one in a line.
pub(crate) fn firmware(answer: &Value) -> String {
    let text = |one: &Value, key: &str| none(one[key].as_str());
    let components = answer["firmware"].as_array().into_iter().flatten();
    table(
        ["Component", "Version"],
        components.map(|one| [text(one, "component"), text(one, "current_version")]),
    )
}

/// What sensors say, one in a line: whatever their kind calls what it measures.
pub(crate) fn sensors(answer: &Value) -> anyhow::Result<String> {
    let kinds =
        answer["sensors"].as_object().context("the response has no sensors").code(UNREADABLE_RESPONSE)?;
    let rows = kinds.iter().flat_map(|(kind, sensors)| {
        sensors.as_object().into_iter().flatten().map(move |(name, sensor)| {
            let values = sensor.as_object();
            let reading = values.and_then(reading).unwrap_or_else(|| "None".to_owned());
            [kind.clone(), name.clone(), reading, none(sensor["health"].as_str())]
        })
    });
    Ok(table(["Kind", "Sensor", "Reading", "Health"], rows))
}

/// The reading with its unit, if that is known.
fn reading(values: &Map<String, Value>) -> Option<String> {
    const READINGS: [(&str, &str); 4] = [
        ("reading", ""),
        ("reading_celsius", "°C"),
        ("last_power_output_watts", "W"),
        ("line_input_voltage", "V"),
    ];
    let (key, unit) = READINGS.iter().find(|(key, _)| values.get(*key).is_some_and(|one| !one.is_null()))?;
    let unit = values.get("reading_units").and_then(Value::as_str).unwrap_or(unit);
    let value = values[*key].as_str().map_or_else(|| values[*key].to_string(), str::to_owned);
    Some(format!("{value} {unit}").trim_end().to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn sensors_and_versions_are_shown_one_in_a_line() {
        let answer = json!({"sensors": {
            "Fan": {"0@1": {"reading": 2100, "reading_units": "RPM", "health": "OK"}},
            "Power": {"1@1": {"last_power_output_watts": 94.5, "line_input_voltage": 230, "health": null}},
            "Temperature": {"3@1": {"reading_celsius": 21.5}, "4@1": {"reading_celsius": null}},
        }});
        assert_eq!(
            sensors(&answer).unwrap(),
            "Kind         Sensor  Reading   Health\n\
             Fan          0@1     2100 RPM  OK\n\
             Power        1@1     94.5 W    None\n\
             Temperature  3@1     21.5 °C   None\n\
             Temperature  4@1     None      None\n"
        );
        let answer = json!({"firmware": [{"component": "bmc", "current_version": "iLO 5 v2.44"}]});
        assert_eq!(firmware(&answer), "Component  Version\nbmc        iLO 5 v2.44\n");
    }
}
