//! A store in memory, for tests and for conductors whose nodes are known elsewhere: it ends with its process.

mod catalogue;
mod conductors;
mod lists;

use super::{BootTraceChange, InspectionChange, SessionChange};
use super::{
    CertificateChange, Change, ChangeFeed, Changes, ConductorRecord, ConfigDrive, DiagnosisChange, Documents,
    EvidenceStore, Held, Lease, NodeStore, OrderChange, Outline, Record, Revision, Selection, StoreError,
    Terms,
};
use crate::evidence::boot_trace::BootTrace;
use crate::evidence::diagnosis::Diagnosis;
use crate::evidence::erasing::EraseCertificate;
use crate::records::{Allocation, HISTORY_LIMIT, HistoryEntry, Resource};
use crate::store::columns::{SESSION, check_texts, split};
use crate::store::selection::NODE;
use async_trait::async_trait;
use farrier_conductor::inventory::bmc_addresses;
use farrier_conductor::model::{
    Activity, AgentSession, InspectionData, MacAddress, Node, Port, ProvisionState,
};
use std::collections::BTreeMap;
use std::net::IpAddr;
use std::sync::{Mutex, MutexGuard, PoisonError};
use time::OffsetDateTime;
use uuid::Uuid;

/// A store in memory.
#[derive(Debug, Default)]
pub struct MemoryStore {
    tables: Mutex<Tables>,
    feed: ChangeFeed,
}

#[derive(Debug, Default)]
struct Tables {
    nodes: BTreeMap<Uuid, Kept>,
    allocations: BTreeMap<Uuid, Allocation>,
    resources: BTreeMap<Uuid, Resource>,
    conductors: BTreeMap<String, ConductorRecord>,
}

/// A node with all that belongs to it.
#[derive(Debug)]
struct Kept {
    record: Record,
    /// How often the node was written, and how often its agent was heard.
    versions: (i64, i64),
    config_drive: Option<String>,
    inspection: Option<InspectionData>,
    received: Option<InspectionData>,
    history: Vec<HistoryEntry>,
    certificates: BTreeMap<(String, String), EraseCertificate>,
    boot_trace: Option<BootTrace>,
    diagnosis: Option<Diagnosis>,
}

impl Kept {
    fn new(node: Node) -> Self {
        let session = AgentSession::default();
        Self {
            record: Record { node, session, order: None, epoch: 0, lease_expires_at: None },
            versions: (0, 0),
            config_drive: None,
            inspection: None,
            received: None,
            history: Vec::new(),
            certificates: BTreeMap::new(),
            boot_trace: None,
            diagnosis: None,
        }
    }

    /// Whether nobody holds the lease of the node at a time.
    fn is_free(&self, now: OffsetDateTime) -> bool {
        self.record.node.reservation.is_none()
            || self.record.lease_expires_at.is_none_or(|until| until <= now)
    }

    fn apply(&mut self, change: &Change<'_>) {
        self.versions.0 += 1;
        let Record { node, session, order, lease_expires_at, .. } = &mut self.record;
        let reservation = node.reservation.take().filter(|_| !change.ends_lease);
        *lease_expires_at = lease_expires_at.filter(|_| !change.ends_lease);
        let ports = change.node.ports.iter().map(|port| with_age(port, &node.ports, change.node)).collect();
        *node = Node { reservation, ports, port_groups: Vec::new(), ..change.node.clone() };
        match change.session {
            SessionChange::Keep => {}
            SessionChange::Learned(learned) => learn(session, learned),
            SessionChange::Replace(other) => other.clone_into(session),
        }
        match change.config_drive {
            ConfigDrive::Keep => {}
            ConfigDrive::Put(content) => self.config_drive = Some(content.to_owned()),
            ConfigDrive::Remove => self.config_drive = None,
        }
        match change.order {
            OrderChange::Keep => {}
            OrderChange::Put(put) => *order = Some(put),
            OrderChange::Remove => *order = None,
        }
        match change.inspection {
            InspectionChange::Keep => {}
            InspectionChange::Receive(data) => self.received = Some(data.clone()),
            InspectionChange::Put(data) => (self.inspection, self.received) = (Some(data.clone()), None),
        }
        self.apply_evidence(change);
    }

