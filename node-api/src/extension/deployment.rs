//! A deployment with all of its settings in one request: a refusal leaves the node unchanged.

use crate::wire::reply::{Refusal, read_json};
use axum::Json;
use axum::body::Bytes;
use axum::extract::{Path, State};
use axum::http::StatusCode;
use farrier_conductor::model::InstanceInfo;
use farrier_engine::Conductor;
use farrier_engine::Order;
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// Body of `PUT /farrier/v1/nodes/{node}/deployment`.
#[derive(Debug, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Deployment {
    /// The deployment with its config drive. A node with an instance is rebuilt.
    pub instance_info: InstanceInfo,
    /// Steps beside those that run by themselves, or in their place.
    #[serde(default)]
    pub deploy_steps: Vec<Value>,
}

/// The answer to it.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct DeploymentOrdered {
    /// Sequence number of its first event.
    pub events_since: u64,
}

/// `PUT /farrier/v1/nodes/{node}/deployment`
pub(super) async fn order(
    State(conductor): State<Conductor>,
    Path(id): Path<String>,
    body: Bytes,
) -> Result<(StatusCode, Json<DeploymentOrdered>), Refusal> {
    let Deployment { instance_info, deploy_steps } = read_json(&body)?;
    let node = conductor.find(&id).await?.node.uuid;
    let events_since = conductor.events().next_sequence(node);
    let order = Order::deploy_with_steps(instance_info, &deploy_steps);
    conductor.order(&node.to_string(), order).await.map_err(Refusal::of_verb)?;
    Ok((StatusCode::ACCEPTED, Json(DeploymentOrdered { events_since })))
}
