//! The list of files, read as a whole before anything is done.

use super::InjectError;
use super::template::Fields;
use base64::Engine;
use base64::alphabet::STANDARD;
use base64::engine::{DecodePaddingMode, GeneralPurpose, GeneralPurposeConfig};
use farrier_linux::rooted::Ownership;
use serde_json::{Map, Value};
use std::path::PathBuf;

const KEYS: &[&str] = &["path", "partition", "content", "deleted", "mode", "dirmode", "owner", "group"];
/// All permissions there are.
const MODES: u32 = 0o7777;
/// For everything that encoders write.
const BASE64: GeneralPurpose = GeneralPurpose::new(
    &STANDARD,
    GeneralPurposeConfig::new().with_decode_padding_mode(DecodePaddingMode::Indifferent),
);

/// One file.
#[derive(Debug, PartialEq, Eq)]
pub struct Item {
    /// Path below the root of its partition, without a slash in front.
    pub path: String,
    /// Its partition; nothing for an automatic choice.
    pub partition: Option<Partition>,
    /// What becomes of it.
    pub action: Action,
}

/// How a partition is named.
#[derive(Debug, PartialEq, Eq)]
pub enum Partition {
    /// By its number on the root disk.
    Number(u32),
    /// By its device node.
    Device(PathBuf),
}

/// What becomes of a file.
#[derive(Debug, PartialEq, Eq)]
pub enum Action {
    /// It goes.
    Delete,
    /// It is rewritten.
    Write(Content, Wish),
}

/// Where its content comes from.
#[derive(Debug, PartialEq, Eq)]
pub enum Content {
    /// The list.
    Bytes(Vec<u8>),
    /// A server.
    Url(String),
}

/// The wanted state of a file.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Wish {
    /// Permissions of its folder, if that has to be made.
    pub folder_mode: Option<u32>,
    /// Whose it is.
    pub ownership: Ownership,
}

/// Reads the node's list and that of the step, with what their URLs name of the node.
///
/// # Errors
///
/// [`InjectError::Invalid`] with everything that is wrong.
pub fn parse(
    property: Option<&Value>,
    argument: Option<&Value>,
    fields: Fields<'_>,
) -> Result<Vec<Item>, InjectError> {
    let (mut items, mut faults) = (Vec::new(), Vec::new());
    for (name, list) in [("properties.inject_files", property), ("files", argument)] {
        let entries = match list {
            None | Some(Value::Null) => continue,
            Some(Value::Array(entries)) => entries,
            Some(other) => {
                faults.push(format!("{name} is {other}, expected a list of objects"));
                continue;
            }
        };
        for (number, entry) in entries.iter().enumerate() {
            match parse_item(entry, fields) {
                Ok(item) => items.push(item),
                Err(fault) => faults.push(format!("{name}[{number}]: {fault}")),
            }
        }
    }
    if faults.is_empty() { Ok(items) } else { Err(InjectError::Invalid(faults.join("; "))) }
}

fn parse_item(entry: &Value, fields: Fields<'_>) -> Result<Item, String> {
    let entry = entry.as_object().ok_or_else(|| format!("{entry} is no object"))?;
    if let Some(unknown) = entry.keys().find(|key| !KEYS.contains(&key.as_str())) {
        return Err(format!("{unknown:?} is none of {}", KEYS.join(", ")));
    }
    let path = path(entry)?;
    let partition = partition(entry)?;
    if partition.is_none() && !path.contains('/') {
        return Err(format!(
            "/{path} lies in no folder by which its partition could be found: give partition"
        ));
    }
    let deleted = switch("deleted", entry.get("deleted"), false)?;
    let action = match (deleted, content(entry, fields)?) {
        (true, None) => Action::Delete,
        (true, Some(_)) => return Err("it has both deleted and content".to_owned()),
        (false, None) => return Err("it has neither content nor deleted".to_owned()),
        (false, Some(content)) => Action::Write(content, wish(entry)?),
    };
    Ok(Item { path, partition, action })
}

/// A yes or no, where it is given.
pub fn switch(name: &str, value: Option<&Value>, default: bool) -> Result<bool, String> {
    match value {
        None | Some(Value::Null) => Ok(default),
        Some(Value::Bool(value)) => Ok(*value),
        Some(other) => Err(format!("{name} is {other}, expected true or false")),
    }
}

/// Without what does not matter in it. A way upwards does, and is refused: nothing asks for it in good faith.
fn path(entry: &Map<String, Value>) -> Result<String, String> {
    let path = match entry.get("path") {
        None | Some(Value::Null) => "",
        Some(value) => value.as_str().ok_or_else(|| format!("path is {value}, expected a text"))?,
    };
    if path.is_empty() {
        return Err("it has no path".to_owned());
    }
    if path.ends_with('/') {
        return Err(format!("{path} is a folder: only files can be injected"));
    }
    let names: Vec<_> = path.split('/').filter(|name| !matches!(*name, "" | ".")).collect();
    if names.is_empty() || names.contains(&"..") || path.ends_with("/.") || path.contains('\0') {
        return Err(format!("{path:?} is no path from the root to a file"));
    }
    Ok(names.join("/"))
}

fn partition(entry: &Map<String, Value>) -> Result<Option<Partition>, String> {
    let invalid = |value: &Value| format!("partition is {value}, expected a number or a device's path");
    match entry.get("partition") {
        None | Some(Value::Null) => Ok(None),
        Some(value) => {
            let text = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
            match text.parse() {
                Ok(number) => Ok(Some(Partition::Number(number))),
                Err(_) if text.starts_with("/dev/") => Ok(Some(Partition::Device(text.into()))),
                Err(_) => Err(invalid(value)),
            }
        }
    }
}