    fn apply_evidence(&mut self, change: &Change<'_>) {
        let CertificateChange { forgets, new } = change.certificates;
        if forgets {
            self.certificates.clear();
        }
        let key = |one: &EraseCertificate| (one.disk.clone(), one.statement.step().to_owned());
        self.certificates.extend(new.iter().map(|one| (key(one), one.clone())));
        match change.boot_trace {
            BootTraceChange::Keep => {}
            BootTraceChange::Begin => self.boot_trace = Some(BootTrace::default()),
            BootTraceChange::End => self.boot_trace = None,
        }
        match change.diagnosis {
            DiagnosisChange::Keep => {}
            DiagnosisChange::Put(words) => self.diagnosis = Some(words.clone()),
            DiagnosisChange::Remove => self.diagnosis = None,
        }
        self.history.extend_from_slice(change.history);
        self.history.drain(..self.history.len().saturating_sub(HISTORY_LIMIT as usize));
    }
}

/// A port, with the time at which it was written down first.
fn with_age(port: &Port, before: &[Port], node: &Node) -> Port {
    let known = before.iter().find(|known| known.uuid == port.uuid).and_then(|known| known.created_at);
    Port { created_at: known.or(port.created_at).or(Some(node.updated_at)), ..port.clone() }
}

/// What the conductor learned by asking; what the agent said itself stays.
fn learn(session: &mut AgentSession, learned: &AgentSession) {
    *session = AgentSession {
        agent_url: session.agent_url.take(),
        agent_version: session.agent_version.take(),
        agent_last_heartbeat: session.agent_last_heartbeat,
        agent_verify_ca: session.agent_verify_ca.take(),
        agent_status: session.agent_status.take(),
        agent_status_message: session.agent_status_message.take(),
        agent_secret_token: session.agent_secret_token.take(),
        ..learned.clone()
    };
}

impl Tables {
    /// The node of a lease that holds.
    fn leased(&mut self, lease: &Lease) -> Result<&mut Kept, StoreError> {
        let kept = self.nodes.get_mut(&lease.node).ok_or(StoreError::Gone(lease.node))?;
        match kept.record.epoch == lease.epoch && kept.record.node.reservation.is_some() {
            true => Ok(kept),
            false => Err(StoreError::Overtaken(lease.node)),
        }
    }

    /// Refuses a node that has what another one has.
    fn check_free(&self, node: &Node) -> Result<(), StoreError> {
        let taken = |what: String| Err(StoreError::Taken { what });
        let others =
            || self.nodes.values().map(|kept| &kept.record.node).filter(|other| other.uuid != node.uuid);
        if node.name.is_some() && others().any(|other| other.name == node.name) {
            return taken(format!("a node with the name {:?}", node.label()));
        }
        if let Some(instance) = node.instance_uuid.get()
            && others().any(|other| other.instance_uuid.get() == Some(instance))
        {
            return taken(format!("a node with instance {instance}"));
        }
        for (at, port) in node.ports.iter().enumerate() {
            let known = || others().flat_map(|other| &other.ports).chain(&node.ports[..at]);
            if known().any(|other| other.uuid == port.uuid) {
                return taken(format!("a port with UUID {}", port.uuid));
            }
            if let Some(name) = &port.name
                && known().any(|other| other.name.as_ref() == Some(name))
            {
                return taken(format!("a port with the name {name:?}"));
            }
            if known().any(|other| other.address == port.address) {
                return taken(format!("a port with MAC address {}", port.address));
            }
        }
        Ok(())
    }
}

impl MemoryStore {
    fn tables(&self) -> MutexGuard<'_, Tables> {
        self.tables.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// What is kept of a node, if there is such a node.
    fn of<T>(&self, uuid: Uuid, read: impl FnOnce(&Kept) -> T) -> Result<Option<T>, StoreError> {
        Ok(self.tables().nodes.get(&uuid).map(read))
    }
}

#[async_trait]
impl NodeStore for MemoryStore {
    fn changed(&self) -> Changes {
        self.feed.changes()
    }

