//! What firmware calls: boot configurations (conductor contract 7.1).

use crate::wire::reply::Refusal;
use axum::Router;
use axum::extract::rejection::PathRejection;
use axum::extract::{Path, State};
use axum::http::header::CONTENT_TYPE;
use axum::response::IntoResponse;
use axum::routing::get;
use farrier_engine::Conductor;

/// The route that firmware calls, ready to be merged with those of agents. It asks for neither a version nor an
/// identity, since firmware has none, and every failure looks the same.
pub fn boot_router(conductor: Conductor) -> Router {
    Router::new().route("/v1/boot/{mac}/{name}", get(config)).with_state(conductor)
}

async fn config(
    State(conductor): State<Conductor>,
    path: Result<Path<(String, String)>, PathRejection>,
) -> Result<impl IntoResponse, Refusal> {
    let Path((mac, name)) = path.map_err(|_| Refusal::not_found())?;
    let text = conductor.ramdisks().boot_config(&mac, &name).await.ok_or_else(Refusal::not_found)?;
    Ok(([(CONTENT_TYPE, "text/plain; charset=utf-8")], text))
}
