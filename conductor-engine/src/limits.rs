//! How many operations of a kind this conductor has under way at once (section 12.5). What is beyond waits in a
//! queue, first come, first served, without a lease and without a deadline: an operator may end it there.

use crate::records::{PendingOrder, Verb};
use crate::store::{ChangeFeed, Changes};
use farrier_conductor::model::{Activity, Family, Node, ProvisionState, StepKind};
use farrier_conductor::settings::OperationLimits;
use std::collections::{HashSet, VecDeque};
use std::sync::{Mutex, MutexGuard, PoisonError};
use uuid::Uuid;

/// The operations that are limited, those that boot a ramdisk, and their names in figures.
const LIMITED: [(Family, &str); 5] = [
    (Family::Deploy, "deploy"),
    (Family::Clean, "clean"),
    (Family::Inspect, "inspect"),
    (Family::Rescue, "rescue"),
    (Family::Service, "service"),
];

/// The operations under way, and those that wait for one of them to end.
#[derive(Debug)]
pub(crate) struct Limits {
    queues: Mutex<[Queue; LIMITED.len()]>,
    /// Where it is published that the operation of a node may begin.
    feed: ChangeFeed,
}

/// The operations of one kind.
#[derive(Debug, Default)]
struct Queue {
    /// Most at once; zero: as many as there are.
    most: usize,
    under_way: HashSet<Uuid>,
    waiting: VecDeque<Uuid>,
}

/// Where an operation is in its queue.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct QueuePlace {
    /// How many begin before it, and itself.
    pub(crate) place: usize,
    /// How many wait.
    pub(crate) waiting: usize,
    /// How many are under way.
    pub(crate) under_way: usize,
}

/// How many operations of a kind a conductor has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct OperationFigures {
    /// Name of the kind, such as `clean`.
    pub kind: &'static str,
    /// Operations under way, waits for agents included.
    pub under_way: usize,
    /// Operations that wait in the queue of the limit.
    pub queued: usize,
}

impl Queue {
    fn free(&self) -> usize {
        match self.most {
            0 => usize::MAX,
            most => most.saturating_sub(self.under_way.len()),
        }
    }

    fn begin(&mut self, node: Uuid) {
        self.waiting.retain(|waiting| *waiting != node);
        self.under_way.insert(node);
    }

    fn has(&self, node: Uuid) -> bool {
        self.under_way.contains(&node) || self.waiting.contains(&node)
    }

    /// Those that may begin now.
    fn next(&self) -> impl Iterator<Item = Uuid> {
        self.waiting.iter().take(self.free()).copied()
    }
}

/// Whether an operation has begun, in this conductor or another one: the work that a conductor left stays done.
pub(crate) fn has_begun(node: &Node, order: Option<&PendingOrder>) -> bool {
    let goes_on = order.is_none_or(|order| order.verb == Verb::ContinueInspection);
    let has_steps = StepKind::of(node.provision_state).is_some_and(|kind| node.plan(kind).index.is_some());
    node.provision_state.activity() == Activity::Wait || has_steps || goes_on
}

/// The states of nodes whose operations are limited.
pub(crate) fn limited_states() -> impl Iterator<Item = ProvisionState> {
    ProvisionState::ALL.iter().copied().filter(|state| queue_of(*state).is_some())
}

/// The position of the queue of a node in this state; nothing where no limited operation is under way or waits.
fn queue_of(state: ProvisionState) -> Option<usize> {
    let is_under_way = matches!(state.activity(), Activity::Work | Activity::Wait);
    let family = state.family().filter(|_| is_under_way)?;
    LIMITED.iter().position(|(limited, _)| *limited == family)
}

impl Limits {
    /// Nothing is under way yet.
    pub(crate) fn new(limits: &OperationLimits) -> Self {
        let most = |(family, _): &(Family, _)| match family {
            Family::Deploy => limits.max_concurrent_deploy,
            Family::Clean => limits.max_concurrent_clean,
            Family::Inspect => limits.max_concurrent_inspect,
            Family::Rescue => limits.max_concurrent_rescue,
            Family::Service => limits.max_concurrent_service,
            Family::Verify | Family::Delete | Family::Adopt | Family::Unrescue => 0,
        };
        let queues = LIMITED.each_ref().map(|family| Queue { most: most(family), ..Queue::default() });
        Self { queues: Mutex::new(queues), feed: ChangeFeed::default() }
    }

    fn queues(&self) -> MutexGuard<'_, [Queue; LIMITED.len()]> {
        self.queues.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether the operation of a node may go on. One that may not is in its queue from now on, and the node is
    /// published when it may.
    pub(crate) fn admits(&self, node: &Node, order: Option<&PendingOrder>) -> bool {
        let Some(at) = queue_of(node.provision_state) else {
            self.leave(node.uuid);
            return true;
        };
        self.leave_all_but(node.uuid, Some(at));
        let queue = &mut self.queues()[at];
        if queue.under_way.contains(&node.uuid) {
            return true;
        }
        if !queue.waiting.contains(&node.uuid) {
            queue.waiting.push_back(node.uuid);
        }
        let begins = has_begun(node, order) || queue.next().any(|next| next == node.uuid);
        if begins {
            queue.begin(node.uuid);
        }
        begins
    }

    /// The operation of a node is over, or another conductor's.
    pub(crate) fn leave(&self, node: Uuid) {
        self.leave_all_but(node, None);
    }