    async fn create(&self, node: &Node) -> Result<(), StoreError> {
        check_texts(&split(node, NODE).0)?;
        let mut tables = self.tables();
        if tables.nodes.contains_key(&node.uuid) {
            return Err(StoreError::Taken { what: format!("a record with UUID {}", node.uuid) });
        }
        tables.check_free(node)?;
        let ports = node.ports.iter().map(|port| with_age(port, &[], node)).collect();
        tables.nodes.insert(node.uuid, Kept::new(Node { ports, ..node.clone() }));
        Ok(())
    }

    async fn get(&self, uuid: Uuid) -> Result<Option<Record>, StoreError> {
        self.of(uuid, |kept| kept.record.clone())
    }

    async fn by_name(&self, name: &str) -> Result<Option<Record>, StoreError> {
        let tables = self.tables();
        let found = tables.nodes.values().find(|kept| kept.record.node.name.as_deref() == Some(name));
        Ok(found.map(|kept| kept.record.clone()))
    }

    async fn owners(&self, addresses: &[MacAddress]) -> Result<Vec<Uuid>, StoreError> {
        let tables = self.tables();
        let owns = |kept: &&Kept| kept.record.node.ports.iter().any(|port| addresses.contains(&port.address));
        Ok(tables.nodes.values().filter(owns).map(|kept| kept.record.node.uuid).collect())
    }

    async fn outlines(&self, selection: &Selection) -> Result<Vec<Outline>, StoreError> {
        let outline = |record| lists::outline(record, selection);
        Ok(lists::selected(&self.tables(), selection).map(outline).collect())
    }

    async fn documents(&self, selection: &Selection) -> Result<Vec<(Outline, Documents)>, StoreError> {
        let tables = self.tables();
        let found = lists::selected(&tables, selection);
        Ok(found.map(|record| (lists::outline(record, selection), lists::documents(record))).collect())
    }

    async fn records(&self, selection: &Selection) -> Result<Vec<Record>, StoreError> {
        Ok(lists::selected(&self.tables(), selection).cloned().collect())
    }

    async fn identities(&self, selection: &Selection) -> Result<Vec<Uuid>, StoreError> {
        Ok(lists::selected(&self.tables(), selection).map(|record| record.node.uuid).collect())
    }

    async fn revision(&self, uuid: Uuid) -> Result<Option<Revision>, StoreError> {
        self.of(uuid, |kept| Revision {
            node: kept.versions.0,
            session: kept.versions.1,
            epoch: kept.record.epoch,
            reservation: kept.record.node.reservation.clone(),
            lease_expires_at: kept.record.lease_expires_at,
        })
    }

    async fn at_bmc(&self, addresses: &[IpAddr]) -> Result<Vec<Uuid>, StoreError> {
        let tables = self.tables();
        let nodes = tables.nodes.values().map(|kept| &kept.record.node);
        let waits = nodes.filter(|node| node.provision_state == ProvisionState::InspectWait);
        let found = waits.filter(|node| bmc_addresses::noted(node).any(|one| addresses.contains(&one)));
        Ok(found.map(|node| node.uuid).collect())
    }

    async fn shards(&self) -> Result<Vec<(Option<String>, u64)>, StoreError> {
        let mut counts = BTreeMap::new();
        for kept in self.tables().nodes.values() {
            *counts.entry(kept.record.node.shard.clone()).or_default() += 1;
        }
        Ok(counts.into_iter().collect())
    }

    async fn provision_states(&self) -> Result<Vec<(ProvisionState, u64)>, StoreError> {
        let mut counts = BTreeMap::new();
        for kept in self.tables().nodes.values() {
            *counts.entry(kept.record.node.provision_state).or_default() += 1;
        }
        Ok(counts.into_iter().collect())
    }

    async fn held(&self) -> Result<Vec<Held>, StoreError> {
        let held = |kept: &Kept| {
            let Record { node, epoch, lease_expires_at, .. } = &kept.record;
            let (holder, expires_at) = (node.reservation.clone()?, (*lease_expires_at)?);
            Some(Held { node: node.uuid, holder, epoch: *epoch, expires_at })
        };
        Ok(self.tables().nodes.values().filter_map(held).collect())
    }

