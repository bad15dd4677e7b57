//! Takes the orders of operators. Each is one transaction under the node's lease; then a worker carries it out, and
//! nothing depends any more on the client that ordered it.

mod deploy;
mod inspect;
mod operations;
mod raid;
mod rescue;
pub(crate) mod workflows;

use crate::conductor::Conductor;
use crate::error::Error;
use crate::lease::HeldTask;
use crate::records::{Forbidden, Order, PendingOrder, Verb};
use crate::store::ConfigDrive;
use farrier_conductor::model::{Activity, Event, PowerAction, ProvisionState, RequestedStep, StepKind};
use farrier_conductor::plan::requested;
use farrier_conductor::steps;
use serde_json::Value;
use std::time::Duration;

/// Reads steps as they come with a request.
pub(crate) fn requested_steps(kind: StepKind, steps: &[Value]) -> Result<Vec<RequestedStep>, Error> {
    requested(kind, steps).map_err(|faults| steps::invalid(kind, &faults).into())
}

impl Conductor {
    /// Accepts an order for the node with this name or identity. The order is written down before this returns; a
    /// worker carries it out. What goes wrong then is the node's `last_error`.
    ///
    /// # Errors
    ///
    /// [`Error::NodeNotFound`]; [`InvalidState`](Error::Task) and [`Error::Forbidden`] when the node cannot have this
    /// order now; [`Error::Unserved`] where no conductor leads the node, [`Error::Stopping`] while this one stops;
    /// [`Invalid`](Error::Task) for arguments that cannot be used; [`Interface`](Error::Task) when an interface of the
    /// node cannot do its part; [`Error::Store`], also when a conductor works on the node.
    pub async fn order(&self, id: &str, order: Order) -> Result<(), Error> {
        if self.services().is_stopping() {
            return Err(Error::Stopping(self.settings().conductor_name.clone()));
        }
        match order {
            Order::Deploy(deployment) => self.deploy(id, Event::Deploy, deployment).await,
            Order::Rebuild(deployment) => self.deploy(id, Event::Rebuild, deployment).await,
            Order::Undeploy => self.undeploy(id).await,
            Order::Manage => self.manage(id).await,
            Order::Provide => self.provide(id).await,
            Order::Clean(steps) => self.run_steps(id, StepKind::Clean, steps).await,
            Order::Service(steps) => self.run_steps(id, StepKind::Service, steps).await,
            Order::Adopt => self.adopt(id).await,
            Order::Inspect => self.inspect(id).await,
            Order::Rescue { password } => self.rescue(id, &password).await,
            Order::Unrescue => self.unrescue(id).await,
            Order::Abort => self.abort(id).await,
            Order::Unhold => self.unhold(id).await,
            Order::Retry => self.retry(id).await,
            Order::Power { action, timeout } => self.set_power(id, action, timeout).await,
            Order::Delete => self.delete(id).await,
        }
    }

    async fn set_power(&self, id: &str, action: PowerAction, timeout: Option<Duration>) -> Result<(), Error> {
        let mut task = self.ordered(id).await?;
        if self.drives(&task.node) {
            task.check_power_action(action)?;
        }
        task.node.target_power_state = Some(action.target());
        task.node.driver_internal_info.power_action_timeout = timeout.map(|timeout| timeout.as_secs());
        // Why an operation failed is told until the next one begins.
        let reason = match task.node.provision_state.activity() {
            Activity::Failed => task.node.last_error.take(),
            Activity::Rest | Activity::Work | Activity::Wait | Activity::Hold => None,
        };
        task.node.last_error = reason;
        *task.order_mut() = Some(PendingOrder::new(action.into(), self.now()));
        self.write_down(task, ConfigDrive::Keep).await
    }

    async fn delete(&self, id: &str) -> Result<(), Error> {
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
        self.write_order(task, Verb::Forget, ConfigDrive::Keep).await
    }

    /// Writes an order down, with what it changes of the node, and has it carried out.
    pub(crate) async fn write_order(
        &self,
        mut task: HeldTask,
        verb: Verb,
        config_drive: ConfigDrive<'_>,
    ) -> Result<(), Error> {
        task.node.last_error = None;
        *task.order_mut() = Some(PendingOrder::new(verb, self.now()));
        self.write_down(task, config_drive).await
    }

    /// Writes down what is ordered, and has it carried out.
    pub(crate) async fn write_down(
        &self,
        mut task: HeldTask,
        config_drive: ConfigDrive<'_>,
    ) -> Result<(), Error> {
        match self.services().leads(&task.node) {
            true => {
                task.save_with(config_drive).await?;
                self.workers().hand_over(task);
                Ok(())
            }
            // The conductor that leads the node finds the order in the store.
            false => task.finish_with(config_drive).await,
        }
    }
}
