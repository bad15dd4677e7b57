//! The bootc deploy: an operating system that comes as a container image installs itself (section 5.8).

use super::agent_base;
use crate::deploy::AgentDeploy;
use crate::error::Error;
use crate::interfaces::base::{Interface, InterfaceError};
use crate::interfaces::outcome::Outcome;
use crate::model::{InstanceInfo, Node, PlannedStep};
use crate::plan::KnownStep;
use crate::task::Task;
use crate::task::event::EventKind;
use async_trait::async_trait;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use farrier_protocol::command::CommandResult;
use serde_json::json;

/// The step of the agent that has the image install itself.
const INSTALL: &str = "execute_bootc_install";

/// How the URL of a container image begins.
const SCHEME: &str = "oci://";

/// The key of the credentials for the registry, which the instance may have, or else the driver.
const PULL_SECRET: &str = "image_pull_secret";

/// The agent fetches a container image, which installs itself on the root disk.
#[derive(Debug, Clone, Copy, Default)]
pub struct Bootc;

#[async_trait]
impl Interface for Bootc {
    async fn validate(&self, node: &Node) -> Result<(), InterfaceError> {
        let image = image_source(&node.instance_info);
        image.and_then(|_| pull_secret(node)).map(drop).map_err(super::invalid)
    }
}

#[async_trait]
impl AgentDeploy for Bootc {
    fn core_steps(&self) -> Vec<KnownStep> {
        agent_base::core_steps_and(INSTALL)
    }

    /// Images of disks lie in registries too; those say in which format they are.
    fn supports_deploy(&self, node: &Node) -> bool {
        let text = |key| node.instance_info.text(key).ok().flatten();
        let is_container = text("image_disk_format").is_none_or(|format| format == "bootc");
        is_container && text("image_source").is_some_and(|source| source.starts_with(SCHEME))
    }

    async fn execute(&self, task: &mut Task, step: &PlannedStep) -> Result<Outcome, Error> {
        match agent_base::is(step, INSTALL) {
            true => install(task, step).await,
            false => agent_base::execute(task, step).await,
        }
    }

    fn note_result(&self, task: &mut Task, step: &PlannedStep, _result: &CommandResult) {
        if agent_base::is(step, INSTALL) {
            task.emit_once(EventKind::ImageWritten);
        }
    }
}

async fn install(task: &mut Task, step: &PlannedStep) -> Result<Outcome, Error> {
    let args = json!({
        "image_source": image_source(&task.node.instance_info)?,
        "configdrive": task.config_drive().await?,
        "oci_pull_secret": pull_secret(&task.node)?.map(|secret| STANDARD.encode(secret)),
    });
    let outcome = agent_base::start(task, step, args).await?;
    task.emit_once(EventKind::WriteStarted);
    Ok(outcome)
}

/// The container image: `oci://registry/path`, with a tag or a digest at its end or without.
fn image_source(info: &InstanceInfo) -> Result<&str, Error> {
    let refuse = |reason: String| Err(Error::invalid("image_source", reason));
    let Some(source) = info.text("image_source")? else {
        return refuse(
            "is missing; give the container image, such as oci://quay.io/fedora/fedora-bootc:44".into(),
        );
    };
    let parts = source.strip_prefix(SCHEME).and_then(|rest| rest.split_once('/'));
    let is_plain = |part: &str| !part.is_empty() && part.chars().all(|c| c.is_ascii_graphic());
    match parts.is_some_and(|(registry, path)| is_plain(registry) && is_plain(path)) {
        true => Ok(source),
        false => refuse(format!(
            "{source:?} must be oci://REGISTRY/PATH, with a tag or a digest at its end or without"
        )),
    }
}

/// The credentials for the registry.
fn pull_secret(node: &Node) -> Result<Option<&str>, Error> {
    Ok(node.instance_info.text(PULL_SECRET)?.or(node.driver_info.text(PULL_SECRET)?))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::NewNode;
    use serde_json::Value;
    use time::OffsetDateTime;

    fn node(instance_info: Value) -> Node {
        let mut node = Node::enrol(NewNode::default(), OffsetDateTime::UNIX_EPOCH);
        node.instance_info = serde_json::from_value(instance_info).unwrap();
        node
    }

    #[tokio::test]
    async fn an_image_is_a_reference_to_a_registry() {
        for (source, is_usable) in [
            (json!("oci://quay.io/fedora/fedora-bootc:44"), true),
            (json!("oci://registry.example:5000/os@sha256:0123"), true),
            (json!("http://h/os.raw"), false),
            (json!("oci://quay.io"), false),
            (json!("oci:///os"), false),
            (json!("oci://h/"), false),
            (json!("oci://h/o s"), false),
            (json!("oci://h/os\n"), false),
            (json!(1), false),
            (json!(null), false),
        ] {
            let validated = Bootc.validate(&node(json!({"image_source": source}))).await;
            assert_eq!(validated.is_ok(), is_usable, "{source}");
            if let Err(error) = validated {
                assert!(error.to_string().starts_with("image_source: "), "{error}");
            }
        }
    }

    #[test]
    fn the_credentials_of_the_instance_come_first() {
        let mut node = node(json!({}));
        assert_eq!(pull_secret(&node).unwrap(), None);
        node.driver_info.insert(PULL_SECRET.into(), json!("site:all"));
        assert_eq!(pull_secret(&node).unwrap(), Some("site:all"));
        node.instance_info.insert(PULL_SECRET.into(), json!("me:mine"));
        assert_eq!(pull_secret(&node).unwrap(), Some("me:mine"));
    }
}
