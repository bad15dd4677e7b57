//! Which conductor leads a node (section 12.1), and which leases this one has.
//!
//! Each conductor renews a record of its own in the store, by which the others see that it lives, and computes from the
//! records which conductor leads which node: of the conductors that can, the one with the highest number by [`rendezvous`]. Conductors
//! may disagree for a moment. That costs a reading of a machine and no more: a conductor that changes a node holds its lease.
//!
//! A conductor that is alone asks no other, and computes nothing for a node that it can lead.

mod members;
mod observation;
pub(crate) mod open_consoles;
pub(crate) mod own_leases;
mod process;
mod rendezvous;

use crate::store::{ConductorRecord, ProcessId, Store, StoreError};
use farrier_conductor::hardware_type::Composition;
use farrier_conductor::model::{InterfaceKind, Node, NodeInterfaces};
use farrier_conductor::settings::Settings;
use members::{Member, Members, Needs};
use observation::Observation;
use serde_json::{Map, Value};
use std::collections::HashSet;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};
use time::OffsetDateTime;
use uuid::Uuid;

pub use members::Unserved;

/// Renewals of a conductor's record in the time after which it is taken for dead.
const RENEWALS: u32 = 30;

/// The shortest time between two.
const SHORTEST_PAUSE: Duration = Duration::from_millis(50);

/// Renewals that a process misses whose name another one takes at its start.
const MISSED: u32 = 3;

/// After so long a record that is not renewed is removed.
const FORGOTTEN_AFTER: Duration = Duration::from_secs(24 * 3600);

/// Where a node is led.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Place {
    /// By this conductor.
    Here,
    /// By another conductor, of this name.
    At(String),
    /// By none of those that live.
    Nowhere(Unserved),
}

/// A conductor could not register, or renew its record.
#[derive(Debug, thiserror::Error)]
pub(crate) enum MembershipError {
    /// Another process has its name.
    #[error("conductor name {0:?} is taken by another process")]
    NameTaken(String),
    /// The store failed.
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// A conductor as others see it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KnownConductor {
    /// Its record.
    pub record: ConductorRecord,
    /// Whether it renews its record, as far as this conductor has seen.
    pub is_alive: bool,
}

/// Which conductor leads which node, as this conductor knows.
pub(crate) struct Placement {
    own: ConductorRecord,
    /// This conductor.
    member: Member,
    /// A record that did not change for so long is that of a dead conductor.
    dead_after: Duration,
    members: Mutex<Arc<Members>>,
    observation: Mutex<Observation>,
    /// Whether this conductor has removed its record, and renews it no more.
    has_left: AtomicBool,
    /// Lines that were logged, once each.
    logged: Mutex<HashSet<String>>,
}

/// How long a conductor waits before it renews its record.
pub(crate) fn renewal_pause(settings: &Settings) -> Duration {
    (settings.lease / RENEWALS).max(SHORTEST_PAUSE)
}

