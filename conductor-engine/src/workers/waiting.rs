//! Looks after a node that waits (sections 2.4, 2.6 and 3.12). It is looked at without its lease, so that nobody is
//! turned away for it.

use crate::error::{Error, Reason, codes};
use crate::evidence::console_log;
use crate::evidence::diagnosis::Diagnosis;
use crate::explain::boot_progress::BootProgress;
use crate::explain::gather::gather_all;
use crate::lease::HeldTask;
use crate::operations;
use crate::store::Record;
use crate::workers::pass::{Schedule, WorkerPass, WorkerState};
use crate::workers::power_check::PowerCheck;
use crate::workers::silence::Silence;
use farrier_conductor::agent::{AgentClient, AgentError};
use farrier_conductor::heartbeat::{Next, Verdict, next};
use farrier_conductor::in_band;
use farrier_conductor::interfaces::{DriverStep, InterfaceError};
use farrier_conductor::model::{Family, Node, PowerState, StepKind};
use farrier_conductor::steps::{self, Progress};
use farrier_conductor::task::act::Call;
use farrier_conductor::task::can_fall_back;
use farrier_conductor::task::event::EventKind;
use farrier_conductor::task::ramdisk;
use farrier_protocol::progress::{Phase, Progress as WriteProgress};
use std::time::{Duration, Instant};

/// What an operation that waits can go on with.
enum News {
    /// Its agent has called for the first time.
    Begins(StepKind),
    /// The agent is to be asked for its steps.
    IsToList(StepKind),
    /// The current step has ended, or is to run again.
    GoesOn(StepKind),
    /// The driver has ended the current step, or failed.
    Polled(StepKind, Result<DriverStep, InterfaceError>),
    /// The rescue system is there.
    IsRescued,
    /// No agent has called after a boot, for this reason as far as it is known, and another boot interface is left.
    IsSilent(String),
}

/// What an agent tells of an operation that waits for it.
enum Asked {
    /// The operation can go on.
    GoesOn,
    /// It cannot yet, and whether the agent has said so.
    Waits { is_reached: bool },
    /// The agent cannot be reached, for this reason.
    Unreached(String),
}

impl Asked {
    /// Whether an operation goes on whose agent was reached.
    fn when(goes_on: bool) -> Self {
        if goes_on { Self::GoesOn } else { Self::Waits { is_reached: true } }
    }
}

/// What became of news.
enum Taken {
    /// They were gone on with.
    Schedule(Schedule),
    /// The agent cannot be reached, for this reason.
    Unreached(String),
}

impl Taken {
    /// When the next pass is, where silence is what the news tell of.
    fn next(self, pause: Duration) -> Schedule {
        match self {
            Self::Schedule(next) => next,
            Self::Unreached(_) => Schedule::After(pause),
        }
    }
}

/// What was found out about a machine whose wait fails.
#[derive(Debug, Default)]
struct Found {
    /// What could be had of it.
    words: Option<Diagnosis>,
    /// Whether its agent calls and cannot be reached.
    is_unreached: bool,
    /// Whether it is off, as readings of its power agree.
    is_off: bool,
}

impl WorkerPass {
    /// Looks after a node that waits.
    pub(crate) async fn wait(&self, record: &Record, state: &mut WorkerState) -> Result<Schedule, Error> {
        let settings = &self.services.settings;
        let pause = self.pause(record);
        state.silence.look(record, settings.check_interval, Instant::now());
        let is_called = state.silence.is_called(record);
        let next = next(&self.services.situation(record), None);
        if is_called && let Next::FailInMaintenance(_) = next {
            state.silence.handled(record);
            let text =
                format!("node {}: the operation is aborted, as it is in maintenance", record.node.label());
            let reason = Reason::new(codes::ENDED_BY_MAINTENANCE, text);
            return self.fail_wait(record, &reason, Found::default()).await;
        }
        if record.node.maintenance {
            // It pauses, and its operator may do what they like to the machine.
            state.silence.pause(Instant::now());
            state.power = PowerCheck::default();
            return Ok(Schedule::After(pause));
        }
        let news = match next {
            Next::Begin(kind) if is_called => Some(News::Begins(kind)),
            Next::RefreshSteps(kind) if is_called => Some(News::IsToList(kind)),
            Next::ReadCommands { kind, refresh } => {
                self.is_gone_on_with(record, state, kind, refresh).await.then_some(News::GoesOn(kind))
            }
            Next::FinalizeRescue if is_called => Some(News::IsRescued),
            Next::RefreshSteps(_) | Next::Touch => {
                state.silence.during(settings.check_interval, self.poll(record)).await
            }
            _ => None,
        };
        if let Some(news) = news {
            let taken = self.take_news(record, news);
            match state.silence.during(settings.check_interval, taken).await? {
                Taken::Schedule(next) => {
                    state.silence.handled(record);
                    state.silence.reached();
                    return Ok(next);
                }
                Taken::Unreached(reason) => state.silence.unreached(record, reason, Instant::now()),
            }
        }
        if let Some(reason) = self.why_to_fall_back(record, &state.silence).await {
            let taken = self.take_news(record, News::IsSilent(reason)).await;
            state.silence = Silence::new(Instant::now());
            return taken.map(|taken| taken.next(pause));
        }
        // The heartbeat of an agent that cannot be reached is gone on with when it can be.
        if state.silence.why_unreached().is_none() {
            state.silence.handled(record);
        }
        match self.stuck(record, state).await {
            Some(reason) => self.give_up(record, reason, state).await,
            None => Ok(Schedule::After(pause)),
        }
    }

