//! A store that can be shut: what a conductor sees of its store when it is killed, stopped, or its disk is full.

use super::stage::PATIENCE;
use async_trait::async_trait;
use farrier_conductor::Settings;
use farrier_conductor::model::{AgentSession, InspectionData, MacAddress, Node, ProvisionState};
use farrier_engine::evidence::boot_trace::BootTrace;
use farrier_engine::evidence::diagnosis::Diagnosis;
use farrier_engine::evidence::erasing::EraseCertificate;
use farrier_engine::explain::who_acts::Attention;
use farrier_engine::records::{Allocation, AllocationState, HistoryEntry, Resource, ResourceKind};
use farrier_engine::store::{
    AllocationSelection, CatalogueStore, Change, Changes, ConductorRecord, ConductorStore, Documents,
    EvidenceStore, Held, Lease, NodeStore, Outline, OwnedPort, PortSelection, Record, ResourceSelection,
    Revision, Selection, Store, StoreError, Terms,
};
use std::net::IpAddr;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};
use time::OffsetDateTime;
use tokio::sync::watch;
use uuid::Uuid;

/// What happens at the gate.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Gate {
    /// Everything passes.
    Open,
    /// Everything is refused that comes after this many writes.
    RefusesAfter(usize),
    /// The write of this number is done and never returns, nor does anything that comes after it.
    HangsAfter(usize),
    /// The listing of nodes of this number is made and returns when the gate is opened.
    HangsAfterListing(usize),
    /// The record of this node cannot be read.
    Damages(Uuid),
    /// The store is away when it is called for the time of this number.
    LosesCall(usize),
    /// The write of this number is done, and its answer is lost.
    LosesAnswer(usize),
}

/// A store behind a gate. Renewals pass uncounted, and of heartbeats the first alone counts, so that the number of
/// writes does not depend on how long something takes.
pub struct GatedStore {
    inner: Arc<dyn Store>,
    gate: watch::Sender<Gate>,
    writes: AtomicUsize,
    calls: AtomicUsize,
    reads: AtomicUsize,
    listings: AtomicUsize,
    /// Writes that are not counted yet.
    under_way: AtomicUsize,
    /// Whether the gate has stopped anything.
    has_stopped: AtomicBool,
    has_heard: AtomicBool,
    settings: Settings,
    /// Nodes as they were when nobody was there to move them on.
    forgotten: Mutex<Vec<Record>>,
}

/// Counts a write for as long as it is under way, also when whoever writes is cut off.
struct UnderWay<'a>(&'a AtomicUsize);

impl<'a> UnderWay<'a> {
    fn begin(count: &'a AtomicUsize) -> Self {
        count.fetch_add(1, Ordering::SeqCst);
        Self(count)
    }
}

impl Drop for UnderWay<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::SeqCst);
    }
}

impl GatedStore {
    pub fn new(inner: Arc<dyn Store>, gate: Gate, settings: Settings) -> Arc<Self> {
        Arc::new(Self {
            inner,
            gate: watch::Sender::new(gate),
            writes: AtomicUsize::new(0),
            calls: AtomicUsize::new(0),
            reads: AtomicUsize::new(0),
            listings: AtomicUsize::new(0),
            under_way: AtomicUsize::new(0),
            has_stopped: AtomicBool::new(false),
            has_heard: AtomicBool::new(false),
            settings,
            forgotten: Mutex::default(),
        })
    }

    pub fn set(&self, gate: Gate) {
        self.gate.send_replace(gate);
    }

    /// How often a whole record was read.
    pub fn reads(&self) -> usize {
        self.reads.load(Ordering::SeqCst)
    }

    /// The writes that were done, when none is under way: what is in the file already may not be counted yet.
    pub fn writes(&self) -> usize {
        while self.under_way.load(Ordering::SeqCst) > 0 {
            std::thread::sleep(Duration::from_millis(1));
        }
        self.writes.load(Ordering::SeqCst)
    }

    /// How often it was called.
    pub fn calls(&self) -> usize {
        self.calls.load(Ordering::SeqCst)
    }

    /// Sees that no node was forgotten, be it for a moment.
    pub fn assert_none_forgotten(&self) {
        let forgotten = self.forgotten.lock().unwrap();
        assert!(forgotten.is_empty(), "{forgotten:#?}");
    }

    pub fn has_stopped(&self) -> bool {
        self.has_stopped.load(Ordering::SeqCst)
    }

