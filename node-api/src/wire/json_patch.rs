//! JSON Patch (RFC 6902): the operations that Ironic takes, applied to a document.

use serde::Deserialize;
use serde_json::{Map, Value};

/// Most operations of one patch.
const LIMIT: usize = 1000;

/// What an operation does.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Op {
    /// Puts a value where there is none, or in the place of one; into an array before what is there.
    Add,
    /// Puts a value in the place of another.
    Replace,
    /// Takes a value away.
    Remove,
    /// Continues only if the value is this one.
    Test,
}

/// One operation.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Operation {
    pub(crate) op: Op,
    path: String,
    #[serde(default, deserialize_with = "given")]
    value: Option<Value>,
}

/// A value that is null is given too.
fn given<'de, D: serde::Deserializer<'de>>(deserializer: D) -> Result<Option<Value>, D::Error> {
    Value::deserialize(deserializer).map(Some)
}

/// An operation cannot be applied.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("patch {path}: {reason}")]
pub(crate) struct PatchError {
    path: String,
    reason: String,
}

/// Refuses an oversized patch.
pub(crate) fn check_length(patch: &[Operation]) -> Result<(), PatchError> {
    match patch.len() > LIMIT {
        true => Err(PatchError {
            path: "/".into(),
            reason: format!("has more than {LIMIT} operations; send fewer"),
        }),
        false => Ok(()),
    }
}

impl Operation {
    /// The field that it changes.
    pub(crate) fn field(&self) -> Result<String, PatchError> {
        Ok(self.steps()?.swap_remove(0))
    }

    /// Whether it changes the field itself, and not something within it.
    pub(crate) fn is_of_whole_field(&self) -> bool {
        self.steps().is_ok_and(|steps| steps.len() == 1)
    }

    /// The value that it brings; none where it takes one away.
    pub(crate) fn value(&self) -> Option<&Value> {
        self.value.as_ref().filter(|_| self.op != Op::Remove)
    }

    /// Applies it to a document.
    pub(crate) fn apply(&self, document: &mut Map<String, Value>) -> Result<(), PatchError> {
        let steps = self.steps()?;
        let (last, way) = steps.split_last().expect("a path has a field");
        let Some((first, way)) = way.split_first() else { return self.apply_to_map(document, last) };
        let mut place = document.get_mut(first).ok_or_else(|| self.refuse("there is no such place"))?;
        for step in way {
            let found = match place {
                Value::Object(map) => map.get_mut(step),
                Value::Array(list) => index(step).and_then(|at| list.get_mut(at)),
                _ => None,
            };
            place = found.ok_or_else(|| self.refuse("there is no such place"))?;
        }
        match place {
            Value::Object(map) => self.apply_to_map(map, last),
            Value::Array(list) => self.apply_to_list(list, last),
            _ => Err(self.refuse("there is nothing below this place, which is neither an object nor a list")),
        }
    }

    fn apply_to_map(&self, map: &mut Map<String, Value>, key: &str) -> Result<(), PatchError> {
        if self.op != Op::Add && !map.contains_key(key) {
            return Err(self.refuse("there is nothing at this place"));
        }
        match self.op {
            Op::Add | Op::Replace => drop(map.insert(key.to_owned(), self.needed_value()?)),
            Op::Remove => drop(map.remove(key)),
            Op::Test => self.test(&map[key])?,
        }
        Ok(())
    }

    fn apply_to_list(&self, list: &mut Vec<Value>, key: &str) -> Result<(), PatchError> {
        let at = if key == "-" && self.op == Op::Add { Some(list.len()) } else { index(key) };
        let end = if self.op == Op::Add { list.len() + 1 } else { list.len() };
        let at = at.filter(|at| *at < end).ok_or_else(|| self.refuse("the list has no such place"))?;
        match self.op {
            Op::Add => list.insert(at, self.needed_value()?),
            Op::Replace => list[at] = self.needed_value()?,
            Op::Remove => drop(list.remove(at)),
            Op::Test => self.test(&list[at])?,
        }
        Ok(())
    }

    fn needed_value(&self) -> Result<Value, PatchError> {
        self.value.clone().ok_or_else(|| self.refuse("a value is needed"))
    }

    fn test(&self, found: &Value) -> Result<(), PatchError> {
        match *found == self.needed_value()? {
            true => Ok(()),
            false => Err(self.refuse("the value is another one")),
        }
    }

    /// The keys that lead to its place, at least one.
    fn steps(&self) -> Result<Vec<String>, PatchError> {
        let Some(path) = self.path.strip_prefix('/').filter(|path| !path.is_empty()) else {
            return Err(self.refuse("a path begins with a slash and the name of a field"));
        };
        path.split('/').map(|step| self.unescape(step)).collect()
    }

    /// `~1` stands for a slash, and `~0` for a tilde.
    fn unescape(&self, step: &str) -> Result<String, PatchError> {
        let mut text = String::with_capacity(step.len());
        let mut letters = step.chars();
        while let Some(letter) = letters.next() {
            text.push(match (letter, letter == '~') {
                (letter, false) => letter,
                (_, true) => match letters.next() {
                    Some('0') => '~',
                    Some('1') => '/',
                    _ => return Err(self.refuse("~ must be written as ~0, and / within a key as ~1")),
                },
            });
        }
        Ok(text)
    }

    fn refuse(&self, reason: &str) -> PatchError {
        PatchError { path: self.path.clone(), reason: reason.to_owned() }
    }
}

