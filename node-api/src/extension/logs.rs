//! The logs of ramdisks that were kept. They may tell secrets of the instance, so readers get the list alone.

use crate::wire::reply::Refusal;
use axum::Json;
use axum::extract::{Extension, Path, State};
use axum::http::StatusCode;
use axum::http::header::CONTENT_TYPE;
use axum::response::IntoResponse;
use farrier_access::{Identity, Role};
use farrier_conductor::interfaces::PictureFormat;
use farrier_engine::Conductor;
use serde_json::{Value, json};

/// `GET /farrier/v1/nodes/{node}/logs`
pub(super) async fn list(
    State(conductor): State<Conductor>,
    Path(id): Path<String>,
) -> Result<Json<Value>, Refusal> {
    Ok(Json(json!({"logs": conductor.evidence().logs(&id).await?})))
}

/// `GET /farrier/v1/nodes/{node}/logs/{name}`
pub(super) async fn archive(
    State(conductor): State<Conductor>,
    identity: Option<Extension<Identity>>,
    Path((id, name)): Path<(String, String)>,
) -> Result<impl IntoResponse, Refusal> {
    if identity.is_some_and(|Extension(identity)| identity.role != Role::Admin) {
        return Err(Refusal::new(StatusCode::FORBIDDEN, "logs may tell secrets: reading them needs admin"));
    }
    let unknown = || Refusal::new(StatusCode::NOT_FOUND, format!("node {id} has no logs {name:?}"));
    let archive = conductor.evidence().log(&id, &name).await?.ok_or_else(unknown)?;
    let content_type = PictureFormat::of_file(&name).map_or("application/gzip", PictureFormat::media_type);
    Ok(([(CONTENT_TYPE, content_type)], archive))
}