    /// Waits until the gate has stopped something.
    pub async fn stops(&self) {
        let end = Instant::now() + PATIENCE;
        while !self.has_stopped() {
            assert!(Instant::now() < end, "nothing was stopped after {} writes", self.writes());
            tokio::time::sleep(Duration::from_millis(2)).await;
        }
    }

    /// Lets through, refuses, or never returns before the gate is opened.
    async fn pass(&self) -> Result<(), StoreError> {
        let mut gate = self.gate.subscribe();
        let call = self.calls.fetch_add(1, Ordering::SeqCst) + 1;
        loop {
            let now = *gate.borrow_and_update();
            match now {
                Gate::LosesCall(number) if number == call => return Err(self.away()),
                Gate::RefusesAfter(most) if self.writes.load(Ordering::SeqCst) >= most => {
                    self.has_stopped.store(true, Ordering::SeqCst);
                    return Err(StoreError::Failed { location: "gate".into(), reason: "it is shut".into() });
                }
                Gate::HangsAfter(most) if self.writes.load(Ordering::SeqCst) >= most => {
                    self.has_stopped.store(true, Ordering::SeqCst);
                    gate.changed().await.unwrap();
                }
                Gate::HangsAfterListing(number) if self.listings.load(Ordering::SeqCst) == number => {
                    self.has_stopped.store(true, Ordering::SeqCst);
                    gate.changed().await.unwrap();
                }
                _ => return Ok(()),
            }
        }
    }

    /// Does a write that may change who moves the node on, counts it, and sees that nobody is forgotten by it.
    async fn done<T>(
        &self,
        node: Uuid,
        write: impl Future<Output = Result<T, StoreError>>,
    ) -> Result<T, StoreError> {
        let outcome = self.counted(write).await;
        if outcome.is_ok()
            && let Some(record) = self.inner.get(node).await?
            && Attention::of(&record, &self.settings) == Attention::Nobody
        {
            self.forgotten.lock().unwrap().push(record);
        }
        self.hang_after(outcome).await
    }

    /// Does a write and counts it.
    async fn counted<T>(&self, write: impl Future<Output = Result<T, StoreError>>) -> Result<T, StoreError> {
        let _counted = UnderWay::begin(&self.under_way);
        let outcome = write.await;
        let before = self.writes.fetch_add(usize::from(outcome.is_ok()), Ordering::SeqCst);
        match *self.gate.borrow() {
            Gate::LosesAnswer(number) if outcome.is_ok() && number == before + 1 => Err(self.away()),
            _ => outcome,
        }
    }

    fn away(&self) -> StoreError {
        self.has_stopped.store(true, Ordering::SeqCst);
        StoreError::Unreachable { location: "gate".into(), reason: "it is away".into() }
    }

    /// Counts what was written of an agent. Whoever moves the node on does so as before: it may be a conductor that starts
    /// and whose worker has not taken the lease yet.
    async fn heard(&self) -> Result<bool, StoreError> {
        let outcome = self.counted(async { Ok(true) }).await;
        self.hang_after(outcome).await
    }

    /// Never returns from the last write before the gate hangs.
    async fn hang_after<T>(&self, outcome: Result<T, StoreError>) -> Result<T, StoreError> {
        let hangs = matches!(*self.gate.borrow(), Gate::HangsAfter(most) if self.writes.load(Ordering::SeqCst) >= most);
        if outcome.is_ok() && hangs {
            self.pass().await?;
        }
        outcome
    }
}

#[async_trait]
impl NodeStore for GatedStore {
    fn changed(&self) -> Changes {
        self.inner.changed()
    }

    async fn create(&self, node: &Node) -> Result<(), StoreError> {
        self.pass().await?;
        self.done(node.uuid, self.inner.create(node)).await
    }

    async fn get(&self, uuid: Uuid) -> Result<Option<Record>, StoreError> {
        self.pass().await?;
        self.reads.fetch_add(1, Ordering::SeqCst);
        if *self.gate.borrow() == Gate::Damages(uuid) {
            let reason = "unreadable record".to_owned();
            return Err(StoreError::Failed { location: "gate".into(), reason });
        }
        self.inner.get(uuid).await
    }

    async fn by_name(&self, name: &str) -> Result<Option<Record>, StoreError> {
        self.pass().await?;
        self.inner.by_name(name).await
    }