    async fn unattended(&self, now: OffsetDateTime) -> Result<Vec<Uuid>, StoreError> {
        let needs = |kept: &&Kept| {
            let activity = kept.record.node.provision_state.activity();
            let is_busy = matches!(activity, Activity::Work | Activity::Wait);
            (is_busy || kept.record.order.is_some()) && kept.is_free(now)
        };
        Ok(self.tables().nodes.values().filter(needs).map(|kept| kept.record.node.uuid).collect())
    }

    async fn config_drive(&self, uuid: Uuid) -> Result<Option<String>, StoreError> {
        Ok(self.of(uuid, |kept| kept.config_drive.clone())?.flatten())
    }

    async fn take(&self, uuid: Uuid, terms: &Terms<'_>) -> Result<(Lease, Record), StoreError> {
        let mut tables = self.tables();
        let kept = tables.nodes.get_mut(&uuid).ok_or(StoreError::Gone(uuid))?;
        if !kept.is_free(terms.now) {
            let holder = kept.record.node.reservation.clone().unwrap_or_default();
            return Err(StoreError::Held { node: uuid, holder });
        }
        let follows_crash = kept.record.node.reservation.is_some();
        kept.record.node.reservation = Some(terms.holder.to_owned());
        kept.record.lease_expires_at = Some(terms.expires_at);
        kept.record.epoch += 1;
        Ok((Lease { node: uuid, epoch: kept.record.epoch, follows_crash }, kept.record.clone()))
    }

    async fn renew(&self, lease: &Lease, expires_at: OffsetDateTime) -> Result<(), StoreError> {
        self.tables().leased(lease)?.record.lease_expires_at = Some(expires_at);
        Ok(())
    }

    async fn renew_all(&self, leases: &[Lease], expires_at: OffsetDateTime) -> Result<Vec<Uuid>, StoreError> {
        let mut tables = self.tables();
        let mut renew = |lease: &Lease| {
            tables.leased(lease).ok()?.record.lease_expires_at = Some(expires_at);
            Some(lease.node)
        };
        Ok(leases.iter().filter_map(&mut renew).collect())
    }

    async fn release(&self, lease: &Lease) -> Result<(), StoreError> {
        if let Ok(kept) = self.tables().leased(lease) {
            (kept.record.node.reservation, kept.record.lease_expires_at) = (None, None);
        }
        Ok(())
    }

    async fn expire(&self, held: &Held) -> Result<bool, StoreError> {
        let mut tables = self.tables();
        let kept = tables.nodes.get_mut(&held.node).filter(|kept| {
            kept.record.epoch == held.epoch && kept.record.lease_expires_at == Some(held.expires_at)
        });
        Ok(kept.is_some_and(|kept| {
            kept.record.lease_expires_at = Some(OffsetDateTime::UNIX_EPOCH);
            kept.record.epoch += 1;
            true
        }))
    }

    async fn expire_all(&self, holder: &str) -> Result<(), StoreError> {
        for kept in self.tables().nodes.values_mut() {
            if kept.record.node.reservation.as_deref() == Some(holder) {
                kept.record.lease_expires_at = Some(OffsetDateTime::UNIX_EPOCH);
                kept.record.epoch += 1;
            }
        }
        Ok(())
    }

    async fn write(&self, lease: &Lease, change: &Change<'_>) -> Result<(), StoreError> {
        let mut tables = self.tables();
        tables.leased(lease)?;
        check_texts(&split(change.node, NODE).0)?;
        tables.check_free(change.node)?;
        tables.leased(lease)?.apply(change);
        let allocation = change.node.allocation_uuid;
        tables.allocations.retain(|uuid, one| one.node_uuid != Some(lease.node) || Some(*uuid) == allocation);
        if let OrderChange::Put(_) = change.order {
            self.feed.publish(lease.node);
        }
        Ok(())
    }

    async fn delete(&self, lease: &Lease) -> Result<(), StoreError> {
        let mut tables = self.tables();
        tables.leased(lease)?;
        tables.nodes.remove(&lease.node);
        tables.allocations.retain(|_, one| one.node_uuid != Some(lease.node));
        tables.resources.retain(|_, one| one.node_uuid != Some(lease.node));
        Ok(())
    }

