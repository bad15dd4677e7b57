//! Takes the orders of operators that lead a node through cleaning and service, and those that end or hold an operation
//! (sections 1.2 and 3.10).

use crate::conductor::Conductor;
use crate::conductor::orders::requested_steps;
use crate::error::Error;
use crate::lease::HeldTask;
use crate::operations;
use crate::records::{Forbidden, OrderedSteps, StepsOrder, Verb};
use crate::store::ConfigDrive;
use farrier_conductor::model::{Activity, Event, PlannedStep, ProvisionState, StepKind};
use farrier_conductor::steps;

impl Conductor {
    pub(super) async fn manage(&self, id: &str) -> Result<(), Error> {
        let mut task = self.begin_operation(id, Event::Manage).await?;
        if task.node.provision_state == ProvisionState::Verifying {
            return self.write_order(task, Verb::Manage, ConfigDrive::Keep).await;
        }
        task.node.last_error = None;
        task.finish().await
    }

    pub(super) async fn provide(&self, id: &str) -> Result<(), Error> {
        let mut task = self.begin_operation(id, Event::Provide).await?;
        if self.drives(&task.node) {
            task.validate().await?;
        }
        operations::order_cleaning(&mut task)?;
        match task.order().map(|order| order.verb) {
            Some(verb) => self.write_order(task, verb, ConfigDrive::Keep).await,
            None => {
                task.node.last_error = None;
                task.finish().await
            }
        }
    }

    pub(super) async fn retry(&self, id: &str) -> Result<(), Error> {
        let mut task = self.ordered(id).await?;
        task.enter(Event::Retry)?;
        Forbidden::check(&task.node, Event::Retry)?;
        if self.drives(&task.node) {
            task.validate().await?;
        }
        match StepKind::of(task.node.provision_state) {
            Some(kind) => self.write_order(task, kind.into(), ConfigDrive::Keep).await,
            None => task.leave().await,
        }
    }

    pub(super) async fn adopt(&self, id: &str) -> Result<(), Error> {
        let mut task = self.begin_operation(id, Event::Adopt).await?;
        task.node.restore_deploy_interface();
        if self.drives(&task.node) {
            self.services().choose_deploy(&mut task.node)?;
        }
        self.write_order(task, Verb::Adopt, ConfigDrive::Keep).await
    }

    pub(super) async fn abort(&self, id: &str) -> Result<(), Error> {
        let mut task = self.ordered(id).await?;
        let state = task.node.provision_state;
        if self.services().limits.place(task.node.uuid).is_some() {
            return operations::withdraw(task).await;
        }
        if state.after(Event::Abort).is_none() {
            return Err(Error::not_allowed(&task.node, Event::Abort));
        }
        Forbidden::check(&task.node, Event::Abort)?;
        if state.activity() == Activity::Wait
            && let Some(step) = current_step_mut(&mut task)
            && !step.abortable
        {
            step.abort_after = true;
            return task.finish().await;
        }
        operations::abort(&mut task)?;
        self.write_down(task, ConfigDrive::Keep).await
    }

    pub(super) async fn unhold(&self, id: &str) -> Result<(), Error> {
        let mut task = self.ordered(id).await?;
        task.enter(Event::Unhold)?;
        Forbidden::check(&task.node, Event::Unhold)?;
        match StepKind::of(task.node.provision_state) {
            Some(kind) => self.write_order(task, kind.into(), ConfigDrive::Keep).await,
            None => task.finish().await,
        }
    }

    /// Takes a machine into maintenance, or out of it; that ends the fault that it was put there for.
    ///
    /// # Errors
    ///
    /// [`Error::Store`] when a conductor works on the node.
    pub async fn set_maintenance(&self, id: &str, on: bool, reason: Option<String>) -> Result<(), Error> {
        let mut task = HeldTask::acquire(self.services(), id).await?;
        task.node.maintenance = on;
        task.node.maintenance_reason = reason.filter(|_| on);
        task.node.fault.take_if(|_| !on);
        task.finish().await
    }

    /// A node that enters an operation, which counts once saved.
    pub(crate) async fn begin_operation(&self, id: &str, event: Event) -> Result<HeldTask, Error> {
        let mut task = self.ordered(id).await?;
        if task.node.provision_state.takes_verb(event) {
            Forbidden::check(&task.node, event)?;
            task.node.end_plans();
            task.enter(event)?;
            task.begin_session();
            return Ok(task);
        }
        Err(Error::not_allowed(&task.node, event))
    }

    /// Orders steps of a cleaning or service.
    pub(super) async fn run_steps(&self, id: &str, kind: StepKind, ordered: StepsOrder) -> Result<(), Error> {
        let event = if kind == StepKind::Service { Event::Service } else { Event::Clean };
        let mut task = self.begin_operation(id, event).await?;
        let (steps, disable_ramdisk) = match ordered.steps {
            OrderedSteps::Given(steps) => (requested_steps(kind, &steps)?, ordered.disable_ramdisk),
            OrderedSteps::Runbook(runbook) => {
                let runbook = self.runbook_for(&task.node, &runbook).await?;
                (runbook.steps, ordered.disable_ramdisk || runbook.disable_ramdisk)
            }
        };
        if steps.is_empty() {
            return Err(Error::invalid(format!("{kind}_steps"), "at least one step is needed"));
        }
        if kind == StepKind::Clean {
            task.node.target_provision_state = Some(ProvisionState::Manageable);
        }
        let plan = task.node.plan_mut(kind);
        (plan.requested, plan.disable_ramdisk, plan.untouched) = (steps, disable_ramdisk, true);
        if self.drives(&task.node) {
            task.validate().await?;
            let deploy = self.services().deploy_interface(&task.node)?;
            steps::check(&mut task, &*deploy, kind).await?;
        }
        self.write_order(task, kind.into(), ConfigDrive::Keep).await
    }
}

fn current_step_mut(task: &mut HeldTask) -> Option<&mut PlannedStep> {
    let kind = StepKind::of(task.node.provision_state)?;
    task.node.step_mut(kind).as_mut()
}
