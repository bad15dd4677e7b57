//! One turn of a worker: does what there is to do for its node, or looks after its wait.

use super::situation::situation;
use super::vigil::Vigil;
use super::work::Work;
use crate::agent_client::AgentClient;
use crate::console;
use crate::deploy::DeployInterface;
use crate::error::Error;
use crate::events::EventKind;
use crate::heartbeat::{Action, decide};
use crate::model::{Event, Node, ProvisionState, StepKind};
use crate::operations;
use crate::power_reading::power_state;
use crate::services::Services;
use crate::steps::{self, Verdict};
use crate::store::Record;
use crate::task::Task;
use farrier_protocol::progress::{Phase, Progress};
use std::sync::Arc;
use std::time::{Duration, Instant};
use uuid::Uuid;

/// How often an operation is taken up again because the conductor stopped; more often, it may be what stops it.
const ATTEMPTS: i64 = 3;

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
    vigil: Vigil,
    /// One client for each agent, since a TLS handshake a second is much for a small machine.
    client: Option<AgentClient>,
}

impl Memory {
    /// Nothing yet.
    pub(super) fn new() -> Self {
        Self { vigil: Vigil::new(Instant::now()), client: None }
    }
}

/// One turn of a worker.
pub(super) struct Turn {
    services: Arc<Services>,
    deploy: Arc<dyn DeployInterface>,
    node: Uuid,
}

