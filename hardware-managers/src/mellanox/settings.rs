//! The step that sets parameters of firmware (section 9.13).

use super::card::{self, Card};
use super::query::{is_same, parameters};
use super::{Fault, Tools};
use crate::error::StepError;
use crate::manager::StepCall;
use serde::Deserialize;
use serde_json::{Map, Value, json};
use std::collections::BTreeMap;
use std::path::Path;

/// Name of the argument.
pub const ARGUMENT: &str = "settings";

/// Parameters of one kind of card, as they are ordered.
#[derive(Debug, Clone, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Ordered {
    #[serde(rename = "deviceID")]
    device: String,
    #[serde(default)]
    global_config: Option<Map<String, Value>>,
    #[serde(default)]
    function0_config: Option<Map<String, Value>>,
    #[serde(default)]
    function1_config: Option<Map<String, Value>>,
}

/// Parameters of one function.
type Wanted = BTreeMap<String, String>;

/// Sets the parameters of each card that have another value.
///
/// # Errors
///
/// A [`Fault`] in the class of the phase; nothing was set unless every parameter exists.
pub fn update(call: &StepCall<'_>, tools: &Tools, root: &Path) -> Result<Value, StepError> {
    try_update(call, tools, root).map_err(|fault| fault.of_step(call.phase))
}

fn try_update(call: &StepCall<'_>, tools: &Tools, root: &Path) -> Result<Value, Fault> {
    let ordered = parse(&call.arguments[ARGUMENT])?;
    tools.require()?;
    let mut work = Vec::new();
    for card in card::discover(root) {
        let Some(order) = ordered.get(card.device()) else { continue };
        // The parameters are those of the firmware that will run.
        if card.firmware(tools)?.is_pending() {
            tools.reset(card.address())?;
        }
        work.extend(order.of_functions(&card));
    }
    for (address, wanted) in &work {
        require_known(address, wanted, tools)?;
    }
    let reports = work.iter().map(|(address, wanted)| set(address, wanted, tools));
    reports.collect::<Result<Vec<_>, _>>().map(Value::from)
}

/// What is ordered by the kind of card.
fn parse(argument: &Value) -> Result<BTreeMap<String, Ordered>, Fault> {
    let fail = |reason: String| Fault::Argument { argument: ARGUMENT, reason };
    let list: Vec<Ordered> =
        serde_json::from_value(argument.clone()).map_err(|error| fail(error.to_string()))?;
    let mut by_device = BTreeMap::new();
    for ordered in list {
        let device = ordered.device.to_lowercase();
        if device.is_empty() {
            return Err(fail("a deviceID is empty".to_owned()));
        }
        for (name, value) in ordered.configs().flatten() {
            if text(value).is_none() || !is_name(name) {
                return Err(fail(format!(
                    "{name} = {value} is no parameter with a text, number or truth value"
                )));
            }
        }
        if by_device.insert(device, ordered.clone()).is_some() {
            return Err(fail(format!("two settings are for deviceID {}", ordered.device)));
        }
    }
    Ok(by_device)
}

impl Ordered {
    fn configs(&self) -> impl Iterator<Item = &Map<String, Value>> {
        [&self.global_config, &self.function0_config, &self.function1_config].into_iter().flatten()
    }

    /// Addresses with their settings: global ones belong to the first function.
    fn of_functions(&self, card: &Card) -> Vec<(String, Wanted)> {
        let maps = [[&self.global_config, &self.function0_config], [&self.function1_config, &None]];
        let functions = card.functions.iter().zip(maps);
        let wanted = functions.map(|(function, maps)| {
            let entries = maps.into_iter().flatten().flatten();
            let entries = entries.filter_map(|(name, value)| Some((name.clone(), text(value)?)));
            (function.address.clone(), entries.collect::<Wanted>())
        });
        wanted.filter(|(_, wanted)| !wanted.is_empty()).collect()
    }
}

/// A value as it stands on a command line.
fn text(value: &Value) -> Option<String> {
    match value {
        Value::Bool(true) => Some("True".to_owned()),
        Value::Bool(false) => Some("False".to_owned()),
        Value::Number(number) => Some(number.to_string()),
        Value::String(text) => Some(text.clone()).filter(|text| !text.is_empty()),
        _ => None,
    }
}

/// Whether it can be the name of a parameter, or of elements of one: `NAME`, `NAME[3]`, `NAME[0..7]`.
fn is_name(name: &str) -> bool {
    let letters =
        |text: &str| !text.is_empty() && text.chars().all(|one| one.is_ascii_alphanumeric() || one == '_');
    letters(base(name)) && (base(name) == name || elements(name).is_some())
}

fn base(name: &str) -> &str {
    name.split('[').next().unwrap_or(name)
}

/// The first and last element in `…[3]` or `…[0..7]`.
fn elements(text: &str) -> Option<(u32, u32)> {
    let (_, range) = text.strip_suffix(']')?.split_once('[')?;
    let (first, last) = range.split_once("..").unwrap_or((range, range));
    let (first, last) = (first.parse().ok()?, last.parse().ok()?);
    (first <= last).then_some((first, last))
}

