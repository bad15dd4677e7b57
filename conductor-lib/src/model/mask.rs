//! Secrets, and what stands in their place wherever a record leaves the conductor (lessons S40 and S48).

use farrier_protocol::lookup::MASKED;
use serde_json::{Map, Value};

/// Words in the names of keys whose values are secrets.
const SECRET: &[&str] = &["password", "token", "secret", "configdrive", "image_url"];

/// Puts the mask in the place of every secret of a map, however deep. A flag is none.
pub(crate) fn mask(map: &mut Map<String, Value>) {
    for (key, value) in map {
        let key = key.to_ascii_lowercase();
        match value {
            Value::Null | Value::Bool(_) => {}
            _ if SECRET.iter().any(|word| key.contains(word)) => *value = MASKED.into(),
            Value::Object(inner) => mask(inner),
            Value::Array(values) => {
                for inner in values.iter_mut().filter_map(Value::as_object_mut) {
                    mask(inner);
                }
            }
            _ => {}
        }
    }
}

/// A text with the mask in the place of each secret that a word such as `ipa-agent-token=…` gives: kernels print their
/// parameters on consoles.
pub(crate) fn masked_words(text: &str) -> String {
    let masked = |word: &str| match word.split_once('=') {
        Some((key, value)) if !value.is_empty() && is_secret(key) => format!("{key}={MASKED}"),
        _ => word.to_owned(),
    };
    text.split(' ').map(masked).collect::<Vec<_>>().join(" ")
}

/// Whether a kernel parameter is one, by its name.
fn is_secret(key: &str) -> bool {
    let key = key.to_ascii_lowercase();
    SECRET.iter().chain(&["pwd"]).any(|word| key.contains(word))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn s48_secrets_are_masked_however_deep() {
        let mut map = json!({
            "redfish_password": "x", "agent_secret_token": "x", "agent_secret_token_pregenerated": true,
            "ImagePullSecret": "x", "nothing_secret": null,
            "deep": {"token": {"a": "x"}, "list": [{"password": ["x"]}, "kept"]},
            "image_url": "x", "image_source": "kept",
        });
        mask(map.as_object_mut().unwrap());
        let text = map.to_string();
        assert!(!text.contains(r#""x""#), "{text}");
        assert_eq!(map["agent_secret_token_pregenerated"], true);
        assert_eq!(map["nothing_secret"], Value::Null);
        assert_eq!(map["deep"]["list"][1], "kept");
        assert_eq!(map["image_source"], "kept");
    }
}
