//! The states of a node, and its power.

use super::record::seen;
use crate::wire::asked::Asked;
use crate::wire::fields::{NODE, named};
use crate::wire::reply::{Refusal, read_json};
use crate::wire::view::{Shown, View};
use axum::Json;
use axum::body::Bytes;
use axum::extract::{Path, State};
use axum::http::StatusCode;
use farrier_conductor::model::PowerAction;
use farrier_engine::Conductor;
use farrier_engine::records::Order;
use serde::{Deserialize, Serialize};
use std::num::NonZeroU64;
use std::time::Duration;

/// The fields that are states.
const STATES: &[&str] = &[
    "console_enabled",
    "last_error",
    "power_state",
    "target_power_state",
    "provision_state",
    "target_provision_state",
    "provision_updated_at",
    "raid_config",
    "target_raid_config",
    "boot_mode",
    "secure_boot",
];

/// Body of `PUT /v1/nodes/{node}/states/power`.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PowerRequest {
    /// `power on`, `power off`, `rebooting`, `soft power off` or `soft rebooting`.
    pub target: String,
    /// Seconds that it may take.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timeout: Option<NonZeroU64>,
}

/// First version of power actions that the machine's system carries out, and of their `timeout`.
const SOFT: u16 = 27;

/// `GET /nodes/{node}/states`
pub(super) async fn show(
    State(conductor): State<Conductor>,
    asked: Asked,
    Path(id): Path<String>,
) -> Result<Json<Shown>, Refusal> {
    let fields =
        STATES.iter().filter_map(|name| named(NODE, name)).filter(|field| field.is_in(asked.version));
    let view = View::new(&asked, fields.collect());
    seen(&conductor, &view, &id).await
}

/// `PUT /nodes/{node}/states/power`
pub(super) async fn power(
    State(conductor): State<Conductor>,
    asked: Asked,
    Path(id): Path<String>,
    body: Bytes,
) -> Result<StatusCode, Refusal> {
    let request: PowerRequest = read_json(&body)?;
    let Some(action) = PowerAction::named(&request.target) else {
        let known: Vec<_> = PowerAction::ALL.iter().map(|action| action.as_str()).collect();
        let text = format!("target {:?} is not known; use one of: {}", request.target, known.join(", "));
        return Err(Refusal::bad_request(text));
    };
    if action.is_soft() || request.timeout.is_some() {
        asked.needs(SOFT, "a soft power action or a timeout")?;
    }
    let limit = request.timeout.map(|seconds| Duration::from_secs(seconds.get()));
    conductor.order(&id, Order::Power { action, timeout: limit }).await?;
    Ok(StatusCode::ACCEPTED)
}
