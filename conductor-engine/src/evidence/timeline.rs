//! The life of a node as phases and steps, each with its start and its end. It is made of the history, so it stays after
//! the end of an operation, and with a restart of the conductor.

use crate::evidence::events::Event;
use crate::records::{Beginning, HISTORY_LIMIT, HistoryEntry, HistoryKind, Severity};
use farrier_conductor::model::{Activity, Node, ProvisionState};
use farrier_conductor::task::event::EventKind;
use farrier_protocol::progress;
use serde::{Deserialize, Serialize};
use time::OffsetDateTime;

/// The name of the step that writes the image, whose progress agents report.
const WRITES_IMAGE: &str = "deploy.write_image";

/// The life of a node.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Timeline {
    /// Its phases, the oldest first. The last one has no end.
    pub phases: Vec<Phase>,
}

/// An operation from its start to its end, or a state of rest.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Phase {
    /// The state that it began with.
    pub state: ProvisionState,
    /// When it began.
    #[serde(with = "time::serde::rfc3339")]
    pub begun_at: OffsetDateTime,
    /// When it ended; nothing while it lasts.
    #[serde(with = "time::serde::rfc3339::option")]
    pub ended_at: Option<OffsetDateTime>,
    /// How much of the operation is done, from 0 to 100; nothing where that is not known, and at rest.
    pub percent: Option<u8>,
    /// The user who ordered it; nothing where the conductor did it by itself.
    pub user: Option<String>,
    /// Why the operation before it failed, where this state is that of its failure.
    pub error: Option<String>,
    /// The states within it, each of which ends with the next one.
    pub states: Vec<StateSpan>,
    /// The steps of the operation.
    pub steps: Vec<StepSpan>,
}

/// A state within a phase.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct StateSpan {
    /// The state.
    pub state: ProvisionState,
    /// When it began.
    #[serde(with = "time::serde::rfc3339")]
    pub begun_at: OffsetDateTime,
    /// When it ended; nothing while it lasts.
    #[serde(with = "time::serde::rfc3339::option")]
    pub ended_at: Option<OffsetDateTime>,
}

/// A step within a phase.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct StepSpan {
    /// The step, with its interface.
    pub step: String,
    /// Its number, from 1 on.
    pub number: Option<usize>,
    /// How many steps there are.
    pub of: usize,
    /// When it began.
    #[serde(with = "time::serde::rfc3339")]
    pub begun_at: OffsetDateTime,
    /// When it ended; nothing while it lasts.
    #[serde(with = "time::serde::rfc3339::option")]
    pub ended_at: Option<OffsetDateTime>,
    /// How much of it is done, from 0 to 100; nothing where that is not known.
    pub percent: Option<u8>,
    /// Whether the operation failed during this step.
    pub has_failed: bool,
}

impl Timeline {
    /// The life of a node by its history. `events` are those of the operation that this process carries out.
    pub(crate) fn of(node: &Node, history: &[HistoryEntry], events: &[Event]) -> Self {
        let mut timeline = Self::default();
        let is_whole = history.len() < HISTORY_LIMIT as usize
            && provisioning(history).next().is_none_or(|entry| entry.beginning.is_some());
        for entry in provisioning(history) {
            match &entry.beginning {
                Some(Beginning::State { from, state }) => {
                    if timeline.phases.is_empty() && is_whole {
                        timeline.enter(*from, *from, node.created_at);
                    }
                    timeline.enter(*from, *state, entry.created_at);
                    if let Some(phase) = timeline.phases.last_mut().filter(|phase| phase.states.len() == 1) {
                        phase.user = entry.user.clone();
                        phase.error = (entry.severity == Severity::Error).then(|| entry.event.clone());
                    }
                }
                Some(Beginning::Step { step, number, of }) => {
                    timeline.begin_step(step, *number, *of, entry.created_at);
                }
                None => {}
            }
        }
        if timeline.phases.is_empty() {
            let since = if is_whole { node.created_at } else { node.provision_updated_at };
            timeline.enter(node.provision_state, node.provision_state, since);
        }
        timeline.measure(events);
        timeline
    }

    /// The phase that lasts.
    pub fn current(&self) -> Option<&Phase> {
        self.phases.last()
    }

    /// A state begins: within the phase of the state before it where both are of one operation that goes on.
    fn enter(&mut self, from: ProvisionState, state: ProvisionState, at: OffsetDateTime) {
        let span = StateSpan { state, begun_at: at, ended_at: None };
        if let Some(phase) = self.phases.last_mut() {
            if let Some(last) = phase.states.last_mut() {
                last.ended_at = Some(at);
            }
            if is_one_operation(from, state) {
                phase.states.push(span);
                return;
            }
            phase.end(at, state.activity() == Activity::Failed);
        }
        self.phases.push(Phase {
            state,
            begun_at: at,
            ended_at: None,
            percent: None,
            user: None,
            error: None,
            states: vec![span],
            steps: Vec::new(),
        });
    }