    /// How long until the next look: deployments have a progress bar, when somebody watches it.
    fn pause(&self, record: &Record) -> Duration {
        let settings = &self.services.settings;
        let is_written = StepKind::of(record.node.provision_state) == Some(StepKind::Deploy)
            && runs_in_agent(&record.node)
            && record.session.agent_url.is_some();
        let is_shown = is_written && self.services.events.is_watched(self.node);
        if is_shown { settings.progress_interval } else { settings.check_interval }
    }

    /// Goes on under the lease, unless something happened to the node since it was looked at.
    async fn take_news(&self, seen: &Record, news: News) -> Result<Taken, Error> {
        let mut task = HeldTask::try_acquire(&self.services, self.node).await?;
        if !is_as_seen(&task.node, &seen.node) {
            task.leave().await?;
            return Ok(Taken::Schedule(Schedule::Again));
        }
        let progress = self.go_on(&mut task, news).await;
        if let Ok(Progress::Unreached(reason)) = progress {
            match is_as_seen(&task.node, &seen.node) {
                true => task.leave().await?,
                false => task.finish().await?,
            }
            return Ok(Taken::Unreached(reason));
        }
        Ok(Taken::Schedule(match self.settle(task, progress).await? {
            Some(task) => self.carry_out(task).await?,
            None => Schedule::After(self.pause(seen)),
        }))
    }

    async fn go_on(&self, task: &mut HeldTask, news: News) -> Result<Progress, Error> {
        let deploy = self.services.deploy_interface(&task.node);
        match news {
            News::Begins(kind) => Ok(steps::begin(task, &*deploy?, kind).await?),
            News::IsToList(kind) => Ok(steps::list(task, &*deploy?, kind).await?),
            News::GoesOn(kind) => Ok(steps::advance(task, &*deploy?, kind).await?),
            News::Polled(kind, left_off) => Ok(steps::polled(task, &*deploy?, kind, left_off).await?),
            News::IsRescued => {
                let rescue = self.services.rescue_interface(&task.node)?;
                operations::finalize_rescue(task, &*rescue).await
            }
            // It may have called by now.
            News::IsSilent(reason) if task.session().agent_url.is_none() => {
                boot_otherwise(task, &reason).await
            }
            News::IsSilent(_) => Ok(Progress::Waits),
        }
    }

    /// What the driver says about the step that it runs, when that has ended.
    async fn poll(&self, record: &Record) -> Option<News> {
        let node = &record.node;
        let (kind, step) = (StepKind::of(node.provision_state)?, node.current_step()?);
        let (of, interface) = self.services.hardware.that_runs(&step.id(), kind, node)?;
        let limit = self.services.settings.interface_timeout;
        match Call::of(node, of, "poll_step").answer(limit, interface.poll_step(kind, node, step)).await {
            Ok(DriverStep::Polls) => None,
            Ok(left_off) => Some(News::Polled(kind, Ok(left_off))),
            Err(error) => Some(News::Polled(kind, Err(error))),
        }
    }

