//! What is noted of RAID volumes that were made or deleted.

use crate::error::Error;
use crate::model::Node;
use serde_json::{Value, json};
use time::OffsetDateTime;
use time::format_description::well_known::Rfc3339;

/// Notes the volumes that there are now, as the agent told. By the root volume the disk is found, and its size is the
/// node's.
///
/// # Errors
///
/// [`Error::Invalid`] when it told none.
pub(crate) fn note_made(node: &mut Node, made: Option<&Value>, now: OffsetDateTime) -> Result<(), Error> {
    let Some(made) = made.and_then(Value::as_object).filter(|made| made.contains_key("logical_disks")) else {
        return Err(Error::invalid("the agent's result", "has no logical_disks; see the agent's log"));
    };
    node.raid_config.clone_from(made);
    node.raid_config.insert("last_updated".to_owned(), now.format(&Rfc3339).ok().into());
    let volumes = made.get("logical_disks").and_then(Value::as_array).into_iter().flatten();
    let roots: Vec<_> = volumes.filter(|volume| volume["is_root_volume"] == true).collect();
    if let [root] = roots[..] {
        describe_root(node, root);
    }
    Ok(())
}

/// Notes that there are no volumes any more.
pub(crate) fn note_deleted(node: &mut Node) {
    node.raid_config.clear();
    node.properties.remove("root_device");
}

fn describe_root(node: &mut Node, root: &Value) {
    if let Some(size) = root["size_gb"].as_u64() {
        node.properties.insert("local_gb".to_owned(), json!(size));
    }
    if let Some(hint) = root.get("root_device_hint").filter(|hint| hint.is_object()) {
        node.properties.insert("root_device".to_owned(), hint.clone());
    }
    if let (Some(level), Ok(mut capabilities)) = (root["raid_level"].as_str(), node.properties.capabilities())
    {
        capabilities.set("raid_level", level);
        node.properties.insert("capabilities".to_owned(), capabilities.to_string().into());
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::NewNode;

    fn node() -> Node {
        let mut node = Node::enrol(NewNode::default(), OffsetDateTime::UNIX_EPOCH);
        node.properties.insert("capabilities".into(), json!("boot_mode:uefi,raid_level:5"));
        node
    }

    #[test]
    fn the_volumes_that_were_made_are_noted_with_the_root_volume() {
        let mut node = node();
        let made = json!({"logical_disks": [
            {"size_gb": 100, "raid_level": "1", "is_root_volume": true, "root_device_hint": {"wwn": "0x1"}},
            {"size_gb": "MAX", "raid_level": "0"},
        ]});
        note_made(&mut node, Some(&made), OffsetDateTime::UNIX_EPOCH).unwrap();
        assert_eq!(node.raid_config["logical_disks"], made["logical_disks"]);
        assert_eq!(node.raid_config["last_updated"], "1970-01-01T00:00:00Z");
        assert_eq!(node.properties["local_gb"], 100);
        assert_eq!(node.properties["root_device"], json!({"wwn": "0x1"}));
        assert_eq!(node.properties["capabilities"], "boot_mode:uefi,raid_level:1");
        note_deleted(&mut node);
        assert!(node.raid_config.is_empty() && !node.properties.contains_key("root_device"));
    }

    #[test]
    fn a_result_without_volumes_is_an_error_and_changes_nothing() {
        for made in [None, Some(json!(null)), Some(json!({})), Some(json!([1]))] {
            let mut changed = node();
            assert!(note_made(&mut changed, made.as_ref(), OffsetDateTime::UNIX_EPOCH).is_err(), "{made:?}");
            assert!(changed.raid_config.is_empty());
        }
    }
}
