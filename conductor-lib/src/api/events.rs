//! An extension of Farrier, below a path of its own: what happened to a node, as progress bars and timelines need it.

use super::reply::Refusal;
use crate::conductor::Conductor;
use axum::extract::{Path, Query, State};
use axum::routing::get;
use axum::{Json, Router};
use serde::Deserialize;
use serde_json::{Value, json};

#[derive(Debug, Deserialize)]
struct EventQuery {
    #[serde(default)]
    since: u64,
}

/// The routes of the extension.
pub(super) fn routes() -> Router<Conductor> {
    Router::new().route("/farrier/v1/nodes/{node}/events", get(events))
}

async fn events(
    State(conductor): State<Conductor>,
    Path(id): Path<String>,
    Query(query): Query<EventQuery>,
) -> Result<Json<Value>, Refusal> {
    let node = conductor.find(&id).await?.node;
    Ok(Json(json!({"events": conductor.events().since(node.uuid, query.since)})))
}
