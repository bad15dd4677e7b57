//! The serial console of a machine, for its users.

use crate::wire::reply::{Refusal, read_json};
use axum::Json;
use axum::body::Bytes;
use axum::extract::{Extension, Path, State};
use axum::http::StatusCode;
use farrier_access::{Identity, sees_consoles};
use farrier_engine::Conductor;
use serde::Deserialize;
use serde_json::{Value, json};

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Switch {
    enabled: bool,
}

/// `GET /nodes/{node}/states/console`. Only roles that may read consoles get its URL.
pub(super) async fn show(
    State(conductor): State<Conductor>,
    identity: Option<Extension<Identity>>,
    Path(id): Path<String>,
) -> Result<Json<Value>, Refusal> {
    let access = conductor.machines().console_access(&id).await?;
    let is_enabled = access.is_some();
    let access = access.filter(|_| sees_consoles(identity.as_deref()));
    Ok(Json(json!({"console_enabled": is_enabled, "console_info": access})))
}

/// `PUT /nodes/{node}/states/console`
pub(super) async fn switch(
    State(conductor): State<Conductor>,
    Path(id): Path<String>,
    body: Bytes,
) -> Result<StatusCode, Refusal> {
    let Switch { enabled } = read_json(&body)?;
    conductor.machines().set_console(&id, enabled).await?;
    Ok(StatusCode::ACCEPTED)
}
