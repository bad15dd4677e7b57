//! Proof that the disks of a machine were erased.
//!
//! An agent signs for each disk what it did to it, with the key of the TLS certificate that its heartbeat brought: a
//! [certificate of erasure](EraseCertificate). The conductor takes a certificate from the agent that ran the step, for
//! the node and the step that it ran, and refuses every other one. Those of the last automated cleaning decide the
//! [mark](Erasure) that a node bears when it becomes available: its disks are proven to be erased, or they are not, and
//! why.

mod accept;
mod certificate;
mod mark;

pub use accept::EraseCertificate;
pub(crate) use accept::{Expected, accept};
pub(crate) use certificate::fingerprint;
pub use certificate::{CertificateError, Signed, Statement, Verdict};
pub use mark::Erasure;