    async fn issue_token(&self, seen: &Record, token: &str, now: OffsetDateTime) -> Result<bool, StoreError> {
        let mut tables = self.tables();
        let Some(kept) = tables.nodes.get_mut(&seen.node.uuid) else { return Ok(false) };
        let Record { session, epoch, .. } = &kept.record;
        if *epoch != seen.epoch || !kept.is_free(now) || session.agent_secret_token.is_some() {
            return Ok(false);
        }
        kept.record.epoch += 1;
        kept.record.session.agent_secret_token = Some(token.to_owned());
        Ok(true)
    }

    async fn hear(&self, uuid: Uuid, heard: &AgentSession) -> Result<bool, StoreError> {
        check_texts(&split(heard, SESSION).0)?;
        let mut tables = self.tables();
        let Some(kept) = tables.nodes.get_mut(&uuid) else { return Ok(false) };
        let session = &mut kept.record.session;
        let is_same = |known: &Option<String>, said: &Option<String>| known.is_none() || known == said;
        let is_of_session = session.agent_secret_token.is_some()
            && session.agent_secret_token == heard.agent_secret_token
            && is_same(&session.agent_url, &heard.agent_url)
            && is_same(&session.agent_verify_ca, &heard.agent_verify_ca);
        if is_of_session {
            let learned = session.clone();
            heard.clone_into(session);
            learn(session, &learned);
            kept.versions.1 += 1;
            self.feed.publish(uuid);
        }
        Ok(is_of_session)
    }
}

#[async_trait]
impl EvidenceStore for MemoryStore {
    async fn inspection(&self, uuid: Uuid) -> Result<Option<InspectionData>, StoreError> {
        Ok(self.of(uuid, |kept| kept.inspection.clone())?.flatten())
    }

    async fn received_inspection(&self, uuid: Uuid) -> Result<Option<InspectionData>, StoreError> {
        Ok(self.of(uuid, |kept| kept.received.clone())?.flatten())
    }

    async fn history(&self, uuid: Uuid) -> Result<Vec<HistoryEntry>, StoreError> {
        Ok(self.of(uuid, |kept| kept.history.clone())?.unwrap_or_default())
    }

    async fn certificates(&self, uuid: Uuid) -> Result<Vec<EraseCertificate>, StoreError> {
        Ok(self.of(uuid, |kept| kept.certificates.values().cloned().collect())?.unwrap_or_default())
    }

    async fn boot_trace(&self, uuid: Uuid) -> Result<Option<BootTrace>, StoreError> {
        Ok(self.of(uuid, |kept| kept.boot_trace.clone())?.flatten())
    }

    async fn diagnosis(&self, uuid: Uuid) -> Result<Option<Diagnosis>, StoreError> {
        Ok(self.of(uuid, |kept| kept.diagnosis.clone())?.flatten())
    }

    async fn awaited_boots(&self) -> Result<Vec<BootTrace>, StoreError> {
        let is_awaited = |kept: &&Kept| {
            let Record { node, session, .. } = &kept.record;
            session.agent_url.is_none() && node.provision_state.activity() == Activity::Wait
        };
        Ok(self
            .tables()
            .nodes
            .values()
            .filter(is_awaited)
            .filter_map(|kept| kept.boot_trace.clone())
            .collect())
    }

    async fn with_boot_trace(&self) -> Result<Vec<Uuid>, StoreError> {
        let tables = self.tables();
        let with_trace = tables.nodes.values().filter(|kept| kept.boot_trace.is_some());
        Ok(with_trace.map(|kept| kept.record.node.uuid).collect())
    }

    async fn reach_boot_stages(&self, reached: &[(Uuid, BootTrace)]) -> Result<(), StoreError> {
        let mut tables = self.tables();
        for (node, news) in reached {
            if let Some(trace) = tables.nodes.get_mut(node).and_then(|kept| kept.boot_trace.as_mut()) {
                news.marks().iter().cloned().for_each(|mark| trace.reach(mark));
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::MemoryStore;
    use crate::store::conformance::conformance;

    #[tokio::test]
    async fn it_does_what_every_store_must_do() {
        conformance(async || MemoryStore::default()).await.unwrap();
    }
}
