//! Where records are kept.
//!
//! What a heartbeat, a lease or a listing needs are columns of small rows; everything else of a node is one JSON
//! document in a row of its own, and so is its config drive. Thus a heartbeat writes one short row, and a document is
//! written when it has changed.
//!
//! Reading takes no lock. Who changes a node holds its [`Lease`], and each write says its epoch: the writes of a
//! conductor that was overtaken are refused ([`StoreError::Overtaken`]). Only the agent's own words need no lease
//! ([`NodeStore::hear`]), because they are written to its session and nowhere else, and count for the boot they came
//! from alone.
//!
//! A [`Store`] is four traits. Tests of a new store run [`conformance`] (feature `conformance`) against it, as those
//! of the stores in SQLite, in PostgreSQL and in memory do.
//!
//! The stores in SQLite (feature `sqlite`) and PostgreSQL (feature `postgres`) share their statements and nearly all of their
//! code: TEXT, BIGINT and BOOLEAN for types, microseconds since 1970 for times, JSON as TEXT. What a store does beside them
//! (the pragmas of a file, the pool of a server, the error of a full disk) stands with the store.

mod catalogue;
mod changes;
#[cfg(any(test, feature = "conformance", feature = "sqlite", feature = "postgres"))]
mod columns;
mod conductors;
#[cfg(any(test, feature = "conformance"))]
pub mod conformance;
mod evidence;
#[cfg(any(test, feature = "conformance"))]
pub mod memory;
mod nodes;
#[cfg(feature = "postgres")]
pub mod postgres;
mod record;
mod selection;
#[cfg(any(feature = "sqlite", feature = "postgres"))]
mod sql;
#[cfg(feature = "sqlite")]
pub mod sqlite;
mod waits;

pub use catalogue::CatalogueStore;
pub use changes::{ChangeFeed, Changed, Changes};
pub use conductors::{ConductorRecord, ConductorStore, OfferedHardware, ProcessId};
pub use evidence::EvidenceStore;
pub use farrier_conductor::task::change::{BootTraceChange, InspectionChange, SessionChange};
pub use nodes::NodeStore;
pub use record::{
    CertificateChange, Change, ConfigDrive, DiagnosisChange, Held, Lease, OrderChange, Record, Revision,
    Terms,
};
pub use selection::{
    AllocationSelection, Documents, Filter, NodeColumn, Outline, OwnedPort, PortSelection, Position,
    ResourceSelection, Selection,
};
#[cfg(any(feature = "sqlite", feature = "postgres"))]
pub use sql::migration::Migrated;
#[cfg(any(feature = "sqlite", feature = "postgres"))]
pub use sql::transfer::{SqlStore, TransferError};
pub use waits::{Waited, Waits, WriteKind};

use uuid::Uuid;

/// A record could not be read or written.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    /// A UUID, name, hardware address or instance is taken.
    #[error("{what} already exists; choose another one, or delete what has it first")]
    Taken {
        /// The record that would have it too.
        what: String,
    },
    /// The record is gone.
    #[error("node {0} is no longer in the store; it was deleted meanwhile")]
    Gone(Uuid),
    /// Another conductor or task holds the lease of the node.
    #[error("node {node} is locked by {holder}; try again when that has ended")]
    Held {
        /// The node.
        node: Uuid,
        /// The conductor that works on it.
        holder: String,
    },
    /// The lease of the node ended, and another one began: what was to be written is out of date.
    #[error("node {0} was taken over by another conductor; nothing was written")]
    Overtaken(Uuid),
    /// A text has the character NUL. Nothing was written.
    #[error(
        "a text has the character NUL (U+0000), which the node store does not keep; remove it from the text"
    )]
    NulCharacter,
    /// There is no room. Nothing was written, nothing is lost.
    #[error(
        "node store {location} has no room left on its disk; make some, the conductor continues by itself"
    )]
    Full {
        /// The file or server.
        location: String,
    },
    /// Another process has the store locked for longer than a write is waited for. Nothing was written.
    #[error(
        "node store {location} is locked by another process; try again later, and see whether a conductor hangs"
    )]
    Busy {
        /// The file or server.
        location: String,
    },
    /// The database is away. A write may have been carried out, if the answer to it is lost.
    #[error(
        "node store {location} cannot be reached: {reason}; start the database or mend the network, the conductor \
         continues by itself"
    )]
    Unreachable {
        /// The file or server.
        location: String,
        /// What the connection said.
        reason: String,
    },
    /// The store itself failed.
    #[error("node store {location}: {reason}; check that it can be reached, read and written")]
    Failed {
        /// The file or server.
        location: String,
        /// What it said.
        reason: String,
    },
}

/// All that a conductor keeps.
pub trait Store: NodeStore + EvidenceStore + CatalogueStore + ConductorStore {}

impl<T: NodeStore + EvidenceStore + CatalogueStore + ConductorStore> Store for T {}
