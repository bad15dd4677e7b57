//! Inspection: what a ramdisk posts, and what operators read of it (contract 8.5).

use super::asked::Asked;
use super::body;
use super::ramdisk::lookup_reply;
use super::reply::{Refusal, read_json};
use super::routes::everywhere;
use crate::conductor::Conductor;
use crate::inspect::Report;
use crate::model::InspectionData;
use axum::body::Bytes;
use axum::extract::{DefaultBodyLimit, Extension, Path, Query, State};
use axum::http::StatusCode;
use axum::routing::{MethodRouter, get, post};
use axum::{Json, Router, middleware};
use farrier_protocol::heartbeat::ApiVersion;
use serde_json::{Map, Value, json};
use std::collections::HashMap;
use uuid::Uuid;

/// The version of agents that name none.
const UNNAMED: ApiVersion = ApiVersion::v1(1);

/// First version that is answered like a lookup, and that may name the node.
const LIKE_LOOKUP: ApiVersion = ApiVersion::v1(84);

/// First version with inventories.
const INVENTORY: u16 = 81;

/// The route that ramdisks post to. What they post may be longer than anything else that they say (lesson S49).
pub(super) fn ramdisk_routes() -> Router<Conductor> {
    let posted = post(continue_inspection).layer(DefaultBodyLimit::disable());
    everywhere([("/continue_inspection", posted.layer(middleware::from_fn(body::read)))])
}

/// The route that operators read.
pub(super) fn node_routes() -> Vec<(&'static str, MethodRouter<Conductor>)> {
    vec![("/nodes/{node}/inventory", get(inventory))]
}

async fn continue_inspection(
    State(conductor): State<Conductor>,
    Extension(version): Extension<ApiVersion>,
    Query(parameters): Query<HashMap<String, String>>,
    body: Bytes,
) -> Result<(StatusCode, Json<Value>), Refusal> {
    if version != UNNAMED && version < LIKE_LOOKUP {
        return Err(Refusal::not_found());
    }
    let node_uuid = node_uuid(&parameters, version)?;
    let report = Report::read(read_json::<Map<String, Value>>(&body)?)?;
    let like_lookup = version >= LIKE_LOOKUP;
    let answer = conductor.continue_inspection(report, node_uuid, like_lookup).await?;
    let reply = match like_lookup {
        true => lookup_reply(&conductor, answer),
        false => json!({"uuid": answer.node.uuid}),
    };
    Ok((StatusCode::ACCEPTED, Json(reply)))
}

/// The node that a ramdisk says it runs on, which those of old do not know.
fn node_uuid(parameters: &HashMap<String, String>, version: ApiVersion) -> Result<Option<Uuid>, Refusal> {
    match parameters.get("node_uuid") {
        None => Ok(None),
        Some(_) if version < LIKE_LOOKUP => Err(Refusal::not_found()),
        Some(text) => {
            let uuid = text.parse();
            uuid.map(Some).map_err(|error| Refusal::bad_request(format!("node_uuid: {error}")))
        }
    }
}

async fn inventory(
    State(conductor): State<Conductor>,
    asked: Asked,
    Path(id): Path<String>,
) -> Result<Json<InspectionData>, Refusal> {
    asked.since(INVENTORY)?;
    let told = conductor.inventory(&id).await?;
    let nothing =
        || Refusal::new(StatusCode::NOT_FOUND, format!("node {id} was not inspected yet; order that first"));
    told.map(Json).ok_or_else(nothing)
}
