//! Takes the orders of operators that lead a node through cleaning and service, and those that end or hold an operation
//! (sections 1.2 and 3.10).

use crate::conductor::Conductor;
use crate::conductor::orders::requested_steps;
use crate::error::Error;
use crate::lease::HeldTask;
use crate::operations;
use crate::records::{Forbidden, Verb};
use crate::store::ConfigDrive;
use farrier_conductor::model::{Activity, Event, PlannedStep, ProvisionState, RequestedStep, StepKind};
use farrier_conductor::steps;
use serde_json::Value;

impl Conductor {
    /// Orders that a machine is proven to be under control, or takes it out of the hands of users.
    ///
    /// # Errors
    ///
    /// [`InvalidState`](Error::Task), [`Error::Store`] when somebody works on the node.
    pub async fn manage(&self, id: &str) -> Result<(), Error> {
        let mut task = self.begin_operation(id, Event::Manage).await?;
        if task.node.provision_state == ProvisionState::Verifying {
            return self.order(task, Verb::Manage, ConfigDrive::Keep).await;
        }
        task.node.last_error = None;
        task.finish().await
    }

    /// Orders that a machine is cleaned for the next instance. Where cleaning is switched off, its node is available at
    /// once.
    ///
    /// # Errors
    ///
    /// [`InvalidState`](Error::Task), [`Error::Forbidden`], [`Interface`](Error::Task) when an interface cannot do its part,
    /// [`Error::Store`] when somebody works on the node.
    pub async fn provide(&self, id: &str) -> Result<(), Error> {
        let mut task = self.begin_operation(id, Event::Provide).await?;
        task.validate().await?;
        operations::order_cleaning(&mut task)?;
        match task.order().map(|order| order.verb) {
            Some(verb) => self.order(task, verb, ConfigDrive::Keep).await,
            None => {
                task.node.last_error = None;
                task.finish().await
            }
        }
    }

    /// Orders clean steps, which run as they are given; where it is said so, without the ramdisk.
    ///
    /// # Errors
    ///
    /// As [`Self::provide`], and [`Invalid`](Error::Task) for unusable steps.
    pub async fn clean(&self, id: &str, clean_steps: &[Value], disable_ramdisk: bool) -> Result<(), Error> {
        let task = self.begin_operation(id, Event::Clean).await?;
        let steps = requested_steps(StepKind::Clean, clean_steps)?;
        self.order_steps(task, StepKind::Clean, steps, disable_ramdisk).await
    }

    /// As [`Self::clean`], with the steps of a runbook, whose name the node must have as a trait.
    ///
    /// # Errors
    ///
    /// As [`Self::clean`].
    pub async fn clean_by_runbook(
        &self,
        id: &str,
        runbook: &str,
        disable_ramdisk: bool,
    ) -> Result<(), Error> {
        let task = self.begin_operation(id, Event::Clean).await?;
        self.order_runbook(task, StepKind::Clean, runbook, disable_ramdisk).await
    }

    /// Orders service steps, which run as they are given beneath the instance of a node; without the ramdisk where none
    /// of them needs it, or it is said so.
    ///
    /// # Errors
    ///
    /// As [`Self::clean`].
    pub async fn service(
        &self,
        id: &str,
        service_steps: &[Value],
        disable_ramdisk: bool,
    ) -> Result<(), Error> {
        let task = self.begin_operation(id, Event::Service).await?;
        let steps = requested_steps(StepKind::Service, service_steps)?;
        self.order_steps(task, StepKind::Service, steps, disable_ramdisk).await
    }

    /// As [`Self::service`], with the steps of a runbook, whose name the node must have as a trait.
    ///
    /// # Errors
    ///
    /// As [`Self::clean`].
    pub async fn service_by_runbook(
        &self,
        id: &str,
        runbook: &str,
        disable_ramdisk: bool,
    ) -> Result<(), Error> {
        let task = self.begin_operation(id, Event::Service).await?;
        self.order_runbook(task, StepKind::Service, runbook, disable_ramdisk).await
    }

    /// Orders that an operation which failed goes on at the step that failed, or begins anew where the agent that ran
    /// it is gone. Ironic has no such verb.
    ///
    /// # Errors
    ///
    /// [`InvalidState`](Error::Task), [`Error::Forbidden`], [`Interface`](Error::Task) when an interface cannot do its part,
    /// [`Error::Store`] when somebody works on the node.
    pub async fn retry(&self, id: &str) -> Result<(), Error> {
        let mut task = HeldTask::acquire(self.services(), id).await?;
        task.enter(Event::Retry)?;
        Forbidden::check(&task.node, Event::Retry)?;
        task.validate().await?;
        match StepKind::of(task.node.provision_state) {
            Some(kind) => self.order(task, kind.into(), ConfigDrive::Keep).await,
            None => task.leave().await,
        }
    }

