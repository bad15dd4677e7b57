//! One turn of a worker: does what there is to do for its node, or looks after its wait.

use super::task_interfaces::TaskInterfaces;
use super::vigil::Vigil;
use super::work::{Operation, Work};
use crate::agent::AgentClient;
use crate::error::Error;
use crate::evidence::events::EventKind;
use crate::inspect::operation as inspection;
use crate::model::{Event, ProvisionState};
use crate::operations::{self, ATTEMPTS};
use crate::services::Services;
use crate::steps::{self, Progress};
use crate::task::Task;
use std::sync::Arc;
use std::time::{Duration, Instant};
use uuid::Uuid;

/// When the next turn is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Next {
    /// At once.
    Again,
    /// After a while, or when somebody says something.
    After(Duration),
    /// When somebody says something: the node is at rest.
    Nothing,
}

/// What a worker remembers from turn to turn. Whatever ends it, nothing is lost with it.
pub(super) struct Memory {
    pub(super) vigil: Vigil,
    /// One client for each agent, since a TLS handshake a second is much for a small machine.
    pub(super) client: Option<AgentClient>,
}

impl Memory {
    /// Nothing yet.
    pub(super) fn new() -> Self {
        Self { vigil: Vigil::new(Instant::now()), client: None }
    }

    /// Nothing yet, of a worker that begins because of a heartbeat.
    pub(super) fn woken() -> Self {
        Self { vigil: Vigil::woken(Instant::now()), client: None }
    }
}

/// One turn of a worker.
pub(super) struct Turn {
    pub(super) services: Arc<Services>,
    pub(super) interfaces: TaskInterfaces,
    pub(super) node: Uuid,
}

impl Turn {
    pub(super) fn new(services: Arc<Services>, interfaces: TaskInterfaces, node: Uuid) -> Self {
        Self { services, interfaces, node }
    }

    /// Takes the turn, with the task where the node was handed over under its lease.
    ///
    /// # Errors
    ///
    /// [`Error::Store`]: it is taken again.
    pub(super) async fn take(self, handed: Option<Task>, memory: &mut Memory) -> Result<Next, Error> {
        if let Some(task) = handed {
            return self.carry_out(task).await;
        }
        if let Some(task) = Task::pick_up(&self.services, self.node).await? {
            return self.take_up(task).await;
        }
        let Some(record) = self.services.store.get(self.node).await? else { return Ok(Next::Nothing) };
        match Work::of(&record.node, record.order.as_ref()) {
            Work::Nothing => Ok(Next::Nothing),
            Work::Await => self.wait(&record, memory).await,
            // Whoever worked on it is no more.
            _ => self.take_up(Task::try_acquire(&self.services, self.node).await?).await,
        }
    }

    /// Ends the node's operation as failed.
    ///
    /// # Errors
    ///
    /// [`Error::Store`].
    pub(super) async fn fail(&self, reason: &str) -> Result<Next, Error> {
        let task = Task::acquire(&self.services, &self.node.to_string()).await?;
        self.end(task, reason).await
    }

    /// Goes on where a conductor stopped.
    async fn take_up(&self, mut task: Task) -> Result<Next, Error> {
        if let Some(order) = &mut task.order
            && !task.was_left
        {
            order.attempts += 1;
            if order.attempts > ATTEMPTS {
                let reason = format!(
                    "the conductor stopped {ATTEMPTS} times while it carried out the order {:?}; see its log",
                    order.verb.as_str()
                );
                return self.end(task, &reason).await;
            }
            tracing::warn!(node = %task.node.label(), "an order is taken up again: {}", order.verb);
            task.save().await?;
        }
        self.carry_out(task).await
    }

    /// Carries out what there is to do, until the node waits or rests.
    pub(super) async fn carry_out(&self, task: Task) -> Result<Next, Error> {
        let mut more = Some(task);
        while let Some(task) = more {
            more = self.work_on(task).await?;
        }
        Ok(Next::Again)
    }

    /// Does one piece of work, and gives the task back when there is more.
    async fn work_on(&self, mut task: Task) -> Result<Option<Task>, Error> {
        match Work::of(&task.node, task.order.as_ref()) {
            Work::Nothing | Work::Await => task.leave().await?,
            Work::Power(action) => operations::set_power(task, action).await?,
            Work::Forget => operations::forget(task).await?,
            Work::Undeploy => {
                let rescue = self.interfaces.rescue(&task.node);
                return operations::undeploy(task, rescue).await;
            }
            Work::Verify => return operations::verify(task).await,
            Work::Abort => {
                let rescue = self.interfaces.rescue(&task.node);
                operations::abort_at_rest(task, rescue).await?;
            }
            Work::CleanUp => {
                let rescue = self.interfaces.rescue(&task.node);
                operations::clean_up(task, rescue).await?;
            }
            Work::Operation(operation) => {
                let progress = self.carry_on(&mut task, operation).await;
                return self.settle(task, progress).await;
            }
            Work::Abandon => {
                let reason =
                    format!("this conductor cannot go on with a node that is {}", task.node.provision_state);
                return operations::fail(task, &reason).await;
            }
        }
        Ok(None)
    }

    /// Carries an operation on as far as it goes by itself.
    async fn carry_on(&self, task: &mut Task, operation: Operation) -> Result<Progress, Error> {
        let Self { interfaces, .. } = self;
        match operation {
            Operation::Steps(kind) => steps::resume(task, &*interfaces.deploy(&task.node)?, kind).await,
            Operation::Adopt => operations::adopt(task, &*interfaces.deploy(&task.node)?).await,
            Operation::Inspect => inspection::begin(task, &*interfaces.inspect(&task.node)?).await,
            Operation::ContinueInspection => inspection::go_on(task, &*interfaces.inspect(&task.node)?).await,
            Operation::Rescue => operations::rescue(task, &*interfaces.rescue(&task.node)?).await,
            Operation::Unrescue => operations::unrescue(task, &*interfaces.rescue(&task.node)?).await,
        }
    }

    /// Records how an operation left off, and gives the task back when there is more to do.
    pub(super) async fn settle(
        &self,
        mut task: Task,
        progress: Result<Progress, Error>,
    ) -> Result<Option<Task>, Error> {
        match progress {
            Ok(Progress::Waits | Progress::Unreached(_)) => task.finish().await?,
            Ok(Progress::Done) => {
                let is_active = task.node.provision_state == ProvisionState::Active;
                task.finish().await?;
                if is_active {
                    self.services.events.push(self.node, EventKind::Active);
                }
            }
            Ok(Progress::Aborts) => {
                operations::abort(&mut task)?;
                task.save().await?;
                return Ok(Some(task));
            }
            Err(error @ Error::Store(_)) => return Err(error),
            Err(error) => return operations::fail(task, &error.to_string()).await,
        }
        Ok(None)
    }

    /// Ends what is under way, be it an operation or an order of a node at rest.
    pub(super) async fn end(&self, mut task: Task, reason: &str) -> Result<Next, Error> {
        if task.node.provision_state.after(Event::Fail).is_some() {
            return match operations::fail(task, reason).await? {
                Some(task) => self.carry_out(task).await,
                None => Ok(Next::Again),
            };
        }
        task.node.set_last_error(reason);
        task.node.target_power_state = None;
        task.order = None;
        task.finish().await?;
        Ok(Next::Again)
    }
}
