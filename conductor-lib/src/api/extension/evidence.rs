//! What is known of a node: what it waits for, and what is proven of its disks.

use super::super::reply::Refusal;
use crate::conductor::Conductor;
use crate::erasing::{EraseCertificate, Erasure};
use crate::explanation::Explanation;
use axum::Json;
use axum::extract::{Path, State};
use serde::{Deserialize, Serialize};

/// The answer to `GET /farrier/v1/nodes/{node}/certificates`.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Certificates {
    /// Identity of the node.
    pub node: String,
    /// Whether all disks are proven to be erased, since the node became available.
    pub erasure: Option<Erasure>,
    /// The certificates, by disk and step.
    pub certificates: Vec<EraseCertificate>,
}

/// `GET /farrier/v1/nodes/{node}/explanation`
pub(super) async fn explanation(
    State(conductor): State<Conductor>,
    Path(id): Path<String>,
) -> Result<Json<Explanation>, Refusal> {
    Ok(Json(conductor.explain(&id).await?))
}

/// `GET /farrier/v1/nodes/{node}/certificates`
pub(super) async fn certificates(
    State(conductor): State<Conductor>,
    Path(id): Path<String>,
) -> Result<Json<Certificates>, Refusal> {
    let node = conductor.find(&id).await?.node.uuid.to_string();
    let (erasure, certificates) = conductor.certificates(&node).await?;
    Ok(Json(Certificates { node, erasure, certificates }))
}
