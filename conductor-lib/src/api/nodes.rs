//! What operators call: nodes, their power and provision state, and their events.

use super::reply::{Refusal, fallback, read_json, wrong_method};
use crate::conductor::Conductor;
use crate::error::Error;
use crate::hardware_type::Validity;
use crate::model::{InstanceInfo, InterfaceKind, NewNode, Node, PowerAction};
use axum::body::Bytes;
use axum::extract::{DefaultBodyLimit, Path, Query, State};
use axum::http::StatusCode;
use axum::routing::{get, put};
use axum::{Json, Router};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::num::NonZeroU64;
use std::time::Duration;

/// Longest request body, in bytes: a config drive of 64 MiB as base64, and some more.
const BODY_LIMIT: usize = 96 << 20;

/// Body of `PUT /v1/nodes/{node}/states/provision`.
#[derive(Debug, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ProvisionRequest {
    /// A verb of section 1.2: one of [`TARGETS`].
    pub target: String,
    /// What to deploy: `image_source`, `image_checksum`, `image_disk_format`, `configdrive`,
    /// `root_device`.
    #[serde(default)]
    pub instance_info: InstanceInfo,
    /// Steps of a cleaning by hand, in their order.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub clean_steps: Option<Vec<Value>>,
    /// Steps of a deployment beside those that run by themselves, or in their place.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub deploy_steps: Option<Vec<Value>>,
    /// Steps of a service, in their order.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub service_steps: Option<Vec<Value>>,
    /// The password of a rescue.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rescue_password: Option<String>,
    /// Whether cleaning by hand, or service, runs without the ramdisk.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub disable_ramdisk: Option<bool>,
}

/// The verbs that a provision request may have.
pub const TARGETS: &[&str] = &[
    "active", "rebuild", "deleted", "manage", "provide", "clean", "service", "rescue", "unrescue", "adopt",
    "abort", "unhold", "retry",
];

impl ProvisionRequest {
    /// Refuses an argument that does not belong to the verb.
    fn check(&self) -> Result<(), Refusal> {
        let target = self.target.as_str();
        if !TARGETS.contains(&target) {
            let text = format!("target {target:?} is not known; use one of: {}", TARGETS.join(", "));
            return Err(Refusal::bad_request(text));
        }
        for (argument, is_given, targets) in [
            ("instance_info", !self.instance_info.is_empty(), ["active", "rebuild"]),
            ("deploy_steps", self.deploy_steps.is_some(), ["active", "rebuild"]),
            ("clean_steps", self.clean_steps.is_some(), ["clean"; 2]),
            ("rescue_password", self.rescue_password.is_some(), ["rescue"; 2]),
            ("service_steps", self.service_steps.is_some(), ["service"; 2]),
            ("disable_ramdisk", self.disable_ramdisk.is_some(), ["clean", "service"]),
        ] {
            if is_given && !targets.contains(&target) {
                let text = format!("{argument} does not belong to target {target:?}, but to {}", targets[0]);
                return Err(Refusal::bad_request(text));
            }
        }
        Ok(())
    }
}

/// Body of `PUT /v1/nodes/{node}/maintenance`.
#[derive(Debug, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct MaintenanceRequest {
    /// Why.
    #[serde(default)]
    pub reason: Option<String>,
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
    /// `power on`, `power off`, `rebooting`, `soft power off` or `soft rebooting`.
    pub target: String,
    /// Seconds that it may take.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timeout: Option<NonZeroU64>,
}

#[derive(Debug, Deserialize)]
struct EventQuery {
    #[serde(default)]
    since: u64,
}

/// The routes that operators call. They ask nobody who they are: put them behind an
/// [authorization](super::authorization::authorized), or serve them on a loopback address.
pub fn nodes_router(conductor: Conductor) -> Router {
    Router::new()
        .route("/v1/nodes", get(list).post(create))
        .route("/v1/nodes/{node}", get(show).delete(delete))
        .route("/v1/nodes/{node}/states/provision", put(provision))
        .route("/v1/nodes/{node}/states/power", put(power))
        .route("/v1/nodes/{node}/maintenance", put(begin_maintenance).delete(end_maintenance))
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
    request.check()?;
    let events_since = carry_out(&conductor, &id, request).await.map_err(Refusal::of_verb)?;
    Ok((StatusCode::ACCEPTED, Json(ProvisionReply { events_since })))
}

async fn carry_out(conductor: &Conductor, id: &str, request: ProvisionRequest) -> Result<u64, Error> {
    let without_ramdisk = request.disable_ramdisk.unwrap_or_default();
    match request.target.as_str() {
        "deleted" => conductor.undeploy(id).await?,
        "manage" => conductor.manage(id).await?,
        "provide" => conductor.provide(id).await?,
        "clean" => {
            conductor.clean(id, &request.clean_steps.unwrap_or_default(), without_ramdisk).await?;
        }
        "service" => {
            conductor.service(id, &request.service_steps.unwrap_or_default(), without_ramdisk).await?;
        }
        "rescue" => conductor.rescue(id, &request.rescue_password.unwrap_or_default()).await?,
        "unrescue" => conductor.unrescue(id).await?,
        "adopt" => conductor.adopt(id).await?,
        "retry" => conductor.retry(id).await?,
        "abort" => conductor.abort(id).await?,
        "unhold" => conductor.unhold(id).await?,
        _ => {
            let steps = request.deploy_steps.unwrap_or_default();
            return conductor.deploy_with_steps(id, request.instance_info, &steps).await;
        }
    }
    Ok(0)
}

async fn begin_maintenance(
    State(conductor): State<Conductor>,
    Path(id): Path<String>,
    body: Bytes,
) -> Result<StatusCode, Refusal> {
    let request = match body.is_empty() {
        true => MaintenanceRequest::default(),
        false => read_json(&body)?,
    };
    conductor.set_maintenance(&id, true, request.reason).await?;
    Ok(StatusCode::ACCEPTED)
}

async fn end_maintenance(
    State(conductor): State<Conductor>,
    Path(id): Path<String>,
) -> Result<StatusCode, Refusal> {
    conductor.set_maintenance(&id, false, None).await?;
    Ok(StatusCode::ACCEPTED)
}

async fn power(
    State(conductor): State<Conductor>,
    Path(id): Path<String>,
    body: Bytes,
) -> Result<StatusCode, Refusal> {
    let request: PowerRequest = read_json(&body)?;
    let Some(action) = PowerAction::named(&request.target) else {
        let known: Vec<_> = PowerAction::ALL.iter().map(|action| action.as_str()).collect();
        let text = format!("target {:?} is not known; use one of: {}", request.target, known.join(", "));
        return Err(Refusal::bad_request(text));
    };
    let limit = request.timeout.map(|seconds| Duration::from_secs(seconds.get()));
    conductor.set_power_within(&id, action, limit).await?;
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