    async fn owners(&self, addresses: &[MacAddress]) -> Result<Vec<Uuid>, StoreError> {
        self.pass().await?;
        self.inner.owners(addresses).await
    }

    async fn outlines(&self, selection: &Selection) -> Result<Vec<Outline>, StoreError> {
        self.pass().await?;
        self.inner.outlines(selection).await
    }

    async fn documents(&self, selection: &Selection) -> Result<Vec<(Outline, Documents)>, StoreError> {
        self.pass().await?;
        self.inner.documents(selection).await
    }

    async fn records(&self, selection: &Selection) -> Result<Vec<Record>, StoreError> {
        self.pass().await?;
        self.inner.records(selection).await
    }

    async fn identities(&self, selection: &Selection) -> Result<Vec<Uuid>, StoreError> {
        self.pass().await?;
        let listed = self.inner.identities(selection).await;
        self.listings.fetch_add(1, Ordering::SeqCst);
        self.pass().await?;
        listed
    }

    async fn revision(&self, uuid: Uuid) -> Result<Option<Revision>, StoreError> {
        self.pass().await?;
        self.inner.revision(uuid).await
    }

    async fn at_bmc(&self, addresses: &[IpAddr]) -> Result<Vec<Uuid>, StoreError> {
        self.pass().await?;
        self.inner.at_bmc(addresses).await
    }

    async fn shards(&self) -> Result<Vec<(Option<String>, u64)>, StoreError> {
        self.pass().await?;
        self.inner.shards().await
    }

    async fn held(&self) -> Result<Vec<Held>, StoreError> {
        self.pass().await?;
        self.inner.held().await
    }

    async fn unattended(&self, now: OffsetDateTime) -> Result<Vec<Uuid>, StoreError> {
        self.pass().await?;
        self.inner.unattended(now).await
    }

    async fn config_drive(&self, uuid: Uuid) -> Result<Option<String>, StoreError> {
        self.pass().await?;
        self.inner.config_drive(uuid).await
    }

    async fn take(&self, uuid: Uuid, terms: &Terms<'_>) -> Result<(Lease, Record), StoreError> {
        self.pass().await?;
        self.done(uuid, self.inner.take(uuid, terms)).await
    }

    async fn renew(&self, lease: &Lease, expires_at: OffsetDateTime) -> Result<(), StoreError> {
        self.pass().await?;
        self.inner.renew(lease, expires_at).await
    }

    async fn renew_all(&self, leases: &[Lease], expires_at: OffsetDateTime) -> Result<Vec<Uuid>, StoreError> {
        self.pass().await?;
        self.inner.renew_all(leases, expires_at).await
    }

    async fn release(&self, lease: &Lease) -> Result<(), StoreError> {
        self.pass().await?;
        self.done(lease.node, self.inner.release(lease)).await
    }

    async fn expire(&self, held: &Held) -> Result<bool, StoreError> {
        self.pass().await?;
        self.inner.expire(held).await
    }

    async fn expire_all(&self, holder: &str) -> Result<(), StoreError> {
        self.pass().await?;
        self.inner.expire_all(holder).await
    }

    async fn write(&self, lease: &Lease, change: &Change<'_>) -> Result<(), StoreError> {
        self.pass().await?;
        self.done(lease.node, self.inner.write(lease, change)).await
    }

    async fn delete(&self, lease: &Lease) -> Result<(), StoreError> {
        self.pass().await?;
        self.done(lease.node, self.inner.delete(lease)).await
    }

    async fn issue_token(&self, seen: &Record, token: &str, now: OffsetDateTime) -> Result<bool, StoreError> {
        self.pass().await?;
        let issued = self.inner.issue_token(seen, token, now).await?;
        if issued { self.heard().await } else { Ok(false) }
    }

    async fn provision_states(&self) -> Result<Vec<(ProvisionState, u64)>, StoreError> {
        self.pass().await?;
        self.inner.provision_states().await
    }

    async fn hear(&self, uuid: Uuid, heard: &AgentSession) -> Result<bool, StoreError> {
        self.pass().await?;
        let is_heard = self.inner.hear(uuid, heard).await?;
        if is_heard && !self.has_heard.swap(true, Ordering::SeqCst) {
            return self.heard().await;
        }
        Ok(is_heard)
    }
}

