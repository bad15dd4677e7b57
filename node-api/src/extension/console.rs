//! What is kept of the serial console of a machine, and typing at it. It may tell secrets, so readers get nothing of it.

use crate::wire::reply::Refusal;
use axum::Json;
use axum::body::Bytes;
use axum::extract::{Extension, Path, Query, State};
use axum::http::StatusCode;
use farrier_access::{Identity, sees_consoles};
use farrier_engine::Conductor;
use farrier_engine::evidence::console_log::ConsolePart;
use serde::Deserialize;

/// Where to begin.
#[derive(Debug, Deserialize)]
pub(super) struct From {
    from: Option<u64>,
}

/// `GET /farrier/v1/nodes/{node}/console`
pub(super) async fn part(
    State(conductor): State<Conductor>,
    identity: Option<Extension<Identity>>,
    Path(id): Path<String>,
    Query(From { from }): Query<From>,
) -> Result<Json<ConsolePart>, Refusal> {
    if !sees_consoles(identity.as_deref()) {
        let reason = "consoles may tell secrets: reading them needs admin";
        return Err(Refusal::new(StatusCode::FORBIDDEN, reason));
    }
    Ok(Json(conductor.machines().console_part(&id, from).await?))
}

/// `POST /farrier/v1/nodes/{node}/console`
pub(super) async fn typed(
    State(conductor): State<Conductor>,
    Path(id): Path<String>,
    body: Bytes,
) -> Result<StatusCode, Refusal> {
    conductor.machines().write_console(&id, &body).await?;
    Ok(StatusCode::NO_CONTENT)
}
