//! What is known of a node: what it waits for, its life, and what is proven of its disks.

use crate::wire::reply::{Refusal, masked};
use axum::Json;
use axum::extract::{Extension, Path, State};
use farrier_access::{Identity, sees_consoles};
use farrier_engine::Conductor;
use farrier_engine::evidence::erasing::ErasureRecord;
use serde_json::Value;

/// `GET /farrier/v1/nodes/{node}/explanation`. What a console says is for those who may read consoles.
pub(super) async fn explanation(
    State(conductor): State<Conductor>,
    identity: Option<Extension<Identity>>,
    Path(id): Path<String>,
) -> Result<Json<Value>, Refusal> {
    let explanation = conductor.evidence().explain(&id).await?;
    Ok(masked(match sees_consoles(identity.as_deref()) {
        true => explanation,
        false => explanation.without_console(),
    }))
}

/// `GET /farrier/v1/nodes/{node}/certificates`
pub(super) async fn certificates(
    State(conductor): State<Conductor>,
    Path(id): Path<String>,
) -> Result<Json<ErasureRecord>, Refusal> {
    Ok(Json(conductor.evidence().certificates(&id).await?))
}

/// `GET /farrier/v1/nodes/{node}/timeline`
pub(super) async fn timeline(
    State(conductor): State<Conductor>,
    Path(id): Path<String>,
) -> Result<Json<Value>, Refusal> {
    Ok(masked(conductor.evidence().timeline(&id).await?))
}