    fn leave_all_but(&self, node: Uuid, but: Option<usize>) {
        let mut queues = self.queues();
        for (_, queue) in
            queues.iter_mut().enumerate().filter(|(at, queue)| Some(*at) != but && queue.has(node))
        {
            queue.under_way.remove(&node);
            queue.waiting.retain(|waiting| *waiting != node);
            queue.next().for_each(|next| self.feed.publish(next));
        }
    }

    /// Where the operation of a node is in its queue, if it waits there.
    pub(crate) fn place(&self, node: Uuid) -> Option<QueuePlace> {
        let queues = self.queues();
        queues.iter().find_map(|queue| {
            let before = queue.waiting.iter().position(|waiting| *waiting == node)?;
            let (waiting, under_way) = (queue.waiting.len(), queue.under_way.len());
            Some(QueuePlace { place: before + 1, waiting, under_way })
        })
    }

    /// How many operations of each kind are under way, and wait.
    pub(crate) fn figures(&self) -> Vec<OperationFigures> {
        let queues = self.queues();
        let figures = |((_, kind), queue): (&(Family, &'static str), &Queue)| OperationFigures {
            kind,
            under_way: queue.under_way.len(),
            queued: queue.waiting.len(),
        };
        LIMITED.iter().zip(queues.iter()).map(figures).collect()
    }

    /// Hints that the operation of a node may begin.
    pub(crate) fn changed(&self) -> Changes {
        self.feed.changes()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use farrier_conductor::model::NewNode;
    use time::OffsetDateTime;

    fn node(state: ProvisionState) -> Node {
        let mut node = Node::enrol(NewNode::default(), OffsetDateTime::UNIX_EPOCH);
        node.provision_state = state;
        node
    }

    fn limits(most: usize) -> Limits {
        let limits =
            OperationLimits { max_concurrent_clean: most, max_concurrent_deploy: 1, ..Default::default() };
        Limits::new(&limits)
    }

    const ORDER: PendingOrder =
        PendingOrder { verb: Verb::Clean, ordered_at: OffsetDateTime::UNIX_EPOCH, attempts: 0 };

    #[test]
    fn l02_what_comes_first_begins_first() {
        let limits = limits(2);
        let mut nodes: Vec<_> = (0..5).map(|_| node(ProvisionState::Cleaning)).collect();
        let admitted: Vec<_> = nodes.iter().map(|node| limits.admits(node, Some(&ORDER))).collect();
        assert_eq!(admitted, [true, true, false, false, false]);
        let place = QueuePlace { place: 2, waiting: 3, under_way: 2 };
        assert_eq!(limits.place(nodes[3].uuid), Some(place));
        // However often another one asks.
        assert!(!limits.admits(&nodes[4], Some(&ORDER)));
        nodes[0].provision_state = ProvisionState::CleanWait;
        assert!(limits.admits(&nodes[0], Some(&ORDER)), "a wait is part of its operation");
        nodes[1].provision_state = ProvisionState::Available;
        assert!(limits.admits(&nodes[1], None));
        assert!(!limits.admits(&nodes[3], Some(&ORDER)));
        assert!(limits.admits(&nodes[2], Some(&ORDER)));
        // Who leaves the queue makes no room.
        limits.leave(nodes[3].uuid);
        assert!(!limits.admits(&nodes[4], Some(&ORDER)));
        assert_eq!(limits.place(nodes[4].uuid).map(|place| place.place), Some(1));
        limits.leave(nodes[0].uuid);
        assert!(limits.admits(&nodes[4], Some(&ORDER)));
    }

    #[test]
    fn l02_kinds_do_not_wait_for_each_other_and_what_has_begun_goes_on() {
        let limits = limits(1);
        assert!(limits.admits(&node(ProvisionState::Cleaning), Some(&ORDER)));
        let mut deploying = node(ProvisionState::Deploying);
        assert!(limits.admits(&deploying, Some(&ORDER)));
        for state in [ProvisionState::Verifying, ProvisionState::Deleting, ProvisionState::Active] {
            assert!(limits.admits(&node(state), Some(&ORDER)), "{state}");
        }
        // What a conductor left that stopped.
        let mut begun = node(ProvisionState::Cleaning);
        begun.driver_internal_info.clean.index = Some(3);
        assert!(limits.admits(&begun, Some(&ORDER)));
        assert!(limits.admits(&node(ProvisionState::CleanWait), Some(&ORDER)));
        // A node that goes from one kind to the next is under way in one.
        deploying.provision_state = ProvisionState::Cleaning;
        assert!(!limits.admits(&deploying, Some(&ORDER)));
        assert!(limits.admits(&node(ProvisionState::Deploying), Some(&ORDER)));
    }

    #[test]
    fn l02_zero_is_no_limit() {
        let limits = limits(0);
        assert!((0..1000).all(|_| limits.admits(&node(ProvisionState::Cleaning), Some(&ORDER))));
    }

    #[tokio::test]
    async fn l02_a_node_is_published_when_its_operation_may_begin() {
        let limits = limits(1);
        let (first, second) = (node(ProvisionState::Cleaning), node(ProvisionState::Cleaning));
        assert!(limits.admits(&first, Some(&ORDER)) && !limits.admits(&second, Some(&ORDER)));
        let mut changed = limits.changed();
        limits.leave(first.uuid);
        assert_eq!(changed.next().await, Some(crate::store::Changed::Node(second.uuid)));
    }
}
