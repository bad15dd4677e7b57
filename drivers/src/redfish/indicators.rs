//! The lights of a machine and of its enclosures: `LocationIndicatorActive`, and `IndicatorLED` of BMCs before it.

use super::client::bmc::Changed;
use super::client::error::RedfishError;
use super::client::resource::Resource;
use super::system::System;
use farrier_conductor::interfaces::{Indicator, IndicatorState};
use serde_json::{Value, json};

const SYSTEM: &str = "system";
const CHASSIS: &str = "chassis";
/// Most enclosures that are asked.
const MOST_ENCLOSURES: usize = 16;
/// The property of today, which is true or false, and the one before it.
const ACTIVE: &str = "LocationIndicatorActive";
const LED: &str = "IndicatorLED";
/// What the latter is.
const LEDS: [(&str, IndicatorState); 3] =
    [("Lit", IndicatorState::On), ("Off", IndicatorState::Off), ("Blinking", IndicatorState::Blinking)];

/// The lights. An enclosure that cannot be read takes nothing from the others.
///
/// # Errors
///
/// [`RedfishError`] when the machine cannot be read.
pub(super) async fn list(system: &System) -> Result<Vec<Indicator>, RedfishError> {
    Ok(resources(system).await?.into_iter().map(|(indicator, _)| indicator).collect())
}

/// What one of them does.
///
/// # Errors
///
/// [`RedfishError`].
pub(super) async fn state(system: &System, indicator: &Indicator) -> Result<IndicatorState, RedfishError> {
    Ok(read(&find(system, indicator).await?))
}

/// Has one of them do something, and looks whether it does.
///
/// # Errors
///
/// [`RedfishError`]; [`RedfishError::Lacks`] when the light has stayed as it was.
pub(super) async fn set(
    system: &System,
    indicator: &Indicator,
    state: IndicatorState,
) -> Result<(), RedfishError> {
    let seen = find(system, indicator).await?;
    let led = LEDS.iter().find(|(_, known)| *known == state).map(|(word, _)| *word);
    let change = match seen.at(&format!("/{ACTIVE}")) {
        Value::Bool(_) => json!({ACTIVE: state == IndicatorState::On}),
        _ => json!({LED: led}),
    };
    match system.bmc.change(seen.path(), &change, |now| read(now) == state).await? {
        Changed::Done => Ok(()),
        Changed::Not(now) => {
            let what = format!("a light that is {}, not {state}", read(&now));
            Err(system.lacks(&what, "look at the BMC's own page"))
        }
    }
}

async fn find(system: &System, wanted: &Indicator) -> Result<Resource, RedfishError> {
    let found = resources(system).await?.into_iter().find(|(indicator, _)| indicator == wanted);
    let gone = || system.lacks("a light no more that it had", "look at the BMC");
    found.map(|(_, resource)| resource).ok_or_else(gone)
}

/// What has a light.
async fn resources(system: &System) -> Result<Vec<(Indicator, Resource)>, RedfishError> {
    let seen = system.read().await?;
    let mut enclosures = Vec::new();
    for path in system.enclosures(&seen).await?.iter().take(MOST_ENCLOSURES) {
        match system.bmc.get(path).await {
            Ok(enclosure) => enclosures.push((CHASSIS, enclosure)),
            Err(error) => tracing::debug!("{error}"),
        }
    }
    let all = [(SYSTEM, seen)].into_iter().chain(enclosures);
    Ok(all.filter_map(|(component, resource)| Some((indicator(component, &resource)?, resource))).collect())
}

fn indicator(component: &str, resource: &Resource) -> Option<Indicator> {
    let last = resource.path().trim_end_matches('/').rsplit('/').next();
    let name = resource.text("/Id").or(last)?.to_owned();
    let states = match (resource.at(&format!("/{ACTIVE}")), resource.at(&format!("/{LED}"))) {
        (Value::Bool(_), _) => vec![IndicatorState::On, IndicatorState::Off],
        (_, Value::String(_)) => LEDS.map(|(_, state)| state).to_vec(),
        _ => return None,
    };
    Some(Indicator { component: component.to_owned(), name, states })
}

fn read(resource: &Resource) -> IndicatorState {
    match resource.at(&format!("/{ACTIVE}")) {
        Value::Bool(true) => IndicatorState::On,
        Value::Bool(false) => IndicatorState::Off,
        _ => {
            let said = resource.text(&format!("/{LED}"));
            let known = LEDS.iter().find(|(word, _)| said == Some(*word));
            known.map_or(IndicatorState::Unknown, |(_, state)| *state)
        }
    }
}