/// Both the program and the card have to know each parameter.
fn require_known(address: &str, wanted: &Wanted, tools: &Tools) -> Result<(), Fault> {
    let described = tools.known_parameters(address)?;
    let current = parameters(&tools.parameters(address)?);
    for name in wanted.keys() {
        let unknown = |reason| Fault::Parameter { card: address.to_owned(), parameter: name.clone(), reason };
        let is_described = described.split(|one: char| !one.is_ascii_alphanumeric() && one != '_');
        if !is_described.into_iter().any(|word| word == base(name)) {
            return Err(unknown("mstconfig does not know it; pack a newer package mstflint"));
        }
        let Some(value) = current.get(base(name)) else {
            return Err(unknown("its firmware does not know it; update that first"));
        };
        if let Some((first, last)) = elements(name) {
            let has = elements(value).is_some_and(|(low, high)| low <= first && last <= high);
            if !has {
                return Err(unknown("it has no such elements"));
            }
        }
    }
    Ok(())
}

/// Sets what differs, and sees that it was set. The values of elements are not shown and always set.
fn set(address: &str, wanted: &Wanted, tools: &Tools) -> Result<Value, Fault> {
    let current = parameters(&tools.parameters(address)?);
    let is_set = |current: &BTreeMap<String, String>, name: &String, value: &String| {
        current.get(name).is_some_and(|shown| is_same(shown, value))
    };
    let changes: Vec<_> = wanted.iter().filter(|(name, value)| !is_set(&current, name, value)).collect();
    let assignments: Vec<_> = changes.iter().map(|(name, value)| format!("{name}={value}")).collect();
    if !assignments.is_empty() {
        tracing::info!(card = address, "setting {}", assignments.join(" "));
        tools.set(address, &assignments)?;
        let now = parameters(&tools.parameters(address)?);
        let lost =
            changes.iter().find(|(name, value)| elements(name).is_none() && !is_set(&now, name, value));
        if let Some((name, value)) = lost {
            return Err(Fault::NotDone {
                card: address.to_owned(),
                what: (*name).clone(),
                found: now.get(*name).cloned().unwrap_or_else(|| "gone".to_owned()),
                expected: (*value).clone(),
            });
        }
    }
    Ok(json!({"card": address, "set": assignments}))
}

#[cfg(test)]
mod tests {
    use super::super::fake_cards::FakeCards;
    use super::*;

    fn run(cards: &FakeCards, settings: Value) -> Result<Value, String> {
        let update = |call: &StepCall<'_>| update(call, &cards.tools(), cards.root());
        cards.call(ARGUMENT, settings, &update)
    }

    #[test]
    fn what_differs_is_set_on_its_function() {
        let cards = FakeCards::new();
        let settings = json!([
            {
                "deviceID": "101B",
                "globalConfig": {"SRIOV_EN": true, "LINK_TYPE_P1": "ETH", "CHAIN[0..3]": 7},
                "function0Config": {"NUM_OF_VFS": 8},
                "function1Config": {"NUM_OF_VFS": 16},
            },
            {"deviceID": "ffff", "globalConfig": {"NO_SUCH": 1}},
        ]);
        let expected = json!([
            {"card": "0000:3b:00.0", "set": ["CHAIN[0..3]=7", "SRIOV_EN=True"]},
            {"card": "0000:3b:00.1", "set": ["NUM_OF_VFS=16"]},
        ]);
        assert_eq!(run(&cards, settings).unwrap(), expected);
        let set = cards.calls(" set ");
        assert_eq!(
            set,
            ["-d 0000:3b:00.0 -y set CHAIN[0..3]=7 SRIOV_EN=True", "-d 0000:3b:00.1 -y set NUM_OF_VFS=16"]
        );
        assert!(cards.calls("reset").is_empty());
    }

    #[test]
    fn a_firmware_that_waits_for_the_next_start_is_started_first() {
        let cards = FakeCards::new();
        cards.set_running("20.31.1014");
        run(&cards, json!([{"deviceID": "101b", "globalConfig": {"SRIOV_EN": 0}}])).unwrap();
        assert_eq!(cards.calls("reset").len(), 1);
        assert!(cards.calls(" set ").is_empty(), "it has that value already");
    }

    #[test]
    fn what_cannot_be_set_is_refused_before_anything_is() {
        let cards = FakeCards::new();
        let global = |config: Value| json!([{"deviceID": "101b", "globalConfig": config}]);
        for (settings, told) in [
            (json!("x"), "settings: "),
            (json!([{"globalConfig": {}}]), "deviceID"),
            (json!([{"deviceID": ""}]), "deviceID is empty"),
            (json!([{"deviceID": "101b"}, {"deviceID": "101B"}]), "two settings"),
            (global(json!({"SRIOV_EN": [1]})), "SRIOV_EN"),
            (global(json!({"-y": 1})), "-y"),
            (global(json!({"CHAIN[a]": 1})), "CHAIN[a]"),
            (global(json!({"SRIOV_EN": 1, "NO_SUCH": 1})), "NO_SUCH: mstconfig does not know it"),
            (global(json!({"TOOL_ONLY": 1})), "TOOL_ONLY: its firmware"),
            (global(json!({"CHAIN[6..8]": 1})), "no such elements"),
            (global(json!({"SRIOV_EN[0]": 1})), "no such elements"),
        ] {
            let error = run(&cards, settings.clone()).unwrap_err();
            assert!(error.contains(told), "{settings}: {error}");
        }
        assert!(cards.calls(" set ").is_empty());
    }

    #[test]
    fn success_that_the_card_does_not_show_is_a_failure() {
        let cards = FakeCards::new();
        cards.lie();
        let error =
            run(&cards, json!([{"deviceID": "101b", "globalConfig": {"SRIOV_EN": true}}])).unwrap_err();
        assert!(error.contains("0000:3b:00.0: SRIOV_EN is False(0)"), "{error}");
    }
}
