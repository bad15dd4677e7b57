//! What is, or is to be, deployed (section 1.9).

use crate::model::typed_maps::capabilities::Capabilities;
use crate::model::typed_maps::typed_map::{BadValue, typed_map};
use farrier_protocol::lookup::MASKED;
use serde_json::Value;

typed_map! {
    /// What is, or is to be, deployed. The config drive is kept elsewhere: here stands only that there is one.
    InstanceInfo = "instance_info"
}

/// The key of the config drive.
const CONFIG_DRIVE: &str = "configdrive";

impl InstanceInfo {
    /// Takes the config drive out, and leaves its mask in its place.
    ///
    /// # Errors
    ///
    /// It is neither a text nor an object, or is the mask itself, which a reader of the record got in its place.
    pub fn take_config_drive(&mut self) -> Result<Option<String>, BadValue> {
        let refuse = |reason: &str| Err(BadValue::new(Self::FIELD, CONFIG_DRIVE, reason));
        let content = match self.get(CONFIG_DRIVE) {
            None | Some(Value::Null) => return Ok(None),
            Some(Value::String(text)) if text == MASKED => {
                return refuse("is masked; give the config drive itself");
            }
            Some(Value::String(text)) if !text.is_empty() => text.clone(),
            Some(_) => return refuse("must be a non-empty text"),
        };
        self.insert(CONFIG_DRIVE.to_owned(), MASKED.into());
        Ok(Some(content))
    }

    /// What the instance wants of its machine.
    ///
    /// # Errors
    ///
    /// `capabilities` cannot be read.
    pub fn capabilities(&self) -> Result<Capabilities, BadValue> {
        Capabilities::read(self, Self::FIELD)
    }

    /// Traits that the machine must have.
    pub fn traits(&self) -> impl Iterator<Item = &str> {
        self.get("traits").and_then(Value::as_array).into_iter().flatten().filter_map(Value::as_str)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn info(value: Value) -> InstanceInfo {
        serde_json::from_value(value).unwrap()
    }

    #[test]
    fn a_config_drive_leaves_its_mask() {
        let mut with_one = info(json!({"configdrive": "H4sI", "image_source": "http://h/i"}));
        assert_eq!(with_one.take_config_drive().unwrap().as_deref(), Some("H4sI"));
        assert_eq!(with_one, info(json!({"configdrive": "******", "image_source": "http://h/i"})));
        let mut without = info(json!({"configdrive": null}));
        assert_eq!(without.take_config_drive(), Ok(None));
    }

    #[test]
    fn s48_a_mask_is_not_taken_for_a_config_drive() {
        for (value, part) in [(json!("******"), "masked"), (json!(""), "non-empty"), (json!(1), "non-empty")]
        {
            let error = info(json!({"configdrive": value})).take_config_drive().unwrap_err().to_string();
            assert!(error.starts_with("instance_info configdrive: ") && error.contains(part), "{error}");
        }
    }

    #[test]
    fn traits_are_texts() {
        let traits = info(json!({"traits": ["CUSTOM_GOLD", 1, "HW_CPU_X86_VMX"]}));
        assert_eq!(traits.traits().collect::<Vec<_>>(), ["CUSTOM_GOLD", "HW_CPU_X86_VMX"]);
        assert_eq!(info(json!({"traits": "x"})).traits().count(), 0);
    }
}
