//! What happened to a node in the operation under way, as progress bars and timelines need it.

use crate::wire::reply::{Refusal, masked};
use axum::Json;
use axum::extract::{Path, Query, State};
use farrier_engine::Conductor;
use serde::Deserialize;
use serde_json::{Value, json};

#[derive(Debug, Deserialize)]
pub(super) struct EventQuery {
    #[serde(default)]
    since: u64,
}

/// `GET /farrier/v1/nodes/{node}/events`
pub(super) async fn events(
    State(conductor): State<Conductor>,
    Path(id): Path<String>,
    Query(query): Query<EventQuery>,
) -> Result<Json<Value>, Refusal> {
    let node = conductor.find(&id).await?.node;
    Ok(masked(json!({"events": conductor.events().since(node.uuid, query.since)})))
}
