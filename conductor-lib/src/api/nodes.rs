//! What operators call: nodes, their power and provision state, and their events.

use super::reply::{Refusal, fallback, read_json, wrong_method};
use crate::conductor::{Conductor, PowerAction};
use crate::hardware_type::Validity;
use crate::model::{InstanceInfo, InterfaceKind, NewNode, Node};
use axum::body::Bytes;
use axum::extract::{DefaultBodyLimit, Path, Query, State};
use axum::http::StatusCode;
use axum::routing::{get, put};
use axum::{Json, Router};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use std::collections::BTreeMap;

/// Longest request body, in bytes: a config drive of 64 MiB as base64, and some more.
const BODY_LIMIT: usize = 96 << 20;

/// Body of `PUT /v1/nodes/{node}/states/provision`.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ProvisionRequest {
    /// `active`, `rebuild` or `deleted`.
    pub target: String,
    /// What to deploy: `image_source`, `image_checksum`, `image_disk_format`, `configdrive`,
    /// `root_device`.
    #[serde(default)]
    pub instance_info: InstanceInfo,
}

/// Reply to an accepted [`ProvisionRequest`].
#[derive(Debug, Serialize, Deserialize)]
pub struct ProvisionReply {
    /// Sequence number of the operation's first event.
    pub events_since: u64,
}

/// Body of `PUT /v1/nodes/{node}/states/power`.
#[derive(Debug, Serialize, Deserialize)]
pub struct PowerRequest {
    /// `power on`, `power off` or `rebooting`.
    pub target: String,
}

#[derive(Debug, Deserialize)]
struct EventQuery {
    #[serde(default)]
    since: u64,
}

/// The routes that operators call. They need no authentication, so serve them on a loopback
/// address or behind something that asks for it.
pub fn nodes_router(conductor: Conductor) -> Router {
    Router::new()
        .route("/v1/nodes", get(list).post(create))
        .route("/v1/nodes/{node}", get(show).delete(delete))
        .route("/v1/nodes/{node}/states/provision", put(provision))
        .route("/v1/nodes/{node}/states/power", put(power))
        .route("/v1/nodes/{node}/events", get(events))
        .route("/v1/nodes/{node}/validate", get(validate))
        .route("/v1/drivers/{driver}/properties", get(properties))
        .fallback(fallback)
        .method_not_allowed_fallback(wrong_method)
        .layer(DefaultBodyLimit::max(BODY_LIMIT))
        .with_state(conductor)
}

async fn list(State(conductor): State<Conductor>) -> Result<Json<Value>, Refusal> {
    Ok(Json(json!({"nodes": conductor.nodes().await?})))
}

async fn create(
    State(conductor): State<Conductor>,
    body: Bytes,
) -> Result<(StatusCode, Json<Node>), Refusal> {
    let node = conductor.create_node(read_json::<NewNode>(&body)?).await?;
    Ok((StatusCode::CREATED, Json(node)))
}

async fn show(State(conductor): State<Conductor>, Path(id): Path<String>) -> Result<Json<Node>, Refusal> {
    Ok(Json(conductor.node(&id).await?))
}

async fn delete(State(conductor): State<Conductor>, Path(id): Path<String>) -> Result<StatusCode, Refusal> {
    conductor.delete_node(&id).await?;
    Ok(StatusCode::ACCEPTED)
}

async fn provision(
    State(conductor): State<Conductor>,
    Path(id): Path<String>,
    body: Bytes,
) -> Result<(StatusCode, Json<ProvisionReply>), Refusal> {
    let request: ProvisionRequest = read_json(&body)?;
    let events_since = match request.target.as_str() {
        "active" | "rebuild" => conductor.deploy(&id, request.instance_info).await?,
        "deleted" => {
            conductor.undeploy(&id).await?;
            0
        }
        other => {
            let text = format!("target {other:?} is not known; use active, rebuild or deleted");
            return Err(Refusal::bad_request(text));
        }
    };
    Ok((StatusCode::ACCEPTED, Json(ProvisionReply { events_since })))
}

async fn power(
    State(conductor): State<Conductor>,
    Path(id): Path<String>,
    body: Bytes,
) -> Result<StatusCode, Refusal> {
    let action = match read_json::<PowerRequest>(&body)?.target.as_str() {
        "power on" => PowerAction::On,
        "power off" => PowerAction::Off,
        "rebooting" => PowerAction::Reboot,
        other => {
            let text = format!("target {other:?} is not known; use power on, power off or rebooting");
            return Err(Refusal::bad_request(text));
        }
    };
    conductor.set_power(&id, action).await?;
    Ok(StatusCode::ACCEPTED)
}

async fn events(
    State(conductor): State<Conductor>,
    Path(id): Path<String>,
    Query(query): Query<EventQuery>,
) -> Result<Json<Value>, Refusal> {
    let node = conductor.find(&id).await?.node;
    Ok(Json(json!({"events": conductor.events().since(node.uuid, query.since)})))
}

async fn validate(
    State(conductor): State<Conductor>,
    Path(id): Path<String>,
) -> Result<Json<BTreeMap<InterfaceKind, Validity>>, Refusal> {
    Ok(Json(conductor.validate(&id).await?))
}

async fn properties(
    State(conductor): State<Conductor>,
    Path(driver): Path<String>,
) -> Result<Json<BTreeMap<&'static str, &'static str>>, Refusal> {
    let found = conductor.properties(&driver);
    found.map(Json).map_err(|error| Refusal::new(StatusCode::NOT_FOUND, error.to_string()))
}
