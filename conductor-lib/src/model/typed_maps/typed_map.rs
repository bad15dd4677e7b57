//! Maps that operators fill: every key stays, and those the conductor knows are read by their type.

use serde_json::{Map, Value};

/// A value of such a map cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{map} {key}: {reason}")]
pub struct BadValue {
    /// Field of the record.
    pub map: &'static str,
    /// The key.
    pub key: String,
    /// What is wrong, and what would be right.
    pub reason: String,
}

impl BadValue {
    pub(in crate::model) fn new(map: &'static str, key: &str, reason: impl Into<String>) -> Self {
        Self { map, key: key.to_owned(), reason: reason.into() }
    }
}

/// Texts that mean yes and no where a boolean is wanted; upper case is as good.
const YES: &[&str] = &["true", "yes", "on", "t", "y", "1"];
const NO: &[&str] = &["false", "no", "off", "f", "n", "0"];

/// A text; nothing when the key is absent or null.
pub(in crate::model) fn text<'a>(
    map: &'a Map<String, Value>,
    name: &'static str,
    key: &str,
) -> Read<&'a str> {
    match map.get(key) {
        None | Some(Value::Null) => Ok(None),
        Some(Value::String(text)) if !text.is_empty() => Ok(Some(text)),
        Some(_) => Err(BadValue::new(name, key, "must be a non-empty text")),
    }
}

/// A boolean, or a text that stands for one and nothing else; nothing when the key is absent or null.
pub(in crate::model) fn flag(map: &Map<String, Value>, name: &'static str, key: &str) -> Read<bool> {
    let word = match map.get(key) {
        None | Some(Value::Null) => return Ok(None),
        Some(Value::Bool(flag)) => return Ok(Some(*flag)),
        Some(Value::String(word)) => word.trim().to_ascii_lowercase(),
        Some(other) => other.to_string(),
    };
    match (YES.contains(&word.as_str()), NO.contains(&word.as_str())) {
        (true, _) => Ok(Some(true)),
        (_, true) => Ok(Some(false)),
        _ => Err(BadValue::new(name, key, format!("{word:?} must be true or false"))),
    }
}

type Read<T> = Result<Option<T>, BadValue>;

/// A map of the record with a name of its own, which is a map wherever one is needed.
macro_rules! typed_map {
    ($(#[$meta:meta])* $name:ident = $field:literal) => {
        $(#[$meta])*
        #[derive(Debug, Clone, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
        #[serde(transparent)]
        pub struct $name(pub serde_json::Map<String, serde_json::Value>);

        impl $name {
            /// Its name in the record.
            pub const FIELD: &'static str = $field;

            /// A text; nothing when the key is absent or null.
            ///
            /// # Errors
            ///
            /// The value is anything else, or empty.
            pub fn text(&self, key: &str) -> Result<Option<&str>, $crate::model::BadValue> {
                $crate::model::typed_maps::typed_map::text(&self.0, Self::FIELD, key)
            }

            /// A boolean, or a text that stands for one; nothing when the key is absent or null.
            ///
            /// # Errors
            ///
            /// The value is anything else.
            pub fn flag(&self, key: &str) -> Result<Option<bool>, $crate::model::BadValue> {
                $crate::model::typed_maps::typed_map::flag(&self.0, Self::FIELD, key)
            }
        }

        impl std::ops::Deref for $name {
            type Target = serde_json::Map<String, serde_json::Value>;

            fn deref(&self) -> &Self::Target {
                &self.0
            }
        }

        impl std::ops::DerefMut for $name {
            fn deref_mut(&mut self) -> &mut Self::Target {
                &mut self.0
            }
        }

        impl From<serde_json::Map<String, serde_json::Value>> for $name {
            fn from(map: serde_json::Map<String, serde_json::Value>) -> Self {
                Self(map)
            }
        }
    };
}
pub(in crate::model) use typed_map;

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_text_is_a_text_and_not_empty() {
        let map = json!({"a": "x", "null": null, "empty": "", "number": 1});
        let map = map.as_object().unwrap();
        assert_eq!(text(map, "m", "a"), Ok(Some("x")));
        assert_eq!(text(map, "m", "null"), Ok(None));
        assert_eq!(text(map, "m", "absent"), Ok(None));
        for key in ["empty", "number"] {
            let error = text(map, "m", key).unwrap_err().to_string();
            assert_eq!(error, format!("m {key}: must be a non-empty text"));
        }
    }

    #[test]
    fn only_what_stands_for_a_boolean_is_one() {
        for (value, expected) in [
            (json!(true), Some(Some(true))),
            (json!("True"), Some(Some(true))),
            (json!("off"), Some(Some(false))),
            (json!(0), Some(Some(false))),
            (json!("1"), Some(Some(true))),
            (json!(null), Some(None)),
            (json!("maybe"), None),
            (json!(""), None),
            (json!(2), None),
            (json!({}), None),
        ] {
            let map = Map::from_iter([("key".to_owned(), value.clone())]);
            assert_eq!(flag(&map, "m", "key").ok(), expected, "{value}");
        }
    }
}
