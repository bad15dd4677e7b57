//! Virtual interfaces of an instance, as its user attaches them to the ports of a node.

use crate::wire::asked::Asked;
use crate::wire::reply::{Refusal, read_json};
use axum::Json;
use axum::body::Bytes;
use axum::extract::{Path, State};
use axum::http::StatusCode;
use farrier_engine::Conductor;
use serde_json::{Map, Value, json};

/// First version with virtual interfaces.
pub(super) const SINCE: u16 = 28;

/// First version in which the port may be named.
const WITH_PORT: u16 = 67;

/// `GET /nodes/{node}/vifs`
pub(super) async fn list(
    State(conductor): State<Conductor>,
    asked: Asked,
    Path(id): Path<String>,
) -> Result<Json<Value>, Refusal> {
    asked.part_since(SINCE)?;
    let vifs: Vec<_> =
        conductor.machines().vifs(&id).await?.into_iter().map(|id| json!({"id": id})).collect();
    Ok(Json(json!({"vifs": vifs})))
}

/// `POST /nodes/{node}/vifs`
pub(super) async fn attach(
    State(conductor): State<Conductor>,
    asked: Asked,
    Path(id): Path<String>,
    body: Bytes,
) -> Result<StatusCode, Refusal> {
    asked.part_since(SINCE)?;
    let vif: Map<String, Value> = read_json(&body)?;
    if vif.get("id").and_then(Value::as_str).is_none_or(str::is_empty) {
        return Err(Refusal::bad_request("id: is missing; give the identity of the virtual interface"));
    }
    if vif.contains_key("port_uuid") {
        asked.needs(WITH_PORT, "port_uuid")?;
    }
    conductor.machines().attach_vif(&id, &vif).await?;
    Ok(StatusCode::NO_CONTENT)
}

/// `DELETE /nodes/{node}/vifs/{vif}`
pub(super) async fn detach(
    State(conductor): State<Conductor>,
    asked: Asked,
    Path((id, vif)): Path<(String, String)>,
) -> Result<StatusCode, Refusal> {
    asked.part_since(SINCE)?;
    conductor.machines().detach_vif(&id, &vif).await?;
    Ok(StatusCode::NO_CONTENT)
}
