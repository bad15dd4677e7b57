//! What happened to all nodes lately: how many of them were in each state, deployments, failures, and how long steps took.
//! It is made of the histories of the nodes whose states changed last.

use crate::evidence::timeline::{Phase, StepSpan, Timeline};
use farrier_conductor::model::{Family, Node, ProvisionState};
use std::collections::BTreeMap;
use time::{Duration, OffsetDateTime};
use uuid::Uuid;

/// The longest period.
pub const LONGEST_PERIOD: Duration = Duration::DAY;

/// Points of a curve, the last of which is now.
pub const POINTS: usize = 49;

/// What happened to all nodes lately.
#[derive(Debug, Clone, PartialEq)]
pub struct Estate {
    /// The beginning of the period: all that happened since then is here.
    pub since: OffsetDateTime,
    /// The number of nodes in each state, at [`POINTS`] moments of the period. States of no node are left out.
    pub states: BTreeMap<ProvisionState, Vec<u64>>,
    /// The deployments that ended, the last one first.
    pub deployments: Vec<Deployment>,
    /// The causes of failures, the most frequent one first.
    pub failures: Vec<Failure>,
    /// The steps that ended, the slowest one first.
    pub steps: Vec<StepTimes>,
}

/// A node, and what people call it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NamedNode {
    /// The node.
    pub uuid: Uuid,
    /// Its name, or else its UUID.
    pub label: String,
}

/// A deployment that ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Deployment {
    /// The node.
    pub node: NamedNode,
    /// When it began.
    pub begun_at: OffsetDateTime,
    /// How long it took.
    pub duration: Duration,
    /// Whether it failed.
    pub has_failed: bool,
}

/// Failures with one cause.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Failure {
    /// The state in which the operations failed.
    pub state: ProvisionState,
    /// The step that failed, where it was one.
    pub step: Option<String>,
    /// The reason. A word with a digit is left out: it differs from node to node.
    pub cause: String,
    /// How many there were.
    pub count: usize,
    /// The node of the last one.
    pub last: NamedNode,
    /// When that failed.
    pub last_at: OffsetDateTime,
}

/// How long a step took, on all nodes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StepTimes {
    /// The step, with its interface.
    pub step: String,
    /// How often it ended.
    pub count: usize,
    /// Half of them took no longer.
    pub median: Duration,
    /// The longest one.
    pub longest: Duration,
    /// The node of that.
    pub slowest: NamedNode,
}

impl Estate {
    /// What happened in a period that ends now, by the lives of all nodes whose states changed in it. `counts` are the nodes in
    /// each state now, of all nodes.
    pub(crate) fn of(
        counts: &[(ProvisionState, u64)],
        lives: &[(Node, Timeline)],
        since: OffsetDateTime,
        now: OffsetDateTime,
    ) -> Self {
        let mut told = Self {
            since,
            states: curves(counts, lives, since, now),
            deployments: Vec::new(),
            failures: Vec::new(),
            steps: Vec::new(),
        };
        let mut steps: BTreeMap<&str, Vec<(Duration, &Node)>> = BTreeMap::new();
        for (node, timeline) in lives {
            for (number, phase) in timeline.phases.iter().enumerate() {
                let next = timeline.phases.get(number + 1);
                told.add_failure(node, phase, next.filter(|next| next.begun_at >= since));
                told.add_deployment(node, phase, next, since);
                for (step, duration) in ended(phase, since) {
                    steps.entry(&step.step).or_default().push((duration, node));
                }
            }
        }
        told.deployments.sort_by_key(|one| std::cmp::Reverse(one.begun_at + one.duration));
        told.failures.sort_by_key(|one| std::cmp::Reverse((one.count, one.last_at)));
        told.steps = steps.into_iter().filter_map(|(step, times)| StepTimes::of(step, times)).collect();
        told.steps.sort_by_key(|step| std::cmp::Reverse(step.median));
        told
    }

    fn add_deployment(&mut self, node: &Node, phase: &Phase, next: Option<&Phase>, since: OffsetDateTime) {
        let Some(ended_at) = phase.ended_at.filter(|at| *at >= since) else { return };
        if phase.state.family() == Some(Family::Deploy) && phase.state != ProvisionState::DeployFailed {
            let has_failed = next.is_some_and(|next| next.state == ProvisionState::DeployFailed);
            let (node, begun_at) = (named(node), phase.begun_at);
            self.deployments.push(Deployment { node, begun_at, duration: ended_at - begun_at, has_failed });
        }
    }

