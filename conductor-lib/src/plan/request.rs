//! The steps that an operator asks for, as they come with a request (section 3.1).

use super::fault::StepFault;
use crate::model::{RequestedStep, StepId, StepKind};
use serde_json::{Map, Value};

/// The keys of a step that must be there, and those that may be.
type Keys = (&'static [&'static str], &'static [&'static str]);

/// Those of runbooks, whose steps are for cleaning and service alike.
const OF_RUNBOOKS: Keys = (&["interface", "step", "args", "order"], &[]);

fn keys(kind: StepKind) -> Keys {
    match kind {
        StepKind::Deploy => (&["interface", "step", "args", "priority"], &[]),
        StepKind::Clean | StepKind::Service => (
            &["interface", "step"],
            &["args", "order", "execute_on_child_nodes", "limit_child_node_execution"],
        ),
    }
}

/// Reads the steps of a request, in the order in which they were given.
///
/// # Errors
///
/// All that is wrong with them. Steps on child nodes are refused: this conductor has none.
pub fn requested(kind: StepKind, steps: &[Value]) -> Result<Vec<RequestedStep>, Vec<StepFault>> {
    all(keys(kind), steps)
}

/// Reads the steps of a runbook, in the order that they say; those that say the same stay as they are given.
///
/// # Errors
///
/// All that is wrong with them.
pub fn requested_by_runbook(steps: &[Value]) -> Result<Vec<RequestedStep>, Vec<StepFault>> {
    let orders: Vec<_> = steps.iter().map(|step| step.get("order").and_then(order)).collect();
    let mut placed: Vec<_> = all(OF_RUNBOOKS, steps)?.into_iter().zip(orders).collect();
    placed.sort_by_key(|(_, order)| *order);
    Ok(placed.into_iter().map(|(step, _)| step).collect())
}

fn all(keys: Keys, steps: &[Value]) -> Result<Vec<RequestedStep>, Vec<StepFault>> {
    let mut faults = Vec::new();
    let mut requested = Vec::new();
    for (index, value) in steps.iter().enumerate() {
        match read(keys, value) {
            Ok(step) => requested.push(step),
            Err(reasons) => {
                faults.extend(
                    reasons.into_iter().map(|reason| StepFault::Unreadable { number: index + 1, reason }),
                );
            }
        }
    }
    if faults.is_empty() { Ok(requested) } else { Err(faults) }
}

/// Where a step stands in a runbook: a number, or a text with one.
fn order(value: &Value) -> Option<u64> {
    value.as_u64().or_else(|| value.as_str()?.parse().ok())
}

fn read((needed, allowed): Keys, value: &Value) -> Result<RequestedStep, Vec<String>> {
    let Some(map) = value.as_object() else { return Err(vec!["must be an object".to_owned()]) };
    let mut faults: Vec<_> = map
        .keys()
        .filter(|key| !needed.contains(&key.as_str()) && !allowed.contains(&key.as_str()))
        .map(|key| format!("has the unknown key {key:?}"))
        .collect();
    faults.extend(needed.iter().filter(|key| !map.contains_key(**key)).map(|key| format!("lacks {key:?}")));
    let mut text = |key: &str| match map.get(key) {
        Some(Value::String(text)) if !text.is_empty() => text.clone(),
        None => String::new(),
        Some(_) => {
            faults.push(format!("{key:?} must be a non-empty text"));
            String::new()
        }
    };
    let id = StepId::new(text("interface"), text("step"));
    let args = match map.get("args") {
        Some(Value::Object(args)) => args.clone(),
        None | Some(Value::Null) => Map::new(),
        Some(_) => {
            faults.push("\"args\" must be an object".to_owned());
            Map::new()
        }
    };
    let priority = match map.get("priority").map(|priority| priority.as_i64().filter(|number| *number >= 0)) {
        Some(None) => {
            faults.push("\"priority\" must be a whole number of 0 and more".to_owned());
            None
        }
        given => given.flatten(),
    };
    if map.get("order").is_some_and(|given| order(given).is_none()) {
        faults.push("\"order\" must be a whole number of 0 and more".to_owned());
    }
    if map.get("execute_on_child_nodes").is_some_and(|value| *value != Value::Bool(false)) {
        faults.push("cannot run on child nodes: this conductor has none".to_owned());
    }
    if faults.is_empty() { Ok(RequestedStep { id, args, priority }) } else { Err(faults) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn faults(kind: StepKind, steps: Value) -> Vec<String> {
        let steps = steps.as_array().unwrap().clone();
        requested(kind, &steps).unwrap_err().iter().map(ToString::to_string).collect()
    }

    #[test]
    fn each_kind_has_its_own_keys() {
        let clean = json!([{"interface": "deploy", "step": "erase_devices"},
            {"interface": "raid", "step": "create_configuration", "args": {"x": 1}, "order": 2,
             "execute_on_child_nodes": false}]);
        let steps = requested(StepKind::Clean, clean.as_array().unwrap()).unwrap();
        assert_eq!(steps[0].id.to_string(), "deploy.erase_devices");
        assert_eq!((steps[1].args["x"].as_i64(), steps[1].priority), (Some(1), None));
        let deploy =
            json!([{"interface": "raid", "step": "apply_configuration", "args": {}, "priority": 90}]);
        assert_eq!(requested(StepKind::Deploy, deploy.as_array().unwrap()).unwrap()[0].priority, Some(90));
    }

    #[test]
    fn a_runbook_has_an_order_of_its_own() {
        let step = |name: &str, order: Value| json!({"interface": "deploy", "step": name, "args": {}, "order": order});
        let names = |steps: &[Value]| {
            let steps = requested_by_runbook(steps).unwrap();
            steps.into_iter().map(|step| step.id.step).collect::<Vec<_>>()
        };
        assert_eq!(
            names(&[step("b", json!(2)), step("a", json!("1")), step("c", json!(2))]),
            ["a", "b", "c"]
        );
        for (wrong, expected) in [
            (json!({"interface": "deploy", "step": "a", "args": {}}), "step 1 lacks \"order\""),
            (step("a", json!(-1)), "step 1 \"order\" must be a whole number of 0 and more"),
            (step("a", json!("x")), "step 1 \"order\" must be a whole number of 0 and more"),
        ] {
            assert_eq!(requested_by_runbook(&[wrong]).unwrap_err()[0].to_string(), expected);
        }
        let mut extra = step("a", json!(1));
        extra["priority"] = json!(1);
        assert_eq!(
            requested_by_runbook(&[extra]).unwrap_err()[0].to_string(),
            "step 1 has the unknown key \"priority\""
        );
    }

    #[test]
    fn all_that_is_wrong_is_told_at_once() {
        assert_eq!(
            faults(
                StepKind::Deploy,
                json!([
                    {"interface": "deploy", "step": "", "args": [], "priority": -1, "order": 1},
                    7,
                    {"interface": "deploy", "step": "x"},
                ])
            ),
            [
                "step 1 has the unknown key \"order\"",
                "step 1 \"step\" must be a non-empty text",
                "step 1 \"args\" must be an object",
                "step 1 \"priority\" must be a whole number of 0 and more",
                "step 2 must be an object",
                "step 3 lacks \"args\"",
                "step 3 lacks \"priority\"",
            ]
        );
        assert_eq!(
            faults(
                StepKind::Service,
                json!([{"interface": "a", "step": "b", "execute_on_child_nodes": true, "priority": 1}])
            ),
            [
                "step 1 has the unknown key \"priority\"",
                "step 1 cannot run on child nodes: this conductor has none"
            ]
        );
    }
}