#[async_trait]
impl EvidenceStore for GatedStore {
    async fn inspection(&self, uuid: Uuid) -> Result<Option<InspectionData>, StoreError> {
        self.pass().await?;
        self.inner.inspection(uuid).await
    }

    async fn received_inspection(&self, uuid: Uuid) -> Result<Option<InspectionData>, StoreError> {
        self.pass().await?;
        self.inner.received_inspection(uuid).await
    }

    async fn certificates(&self, uuid: Uuid) -> Result<Vec<EraseCertificate>, StoreError> {
        self.pass().await?;
        self.inner.certificates(uuid).await
    }

    async fn history(&self, uuid: Uuid) -> Result<Vec<HistoryEntry>, StoreError> {
        self.pass().await?;
        self.inner.history(uuid).await
    }

    async fn boot_trace(&self, uuid: Uuid) -> Result<Option<BootTrace>, StoreError> {
        self.inner.boot_trace(uuid).await
    }

    async fn diagnosis(&self, uuid: Uuid) -> Result<Option<Diagnosis>, StoreError> {
        self.pass().await?;
        self.inner.diagnosis(uuid).await
    }

    async fn awaited_boots(&self) -> Result<Vec<BootTrace>, StoreError> {
        self.inner.awaited_boots().await
    }

    async fn with_boot_trace(&self) -> Result<Vec<Uuid>, StoreError> {
        self.inner.with_boot_trace().await
    }

    async fn reach_boot_stages(&self, reached: &[(Uuid, BootTrace)]) -> Result<(), StoreError> {
        self.inner.reach_boot_stages(reached).await
    }
}

#[async_trait]
impl CatalogueStore for GatedStore {
    async fn ports(&self, selection: &PortSelection) -> Result<Vec<OwnedPort>, StoreError> {
        self.pass().await?;
        self.inner.ports(selection).await
    }

    async fn port(&self, id: &str) -> Result<Option<OwnedPort>, StoreError> {
        self.pass().await?;
        self.inner.port(id).await
    }

    async fn create_allocation(&self, allocation: &Allocation) -> Result<(), StoreError> {
        self.pass().await?;
        self.inner.create_allocation(allocation).await
    }

    async fn allocation(&self, id: &str) -> Result<Option<Allocation>, StoreError> {
        self.pass().await?;
        self.inner.allocation(id).await
    }

    async fn allocations(&self, selection: &AllocationSelection) -> Result<Vec<Allocation>, StoreError> {
        self.pass().await?;
        self.inner.allocations(selection).await
    }

    async fn write_allocation(
        &self,
        allocation: &Allocation,
        was: AllocationState,
    ) -> Result<bool, StoreError> {
        self.pass().await?;
        self.inner.write_allocation(allocation, was).await
    }

    async fn delete_allocation(&self, uuid: Uuid) -> Result<(), StoreError> {
        self.pass().await?;
        self.inner.delete_allocation(uuid).await
    }

    async fn create_resource(&self, resource: &Resource) -> Result<(), StoreError> {
        self.pass().await?;
        self.inner.create_resource(resource).await
    }

    async fn resource(&self, kind: ResourceKind, id: &str) -> Result<Option<Resource>, StoreError> {
        self.pass().await?;
        self.inner.resource(kind, id).await
    }

    async fn resources(&self, selection: &ResourceSelection) -> Result<Vec<Resource>, StoreError> {
        self.pass().await?;
        self.inner.resources(selection).await
    }

    async fn write_resource(&self, before: &Resource, after: &Resource) -> Result<bool, StoreError> {
        self.pass().await?;
        self.inner.write_resource(before, after).await
    }

    async fn delete_resource(&self, uuid: Uuid) -> Result<(), StoreError> {
        self.pass().await?;
        self.inner.delete_resource(uuid).await
    }
}

#[async_trait]
impl ConductorStore for GatedStore {
    async fn conductors(&self) -> Result<Vec<(ConductorRecord, Duration)>, StoreError> {
        self.pass().await?;
        self.inner.conductors().await
    }

    async fn renew_conductor(
        &self,
        own: &ConductorRecord,
        silent: Option<&ConductorRecord>,
    ) -> Result<bool, StoreError> {
        self.pass().await?;
        self.inner.renew_conductor(own, silent).await
    }

    async fn remove_conductor(&self, conductor: &ConductorRecord, is_own: bool) -> Result<(), StoreError> {
        self.pass().await?;
        self.inner.remove_conductor(conductor, is_own).await
    }
}
