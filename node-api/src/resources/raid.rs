//! RAID volumes that operators want (contract 1.12).

use crate::wire::asked::Asked;
use crate::wire::reply::{Refusal, read_json};
use axum::body::Bytes;
use axum::extract::{Path, State};
use axum::http::StatusCode;
use axum::routing::{MethodRouter, put};
use farrier_engine::Conductor;

/// First version with RAID volumes.
const SINCE: u16 = 12;

/// The route by which operators say what they want.
pub(crate) fn routes() -> Vec<(&'static str, MethodRouter<Conductor>)> {
    vec![("/nodes/{node}/states/raid", put(set_target))]
}

async fn set_target(
    State(conductor): State<Conductor>,
    asked: Asked,
    Path(id): Path<String>,
    body: Bytes,
) -> Result<StatusCode, Refusal> {
    asked.needs(SINCE, "target_raid_config")?;
    conductor.set_target_raid_config(&id, read_json(&body)?).await?;
    Ok(StatusCode::NO_CONTENT)
}
