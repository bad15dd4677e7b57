//! What the sensors of a machine say.

use crate::wire::reply::{Refusal, masked};
use axum::Json;
use axum::extract::{Path, State};
use farrier_engine::Conductor;
use serde_json::{Value, json};

/// `GET /farrier/v1/nodes/{node}/sensors`
pub(super) async fn read(
    State(conductor): State<Conductor>,
    Path(id): Path<String>,
) -> Result<Json<Value>, Refusal> {
    Ok(masked(json!({"sensors": conductor.machines().sensors(&id).await?})))
}