/// A place in a list: digits without a zero before them.
fn index(step: &str) -> Option<usize> {
    let is_plain = step.bytes().all(|byte| byte.is_ascii_digit()) && (step == "0" || !step.starts_with('0'));
    step.parse().ok().filter(|_| is_plain)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use serde_json::json;

    fn applied(document: &Value, patch: Value) -> Result<Value, String> {
        let operation: Operation = serde_json::from_value(patch).map_err(|error| error.to_string())?;
        let mut map = document.as_object().unwrap().clone();
        operation.apply(&mut map).map_err(|error| error.to_string())?;
        Ok(Value::Object(map))
    }

    #[test]
    fn operations_do_what_the_standard_says() {
        let document = json!({"a": {"b": 1}, "l": [1, 2], "n": null, "t": "x", "~/": 0});
        for (patch, expected) in [
            (json!({"op": "add", "path": "/c", "value": 1}), Some(json!({"c": 1}))),
            (json!({"op": "add", "path": "/a", "value": 1}), Some(json!({"a": 1}))),
            (json!({"op": "add", "path": "/a/c", "value": null}), Some(json!({"a": {"b": 1, "c": null}}))),
            (json!({"op": "add", "path": "/l/0", "value": 0}), Some(json!({"l": [0, 1, 2]}))),
            (json!({"op": "add", "path": "/l/2", "value": 3}), Some(json!({"l": [1, 2, 3]}))),
            (json!({"op": "add", "path": "/l/-", "value": 3}), Some(json!({"l": [1, 2, 3]}))),
            (json!({"op": "replace", "path": "/l/1", "value": 3}), Some(json!({"l": [1, 3]}))),
            (json!({"op": "remove", "path": "/l/0"}), Some(json!({"l": [2]}))),
            (json!({"op": "replace", "path": "/n", "value": 1}), Some(json!({"n": 1}))),
            (json!({"op": "add", "path": "/~0~1", "value": 2}), Some(json!({"~/": 2}))),
            (json!({"op": "test", "path": "/a/b", "value": 1}), Some(json!({}))),
            (json!({"op": "test", "path": "/a/b", "value": 2}), None),
            (json!({"op": "remove", "path": "/c"}), None),
            (json!({"op": "replace", "path": "/c", "value": 1}), None),
            (json!({"op": "replace", "path": "/a"}), None),
            (json!({"op": "add", "path": "/a"}), None),
            (json!({"op": "add", "path": "/c/d", "value": 1}), None),
            (json!({"op": "add", "path": "/t/d", "value": 1}), None),
            (json!({"op": "add", "path": "/l/4", "value": 1}), None),
            (json!({"op": "add", "path": "/l/01", "value": 1}), None),
            (json!({"op": "remove", "path": "/l/-"}), None),
            (json!({"op": "remove", "path": "/l/2"}), None),
            (json!({"op": "remove", "path": "/"}), None),
            (json!({"op": "remove", "path": ""}), None),
            (json!({"op": "remove", "path": "a"}), None),
            (json!({"op": "remove", "path": "/~2"}), None),
            (json!({"op": "remove", "path": "/~"}), None),
            (json!({"op": "move", "path": "/a", "from": "/l"}), None),
            (json!({"op": "add", "path": "/a", "value": 1, "extra": 1}), None),
        ] {
            let mut wanted = document.clone();
            let is_wanted = expected.is_some();
            wanted
                .as_object_mut()
                .unwrap()
                .extend(expected.unwrap_or(json!({})).as_object().unwrap().clone());
            match applied(&document, patch.clone()) {
                Ok(after) => assert_eq!((after, is_wanted), (wanted, true), "{patch}"),
                Err(error) => assert!(!is_wanted, "{patch}: {error}"),
            }
        }
        let removed = applied(&document, json!({"op": "remove", "path": "/a/b"})).unwrap();
        assert_eq!(removed["a"], json!({}));
    }

    fn key() -> impl Strategy<Value = String> {
        "[a-z~/ -]{1,4}"
    }

    fn escaped(keys: &[String]) -> String {
        keys.iter().map(|key| format!("/{}", key.replace('~', "~0").replace('/', "~1"))).collect()
    }

    proptest! {
        /// What was added is there, and what was removed again leaves nothing behind.
        #[test]
        fn what_is_added_is_there_until_it_is_removed(first in key(), second in key(), value in any::<i32>()) {
            let mut document = Map::from_iter([(first.clone(), json!({}))]);
            let before = document.clone();
            let path = escaped(&[first.clone(), second.clone()]);
            let add: Operation = serde_json::from_value(json!({"op": "add", "path": path, "value": value})).unwrap();
            add.apply(&mut document).unwrap();
            prop_assert_eq!(&document[&first][&second], &json!(value));
            prop_assert_eq!(add.field().unwrap(), first);
            let remove: Operation = serde_json::from_value(json!({"op": "remove", "path": path})).unwrap();
            remove.apply(&mut document).unwrap();
            prop_assert_eq!(&document, &before);
            prop_assert!(remove.apply(&mut document).is_err());
            prop_assert_eq!(document, before);
        }

        /// Nothing panics, and whatever is refused has changed nothing.
        #[test]
        fn no_path_panics(op in "add|replace|remove|test", path in "[/~01a-]{0,8}") {
            let before = json!({"a": {"a": [0, {"a": 1}]}, "0": [], "-": null});
            let operation: Operation = serde_json::from_value(json!({"op": op, "path": path, "value": 7})).unwrap();
            let mut document = before.as_object().unwrap().clone();
            if operation.apply(&mut document).is_err() {
                prop_assert_eq!(Value::Object(document), before);
            }
        }
    }
}
