//! One pass of a worker: does what there is to do for its node, or looks after its wait.

use crate::error::{Error, Reason, codes};
use crate::explain::work_in_words;
use crate::lease::HeldTask;
use crate::operations::inspect as inspection;
use crate::operations::{self, ATTEMPTS};
use crate::placement::Place;
use crate::services::{ENDED, Services};
use crate::store::{Record, Revision};
use crate::workers::power_check::PowerCheck;
use crate::workers::silence::Silence;
use crate::workers::work::{Operation, Work};
use farrier_conductor::agent::AgentClient;
use farrier_conductor::deploy::DeployInterface;
use farrier_conductor::in_band::RescueInterface;
use farrier_conductor::model::{Activity, Event, Node, ProvisionState, StepKind};
use farrier_conductor::steps::{self, Progress};
use farrier_conductor::task::event::EventKind;
use std::sync::Arc;
use std::time::{Duration, Instant};
use uuid::Uuid;

/// When the next pass is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Schedule {
    /// At once.
    Again,
    /// After a while, or when something changes.
    After(Duration),
    /// When the task that works on the node has given back its lease.
    WhenFree,
    /// When somebody says something: the node is at rest.
    Nothing,
}

/// What a worker knows from pass to pass. Whatever ends it, nothing is lost with it.
pub(crate) struct WorkerState {
    pub(crate) silence: Silence,
    pub(crate) power: PowerCheck,
    /// The record as it was read last.
    seen: Option<(Revision, Arc<Record>)>,
    /// One client for each agent, since a TLS handshake a second is much for a small machine.
    pub(crate) client: Option<AgentClient>,
}

impl WorkerState {
    /// Nothing yet.
    pub(crate) fn new() -> Self {
        Self { silence: Silence::new(Instant::now()), power: PowerCheck::default(), seen: None, client: None }
    }

    /// Nothing yet, of a worker that begins because of a heartbeat.
    pub(crate) fn woken() -> Self {
        Self { silence: Silence::woken(Instant::now()), ..Self::new() }
    }

    /// The record of a node with who has its lease. It is read again only where its revision, a small part of
    /// it, has changed.
    async fn look(
        &mut self,
        services: &Services,
        node: Uuid,
    ) -> Result<Option<(Revision, Arc<Record>)>, Error> {
        let Some(revision) = services.store.revision(node).await? else { return Ok(None) };
        let is_known = self.seen.as_ref().is_some_and(|(seen, _)| seen.is_same_record(&revision));
        if !is_known {
            let Some(record) = services.store.get(node).await? else { return Ok(None) };
            self.seen = Some((revision.clone(), Arc::new(record)));
        }
        Ok(self.seen.as_ref().map(|(_, record)| (revision, Arc::clone(record))))
    }
}

/// One pass of a worker.
pub(crate) struct WorkerPass {
    pub(crate) services: Arc<Services>,
    pub(crate) node: Uuid,
}

impl WorkerPass {
    pub(crate) fn new(services: Arc<Services>, node: Uuid) -> Self {
        Self { services, node }
    }

    /// Makes the pass, with the task where the node was handed over under its lease.
    ///
    /// # Errors
    ///
    /// [`Error::Store`]: it is made again.
    pub(crate) async fn take(
        self,
        handed: Option<HeldTask>,
        state: &mut WorkerState,
    ) -> Result<Schedule, Error> {
        if let Some(task) = handed {
            return self.carry_out(task).await;
        }
        if let Some(task) = HeldTask::pick_up(&self.services, self.node).await? {
            return match self.services.leads(&task.node) {
                true => self.take_up(task).await,
                // What its task left goes on where the node is led.
                false => task.leave().await.map(|()| Schedule::Again),
            };
        }
        let Some((revision, record)) = state.look(&self.services, self.node).await? else {
            self.services.limits.leave(self.node);
            return Ok(Schedule::Nothing);
        };
        let work = Work::of(&record.node, record.order.as_ref());
        if work != Work::Nothing {
            match self.services.placement.of(&record.node) {
                Place::Here => {}
                Place::At(_) => {
                    self.services.limits.leave(self.node);
                    return Ok(Schedule::Nothing);
                }
                Place::Nowhere(_) => return Ok(Schedule::After(self.services.settings.check_interval)),
            }
        }
        let is_admitted = self.services.limits.admits(&record.node, record.order.as_ref());
        match work {
            Work::Nothing => Ok(Schedule::Nothing),
            Work::Await => self.wait(&record, state).await,
            Work::Operation(_) if !is_admitted => Ok(Schedule::After(self.services.settings.check_interval)),
            _ if self.is_held(&revision) => Ok(Schedule::WhenFree),
            // The worker that worked on it is no more.
            _ => self.take_up(HeldTask::try_acquire(&self.services, self.node).await?).await,
        }
    }

    /// Whether somebody has the lease of the node.
    fn is_held(&self, revision: &Revision) -> bool {
        let is_live = revision.lease_expires_at.is_some_and(|until| until > ENDED);
        self.services.own_leases.has(self.node) || revision.reservation.is_some() && is_live
    }

    /// Ends the node's operation as failed.
    ///
    /// # Errors
    ///
    /// [`Error::Store`].
    pub(crate) async fn fail(&self, reason: &Reason) -> Result<Schedule, Error> {
        let task = HeldTask::try_acquire(&self.services, self.node).await?;
        self.end(task, reason).await
    }