    /// Asks whether the operation can go on, which may take longer than the pause between two looks.
    async fn is_gone_on_with(
        &self,
        record: &Record,
        state: &mut WorkerState,
        kind: StepKind,
        refresh: bool,
    ) -> bool {
        let WorkerState { silence, client, .. } = state;
        let is_called = silence.is_called(record);
        if is_called && refresh || record.node.plan(kind).disable_ramdisk {
            return true;
        }
        let asked = self.agent_goes_on(record, client, kind, is_called);
        let asked = silence.during(self.services.settings.check_interval, asked).await;
        match asked {
            Asked::GoesOn => true,
            Asked::Waits { is_reached } => {
                if is_reached {
                    silence.reached();
                }
                false
            }
            Asked::Unreached(reason) => {
                silence.unreached(record, reason, Instant::now());
                false
            }
        }
    }

    /// Whether the operation can go on: by the agent's first heartbeat, or the end of a step.
    ///
    /// Heartbeats alone would do (an agent forces one when a command ends), but they tell nothing about progress, and
    /// a lost one costs minutes. So a step that runs in the agent is asked for between them. An agent that cannot be
    /// reached may be busy or its network slow, whether or not it has called: its silence has its own limit.
    async fn agent_goes_on(
        &self,
        record: &Record,
        known: &mut Option<AgentClient>,
        kind: StepKind,
        is_called: bool,
    ) -> Asked {
        let in_agent = runs_in_agent(&record.node);
        if record.session.agent_url.is_none() || !is_called && !in_agent {
            return Asked::Waits { is_reached: false };
        }
        if known.as_ref().is_none_or(|client| !client.is_of(&record.session)) {
            *known = AgentClient::new(&record.session, &self.services.settings.agent).ok();
        }
        let Some(client) = known else { return Asked::when(is_called) };
        if kind == StepKind::Deploy
            && in_agent
            && self.services.events.is_watched(self.node)
            && let Ok(progress) = client.progress().await
        {
            let is_at_work = matches!(progress.phase, Phase::Writing | Phase::Verifying | Phase::Finishing);
            self.tell(progress);
            if is_at_work && !is_called {
                return Asked::Waits { is_reached: true };
            }
        }
        match client.commands().await {
            Ok(commands) => {
                let next = next(&self.services.situation(record), Some(&commands));
                Asked::when(!matches!(next, Next::Step(_, Verdict::Wait)))
            }
            Err(error @ AgentError::Unreachable { .. }) => Asked::Unreached(error.to_string()),
            Err(_) => Asked::when(is_called),
        }
    }

    fn tell(&self, progress: WriteProgress) {
        let events = &self.services.events;
        if matches!(progress.phase, Phase::Verifying | Phase::Finishing | Phase::Done) {
            events.push_once(self.node, EventKind::ImageWritten);
        }
        if !matches!(progress.phase, Phase::Idle | Phase::Done | Phase::Failed) {
            events.push(self.node, EventKind::Progress(progress));
        }
    }

    /// Why the boot of a node is tried by another interface, where it is time for that.
    async fn why_to_fall_back(&self, record: &Record, silence: &Silence) -> Option<String> {
        let Record { node, session, .. } = record;
        // An agent that has looked its node up is there, whatever keeps it.
        let has_called = session.agent_url.is_some()
            || session.agent_secret_token.is_some() && !session.agent_secret_token_pregenerated;
        let silent_for = silence.duration(Instant::now());
        if has_called
            || silent_for < self.services.settings.boot_retry_timeout
            || !needs_agent(node)
            || !can_fall_back(node)
        {
            return None;
        }
        let progress = BootProgress::of(&self.services, node).await.unwrap_or_default();
        let progress = progress.map_or_else(String::new, |progress| format!(" ({})", progress.told()));
        Some(format!("no agent called for {} s{progress}", silent_for.as_secs()))
    }

