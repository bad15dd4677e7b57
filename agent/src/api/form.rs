//! Whether a JSON value has the form of another: the same keys and the same types.

use serde_json::Value;

/// Objects under these names have keys that are data: names of managers, classes and arguments.
const MAPS: &[&str] =
    &["argsinfo", "clean_steps", "deploy_steps", "service_steps", "hardware_manager_version"];

/// Where `value` has not the form of `sample`, a line each. An entry of a list must look like one of
/// the sample's: keys that all of them have are needed, those that some have are allowed.
pub fn differences(value: &Value, sample: &Value) -> Vec<String> {
    let mut found = Vec::new();
    compare("", value, &[sample], &mut found);
    found
}

fn compare(place: &str, value: &Value, samples: &[&Value], found: &mut Vec<String>) {
    if !samples.iter().any(|sample| type_of(sample) == type_of(value)) {
        let wanted: Vec<_> = samples.iter().map(|sample| type_of(sample)).collect();
        found.push(format!("{place}: {} instead of {}", type_of(value), wanted.join(" or ")));
        return;
    }
    match value {
        Value::Array(entries) => {
            let samples: Vec<_> = samples.iter().filter_map(|sample| sample.as_array()).flatten().collect();
            // An empty list says nothing about its entries.
            for entry in entries.iter().filter(|_| !samples.is_empty()) {
                compare(&format!("{place}[]"), entry, &samples, found);
            }
        }
        Value::Object(_) => compare_objects(place, value, samples, found),
        _ => {}
    }
}

fn compare_objects(place: &str, value: &Value, samples: &[&Value], found: &mut Vec<String>) {
    let samples: Vec<_> = samples.iter().filter_map(|sample| sample.as_object()).collect();
    let is_map = MAPS.iter().any(|name| place.ends_with(&format!(".{name}")));
    for (key, value) in value.as_object().into_iter().flatten() {
        let known: Vec<_> = match is_map {
            true => samples.iter().flat_map(|sample| sample.values()).collect(),
            false => samples.iter().filter_map(|sample| sample.get(key)).collect(),
        };
        match (known.is_empty(), is_map) {
            (true, false) => found.push(format!("{place}.{key}: unknown")),
            (true, true) => {}
            (false, _) => compare(&format!("{place}.{key}"), value, &known, found),
        }
    }
    let Some(first) = samples.first().filter(|_| !is_map) else { return };
    let needed = first.keys().filter(|key| samples.iter().all(|sample| sample.contains_key(*key)));
    for key in needed.filter(|key| value.get(key).is_none()) {
        found.push(format!("{place}.{key}: missing"));
    }
}

fn type_of(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "boolean",
        Value::Number(number) if number.is_f64() => "float",
        Value::Number(_) => "integer",
        Value::String(_) => "string",
        Value::Array(_) => "array",
        Value::Object(_) => "object",
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn keys_and_types_count_and_values_do_not() {
        for (value, sample, expected) in [
            (json!({"a": 1, "b": "x"}), json!({"a": 2, "b": "y"}), vec![]),
            (json!({"a": 1.5}), json!({"a": 2}), vec![".a: float instead of integer"]),
            (json!({"a": null}), json!({}), vec![".a: unknown"]),
            (json!({}), json!({"a": null}), vec![".a: missing"]),
            (json!([]), json!([{"a": 1}]), vec![]),
            (json!([1]), json!([]), vec![]),
            (json!([{"a": 1}]), json!([{"a": 1}, {"a": 2, "b": 3}]), vec![]),
            (json!([{"b": 1}]), json!([{"a": 1}, {"a": 2, "b": 3}]), vec!["[].a: missing"]),
            (json!({"argsinfo": {"x": {"d": 1}}}), json!({"argsinfo": {"y": {"d": 2}}}), vec![]),
            (
                json!({"argsinfo": {"x": 1}}),
                json!({"argsinfo": {"y": {}}}),
                vec![".argsinfo.x: integer instead of object"],
            ),
        ] {
            assert_eq!(differences(&value, &sample), expected, "{value} {sample}");
        }
    }
}
