//! Maintenance: the conductor leaves a machine alone.

use crate::wire::reply::{Refusal, read_json};
use axum::body::Bytes;
use axum::extract::{Path, State};
use axum::http::StatusCode;
use farrier_engine::Conductor;
use serde::{Deserialize, Serialize};

/// Body of `PUT /v1/nodes/{node}/maintenance`.
#[derive(Debug, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct MaintenanceRequest {
    /// Why.
    #[serde(default)]
    pub reason: Option<String>,
}

/// `PUT /nodes/{node}/maintenance`
pub(super) async fn begin(
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

/// `DELETE /nodes/{node}/maintenance`
pub(super) async fn end(
    State(conductor): State<Conductor>,
    Path(id): Path<String>,
) -> Result<StatusCode, Refusal> {
    conductor.set_maintenance(&id, false, None).await?;
    Ok(StatusCode::ACCEPTED)
}
