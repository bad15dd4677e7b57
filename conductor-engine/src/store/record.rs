//! What goes into the store and comes out of it.

use crate::evidence::diagnosis::Diagnosis;
use crate::evidence::erasing::EraseCertificate;
use crate::records::{HistoryEntry, PendingOrder};
use farrier_conductor::model::{AgentSession, Node};
use farrier_conductor::task::change::{BootTraceChange, InspectionChange, SessionChange};
use time::OffsetDateTime;
use uuid::Uuid;

/// A node with what is known of its agent, as both were at one moment.
#[derive(Debug, Clone, PartialEq)]
pub struct Record {
    /// The node.
    pub node: Node,
    /// Its agent.
    pub session: AgentSession,
    /// What is ordered of it.
    pub order: Option<PendingOrder>,
    /// Epoch of its last lease.
    pub epoch: i64,
    /// When the lease expires, if there is one.
    pub lease_expires_at: Option<OffsetDateTime>,
}

/// The revision of a record: each part grows when something is written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Revision {
    /// Writes of the node.
    pub node: i64,
    /// Heartbeats of its agent.
    pub session: i64,
    /// Epoch of its last lease.
    pub epoch: i64,
    /// The conductor that has the lease.
    pub reservation: Option<String>,
    /// When the lease of a conductor expires.
    pub lease_expires_at: Option<OffsetDateTime>,
}

impl Revision {
    /// Whether the record is as it was when `other` was read. Leases that are renewed change nothing.
    pub fn is_same_record(&self, other: &Self) -> bool {
        let parts = |one: &Self| (one.node, one.session, one.epoch, one.reservation.is_some());
        parts(self) == parts(other)
    }
}

/// The right to change a node. Each lease of a node has a higher epoch than the one before, and a write is refused
/// whose epoch is not the highest.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Lease {
    /// The node.
    pub node: Uuid,
    /// Number of this lease among those of the node.
    pub epoch: i64,
    /// Whether the lease before it was never ended: the conductor that had it stopped in the middle.
    pub follows_crash: bool,
}

/// A lease as others see it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Held {
    /// Of which node.
    pub node: Uuid,
    /// The conductor that has it.
    pub holder: String,
    /// Which of the node's leases it is.
    pub epoch: i64,
    /// When it expires.
    pub expires_at: OffsetDateTime,
}

/// The holder of a lease, and its end unless it is renewed.
#[derive(Debug, Clone, Copy)]
pub struct Terms<'a> {
    /// Name of the conductor.
    pub holder: &'a str,
    /// The time now, by which leases have expired.
    pub now: OffsetDateTime,
    /// When this one expires.
    pub expires_at: OffsetDateTime,
}

/// What changed of a node.
#[derive(Debug)]
pub struct Change<'a> {
    /// The record after the change.
    pub node: &'a Node,
    /// What changed of its agent's session.
    pub session: SessionChange<'a>,
    /// What changed of its config drive.
    pub config_drive: ConfigDrive<'a>,
    /// What changed of its order.
    pub order: OrderChange,
    /// What changed of its inspection.
    pub inspection: InspectionChange<'a>,
    /// What changed of the certificates of erasure of its disks.
    pub certificates: CertificateChange<'a>,
    /// What changed of how far its machine came.
    pub boot_trace: BootTraceChange,
    /// What changed of what could be had of it when it stayed silent.
    pub diagnosis: DiagnosisChange<'a>,
    /// What this adds to its history.
    pub history: &'a [HistoryEntry],
    /// Whether the lease ends with this.
    pub ends_lease: bool,
}

impl<'a> Change<'a> {
    /// The record alone changed.
    pub fn of(node: &'a Node) -> Self {
        Self {
            node,
            session: SessionChange::Keep,
            config_drive: ConfigDrive::Keep,
            order: OrderChange::Keep,
            inspection: InspectionChange::Keep,
            certificates: CertificateChange::default(),
            boot_trace: BootTraceChange::Keep,
            diagnosis: DiagnosisChange::Keep,
            history: &[],
            ends_lease: false,
        }
    }
}

/// What changed of a config drive.
#[derive(Debug, Clone, Copy)]
pub enum ConfigDrive<'a> {
    /// Nothing.
    Keep,
    /// There is this one now.
    Put(&'a str),
    /// There is none any more.
    Remove,
}

/// What changed of an order.
#[derive(Debug, Clone, Copy)]
pub enum OrderChange {
    /// Nothing.
    Keep,
    /// This is ordered now.
    Put(PendingOrder),
    /// Nothing is ordered any more.
    Remove,
}

/// What changed of what could be had of a machine that stayed silent.
#[derive(Debug, Clone, Copy)]
pub enum DiagnosisChange<'a> {
    /// Nothing.
    Keep,
    /// This could be had.
    Put(&'a Diagnosis),
    /// It boots the ramdisk again.
    Remove,
}

/// What changed of the certificates of erasure of a node's disks.
#[derive(Debug, Clone, Copy, Default)]
pub struct CertificateChange<'a> {
    /// Whether those that there are go first.
    pub forgets: bool,
    /// The new ones, each instead of an earlier one of its disk and step.
    pub new: &'a [EraseCertificate],
}