    fn begin_step(&mut self, step: &str, number: Option<usize>, of: usize, at: OffsetDateTime) {
        let Some(phase) = self.phases.last_mut() else { return };
        phase.end_step(at);
        phase.steps.push(StepSpan {
            step: step.to_owned(),
            number,
            of,
            begun_at: at,
            ended_at: None,
            percent: None,
            has_failed: false,
        });
    }

    /// How much of the operation that goes on is done.
    fn measure(&mut self, events: &[Event]) {
        let Some(phase) = self.phases.last_mut() else { return };
        let Some(step) = phase.steps.last_mut() else { return };
        if step.step == WRITES_IMAGE {
            step.percent = events.iter().rev().find_map(written);
        }
        let Some(number) = step.number.filter(|number| (1..=step.of).contains(number)) else { return };
        let done = (number - 1) * 100 + usize::from(step.percent.unwrap_or_default());
        phase.percent = u8::try_from(done / step.of).ok();
    }
}

impl Phase {
    /// How long it lasts, or has lasted.
    pub fn duration(&self, now: OffsetDateTime) -> time::Duration {
        self.ended_at.unwrap_or(now) - self.begun_at
    }

    fn end(&mut self, at: OffsetDateTime, has_failed: bool) {
        self.ended_at = Some(at);
        if let Some(step) = self.steps.last_mut()
            && has_failed
        {
            (step.ended_at, step.has_failed) = (Some(at), true);
        }
        self.end_step(at);
        let is_operation = matches!(self.state.activity(), Activity::Work | Activity::Wait);
        self.percent = (is_operation && !has_failed).then_some(100);
    }

    fn end_step(&mut self, at: OffsetDateTime) {
        if let Some(step) = self.steps.last_mut().filter(|step| step.ended_at.is_none()) {
            (step.ended_at, step.percent) = (Some(at), Some(100));
        }
    }
}

fn provisioning(history: &[HistoryEntry]) -> impl Iterator<Item = &HistoryEntry> {
    history.iter().filter(|entry| entry.event_type == HistoryKind::Provisioning)
}

fn is_one_operation(from: ProvisionState, to: ProvisionState) -> bool {
    let goes_on =
        |state: ProvisionState| matches!(state.activity(), Activity::Work | Activity::Wait | Activity::Hold);
    goes_on(from) && goes_on(to) && from.family() == to.family()
}

