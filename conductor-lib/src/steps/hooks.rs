//! What the conductor takes note of when a step has ended (section 3.6).

use crate::error::Error;
use crate::interfaces::deploy::DeployInterface;
use crate::model::{Node, PlannedStep, StepKind};
use crate::task::Task;
use farrier_protocol::command::CommandResult;
use serde_json::{Map, Value, json};
use time::OffsetDateTime;
use time::format_description::well_known::Rfc3339;

/// Takes note of what a step produced that ran in the agent.
pub(super) fn after_step(
    task: &mut Task,
    deploy: &dyn DeployInterface,
    kind: StepKind,
    step: &PlannedStep,
    result: &CommandResult,
) -> Result<(), Error> {
    let now = task.services.now();
    match (kind, step.interface.as_str(), step.step.as_str()) {
        (StepKind::Clean, "raid", "create_configuration")
        | (StepKind::Deploy, "raid", "apply_configuration") => {
            let made = result.command_result.as_ref().and_then(|value| value.get(format!("{kind}_result")));
            note_raid(&mut task.node, made, now)
        }
        (StepKind::Clean, "raid", "delete_configuration") => {
            task.node.raid_config.clear();
            task.node.properties.remove("root_device");
            Ok(())
        }
        (StepKind::Deploy, ..) => {
            deploy.note_result(task, step, result);
            Ok(())
        }
        (StepKind::Clean | StepKind::Service, ..) => Ok(()),
    }
}

/// Whether a deployment is at the one step in which its interface does everything (section 2.9).
pub(super) fn in_core_deploy_step(node: &Node, deploy: &dyn DeployInterface) -> bool {
    let is_core = |step: &PlannedStep| step.interface == "deploy" && step.step == "deploy";
    !deploy.has_decomposed_deploy_steps() && node.step(StepKind::Deploy).is_some_and(is_core)
}

/// Whether such a deployment has ended in the agent, which begins when it has not begun.
pub(super) async fn is_deployed(task: &mut Task, deploy: &dyn DeployInterface) -> Result<bool, Error> {
    if deploy.deploy_has_started(task).await? {
        return deploy.deploy_is_done(task).await;
    }
    deploy.continue_deploy(task).await?;
    Ok(false)
}

/// The volumes that there are now. By the root volume the disk is found, and its size is the node's.
fn note_raid(node: &mut Node, made: Option<&Value>, now: OffsetDateTime) -> Result<(), Error> {
    let Some(made) = made.and_then(Value::as_object).filter(|made| made.contains_key("logical_disks")) else {
        return Err(Error::invalid("the agent's result", "tells no logical_disks; see the agent's log"));
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

fn describe_root(node: &mut Node, root: &Value) {
    if let Some(size) = root["size_gb"].as_u64() {
        node.properties.insert("local_gb".to_owned(), json!(size));
    }
    if let Some(hint) = root.get("root_device_hint").filter(|hint| hint.is_object()) {
        node.properties.insert("root_device".to_owned(), hint.clone());
    }
    let capabilities = node.properties.capabilities();
    if let (Some(level), Ok(capabilities)) = (root["raid_level"].as_str(), capabilities) {
        let others = capabilities.iter().filter(|(name, _)| *name != "raid_level");
        let mut all: Map<_, _> = others.map(|(name, value)| (name.to_owned(), json!(value))).collect();
        all.insert("raid_level".to_owned(), json!(level));
        node.properties.insert("capabilities".to_owned(), Value::Object(all));
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
        note_raid(&mut node, Some(&made), OffsetDateTime::UNIX_EPOCH).unwrap();
        assert_eq!(node.raid_config["logical_disks"], made["logical_disks"]);
        assert_eq!(node.raid_config["last_updated"], "1970-01-01T00:00:00Z");
        assert_eq!(node.properties["local_gb"], 100);
        assert_eq!(node.properties["root_device"], json!({"wwn": "0x1"}));
        assert_eq!(node.properties["capabilities"], json!({"boot_mode": "uefi", "raid_level": "1"}));
    }

    #[test]
    fn a_result_without_volumes_is_an_error_and_changes_nothing() {
        for made in [None, Some(json!(null)), Some(json!({})), Some(json!([1]))] {
            let mut changed = node();
            assert!(note_raid(&mut changed, made.as_ref(), OffsetDateTime::UNIX_EPOCH).is_err(), "{made:?}");
            assert!(changed.raid_config.is_empty());
        }
    }
}
