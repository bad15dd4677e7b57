//! What is known of a node: what it waits for, and what is proven of its disks.

use super::super::reply::Refusal;
use crate::conductor::Conductor;
use crate::erasing::ErasureRecord;
use crate::explanation::Explanation;
use axum::Json;
use axum::extract::{Path, State};

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
) -> Result<Json<ErasureRecord>, Refusal> {
    Ok(Json(conductor.certificates(&id).await?))
}