impl Turn {
    pub(super) fn new(services: Arc<Services>, deploy: Arc<dyn DeployInterface>, node: Uuid) -> Self {
        Self { services, deploy, node }
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
            tracing::warn!(node = %task.node.name, "an order is taken up again: {}", order.verb);
            task.save().await?;
        }
        self.carry_out(task).await
    }

    async fn carry_out(&self, mut task: Task) -> Result<Next, Error> {
        match Work::of(&task.node, task.order.as_ref()) {
            Work::Nothing | Work::Await => task.leave().await?,
            Work::Power(verb) => operations::set_power(task, verb).await?,
            Work::Forget => operations::forget(task).await?,
            Work::Undeploy => operations::undeploy(task).await?,
            Work::Deploy => {
                let progress = steps::resume(&mut task, &*self.deploy).await;
                self.settle(task, progress).await?;
            }
            Work::Abandon => {
                let reason =
                    format!("this conductor cannot go on with a node that is {}", task.node.provision_state);
                return self.end(task, &reason).await;
            }
        }
        Ok(Next::Again)
    }

    /// Records how an operation left off.
    async fn settle(&self, task: Task, progress: Result<steps::Progress, Error>) -> Result<(), Error> {
        match progress {
            Ok(steps::Progress::Waits) => task.finish().await,
            Ok(steps::Progress::Done) => {
                task.finish().await?;
                self.services.events.push(self.node, EventKind::Active);
                Ok(())
            }
            Err(error @ Error::Store(_)) => Err(error),
            Err(error) => operations::fail(task, &error.to_string()).await,
        }
    }

    /// Ends what is under way, be it an operation or an order of a node at rest.
    async fn end(&self, mut task: Task, reason: &str) -> Result<Next, Error> {
        if task.node.provision_state.after(Event::Fail).is_some() {
            operations::fail(task, reason).await?;
        } else {
            task.node.set_last_error(reason);
            task.node.target_power_state = None;
            task.order = None;
            task.finish().await?;
        }
        Ok(Next::Again)
    }

    /// Looks after a node that waits for its agent. It is looked at without its lease, so that nobody is turned away
    /// for it.
    async fn wait(&self, record: &Record, memory: &mut Memory) -> Result<Next, Error> {
        let settings = &self.services.settings;
        let pause = match self.runs_in_agent(&record.node) && record.session.agent_url.is_some() {
            true => settings.progress_interval,
            false => settings.check_interval,
        };
        memory.vigil.look(record, settings.check_interval, Instant::now());
        if record.node.maintenance {
            // It pauses, and its operator may do what they like to the machine.
            memory.vigil = Vigil::new(Instant::now());
            return Ok(Next::After(pause));
        }
        if let Action::ProcessStep { kind: StepKind::Deploy, refresh } = decide(&situation(record))
            && self.is_gone_on_with(record, memory, refresh).await
        {
            let mut task = Task::try_acquire(&self.services, self.node).await?;
            if task.node.provision_state == ProvisionState::DeployWait {
                let progress = steps::advance(&mut task, &*self.deploy).await;
                self.settle(task, progress).await?;
            } else {
                task.leave().await?;
            }
            memory.vigil.handled(record);
            return Ok(Next::After(pause));
        }
        memory.vigil.handled(record);
        match self.stuck(record, &mut memory.vigil).await {
            Some(reason) => self.fail_wait(record, &reason).await,
            None => Ok(Next::After(pause)),
        }
    }

    /// Asks whether the operation can go on, which may take longer than the pause between two looks.
    async fn is_gone_on_with(&self, record: &Record, memory: &mut Memory, refresh: bool) -> bool {
        let Memory { vigil, client } = memory;
        let is_called = vigil.is_called(record);
        let asked = self.agent_goes_on(record, client, is_called, refresh);
        vigil.during(self.services.settings.check_interval, asked).await
    }

    /// Whether the agent has something that the operation can go on with: its first heartbeat, or the end of a step.
    ///
    /// Heartbeats alone would do (an agent forces one when a command ends), but they tell nothing about progress, and
    /// a lost one costs minutes. So a step that runs in the agent is asked for between them; there, an agent that
    /// cannot be reached may be busy or its network slow, and its silence has its own limit.
    async fn agent_goes_on(
        &self,
        record: &Record,
        known: &mut Option<AgentClient>,
        is_called: bool,
        refresh: bool,
    ) -> bool {
        if is_called && refresh {
            return true;
        }
        let in_agent = self.runs_in_agent(&record.node);
        if record.session.agent_url.is_none() || !is_called && !in_agent {
            return false;
        }
        if known.as_ref().is_none_or(|client| !client.is_of(&record.session)) {
            *known = AgentClient::new(&record.session, &self.services.settings.agent).ok();
        }
        let Some(client) = known else { return is_called };
        if in_agent && let Ok(progress) = client.progress().await {
            let is_at_work = matches!(progress.phase, Phase::Writing | Phase::Verifying | Phase::Finishing);
            self.tell(progress);
            if is_at_work && !is_called {
                return false;
            }
        }
        match client.commands().await {
            Ok(commands) => {
                let again = record.node.driver_internal_info.skip_current_deploy_step == Some(false);
                let step = record.node.deploy_step.as_ref();
                !matches!(steps::judge(&commands, step, in_agent, again), Verdict::Wait)
            }
            Err(_) => is_called,
        }
    }

    fn runs_in_agent(&self, node: &Node) -> bool {
        node.deploy_step.as_ref().is_some_and(|step| self.deploy.runs_in_agent(step))
    }

    fn tell(&self, progress: Progress) {
        let events = &self.services.events;
        if matches!(progress.phase, Phase::Verifying | Phase::Finishing | Phase::Done) {
            events.push_once(self.node, EventKind::ImageWritten);
        }
        if !matches!(progress.phase, Phase::Idle | Phase::Done | Phase::Failed) {
            events.push(self.node, EventKind::Progress(progress));
        }
    }

    /// Why a node that waits will not go on by itself, if so.
    async fn stuck(&self, record: &Record, vigil: &mut Vigil) -> Option<String> {
        let Record { node, session, .. } = record;
        if let Err(error) = self.services.hardware.power(node) {
            return Some(format!("node {}: {error}", node.name));
        }
        let step = node.deploy_step.as_ref().map_or("deploy", |step| step.step.as_str());
        let reading = vigil.during(self.services.settings.check_interval, power_state(&self.services, node));
        if let Ok(reading) = reading.await
            && vigil.is_off(reading)
        {
            return Some(format!(
                "node {}: the machine went off while it was waited for (step {step}); {}",
                node.name,
                console::hint(node, &self.services.hardware)
            ));
        }
        let limit = self.services.settings.callback_timeout(node.provision_state)?;
        if vigil.silence(Instant::now()) < limit {
            return None;
        }
        let agent = match &session.agent_url {
            Some(url) => format!("the agent at {url} was silent"),
            None => "no agent called".to_owned(),
        };
        Some(format!(
            "node {}: {agent} for {} s (step {step}); check the machine's network (link, DHCP, way to {}) and {}",
            node.name,
            limit.as_secs_f64(),
            self.services.callback_url(node),
            console::hint(node, &self.services.hardware)
        ))
    }

    /// Fails a wait, unless something happened to the node since it was looked at.
    async fn fail_wait(&self, seen: &Record, reason: &str) -> Result<Next, Error> {
        let task = Task::try_acquire(&self.services, self.node).await?;
        let same = task.node.provision_updated_at == seen.node.provision_updated_at
            && task.session.agent_last_heartbeat == seen.session.agent_last_heartbeat;
        match same {
            true => self.end(task, reason).await,
            false => {
                task.leave().await?;
                Ok(Next::Again)
            }
        }
    }
}
