//! Takes the orders of operators. Each is one transaction under the node's lease; then a worker carries it out, and
//! nothing depends any more on whoever ordered it.

mod inspect;
mod operations;
mod raid;
mod rescue;
pub(crate) mod workflows;

use crate::conductor::Conductor;
use crate::error::Error;
use crate::lease::HeldTask;
use crate::records::{Forbidden, Order, Verb};
use crate::store::ConfigDrive;
use farrier_conductor::model::{
    Activity, Event, InstanceInfo, Node, PowerAction, Properties, ProvisionState, RequestedStep, StepKind,
};
use farrier_conductor::plan::requested;
use farrier_conductor::steps;
use farrier_protocol::hints::Hints;
use farrier_protocol::lookup::MASKED;
use serde_json::Value;
use std::time::Duration;

/// Reads steps as they come with a request.
pub(crate) fn requested_steps(kind: StepKind, steps: &[Value]) -> Result<Vec<RequestedStep>, Error> {
    requested(kind, steps).map_err(|faults| steps::invalid(kind, &faults).into())
}

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
    /// Orders a deployment of the image that `instance_info` names, and returns the sequence number of its first event.
    ///
    /// # Errors
    ///
    /// [`InvalidState`](Error::Task), [`Error::Forbidden`], [`Invalid`](Error::Task) for an unusable image or step,
    /// [`Interface`](Error::Task) when an interface cannot do its part, [`Error::Store`] when somebody works on the node.
    pub async fn deploy(&self, id: &str, instance_info: InstanceInfo) -> Result<u64, Error> {
        self.deploy_with_steps(id, instance_info, &[]).await
    }

    /// As [`Self::deploy`], with steps beside those that run by themselves, or in their place (section 3.1).
    ///
    /// # Errors
    ///
    /// As [`Self::deploy`].
    pub async fn deploy_with_steps(
        &self,
        id: &str,
        mut instance_info: InstanceInfo,
        deploy_steps: &[Value],
    ) -> Result<u64, Error> {
        let mut task = HeldTask::acquire(self.services(), id).await?;
        let event = allowed(&task, &[Event::Deploy, Event::Rebuild])?;
        let config_drive = instance_info.take_config_drive()?;
        task.node.instance_info = instance_info;
        let config_drive = config_drive.as_deref().map_or(ConfigDrive::Remove, ConfigDrive::Put);
        self.begin_deploy(task, event, config_drive, deploy_steps).await
    }

    /// Orders a deployment of what `instance_info` says in the record of the node, with the config drive that is given,
    /// or else the one that the node has.
    ///
    /// # Errors
    ///
    /// As [`Self::deploy`].
    pub async fn deploy_recorded(
        &self,
        id: &str,
        config_drive: Option<String>,
        deploy_steps: &[Value],
    ) -> Result<(), Error> {
        self.deploy_again(id, Event::Deploy, config_drive, deploy_steps).await
    }

    /// As [`Self::deploy_recorded`], for a node that has an instance, or has failed to get one.
    ///
    /// # Errors
    ///
    /// As [`Self::deploy`].
    pub async fn rebuild(
        &self,
        id: &str,
        config_drive: Option<String>,
        deploy_steps: &[Value],
    ) -> Result<(), Error> {
        self.deploy_again(id, Event::Rebuild, config_drive, deploy_steps).await
    }

    async fn deploy_again(
        &self,
        id: &str,
        wanted: Event,
        config_drive: Option<String>,
        deploy_steps: &[Value],
    ) -> Result<(), Error> {
        let mut task = HeldTask::acquire(self.services(), id).await?;
        let event = allowed(&task, &[wanted])?;
        if config_drive.is_some() {
            task.node.instance_info.insert("configdrive".to_owned(), MASKED.into());
        }
        let config_drive = config_drive.as_deref().map_or(ConfigDrive::Keep, ConfigDrive::Put);
        self.begin_deploy(task, event, config_drive, deploy_steps).await.map(drop)
    }

    async fn begin_deploy(
        &self,
        mut task: HeldTask,
        event: Event,
        config_drive: ConfigDrive<'_>,
        deploy_steps: &[Value],
    ) -> Result<u64, Error> {
        Forbidden::check(&task.node, event)?;
        check_hints(&task.node.instance_info, &task.node.properties)?;
        check_traits(&task.node)?;
        self.services().choose_deploy(&mut task.node)?;
        task.validate().await?;
        let deploy = self.services().deploy_interface(&task.node)?;
        deploy.validate(&task.node).await?;
        task.node.end_plans();
        task.node.driver_internal_info.renew_instance();
        task.enter(event)?;
        task.begin_session();
        let requested = match deploy_steps {
            [] => self.steps_of_templates(&task.node).await?,
            given => requested_steps(StepKind::Deploy, given)?,
        };
        task.node.plan_mut(StepKind::Deploy).requested = requested;
        steps::check(&mut task, &*deploy, StepKind::Deploy).await?;
        let first = self.events().begin(task.node.uuid);
        self.order(task, Verb::Deploy, config_drive).await?;
        Ok(first)
    }

    /// Orders the removal of an instance: the machine is powered off; its disk stays as it is.
    ///
    /// # Errors
    ///
    /// [`InvalidState`](Error::Task), [`Error::Forbidden`], [`Error::Store`] when somebody works on the node.
    pub async fn undeploy(&self, id: &str) -> Result<(), Error> {
        let mut task = HeldTask::acquire(self.services(), id).await?;
        Forbidden::check(&task.node, Event::Delete)?;
        task.enter(Event::Delete)?;
        task.check_switchable().await?;
        self.order(task, Verb::Undeploy, ConfigDrive::Keep).await
    }

    /// Orders that the power of a machine changes. What goes wrong is the node's `last_error`.
    ///
    /// # Errors
    ///
    /// [`Interface`](Error::Task) when the machine's driver cannot do that, [`Error::Store`] when somebody works on the node.
    pub async fn set_power(&self, id: &str, action: PowerAction) -> Result<(), Error> {
        self.set_power_within(id, action, None).await
    }

    /// As [`Self::set_power`], within another time than the setting for it, in whole seconds.
    ///
    /// # Errors
    ///
    /// As [`Self::set_power`].
    pub async fn set_power_within(
        &self,
        id: &str,
        action: PowerAction,
        limit: Option<Duration>,
    ) -> Result<(), Error> {
        let mut task = HeldTask::acquire(self.services(), id).await?;
        task.check_power_action(action)?;
        task.node.target_power_state = Some(action.target());
        task.node.driver_internal_info.power_action_timeout = limit.map(|limit| limit.as_secs());
        // Why an operation failed is told until the next one begins.
        let reason = match task.node.provision_state.activity() {
            Activity::Failed => task.node.last_error.take(),
            Activity::Rest | Activity::Work | Activity::Wait | Activity::Hold => None,
        };
        task.node.last_error = reason;
        *task.order_mut() = Some(Order::new(action.into(), self.now()));
        self.write_down(task, ConfigDrive::Keep).await
    }

    /// Orders that a node without an instance is forgotten, and its machine powered off.
    ///
    /// # Errors
    ///
    /// [`InvalidState`](Error::Task) while it has an instance or is worked on, [`Error::Forbidden`].
    pub async fn delete_node(&self, id: &str) -> Result<(), Error> {
        use ProvisionState::{DeployFailed, Error as Failed};
        let task = HeldTask::acquire(self.services(), id).await?;
        let is_allowed =
            |state: &ProvisionState| state.allows_node_deletion() || [DeployFailed, Failed].contains(state);
        if !is_allowed(&task.node.provision_state) {
            return Err(Error::wrong_state(
                &task.node,
                ProvisionState::ALL.iter().copied().filter(is_allowed),
            ));
        }
        Forbidden::check(&task.node, Event::Delete)?;
        self.order(task, Verb::Forget, ConfigDrive::Keep).await
    }

    /// Writes an order down, with what it changes of the node, and has it carried out.
    pub(crate) async fn order(
        &self,
        mut task: HeldTask,
        verb: Verb,
        config_drive: ConfigDrive<'_>,
    ) -> Result<(), Error> {
        task.node.last_error = None;
        *task.order_mut() = Some(Order::new(verb, self.now()));
        self.write_down(task, config_drive).await
    }

    /// Writes down what is ordered, and has it carried out.
    pub(crate) async fn write_down(
        &self,
        mut task: HeldTask,
        config_drive: ConfigDrive<'_>,
    ) -> Result<(), Error> {
        task.save_with(config_drive).await?;
        self.workers().hand_over(task);
        Ok(())
    }
}
