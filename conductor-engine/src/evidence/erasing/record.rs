//! All that is known of the erasure of a machine's disks.

use crate::evidence::erasing::accept::EraseCertificate;
use crate::evidence::erasing::inspected::InspectedDisk;
use crate::evidence::erasing::mark::proven_by;
use farrier_conductor::model::Erasure;
use serde::{Deserialize, Serialize};

/// What is known of the erasure of a node's disks: the answer to `GET /farrier/v1/nodes/{node}/certificates`.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct ErasureRecord {
    /// Identity of the node.
    pub node: String,
    /// Whether all disks are proven to be erased, since the node became available.
    pub erasure: Option<Erasure>,
    /// The certificates, by disk and step.
    pub certificates: Vec<EraseCertificate>,
    /// The disks that the last inspection saw.
    #[serde(default)]
    pub inspected: Vec<InspectedDisk>,
}

impl ErasureRecord {
    /// What the certificates prove, whatever mark the node bears; nothing while it bears none.
    pub fn proven(&self) -> Option<Erasure> {
        let mark = self.erasure.as_ref()?;
        Some(proven_by(&self.certificates, &self.inspected, mark.at))
    }
}
