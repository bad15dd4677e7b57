//! A place in the list, as the address of the next page has it.

use farrier_engine::store::Position;
use serde_json::Value;
use std::fmt;
use uuid::Uuid;

/// The node after which a page begins.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Cursor {
    /// Whether it is among the nodes that need an operator; they come first where the list is in that order.
    pub(crate) needs_operator: bool,
    /// Its place in the order of the store.
    pub(crate) position: Position,
}

impl Cursor {
    /// Reads one; nothing where it is none.
    pub(crate) fn read(text: &str) -> Option<Self> {
        let mut parts = text.splitn(3, '.');
        let needs_operator = match parts.next()? {
            "operator" => true,
            "others" => false,
            _ => return None,
        };
        let uuid: Uuid = parts.next()?.parse().ok()?;
        let value = parts.next()?;
        let value = if value.is_empty() { Value::Null } else { value.into() };
        Some(Self { needs_operator, position: Position { value, uuid } })
    }
}

impl fmt::Display for Cursor {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let group = if self.needs_operator { "operator" } else { "others" };
        let value = self.position.value.as_str().unwrap_or_default();
        write!(formatter, "{group}.{}.{value}", self.position.uuid)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_cursor_is_read_as_it_was_written() {
        for (needs_operator, value) in [
            (true, json!("2026-11-28T10:00:00.123456Z")),
            (false, json!("a.name.with.dots")),
            (false, Value::Null),
        ] {
            let cursor = Cursor { needs_operator, position: Position { value, uuid: Uuid::new_v4() } };
            assert_eq!(Cursor::read(&cursor.to_string()), Some(cursor));
        }
        let nil = Uuid::nil();
        for text in ["", "operator", &format!("all.{nil}.x"), "others.no-uuid.x", &format!("others.{nil}")] {
            assert_eq!(Cursor::read(text), None, "{text}");
        }
    }
}