/// How much of the image is written and verified.
fn written(event: &Event) -> Option<u8> {
    match &event.kind {
        EventKind::Progress(progress) => {
            let total = progress.total_bytes.filter(|total| *total > 0)?;
            let done = u8::try_from(u128::from(progress.bytes) * 100 / u128::from(total)).ok()?.min(100);
            match progress.phase {
                progress::Phase::Writing => Some(done),
                _ => Some(100),
            }
        }
        EventKind::ImageWritten | EventKind::ImageVerified { .. } => Some(100),
        EventKind::WriteStarted => Some(0),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::records::tests::node;
    use farrier_protocol::progress::Progress;
    use time::Duration;
    use uuid::Uuid;

    fn entry(second: i64, beginning: Beginning) -> HistoryEntry {
        let has_failed =
            matches!(&beginning, Beginning::State { state, .. } if state.activity() == Activity::Failed);
        HistoryEntry {
            uuid: Uuid::new_v4(),
            created_at: OffsetDateTime::UNIX_EPOCH + Duration::seconds(second),
            severity: if has_failed { Severity::Error } else { Severity::Info },
            event_type: HistoryKind::Provisioning,
            event: "disk full".into(),
            conductor: "c1".into(),
            user: (second == 10).then(|| "anna".to_owned()),
            beginning: Some(beginning),
        }
    }

    /// States that follow each other from a second on, and the steps between them.
    fn life(states: &[(i64, ProvisionState)], steps: &[(i64, &str, usize, usize)]) -> Vec<HistoryEntry> {
        let pairs = states.windows(2).map(|pair| {
            let [(_, from), (at, state)] = [pair[0], pair[1]];
            entry(at, Beginning::State { from, state })
        });
        let steps = steps.iter().map(|(at, step, number, of)| {
            let (step, number) = ((*step).to_owned(), Some(*number));
            entry(*at, Beginning::Step { step, number, of: *of })
        });
        let mut history: Vec<_> = pairs.chain(steps).collect();
        history.sort_by_key(|entry| entry.created_at);
        history
    }

    fn spans(timeline: &Timeline) -> Vec<(ProvisionState, i64, Option<i64>, Option<u8>)> {
        let second = |at: OffsetDateTime| at.unix_timestamp();
        let span =
            |phase: &Phase| (phase.state, second(phase.begun_at), phase.ended_at.map(second), phase.percent);
        timeline.phases.iter().map(span).collect()
    }

    #[test]
    fn an_operation_is_a_phase_with_its_states_and_steps_and_so_is_each_rest() {
        use ProvisionState::{Active, Available, Cleaning, Deleting, DeployWait, Deploying};
        let states = [
            (0, Available),
            (10, Deploying),
            (20, DeployWait),
            (40, Deploying),
            (90, Active),
            (200, Deleting),
            (210, Cleaning),
            (300, Available),
        ];
        let history = life(&states, &[(11, "deploy.deploy", 1, 2), (50, WRITES_IMAGE, 2, 2)]);
        let timeline = Timeline::of(&node(), &history, &[]);
        let expected = [
            (Available, 0, Some(10), None),
            (Deploying, 10, Some(90), Some(100)),
            (Active, 90, Some(200), None),
            (Deleting, 200, Some(210), Some(100)),
            (Cleaning, 210, Some(300), Some(100)),
            (Available, 300, None, None),
        ];
        assert_eq!(spans(&timeline), expected);
        let deployment = &timeline.phases[1];
        assert_eq!(deployment.user.as_deref(), Some("anna"));
        assert_eq!(deployment.states.len(), 3);
        let steps: Vec<_> = deployment
            .steps
            .iter()
            .map(|step| (step.ended_at.unwrap().unix_timestamp(), step.percent))
            .collect();
        assert_eq!(steps, [(50, Some(100)), (90, Some(100))]);
    }

    #[test]
    fn a_failure_ends_its_step_and_keeps_its_reason() {
        use ProvisionState::{Available, DeployFailed, Deploying};
        let history =
            life(&[(0, Available), (10, Deploying), (30, DeployFailed)], &[(20, WRITES_IMAGE, 1, 4)]);
        let timeline = Timeline::of(&node(), &history, &[]);
        let [_, deployment, failed] = &timeline.phases[..] else { panic!("{timeline:?}") };
        assert_eq!((deployment.percent, failed.error.as_deref()), (None, Some("disk full")));
        let step = &deployment.steps[0];
        assert!(step.has_failed && step.percent.is_none(), "{step:?}");
    }

    #[test]
    fn progress_of_the_image_is_that_of_its_step() {
        use ProvisionState::{Available, Deploying};
        let history = life(&[(0, Available), (10, Deploying)], &[(20, WRITES_IMAGE, 2, 4)]);
        let percent = |kind: Vec<EventKind>| {
            let events = kind.into_iter().map(|kind| Event { sequence: 0, at: 0.0, kind });
            let timeline = Timeline::of(&node(), &history, &events.collect::<Vec<_>>());
            let phase = timeline.current().unwrap();
            (phase.steps[0].percent, phase.percent)
        };
        let progress = |bytes, total_bytes| {
            let phase = progress::Phase::Writing;
            EventKind::Progress(Progress { phase, bytes, total_bytes, ..Progress::default() })
        };
        assert_eq!(percent(vec![]), (None, Some(25)));
        assert_eq!(percent(vec![EventKind::WriteStarted, progress(6, Some(12))]), (Some(50), Some(37)));
        assert_eq!(percent(vec![progress(u64::MAX, Some(1))]), (None, Some(25)), "more than there is");
        assert_eq!(percent(vec![progress(6, Some(0))]), (None, Some(25)));
        assert_eq!(percent(vec![progress(6, Some(12)), EventKind::ImageWritten]), (Some(100), Some(50)));
    }

    #[test]
    fn a_history_without_beginnings_has_the_state_of_now() {
        let mut node = node();
        node.provision_state = ProvisionState::Active;
        node.provision_updated_at = OffsetDateTime::UNIX_EPOCH + Duration::HOUR;
        let mut old = life(&[(0, ProvisionState::Deploying), (10, ProvisionState::Active)], &[]);
        old[0].beginning = None;
        assert_eq!(spans(&Timeline::of(&node, &old, &[])), [(ProvisionState::Active, 3600, None, None)]);
        assert_eq!(spans(&Timeline::of(&node, &[], &[])), [(ProvisionState::Active, 0, None, None)]);
    }
}
