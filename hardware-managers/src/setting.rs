//! Settings of steps in the node's record: what an operator or a conductor wrote there, or the default.

use crate::error::StepError;
use farrier_protocol::lookup::Node;
use serde_json::{Map, Value};
use std::path::PathBuf;
use std::time::Duration;

/// The part of a node's record in which settings are looked for.
#[derive(Debug, Clone, Copy)]
pub struct Section<'a> {
    place: &'static str,
    map: &'a Map<String, Value>,
}

/// Units of time behind a number, in seconds.
const UNITS: &[(char, u64)] =
    &[('s', 1), ('m', 60), ('h', 3600), ('d', 86_400), ('w', 604_800), ('y', 31_536_000)];
/// Longest time that a setting may ask for: a hundred years, in seconds.
const LONGEST: u64 = 100 * 31_536_000;

impl<'a> Section<'a> {
    /// What the operator sets.
    pub fn driver_info(node: &'a Node) -> Self {
        Self { place: "driver_info", map: &node.driver_info }
    }

    /// What the conductor sets.
    pub fn driver_internal_info(node: &'a Node) -> Self {
        Self { place: "driver_internal_info", map: &node.driver_internal_info }
    }

    /// What the user of the machine sets.
    pub fn instance_info(map: &'a Map<String, Value>) -> Self {
        Self { place: "instance_info", map }
    }

    /// A value as it came; nothing when it is not set.
    pub fn get(&self, key: &str) -> Option<&'a Value> {
        self.map.get(key).filter(|value| !value.is_null())
    }

    /// A yes or no, also as text.
    ///
    /// # Errors
    ///
    /// [`StepError::InvalidSetting`], as everywhere below: nothing is done by guesswork.
    pub fn switch(&self, key: &'static str, default: bool) -> Result<bool, StepError> {
        self.read(key, "true or false", truth).map(|value| value.unwrap_or(default))
    }

    /// A whole number, also as text.
    ///
    /// # Errors
    ///
    /// As above.
    pub fn number(&self, key: &'static str, default: u64) -> Result<u64, StepError> {
        self.read(key, "a whole number", number).map(|value| value.unwrap_or(default))
    }

    /// A time as a number of seconds, or with one of the units s, m, h, d, w and y behind the number.
    ///
    /// # Errors
    ///
    /// As above.
    pub fn duration(&self, key: &'static str, default: Duration) -> Result<Duration, StepError> {
        self.read(key, "a number of seconds, such as 3600 or 1h", duration)
            .map(|value| value.unwrap_or(default))
    }

    /// A text that is not empty.
    ///
    /// # Errors
    ///
    /// As above.
    pub fn text(&self, key: &'static str) -> Result<Option<&'a str>, StepError> {
        self.read(key, "a text", |value| value.as_str().filter(|text| !text.is_empty()))
    }

    /// The absolute path of a file or folder.
    ///
    /// # Errors
    ///
    /// As above.
    pub fn path(&self, key: &'static str) -> Result<Option<PathBuf>, StepError> {
        let absolute = |value: &Value| value.as_str().map(PathBuf::from).filter(|path| path.is_absolute());
        self.read(key, "a path that begins with a slash", absolute)
    }

    /// A share in percent, or a size as a number with one of the units b, k, m, g and t behind it.
    ///
    /// # Errors
    ///
    /// As above.
    pub fn share(&self, key: &'static str, default: &str) -> Result<String, StepError> {
        let value = self.read(key, "a share or size, such as 90% or 2g", share)?;
        Ok(value.unwrap_or_else(|| default.to_owned()))
    }

    /// The value of a setting as `parse` understands it.
    ///
    /// # Errors
    ///
    /// As above.
    pub fn read<T>(
        &self,
        key: &'static str,
        expected: &'static str,
        parse: impl FnOnce(&'a Value) -> Option<T>,
    ) -> Result<Option<T>, StepError> {
        let Some(value) = self.get(key) else { return Ok(None) };
        let place = self.place;
        let invalid = || StepError::InvalidSetting { place, key, value: value.to_string(), expected };
        parse(value).map(Some).ok_or_else(invalid)
    }
}

fn truth(value: &Value) -> Option<bool> {
    match value {
        Value::Bool(value) => Some(*value),
        Value::String(text) if text.eq_ignore_ascii_case("true") => Some(true),
        Value::String(text) if text.eq_ignore_ascii_case("false") => Some(false),
        _ => None,
    }
}

fn number(value: &Value) -> Option<u64> {
    value.as_u64().or_else(|| value.as_str()?.trim().parse().ok())
}

fn duration(value: &Value) -> Option<Duration> {
    let with_unit = |text: &str| {
        let (count, (_, seconds)) = UNITS.iter().find_map(|unit| Some((text.strip_suffix(unit.0)?, unit)))?;
        count.parse::<u64>().ok()?.checked_mul(*seconds)
    };
    let seconds = number(value).or_else(|| with_unit(value.as_str()?.trim()))?;
    // Longer ones are mistakes, and the clock cannot be set so far ahead.
    (seconds <= LONGEST).then(|| Duration::from_secs(seconds))
}

fn share(value: &Value) -> Option<String> {
    let text = value.as_str().map_or_else(|| value.to_string(), |text| text.trim().to_lowercase());
    let count = text.strip_suffix(['%', 'b', 'k', 'm', 'g', 't']).unwrap_or(&text);
    let is_number = !count.is_empty() && count.bytes().all(|byte| byte.is_ascii_digit());
    is_number.then_some(text)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn node(value: Value) -> Node {
        Node { driver_info: serde_json::from_value(json!({"key": value})).unwrap(), ..Node::default() }
    }

    #[test]
    fn settings_are_read_as_numbers_and_as_texts() {
        for (value, expected) in [
            (json!(null), Some(7)),
            (json!(60), Some(60)),
            (json!(" 60"), Some(60)),
            (json!("60s"), Some(60)),
            (json!("2h"), Some(7200)),
            (json!("1d"), Some(86_400)),
            (json!("99999999999999999999y"), None),
            (json!("9999999999999y"), None),
            (json!("100y"), Some(100 * 31_536_000)),
            (json!("101y"), None),
            (json!(u64::MAX), None),
            (json!("h"), None),
            (json!("--help"), None),
            (json!(-1), None),
            (json!(1.5), None),
        ] {
            let node = node(value.clone());
            let read = Section::driver_info(&node).duration("key", Duration::from_secs(7));
            assert_eq!(read.ok().map(|time| time.as_secs()), expected, "{value}");
        }
    }

    #[test]
    fn shares_and_paths_cannot_be_taken_for_options() {
        for (value, expected) in [
            (json!(null), Some("98%")),
            (json!("50%"), Some("50%")),
            (json!("2G"), Some("2g")),
            (json!(1024), Some("1024")),
            (json!("--log-file"), None),
            (json!("%"), None),
            (json!("1 g"), None),
        ] {
            let node = node(value.clone());
            assert_eq!(Section::driver_info(&node).share("key", "98%").ok().as_deref(), expected, "{value}");
        }
        for (value, is_good) in [(json!("/tmp/x"), true), (json!("x"), false), (json!(1), false)] {
            let node = node(value.clone());
            assert_eq!(Section::driver_info(&node).path("key").is_ok(), is_good, "{value}");
        }
    }

    #[test]
    fn an_error_names_the_place_and_the_key() {
        let text = Section::driver_info(&node(json!("many"))).number("key", 1).unwrap_err().to_string();
        assert!(text.starts_with("driver_info key is \"many\", expected a whole number"), "{text}");
    }
}