    /// Why a node that waits will not go on by itself, if so.
    async fn stuck(&self, record: &Record, state: &mut WorkerState) -> Option<Reason> {
        let WorkerState { silence, power, .. } = state;
        let Record { node, session, .. } = record;
        let settings = &self.services.settings;
        if let Err(error) = self.services.hardware.power(node) {
            return Some(Reason::new(codes::DRIVER_LOST, format!("node {}: {error}", node.label())));
        }
        let kind = StepKind::of(node.provision_state);
        let step = match (node.current_step(), kind) {
            (Some(step), _) => step.step.as_str(),
            (None, kind) => kind.map_or("none", StepKind::as_str),
        };
        let is_silent = silence.why_unreached().is_some();
        if needs_agent(node) && power.is_off(&self.services, node, is_silent) {
            let text = format!(
                "node {}: the machine went off while it was waited for (step {step}); {}",
                node.label(),
                console_log::hint(node, &self.services.hardware)
            );
            return Some(Reason::new(codes::MACHINE_OFF, text));
        }
        let limit = settings.callback_timeout(node.provision_state)?;
        if silence.duration(Instant::now()) < limit {
            return None;
        }
        // Without what is known of its boot, a timeout is a timeout.
        let progress = match session.agent_url {
            Some(_) => None,
            None => BootProgress::of(&self.services, node).await.unwrap_or_default(),
        };
        let (code, agent) = match (&session.agent_url, &progress) {
            (Some(url), _) => {
                let why = silence.why_unreached().map_or_else(String::new, |why| format!("{why}; "));
                (codes::AGENT_SILENT, format!("{why}the agent at {url} was silent"))
            }
            (None, Some(progress)) => {
                (codes::NO_AGENT_CALLED, format!("no agent called ({})", progress.told()))
            }
            (None, None) => (codes::NO_AGENT_CALLED, "no agent called".to_owned()),
        };
        let text = format!(
            "node {}: {agent} for {} s (step {step}); {} and {}",
            node.label(),
            limit.as_secs_f64(),
            BootProgress::advice(progress.as_ref(), &self.services.callback_url(node)),
            console_log::hint(node, &self.services.hardware)
        );
        Some(Reason::new(code, text))
    }

    /// Fails a wait, with what can be had of the machine in a while.
    async fn give_up(
        &self,
        seen: &Record,
        reason: Reason,
        state: &mut WorkerState,
    ) -> Result<Schedule, Error> {
        let WorkerState { silence, power, .. } = state;
        let words = gather_all(&self.services, &seen.node);
        let words = silence.during(self.services.settings.check_interval, words).await;
        let reason = match &words.cause {
            Some(cause) => reason.with(&format!("; the cause may be that {cause}")),
            None => reason,
        };
        let (is_unreached, is_off) = (silence.why_unreached().is_some(), power.was_off());
        self.fail_wait(seen, &reason, Found { words: Some(words), is_unreached, is_off }).await
    }

    /// Fails a wait, unless something happened to the node since it was looked at. Of an agent that cannot be reached
    /// its calls are nothing that happened.
    async fn fail_wait(&self, seen: &Record, reason: &Reason, found: Found) -> Result<Schedule, Error> {
        let mut task = HeldTask::try_acquire(&self.services, self.node).await?;
        let is_unheard =
            found.is_unreached || task.session().agent_last_heartbeat == seen.session.agent_last_heartbeat;
        let same = is_as_seen(&task.node, &seen.node) && is_unheard;
        if let Some(words) = found.words.filter(|_| same) {
            task.note_diagnosis(words);
        }
        if found.is_off && same {
            // It went off by itself: the record is not to say that it is on until the next power sync.
            task.node.power_state = Some(PowerState::Off);
        }
        match same {
            true => self.end(task, reason).await,
            false => {
                task.leave().await?;
                Ok(Schedule::Again)
            }
        }
    }
}

/// Boots the ramdisk by the next boot interface of the node.
async fn boot_otherwise(task: &mut HeldTask, reason: &str) -> Result<Progress, Error> {
    if task.fall_back(reason).await? {
        // The deadline is that of the new boot.
        task.node.provision_updated_at = task.services().now();
        match task.node.provision_state.family() {
            Some(Family::Inspect) => in_band::boot(task).await?,
            _ => ramdisk::boot(task).await?,
        }
    }
    Ok(Progress::Waits)
}

/// Whether a node is still in the state in which it was looked at, and no operator has begun or ended its maintenance.
fn is_as_seen(node: &Node, seen: &Node) -> bool {
    node.provision_updated_at == seen.provision_updated_at && node.maintenance == seen.maintenance
}

fn runs_in_agent(node: &Node) -> bool {
    node.current_step().is_some_and(|step| step.in_band)
}

/// Whether an operation that waits does so for its agent, and not for its driver.
fn needs_agent(node: &Node) -> bool {
    let plan = StepKind::of(node.provision_state).map(|kind| node.plan(kind));
    plan.is_none_or(|plan| !plan.polling && !plan.disable_ramdisk)
}