    /// Goes on where a conductor stopped.
    async fn take_up(&self, mut task: HeldTask) -> Result<Schedule, Error> {
        if task.follows_crash() {
            let interruptions = count_interruption(&mut task);
            let work = work_in_words(&task.node, task.order());
            if interruptions > ATTEMPTS {
                let text = format!("the conductor stopped {ATTEMPTS} times while it {work}; see its log");
                return self.end(task, &Reason::new(codes::CONDUCTOR_STOPPED, text)).await;
            }
            tracing::warn!(node = %task.node.label(), "a conductor stopped while it {work}; this one resumes it");
            task.save().await?;
        }
        self.carry_out(task).await
    }

    /// Carries out what there is to do, until the node waits or rests.
    pub(crate) async fn carry_out(&self, task: HeldTask) -> Result<Schedule, Error> {
        let mut more = Some(task);
        while let Some(task) = more {
            // Dropped, the lease is left, and given back when the conductor ends.
            if self.services.is_stopping() {
                break;
            }
            more = self.work_on(task).await?;
        }
        Ok(Schedule::Again)
    }

    /// Does one piece of work, and gives the task back when there is more.
    async fn work_on(&self, mut task: HeldTask) -> Result<Option<HeldTask>, Error> {
        match Work::of(&task.node, task.order()) {
            Work::Nothing | Work::Await => task.leave().await?,
            Work::Power(action) => operations::set_power(task, action).await?,
            Work::Forget => operations::forget(task).await?,
            Work::Undeploy => {
                let (deploy, rescue) = self.interfaces(&task.node);
                return operations::undeploy(task, deploy, rescue).await;
            }
            Work::Verify => return operations::verify(task).await,
            Work::Abort => {
                let (deploy, rescue) = self.interfaces(&task.node);
                operations::abort_at_rest(task, deploy, rescue).await?;
            }
            Work::CleanUp => {
                let (deploy, rescue) = self.interfaces(&task.node);
                operations::clean_up(task, deploy, rescue).await?;
            }
            // It waits in its queue, without a lease.
            Work::Operation(_) if !self.services.limits.admits(&task.node, task.order()) => {
                task.leave().await?
            }
            Work::Operation(operation) => {
                let progress = self.carry_on(&mut task, operation).await;
                return self.settle(task, progress).await;
            }
            Work::Abandon => {
                let text =
                    format!("this conductor cannot resume a node that is {}", task.node.provision_state);
                return operations::fail(task, &Reason::new(codes::UNKNOWN_OPERATION, text)).await;
            }
        }
        Ok(None)
    }

    /// The interfaces that undo what an operation has done to a node.
    fn interfaces(
        &self,
        node: &Node,
    ) -> (operations::Resolved<dyn DeployInterface>, operations::Resolved<dyn RescueInterface>) {
        (self.services.deploy_interface(node), self.services.rescue_interface(node))
    }

    /// Carries an operation on as far as it goes by itself.
    async fn carry_on(&self, task: &mut HeldTask, operation: Operation) -> Result<Progress, Error> {
        let Self { services, .. } = self;
        match operation {
            Operation::Steps(kind) => {
                if kind == StepKind::Deploy {
                    services.choose_deploy(&mut task.node)?;
                }
                let deploy = services.deploy_interface(&task.node)?;
                // It may have been ordered by way of a conductor that could not see what its steps are.
                let plan = task.node.plan(kind);
                if task.order().is_some() && plan.index.is_none() && plan.failed.is_none() {
                    steps::check(task, &*deploy, kind).await?;
                }
                Ok(steps::resume(task, &*deploy, kind).await?)
            }
            Operation::Adopt => {
                services.choose_deploy(&mut task.node)?;
                operations::adopt(task, &*services.deploy_interface(&task.node)?).await
            }
            Operation::Inspect => inspection::begin(task, &*services.inspect_interface(&task.node)?).await,
            Operation::ContinueInspection => {
                inspection::go_on(task, &*services.inspect_interface(&task.node)?).await
            }
            Operation::Rescue => operations::rescue(task, &*services.rescue_interface(&task.node)?).await,
            Operation::Unrescue => {
                let (deploy, rescue) = self.interfaces(&task.node);
                operations::unrescue(task, &*deploy?, &*rescue?).await
            }
        }
    }

    /// Records how an operation left off, and gives the task back when there is more to do.
    pub(crate) async fn settle(
        &self,
        mut task: HeldTask,
        progress: Result<Progress, Error>,
    ) -> Result<Option<HeldTask>, Error> {
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
            Err(error) => return operations::fail(task, &Reason::from(&error)).await,
        }
        Ok(None)
    }

    /// Ends what is under way, be it an operation or an order of a node at rest.
    pub(crate) async fn end(&self, mut task: HeldTask, reason: &Reason) -> Result<Schedule, Error> {
        if task.node.provision_state.after(Event::Fail).is_some() {
            return match operations::fail(task, reason).await? {
                Some(task) => self.carry_out(task).await,
                None => Ok(Schedule::Again),
            };
        }
        task.node.set_last_error(&reason.to_string());
        task.node.target_power_state = None;
        *task.order_mut() = None;
        task.finish().await?;
        Ok(Schedule::Again)
    }
}

/// Counts that a conductor stopped in the middle of an operation, or of an order of a node at rest. What is ordered of the
/// power of a node beside its operation counts with the operation.
fn count_interruption(task: &mut HeldTask) -> u64 {
    match (task.node.provision_state.activity(), task.order_mut()) {
        (Activity::Rest | Activity::Hold | Activity::Failed, Some(order)) => {
            order.attempts += 1;
            order.attempts.unsigned_abs()
        }
        _ => {
            let interruptions = &mut task.node.driver_internal_info.interruptions;
            *interruptions.insert(interruptions.unwrap_or_default() + 1)
        }
    }
}
