//! The steps of the agent that make RAID volumes, and what they need.

use crate::model::{Node, RequestedStep, StepId};
use crate::plan::StepFault;
use crate::steps::raid::config;
use serde_json::Value;

/// What makes a step unusable that an operator asks for: otherwise the agent would report it, after the boot of the
/// machine.
pub fn fault(node: &Node, asked: &RequestedStep) -> Option<StepFault> {
    let StepId { interface, step } = &asked.id;
    let reason = match (interface.as_str(), step.as_str()) {
        ("raid", "create_configuration") if node.target_raid_config.is_empty() => {
            "the node has no target_raid_config; set it first".to_owned()
        }
        ("raid", "apply_configuration") if asked.priority != Some(0) => {
            let wanted = asked.args.get("raid_config").and_then(Value::as_object)?;
            format!("raid_config: {}", config::check(wanted).err()?.join("; "))
        }
        _ => return None,
    };
    Some(StepFault::Unusable { id: asked.id.clone(), reason })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::NewNode;
    use serde_json::json;
    use time::OffsetDateTime;

    #[test]
    fn what_the_agent_would_refuse_is_told_before() {
        let mut node = Node::enrol(NewNode::default(), OffsetDateTime::UNIX_EPOCH);
        let fault = |node: &Node, step: &str, args: Value| {
            let id = StepId::new("raid", step);
            let args = serde_json::from_value(args).unwrap();
            super::fault(node, &RequestedStep { id, args, priority: None }).map(|fault| fault.to_string())
        };
        assert_eq!(fault(&node, "delete_configuration", json!({})), None);
        let error = fault(&node, "create_configuration", json!({})).unwrap();
        assert!(
            error.contains("raid.create_configuration") && error.contains("target_raid_config"),
            "{error}"
        );
        let error = fault(&node, "apply_configuration", json!({"raid_config": {}})).unwrap();
        assert!(error.contains("raid_config: logical_disks must be"), "{error}");
        // That an argument is missing is told of every step alike.
        assert_eq!(fault(&node, "apply_configuration", json!({})), None);
        node.target_raid_config.insert("logical_disks".into(), json!([{}]));
        assert_eq!(fault(&node, "create_configuration", json!({})), None);
    }
}