    /// Orders that a machine which runs its instance already is taken over. What `instance_info` says of it, if anything,
    /// must be what could have been deployed; what is wrong with that is the node's `last_error`.
    ///
    /// # Errors
    ///
    /// [`InvalidState`](Error::Task), [`Error::Store`] when somebody works on the node.
    pub async fn adopt(&self, id: &str) -> Result<(), Error> {
        let mut task = self.begin_operation(id, Event::Adopt).await?;
        self.services().choose_deploy(&mut task.node)?;
        self.order(task, Verb::Adopt, ConfigDrive::Keep).await
    }

    /// Ends the operation that waits, or is held: at once, or when the current step ends that must not be cut off.
    ///
    /// # Errors
    ///
    /// [`InvalidState`](Error::Task), [`Error::Forbidden`], [`Error::Store`] when somebody works on the node.
    pub async fn abort(&self, id: &str) -> Result<(), Error> {
        let mut task = HeldTask::acquire(self.services(), id).await?;
        let state = task.node.provision_state;
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

    /// Lets an operation go on that is held.
    ///
    /// # Errors
    ///
    /// [`InvalidState`](Error::Task), [`Error::Forbidden`], [`Error::Store`] when somebody works on the node.
    pub async fn unhold(&self, id: &str) -> Result<(), Error> {
        let mut task = HeldTask::acquire(self.services(), id).await?;
        task.enter(Event::Unhold)?;
        Forbidden::check(&task.node, Event::Unhold)?;
        match StepKind::of(task.node.provision_state) {
            Some(kind) => self.order(task, kind.into(), ConfigDrive::Keep).await,
            None => task.finish().await,
        }
    }

    /// Takes a machine into maintenance, or out of it; that ends the fault that it was put there for.
    ///
    /// # Errors
    ///
    /// [`Error::Store`] when somebody works on the node.
    pub async fn set_maintenance(&self, id: &str, on: bool, reason: Option<String>) -> Result<(), Error> {
        let mut task = HeldTask::acquire(self.services(), id).await?;
        task.node.maintenance = on;
        task.node.maintenance_reason = reason.filter(|_| on);
        task.node.fault.take_if(|_| !on);
        task.finish().await
    }

    /// A node that enters an operation, which counts once saved.
    pub(crate) async fn begin_operation(&self, id: &str, event: Event) -> Result<HeldTask, Error> {
        let mut task = HeldTask::acquire(self.services(), id).await?;
        if task.node.provision_state.takes_verb(event) {
            Forbidden::check(&task.node, event)?;
            task.node.end_plans();
            task.enter(event)?;
            task.begin_session();
            return Ok(task);
        }
        Err(Error::not_allowed(&task.node, event))
    }

    async fn order_runbook(
        &self,
        task: HeldTask,
        kind: StepKind,
        runbook: &str,
        disable_ramdisk: bool,
    ) -> Result<(), Error> {
        let runbook = self.runbook_for(&task.node, runbook).await?;
        self.order_steps(task, kind, runbook.steps, disable_ramdisk || runbook.disable_ramdisk).await
    }

    async fn order_steps(
        &self,
        mut task: HeldTask,
        kind: StepKind,
        steps: Vec<RequestedStep>,
        disable_ramdisk: bool,
    ) -> Result<(), Error> {
        if steps.is_empty() {
            return Err(Error::invalid(format!("{kind}_steps"), "at least one step is needed"));
        }
        if kind == StepKind::Clean {
            task.node.target_provision_state = Some(ProvisionState::Manageable);
        }
        let plan = task.node.plan_mut(kind);
        (plan.requested, plan.disable_ramdisk, plan.untouched) = (steps, disable_ramdisk, true);
        task.validate().await?;
        let deploy = self.services().deploy_interface(&task.node)?;
        steps::check(&mut task, &*deploy, kind).await?;
        self.order(task, kind.into(), ConfigDrive::Keep).await
    }
}

fn current_step_mut(task: &mut HeldTask) -> Option<&mut PlannedStep> {
    let kind = StepKind::of(task.node.provision_state)?;
    task.node.step_mut(kind).as_mut()
}
