//! Finds the changed parts among those that open pages show. One look serves all pages, and finds the changes of every conductor.

use crate::address::part::Version;
use crate::nodes::rows::{self, Row};
use farrier_engine::Conductor;
use farrier_engine::store::StoreError;
use std::collections::HashMap;
use std::mem;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::sync::watch;
use tokio::time::{MissedTickBehavior, interval};
use uuid::Uuid;

/// Between two looks.
const PAUSE: Duration = Duration::from_millis(500);

/// Between two looks at the number of nodes in each state, which reads all nodes, in looks.
const LOOKS_BETWEEN_COUNTS: u32 = 4;

/// Nodes that one statement reads.
const AT_A_TIME: usize = 500;

/// What was seen last.
#[derive(Debug, Clone, Default)]
pub(crate) struct Seen {
    /// The nodes that are shown. One that is gone has no versions.
    pub(crate) nodes: HashMap<Uuid, Option<Versions>>,
    /// How many nodes are in each state.
    pub(crate) states: Option<Version>,
}

/// The versions of a node that was seen.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Versions {
    /// Its row in the list.
    pub(crate) row: Version,
    /// Its own pages.
    pub(crate) node: Version,
}

/// Looks for changes while pages are open, and not otherwise.
#[derive(Clone)]
pub(crate) struct Watch(Arc<Shared>);

struct Shared {
    conductor: Conductor,
    shown: Mutex<Shown>,
    seen: watch::Sender<Arc<Seen>>,
}

/// What pages show.
#[derive(Default)]
struct Shown {
    pages: usize,
    /// Whether a task looks at them.
    is_looked_at: bool,
    /// By how many pages each node is shown.
    nodes: HashMap<Uuid, usize>,
}

/// The nodes that a page shows. They are looked at until it is dropped.
pub(crate) struct Watched {
    nodes: Vec<Uuid>,
    shared: Arc<Shared>,
    pub(crate) seen: watch::Receiver<Arc<Seen>>,
}

impl Watch {
    pub(crate) fn new(conductor: Conductor) -> Self {
        let (shown, seen) = Default::default();
        Self(Arc::new(Shared { conductor, shown, seen }))
    }

    /// A page shows these nodes from now on.
    pub(crate) fn watch(&self, nodes: Vec<Uuid>) -> Watched {
        let seen = self.0.seen.subscribe();
        let mut shown = self.0.shown();
        shown.pages += 1;
        for node in &nodes {
            *shown.nodes.entry(*node).or_default() += 1;
        }
        if !mem::replace(&mut shown.is_looked_at, true) {
            tokio::spawn(look(Arc::clone(&self.0)));
        }
        Watched { nodes, shared: Arc::clone(&self.0), seen }
    }
}

impl Watched {
    pub(crate) fn nodes(&self) -> &[Uuid] {
        &self.nodes
    }
}

impl Drop for Watched {
    fn drop(&mut self) {
        let mut shown = self.shared.shown();
        shown.pages -= 1;
        for node in &self.nodes {
            if let Some(count) = shown.nodes.get_mut(node) {
                *count -= 1;
                if *count == 0 {
                    shown.nodes.remove(node);
                }
            }
        }
    }
}

impl Shared {
    fn shown(&self) -> MutexGuard<'_, Shown> {
        self.shown.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The nodes to look at; nothing when no page is open any more, and the look ends.
    fn nodes(&self) -> Option<Vec<Uuid>> {
        let mut shown = self.shown();
        shown.is_looked_at = shown.pages > 0;
        shown.is_looked_at.then(|| shown.nodes.keys().copied().collect())
    }
}

/// Looks again and again, until no page is open. A page that opens then begins another look.
async fn look(shared: Arc<Shared>) {
    let mut pauses = interval(PAUSE);
    pauses.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let mut looks = 0_u32;
    loop {
        pauses.tick().await;
        let Some(nodes) = shared.nodes() else { return };
        let counts = looks.is_multiple_of(LOOKS_BETWEEN_COUNTS);
        looks = looks.wrapping_add(1);
        let before = Arc::clone(&shared.seen.borrow());
        match seen(&shared.conductor, &nodes, counts, &before).await {
            Ok(seen) => drop(shared.seen.send_replace(Arc::new(seen))),
            // What pages show stays, and the next look may find more.
            Err(error) => tracing::debug!(%error, "no look at the nodes that pages show"),
        }
    }
}

async fn seen(
    conductor: &Conductor,
    nodes: &[Uuid],
    counts: bool,
    before: &Seen,
) -> Result<Seen, StoreError> {
    let mut seen = Seen { nodes: nodes.iter().map(|node| (*node, None)).collect(), states: before.states };
    for some in nodes.chunks(AT_A_TIME) {
        let found = rows::of(conductor, some).await?;
        let versions = |row: &Row| Versions { row: row.version(), node: row.version_of_node() };
        seen.nodes.extend(found.iter().map(|row| (row.node(), Some(versions(row)))));
    }
    if counts || seen.states.is_none() {
        seen.states = Some(Version::of(conductor.store().provision_states().await?));
    }
    Ok(seen)
}