    fn add_failure(&mut self, node: &Node, phase: &Phase, next: Option<&Phase>) {
        let Some((next, error)) = next.and_then(|next| Some((next, next.error.as_ref()?))) else { return };
        let step = phase.steps.last().filter(|step| step.has_failed).map(|step| step.step.clone());
        let reason = error.split_once(": ").map_or(error.as_str(), |(_, reason)| reason);
        let (state, cause) = (phase.state, without_particulars(reason));
        let is_same = |one: &&mut Failure| (one.state, &one.step, &one.cause) == (state, &step, &cause);
        match self.failures.iter_mut().find(is_same) {
            Some(known) => {
                known.count += 1;
                if known.last_at < next.begun_at {
                    (known.last, known.last_at) = (named(node), next.begun_at);
                }
            }
            None => {
                let (last, last_at) = (named(node), next.begun_at);
                self.failures.push(Failure { state, step, cause, count: 1, last, last_at });
            }
        }
    }
}

impl StepTimes {
    fn of(step: &str, mut times: Vec<(Duration, &Node)>) -> Option<Self> {
        times.sort_by_key(|(duration, _)| *duration);
        let (longest, slowest) = *times.last()?;
        let (count, median) = (times.len(), times[(times.len() - 1) / 2].0);
        Some(Self { step: step.to_owned(), count, median, longest, slowest: named(slowest) })
    }
}

/// The steps of a phase that ended well since a moment.
fn ended(phase: &Phase, since: OffsetDateTime) -> impl Iterator<Item = (&StepSpan, Duration)> {
    let ended = phase.steps.iter().filter(|step| !step.has_failed);
    ended.filter_map(move |step| {
        let at = step.ended_at.filter(|at| *at >= since)?;
        Some((step, at - step.begun_at))
    })
}

/// How many nodes were in each state: as many as now, before all that happened since.
fn curves(
    counts: &[(ProvisionState, u64)],
    lives: &[(Node, Timeline)],
    since: OffsetDateTime,
    now: OffsetDateTime,
) -> BTreeMap<ProvisionState, Vec<u64>> {
    let mut changes: Vec<_> = lives.iter().flat_map(|(_, timeline)| entered(timeline, since)).collect();
    changes.sort_by_key(|(at, ..)| std::cmp::Reverse(*at));
    let mut changes = changes.into_iter().peekable();
    let mut counts: BTreeMap<_, i64> =
        counts.iter().map(|(state, count)| (*state, i64::try_from(*count).unwrap_or(i64::MAX))).collect();
    let mut curves: BTreeMap<ProvisionState, Vec<u64>> = BTreeMap::new();
    for point in (0..POINTS).rev() {
        let at = since + (now - since) * (point as f64 / (POINTS - 1) as f64);
        while let Some((_, from, state)) = changes.next_if(|(changed_at, ..)| *changed_at > at) {
            *counts.entry(state).or_default() -= 1;
            if let Some(from) = from {
                *counts.entry(from).or_default() += 1;
            }
        }
        for (state, count) in &counts {
            let curve = curves.entry(*state).or_insert_with(|| vec![0; POINTS]);
            curve[point] = u64::try_from(*count).unwrap_or_default();
        }
    }
    curves.retain(|_, curve| curve.iter().any(|count| *count > 0));
    curves
}

/// The states that a node has entered since a moment, each with the one before it. The first state of its life has none.
fn entered(
    timeline: &Timeline,
    since: OffsetDateTime,
) -> Vec<(OffsetDateTime, Option<ProvisionState>, ProvisionState)> {
    let mut before = None;
    let mut found = Vec::new();
    for span in timeline.phases.iter().flat_map(|phase| &phase.states) {
        if span.begun_at > since {
            found.push((span.begun_at, before, span.state));
        }
        before = Some(span.state);
    }
    found
}

fn named(node: &Node) -> NamedNode {
    NamedNode { uuid: node.uuid, label: node.label() }
}

