//! Takes orders that deploy and remove instances (sections 1.13 and 5.2).

use super::requested_steps;
use crate::conductor::Conductor;
use crate::error::Error;
use crate::lease::HeldTask;
use crate::records::{Deployment, Forbidden, Verb};
use crate::store::ConfigDrive;
use farrier_conductor::model::{Event, InstanceInfo, Node, Properties, StepKind};
use farrier_conductor::steps;
use farrier_protocol::hints::Hints;
use farrier_protocol::lookup::MASKED;

/// Refuses root device hints that no disk can be found by, before the machine is switched on. Those of the instance
/// win.
fn check_hints(instance_info: &InstanceInfo, properties: &Properties) -> Result<(), Error> {
    let given = [instance_info.get("root_device"), properties.get("root_device")];
    match given.into_iter().flatten().find(|hints| !hints.is_null()).map(Hints::parse) {
        Some(Err(error)) => Err(Error::invalid("root_device", error.to_string())),
        Some(Ok(_)) | None => Ok(()),
    }
}

/// Refuses an instance that wants traits which its node lacks (section 5.2).
fn check_traits(node: &Node) -> Result<(), Error> {
    let lacks = |name: &&str| !node.traits.iter().any(|known| known == name);
    let lacking: Vec<_> = node.instance_info.traits().filter(lacks).collect();
    if lacking.is_empty() {
        return Ok(());
    }
    let reason = format!("the node lacks {}; choose another node, or give it the traits", lacking.join(", "));
    Err(Error::invalid("instance_info traits", reason))
}

/// The first of these events that the state of a node allows.
fn allowed(task: &HeldTask, events: &[Event]) -> Result<Event, Error> {
    let allowed = events.iter().find(|event| task.node.provision_state.takes_verb(**event));
    allowed.copied().ok_or_else(|| Error::not_allowed(&task.node, events[0]))
}

impl Conductor {
    /// Orders a deployment of what is given, or else of what the record of the node says. An instance that is given to a
    /// node that has one replaces it.
    pub(super) async fn deploy(&self, id: &str, wanted: Event, deployment: Deployment) -> Result<(), Error> {
        let Deployment { instance_info, config_drive, steps } = deployment;
        let mut task = self.ordered(id).await?;
        let drives = self.drives(&task.node);
        let is_given = instance_info.is_some();
        let events = if is_given { &[Event::Deploy, Event::Rebuild][..] } else { &[wanted] };
        let event = allowed(&task, events)?;
        let mut given_drive = None;
        if let Some(mut instance_info) = instance_info {
            given_drive = instance_info.take_config_drive()?;
            task.node.instance_info = instance_info;
        }
        if config_drive.is_some() {
            task.node.instance_info.insert("configdrive".to_owned(), MASKED.into());
        }
        let change = match config_drive.as_deref().or(given_drive.as_deref()) {
            Some(config_drive) => ConfigDrive::Put(config_drive),
            None if is_given => ConfigDrive::Remove,
            None => ConfigDrive::Keep,
        };
        Forbidden::check(&task.node, event)?;
        check_hints(&task.node.instance_info, &task.node.properties)?;
        check_traits(&task.node)?;
        task.node.restore_deploy_interface();
        if drives {
            self.services().choose_deploy(&mut task.node)?;
            task.validate().await?;
            self.services().deploy_interface(&task.node)?.validate(&task.node).await?;
        }
        task.node.end_plans();
        task.node.driver_internal_info.renew_instance();
        task.enter(event)?;
        task.begin_session();
        let requested = match &steps[..] {
            [] => self.steps_of_templates(&task.node).await?,
            given => requested_steps(StepKind::Deploy, given)?,
        };
        task.node.plan_mut(StepKind::Deploy).requested = requested;
        if drives {
            let deploy = self.services().deploy_interface(&task.node)?;
            steps::check(&mut task, &*deploy, StepKind::Deploy).await?;
        }
        self.events().begin(task.node.uuid);
        self.write_order(task, Verb::Deploy, change).await
    }

    pub(super) async fn undeploy(&self, id: &str) -> Result<(), Error> {
        let mut task = self.ordered(id).await?;
        Forbidden::check(&task.node, Event::Delete)?;
        task.enter(Event::Delete)?;
        if self.drives(&task.node) {
            task.check_switchable().await?;
        }
        self.write_order(task, Verb::Undeploy, ConfigDrive::Keep).await
    }
}
