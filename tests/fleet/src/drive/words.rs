//! The words of an explanation, as they are shown to an operator.

use serde_json::Value;

/// The texts that tell what a node waits for, why, on what evidence, and what to do.
pub(super) fn of(explanation: &Value) -> String {
    let mut lines = Vec::new();
    for key in ["waits_for", "next_action"] {
        lines.extend(explanation[key].as_str().map(str::to_owned));
    }
    if !explanation["cause"].is_null() {
        lines.push(texts(&explanation["cause"]));
    }
    let evidence = explanation["evidence"].as_array().into_iter().flatten();
    lines.extend(evidence.map(texts));
    lines.join("\n")
}

/// All texts in a value.
fn texts(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        Value::Array(values) => joined(values.iter()),
        Value::Object(values) => joined(values.values()),
        Value::Null | Value::Bool(_) | Value::Number(_) => String::new(),
    }
}

fn joined<'a>(values: impl Iterator<Item = &'a Value>) -> String {
    let texts: Vec<_> = values.map(texts).filter(|text| !text.is_empty()).collect();
    texts.join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn an_explanation_is_read_as_a_whole() {
        let explanation = json!({
            "waits_for": "It waits for an operator.", "next_action": "Deploy it again.", "cause": null,
            "evidence": [{"what": "power", "said": "power off"}], "until": null,
        });
        assert_eq!(of(&explanation), "It waits for an operator.\nDeploy it again.\npower off power");
        assert_eq!(of(&Value::Null), "");
    }
}
