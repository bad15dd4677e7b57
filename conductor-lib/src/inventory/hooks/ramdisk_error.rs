//! What the ramdisk says went wrong.

use crate::inventory::hooks::{Changes, Inspected};
use serde_json::Value;

/// Fails the inspection when a collector failed.
pub(super) fn look(inspected: &Inspected<'_>) -> Result<Changes, String> {
    match inspected.data.plugin_data.get("error") {
        None | Some(Value::Null) => Ok(Changes::default()),
        Some(Value::String(text)) if text.is_empty() => Ok(Changes::default()),
        Some(Value::String(text)) => Err(format!("the ramdisk says: {text}")),
        Some(other) => Err(format!("the ramdisk says: {other}")),
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::look;
    use serde_json::{Value, json};

    #[test]
    fn any_error_fails_the_inspection() {
        for (error, expected) in [
            (json!(null), None),
            (json!(""), None),
            (json!("* collector lldp: no socket"), Some("the ramdisk says: * collector lldp: no socket")),
            (json!(["a"]), Some("the ramdisk says: [\"a\"]")),
        ] {
            let refused = look("ramdisk-error", json!({}), json!({}), json!({"error": error})).err();
            assert_eq!(refused.as_deref(), expected);
        }
        assert!(look("ramdisk-error", json!({}), json!({}), Value::Object(Default::default())).is_ok());
    }
}
