//! Proof that the disks of a machine were erased.
//!
//! With the key of the TLS certificate that its heartbeat brought, an agent signs what it did to each disk, and one
//! [statement for the machine](MachineStatement): which disks it examined, which storage it could not see, and which
//! controllers had no driver. Each is a [certificate of erasure](EraseCertificate). The conductor accepts it from the
//! agent that ran the step, for the node, the step and the run of the step, whose nonce it issued, and refuses every
//! other one. The certificates of the last automated cleaning and the disks of the last inspection decide the
//! [mark](farrier_conductor::model::Erasure) that a node bears when it becomes available: its disks are proven to be erased, or they are not, and
//! why.

mod accept;
mod certificate;
mod inspected;
mod mark;
mod record;
mod statement;

pub use accept::{EraseCertificate, MACHINE};
pub(crate) use accept::{Expected, Refused, accept};
pub(crate) use certificate::fingerprint;
pub use certificate::{CertificateError, Signed};
pub use inspected::InspectedDisk;
pub use mark::proven_by;
pub use record::ErasureRecord;
pub use statement::{DiskStatement, ExaminedDisk, MachineStatement, Statement, Verdict};