/// A URL may hold fields of the node and its ports, so that one list serves many nodes.
fn content(entry: &Map<String, Value>, fields: Fields<'_>) -> Result<Option<Content>, String> {
    let text = match entry.get("content") {
        None | Some(Value::Null) => return Ok(None),
        Some(value) => value.as_str().ok_or_else(|| "content is no text".to_owned())?,
    };
    if text.contains("://") {
        let url = fields.expand(text).map_err(|fault| format!("content: {fault}"))?;
        let is_served = ["http://", "https://"].iter().any(|scheme| url.starts_with(scheme));
        return if is_served {
            Ok(Some(Content::Url(url)))
        } else {
            Err("content is no URL of http or https".into())
        };
    }
    let packed: String = text.split_ascii_whitespace().collect();
    match BASE64.decode(packed) {
        Ok(bytes) => Ok(Some(Content::Bytes(bytes))),
        Err(error) => Err(format!("content is neither a URL nor base64 ({error})")),
    }
}

fn wish(entry: &Map<String, Value>) -> Result<Wish, String> {
    let number = |key: &str, largest: u32| match entry.get(key) {
        None | Some(Value::Null) => Ok(None),
        Some(value) => match value.as_u64().and_then(|number| u32::try_from(number).ok()) {
            Some(number) if number <= largest => Ok(Some(number)),
            _ => Err(format!("{key} is {value}, expected a whole number up to {largest}")),
        },
    };
    Ok(Wish {
        folder_mode: number("dirmode", MODES)?,
        ownership: Ownership {
            // The largest number stands for "as it is" in the kernel.
            owner: number("owner", u32::MAX - 1)?,
            group: number("group", u32::MAX - 1)?,
            mode: number("mode", MODES)?,
        },
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn read(property: Option<&Value>, argument: Option<&Value>) -> Result<Vec<Item>, InjectError> {
        let (node, ports) = (json!({"uuid": "u-1"}), json!([]));
        parse(property, argument, Fields { node: &node, ports: &ports })
    }

    #[test]
    fn a_file_is_read_with_all_it_may_have() {
        let full = json!({
            "path": "//etc/./ssh/key", "partition": "2", "content": "a2V5\n", "mode": 0o600,
            "dirmode": 0o700, "owner": 0, "group": 5,
        });
        let ownership = Ownership { owner: Some(0), group: Some(5), mode: Some(0o600) };
        let wish = Wish { folder_mode: Some(0o700), ownership };
        let parsed = read(Some(&json!([full])), Some(&json!([{"path": "etc/motd", "deleted": true}])));
        assert_eq!(
            parsed.unwrap(),
            [
                Item {
                    path: "etc/ssh/key".to_owned(),
                    partition: Some(Partition::Number(2)),
                    action: Action::Write(Content::Bytes(b"key".to_vec()), wish),
                },
                Item { path: "etc/motd".to_owned(), partition: None, action: Action::Delete },
            ]
        );
        for nothing in [None, Some(json!(null)), Some(json!([]))] {
            assert_eq!(read(nothing.as_ref(), None).unwrap(), []);
        }
    }

    #[test]
    fn what_is_wrong_is_told_of_every_file_at_once() {
        for (entry, expected) in [
            (json!("x"), "is no object"),
            (json!({"content": ""}), "it has no path"),
            (json!({"path": ["/etc/a"], "content": ""}), "path is [\"/etc/a\"]"),
            (json!({"path": "/etc/", "content": ""}), "/etc/ is a folder"),
            (json!({"path": "/etc/../../init", "content": ""}), "is no path from the root"),
            (json!({"path": "/..", "content": "", "partition": 1}), "is no path from the root"),
            (json!({"path": "/etc/.", "content": ""}), "is no path from the root"),
            (json!({"path": "/motd", "content": ""}), "give partition"),
            (json!({"path": "/etc/a", "content": "", "x": 1}), "\"x\" is none of path, "),
            (json!({"path": "/etc/a"}), "neither content nor deleted"),
            (json!({"path": "/etc/a", "content": "", "deleted": true}), "both deleted and content"),
            (json!({"path": "/etc/a", "deleted": "yes"}), "deleted is \"yes\""),
            (json!({"path": "/etc/a", "content": "%%"}), "neither a URL nor base64"),
            (json!({"path": "/etc/a", "content": 1}), "content is no text"),
            (json!({"path": "/etc/a", "content": "file:///init"}), "content is no URL of http or https"),
            (
                json!({"path": "/etc/a", "content": "http://a:secret@h/{node[name]}"}),
                "content: {node[name]} is no",
            ),
            (
                json!({"path": "/etc/a", "content": "http://a:secret@h/{"}),
                "content: the brace { stands alone",
            ),
            (json!({"path": "/etc/a", "content": "", "mode": "0644"}), "mode is \"0644\""),
            (json!({"path": "/etc/a", "content": "", "mode": 0o10000}), "mode is 4096"),
            (json!({"path": "/etc/a", "content": "", "owner": -1}), "owner is -1"),
            (json!({"path": "/etc/a", "content": "", "partition": "root"}), "partition is \"root\""),
            (json!({"path": "/etc/a", "content": "", "partition": -1}), "partition is -1"),
        ] {
            let list = json!([{"path": "/etc/good", "content": ""}, entry]);
            let error = read(Some(&list), Some(&json!({}))).unwrap_err().to_string();
            assert!(error.contains("properties.inject_files[1]: "), "{error}");
            assert!(error.contains(expected) && !error.contains("secret"), "{error}");
            assert!(error.contains("files is {}, expected a list"), "{error}");
        }
    }
}