fn lock<T>(of: &Mutex<T>) -> MutexGuard<'_, T> {
    of.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Placement {
    /// A conductor that is about to register.
    pub(crate) fn new(settings: &Settings, composition: &Composition) -> Self {
        let interfaces = |driver: &str, kind: InterfaceKind| {
            let (default, enabled) = composition.interfaces_of(driver, kind);
            let others = enabled.into_iter().filter(|name| Some(*name) != default);
            (kind, default.into_iter().chain(others).map(str::to_owned).collect())
        };
        let offered = |driver: &str| {
            let kinds = InterfaceKind::ALL.iter().map(|kind| interfaces(driver, *kind));
            (driver.to_owned(), kinds.collect())
        };
        let own = ConductorRecord {
            name: settings.conductor_name.clone(),
            process: ProcessId { start: Uuid::new_v4(), host_process: process::own() },
            conductor_group: settings.conductor_group.to_ascii_lowercase(),
            hardware: composition.hardware_types().into_iter().map(offered).collect(),
            counter: 0,
            registered_at: OffsetDateTime::UNIX_EPOCH,
            updated_at: OffsetDateTime::UNIX_EPOCH,
        };
        let member = Member::from(&own);
        Self {
            members: Mutex::new(Arc::new(Members::new([member.clone()]))),
            own,
            member,
            dead_after: settings.lease,
            observation: Mutex::default(),
            has_left: AtomicBool::new(false),
            logged: Mutex::default(),
        }
    }

    /// Registers this process under its name, unless another process has the name and lives.
    ///
    /// # Errors
    ///
    /// [`MembershipError`].
    pub(crate) async fn register(&self, store: &dyn Store, pause: Duration) -> Result<(), MembershipError> {
        let earlier = match self.earlier(store).await? {
            Some(earlier) if !process::is_gone(&earlier.process.host_process) => {
                self.watch(store, earlier, pause).await?
            }
            earlier => earlier,
        };
        match store.renew_conductor(&self.own, earlier.as_ref()).await? {
            true => {
                self.observe(store).await?;
                Ok(())
            }
            false => Err(MembershipError::NameTaken(self.own.name.clone())),
        }
    }

    /// Watches the record of another process under the name of this one until that process is known to live or is silent, and
    /// gives its last record. One renewal may be the last statement of a process that has just ended; two are not.
    async fn watch(
        &self,
        store: &dyn Store,
        mut seen: ConductorRecord,
        pause: Duration,
    ) -> Result<Option<ConductorRecord>, MembershipError> {
        tracing::info!("conductor {} did not end in order, or runs; its record is watched", self.own.name);
        let (mut renewals, mut missed) = (0, 0);
        while missed < MISSED {
            tokio::time::sleep(pause).await;
            let Some(now) = self.earlier(store).await? else { return Ok(None) };
            match now.is_same_renewal(&seen) {
                true => missed += 1,
                false if renewals > 0 => {
                    return Err(MembershipError::NameTaken(self.own.name.clone()));
                }
                false => (renewals, missed, seen) = (renewals + 1, 0, now),
            }
        }
        Ok(Some(seen))
    }

    /// The record of another process under the name of this one.
    async fn earlier(&self, store: &dyn Store) -> Result<Option<ConductorRecord>, StoreError> {
        let is_other = |record: &ConductorRecord| {
            record.name == self.own.name && record.process.start != self.own.process.start
        };
        let mut records = store.conductors().await?.into_iter().map(|(record, _)| record);
        Ok(records.find(is_other))
    }

    /// Renews the record of this conductor, and reads those of the others. Returns whether other conductors live than before.
    ///
    /// # Errors
    ///
    /// [`MembershipError`].
    pub(crate) async fn renew(&self, store: &dyn Store) -> Result<bool, MembershipError> {
        if self.has_left.load(Ordering::SeqCst) {
            return Ok(false);
        }
        if !store.renew_conductor(&self.own, None).await? {
            return Err(MembershipError::NameTaken(self.own.name.clone()));
        }
        if self.has_left.load(Ordering::SeqCst) {
            // The record was removed meanwhile, and the renewal wrote it again.
            store.remove_conductor(&self.own, true).await?;
            return Ok(false);
        }
        Ok(self.observe(store).await?)
    }

    /// Removes the record of this conductor for good, so that others lead its nodes at once.
    ///
    /// # Errors
    ///
    /// [`StoreError::Failed`].
    pub(crate) async fn leave(&self, store: &dyn Store) -> Result<(), StoreError> {
        self.has_left.store(true, Ordering::SeqCst);
        store.remove_conductor(&self.own, true).await
    }

    /// All conductors that are known, by name.
    ///
    /// # Errors
    ///
    /// [`StoreError::Failed`].
    pub(crate) async fn conductors(&self, store: &dyn Store) -> Result<Vec<KnownConductor>, StoreError> {
        let records = store.conductors().await?;
        let members = Arc::clone(&lock(&self.members));
        let is_alive = |record: &ConductorRecord| members.iter().any(|member| member.name == record.name);
        let known = |(record, _)| KnownConductor { is_alive: is_alive(&record), record };
        Ok(records.into_iter().map(known).collect())
    }

    async fn observe(&self, store: &dyn Store) -> Result<bool, StoreError> {
        let records = store.conductors().await?;
        let silences = lock(&self.observation).note(&records, Instant::now());
        let mut live = vec![self.member.clone()];
        for ((record, _), silence) in records.iter().zip(silences) {
            if record.name == self.own.name {
                continue;
            }
            if silence < self.dead_after {
                live.push(Member::from(record));
            } else if silence > FORGOTTEN_AFTER {
                store.remove_conductor(record, false).await?;
            }
        }
        live.sort_by(|one, other| one.name.cmp(&other.name));
        Ok(self.replace(Members::new(live)))
    }

    fn replace(&self, live: Members) -> bool {
        let before = std::mem::replace(&mut *lock(&self.members), Arc::new(live.clone()));
        if *before == live {
            return false;
        }
        let named = |members: &Members, name: &str| members.iter().any(|member| member.name == name);
        for member in live.iter().filter(|member| !named(&before, &member.name)) {
            tracing::info!("conductor {} leads nodes of this store too", member.name);
        }
        for member in before.iter().filter(|member| !named(&live, &member.name)) {
            tracing::warn!("conductor {} ended or is silent; others lead its nodes", member.name);
        }
        true
    }

    /// Whether no other conductor lives.
    pub(crate) fn is_alone(&self) -> bool {
        lock(&self.members).iter().nth(1).is_none()
    }

    /// Whether this conductor has what it needs to work on a node, whether or not it leads the node.
    pub(crate) fn drives(&self, node: &Node) -> bool {
        self.member.drives(&node.into())
    }

    /// Whether this conductor has the hardware type of a node.
    pub(crate) fn has_hardware_type_of(&self, node: &Node) -> bool {
        self.own.hardware.contains_key(&node.driver)
    }

    /// All interfaces of a node that another conductor leads, as that one has them; nothing where none does.
    pub(crate) fn interfaces_elsewhere(&self, node: &Node) -> Option<NodeInterfaces> {
        let members = Arc::clone(&lock(&self.members));
        let leader = members.leader(&node.into()).ok()?;
        let member = members.iter().find(|member| member.name == leader && leader != self.own.name)?;
        let mut interfaces = node.interfaces.clone();
        for (kind, names) in member.hardware.get(&node.driver)? {
            if let (None, Some(default)) = (node.interfaces.get(*kind), names.first()) {
                interfaces.set(*kind, default);
            }
        }
        Some(interfaces)
    }

    /// Where a node is led.
    pub(crate) fn of(&self, node: &Node) -> Place {
        let members = Arc::clone(&lock(&self.members));
        let place = self.place(members.leader(&node.into()));
        self.log_once(node, &place);
        place
    }

    /// Where a node is led of which its columns are known; nothing where that hangs on its interfaces.
    pub(crate) fn by_columns(&self, node: Uuid, driver: &str, conductor_group: &str) -> Option<Place> {
        let members = Arc::clone(&lock(&self.members));
        members.leader_by_columns(node, driver, conductor_group).map(|leader| self.place(leader))
    }

    /// Where a node is led of which its columns are known, and the fields of its record beside them.
    pub(crate) fn by_fields(&self, columns: (Uuid, &str, &str), fields: &Map<String, Value>) -> Place {
        let members = Arc::clone(&lock(&self.members));
        self.place(members.leader(&Needs::of_fields(columns, fields)))
    }

    fn place(&self, leader: Result<&str, Unserved>) -> Place {
        match leader {
            Ok(name) if name == self.own.name => Place::Here,
            Ok(name) => Place::At(name.to_owned()),
            Err(unserved) => Place::Nowhere(unserved),
        }
    }

    /// Logs once which nodes are left to others, or are led by none.
    fn log_once(&self, node: &Node, place: &Place) {
        let text = match place {
            Place::At(_) if !self.drives(node) && node.conductor_group == self.own.conductor_group => {
                format!("nodes of hardware type {:?} are left to other conductors", node.driver)
            }
            Place::At(_) | Place::Here => return,
            Place::Nowhere(unserved) => format!("node {} waits: {unserved}", node.label()),
        };
        if lock(&self.logged).insert(text.clone()) {
            tracing::warn!("{text}");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::memory::MemoryStore;
    use farrier_conductor::Drivers;
    use farrier_conductor::testing::FakeMachine;

    /// The renewal may be polled after the end.
    #[tokio::test]
    async fn e08_a_conductor_that_has_left_does_not_come_back() {
        let (settings, store) = (Settings::new("http://127.0.0.1:1"), MemoryStore::default());
        let drivers = FakeMachine::default().drivers(Drivers::default(), ["direct"]);
        let (hardware, _) = drivers.build(&settings).unwrap();
        let placement = Placement::new(&settings, &hardware.composition);
        placement.register(&store, Duration::ZERO).await.unwrap();
        assert_eq!(placement.conductors(&store).await.unwrap().len(), 1);
        placement.leave(&store).await.unwrap();
        assert!(!placement.renew(&store).await.unwrap());
        assert_eq!(placement.conductors(&store).await.unwrap(), []);
    }
}
