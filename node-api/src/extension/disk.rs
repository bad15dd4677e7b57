//! The disk of a machine, exported by hand. The response to the order has the secret, once.

use crate::wire::reply::{Refusal, read_json};
use axum::Json;
use axum::body::Bytes;
use axum::extract::{Path, State};
use axum::http::StatusCode;
use farrier_conductor::deploy::disk_export::DiskExport;
use farrier_engine::Conductor;
use serde::{Deserialize, Serialize};

/// Body of `PUT /farrier/v1/nodes/{node}/disk/export`, which may be left out.
#[derive(Debug, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ExportRequest {
    /// Export the disk read-only.
    #[serde(default)]
    pub read_only: bool,
}

/// `PUT /farrier/v1/nodes/{node}/disk/export`
pub(super) async fn export(
    State(conductor): State<Conductor>,
    Path(id): Path<String>,
    body: Bytes,
) -> Result<Json<DiskExport>, Refusal> {
    let ExportRequest { read_only } =
        if body.is_empty() { ExportRequest::default() } else { read_json(&body)? };
    Ok(Json(conductor.machines().export_disk(&id, read_only).await?))
}

/// `DELETE /farrier/v1/nodes/{node}/disk/export`
pub(super) async fn release(
    State(conductor): State<Conductor>,
    Path(id): Path<String>,
) -> Result<StatusCode, Refusal> {
    conductor.machines().release_disk(&id).await?;
    Ok(StatusCode::NO_CONTENT)
}
