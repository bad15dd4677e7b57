//! RAID volumes that operators want (contract 1.12).

use super::asked::Asked;
use super::reply::{Refusal, read_json};
use crate::conductor::Conductor;
use axum::body::Bytes;
use axum::extract::{Path, State};
use axum::http::StatusCode;
use axum::routing::{MethodRouter, put};

/// First version with RAID volumes.
const SINCE: u16 = 12;

/// The route by which operators say what they want.
pub(super) fn routes() -> Vec<(&'static str, MethodRouter<Conductor>)> {
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
