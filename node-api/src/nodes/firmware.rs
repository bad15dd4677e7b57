//! How firmware starts a machine, and what it is set to.

use crate::wire::asked::Asked;
use crate::wire::fields::flag;
use crate::wire::reply::{Refusal, read_json};
use axum::Json;
use axum::body::Bytes;
use axum::extract::{Path, State};
use axum::http::StatusCode;
use farrier_conductor::interfaces::FirmwareVersion;
use farrier_conductor::model::BootMode;
use farrier_engine::Conductor;
use serde::Deserialize;
use serde_json::{Value, json};

/// First versions: of changing how a machine starts, of settings, of versions of firmware.
const CHANGES: u16 = 76;
pub(super) const SETTINGS: u16 = 40;
pub(super) const VERSIONS: u16 = 86;

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Target {
    target: Value,
}

/// `PUT /nodes/{node}/states/boot_mode`
pub(super) async fn set_boot_mode(
    State(conductor): State<Conductor>,
    asked: Asked,
    Path(id): Path<String>,
    body: Bytes,
) -> Result<StatusCode, Refusal> {
    asked.part_since(CHANGES)?;
    let Target { target } = read_json(&body)?;
    let mode = [BootMode::Bios, BootMode::Uefi].into_iter().find(|mode| target == mode.as_str());
    let mode = mode.ok_or_else(|| Refusal::bad_request(format!("target: {target} must be bios or uefi")))?;
    conductor.machines().set_boot_mode(&id, mode).await?;
    Ok(StatusCode::ACCEPTED)
}

/// `PUT /nodes/{node}/states/secure_boot`
pub(super) async fn set_secure_boot(
    State(conductor): State<Conductor>,
    asked: Asked,
    Path(id): Path<String>,
    body: Bytes,
) -> Result<StatusCode, Refusal> {
    asked.part_since(CHANGES)?;
    let Target { target } = read_json(&body)?;
    let on = target.as_bool().or_else(|| flag(target.as_str()?));
    let on = on.ok_or_else(|| Refusal::bad_request(format!("target: {target} must be true or false")))?;
    conductor.machines().set_secure_boot(&id, on).await?;
    Ok(StatusCode::ACCEPTED)
}

/// `GET /nodes/{node}/bios`: no interface supports BIOS settings.
pub(super) async fn settings(
    State(conductor): State<Conductor>,
    asked: Asked,
    Path(id): Path<String>,
) -> Result<Json<Value>, Refusal> {
    asked.part_since(SETTINGS)?;
    conductor.find(&id).await?;
    Ok(Json(json!({"bios": []})))
}

/// `GET /nodes/{node}/bios/{setting}`
pub(super) async fn setting(
    State(conductor): State<Conductor>,
    asked: Asked,
    Path((id, name)): Path<(String, String)>,
) -> Result<Json<Value>, Refusal> {
    asked.part_since(SETTINGS)?;
    let node = conductor.find(&id).await?.node.label();
    let text = format!("the firmware of node {node} has no setting {name:?} that is known");
    Err(Refusal::new(StatusCode::NOT_FOUND, text))
}

/// `GET /nodes/{node}/firmware`: as the BMC reports now. No interface updates firmware, so each version is the initial one.
pub(super) async fn versions(
    State(conductor): State<Conductor>,
    asked: Asked,
    Path(id): Path<String>,
) -> Result<Json<Value>, Refusal> {
    asked.part_since(VERSIONS)?;
    let told = conductor.machines().firmware_versions(&id).await?;
    let components = told.into_iter().map(|FirmwareVersion { component, version }| {
        json!({
            "component": component,
            "initial_version": version,
            "current_version": version,
            "last_version_flashed": null,
        })
    });
    Ok(Json(json!({"firmware": components.collect::<Vec<_>>()})))
}