/// A reason without the words that differ from node to node, such as addresses, sizes and identities.
fn without_particulars(reason: &str) -> String {
    let mut words: Vec<_> = reason
        .split_whitespace()
        .map(|word| if word.contains(|letter: char| letter.is_ascii_digit()) { "…" } else { word })
        .collect();
    words.dedup();
    words.join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::records::tests::node;
    use crate::records::{Beginning, HistoryEntry, HistoryKind, Severity};
    use ProvisionState::{Active, Available, DeployFailed, Deploying};

    fn at(second: i64) -> OffsetDateTime {
        OffsetDateTime::UNIX_EPOCH + Duration::seconds(second)
    }

    fn entry(second: i64, error: Option<&str>, beginning: Beginning) -> HistoryEntry {
        HistoryEntry {
            uuid: Uuid::new_v4(),
            created_at: at(second),
            severity: if error.is_some() { Severity::Error } else { Severity::Info },
            event_type: HistoryKind::Provisioning,
            event: error.unwrap_or_default().to_owned(),
            conductor: "c1".into(),
            user: None,
            beginning: Some(beginning),
        }
    }

    /// A node that deploys from one second to another, by one step.
    fn life(name: &str, begun: i64, ended: i64, error: Option<&str>) -> (Node, Timeline) {
        let mut node = node();
        (node.uuid, node.name, node.created_at) = (Uuid::new_v4(), Some(name.to_owned()), at(0));
        let after = if error.is_some() { DeployFailed } else { Active };
        let step = "deploy.write_image".to_owned();
        let history = [
            entry(begun, None, Beginning::State { from: Available, state: Deploying }),
            entry(begun + 1, None, Beginning::Step { step, number: Some(1), of: 1 }),
            entry(ended, error, Beginning::State { from: Deploying, state: after }),
        ];
        let timeline = Timeline::of(&node, &history, &[]);
        (node, timeline)
    }

    #[test]
    fn deployments_failures_and_steps_of_the_period_are_told() {
        let because = |address: &str| {
            format!("\"deploying\" ended as \"deploy failed\": cannot read http://{address}/i: 404 Not Found")
        };
        let lives = [
            life("n1", 100, 160, None),
            life("n2", 110, 200, None),
            life("n3", 120, 130, Some(&because("192.0.2.1"))),
            life("n4", 121, 131, Some(&because("192.0.2.22"))),
            life("old", 10, 20, None),
        ];
        let estate = Estate::of(&[], &lives, at(50), at(250));
        let names = |nodes: Vec<&NamedNode>| nodes.iter().map(|node| node.label.clone()).collect::<Vec<_>>();
        assert_eq!(names(estate.deployments.iter().map(|one| &one.node).collect()), ["n2", "n1", "n4", "n3"]);
        assert_eq!(estate.deployments[0].duration, Duration::seconds(90));
        assert_eq!(estate.deployments.iter().filter(|one| one.has_failed).count(), 2);
        let [failure] = &estate.failures[..] else { panic!("{:?}", estate.failures) };
        assert_eq!((failure.count, failure.last.label.as_str(), failure.state), (2, "n4", Deploying));
        assert_eq!(failure.step.as_deref(), Some("deploy.write_image"));
        assert_eq!(failure.cause, "cannot read … Not Found");
        let [step] = &estate.steps[..] else { panic!("{:?}", estate.steps) };
        assert_eq!(
            (step.count, step.median, step.longest),
            (2, Duration::seconds(59), Duration::seconds(89))
        );
        assert_eq!(step.slowest.label, "n2");
    }

    #[test]
    fn the_curves_lead_to_the_numbers_of_now_and_know_when_nodes_were_enrolled() {
        let mut late = life("late", 150, 200, None);
        late.1.phases[0].begun_at = at(100);
        late.1.phases[0].states[0].begun_at = at(100);
        let lives = [life("n1", 100, 150, None), late];
        let estate = Estate::of(&[(Active, 12)], &lives, at(50), at(50 + 48 * 5));
        let counts =
            |state: ProvisionState, points: [usize; 4]| points.map(|point| estate.states[&state][point]);
        // At 50, 90, 130 and 290 s.
        assert_eq!(counts(Active, [0, 8, 16, 48]), [10, 10, 10, 12]);
        assert_eq!(counts(Available, [0, 8, 16, 48]), [1, 1, 1, 0]);
        assert_eq!(counts(Deploying, [0, 8, 16, 48]), [0, 0, 1, 0]);
        assert!(!estate.states.contains_key(&DeployFailed));
    }
}
