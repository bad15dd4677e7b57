//! What firmware starts from, and interrupts.

use crate::wire::asked::Asked;
use crate::wire::reply::{Refusal, read_json};
use axum::Json;
use axum::body::Bytes;
use axum::extract::{Path, State};
use axum::http::StatusCode;
use farrier_conductor::model::BootDevice;
use farrier_engine::Conductor;
use serde::Deserialize;
use serde_json::{Value, json};

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct BootDeviceRequest {
    boot_device: String,
    #[serde(default)]
    persistent: bool,
}

/// `GET /nodes/{node}/management/boot_device`
pub(super) async fn boot_device(
    State(conductor): State<Conductor>,
    Path(id): Path<String>,
) -> Result<Json<Value>, Refusal> {
    let setting = conductor.machines().boot_device(&id).await?;
    let device = setting.device.map(BootDevice::as_str);
    Ok(Json(json!({"boot_device": device, "persistent": setting.persistent})))
}

/// `PUT /nodes/{node}/management/boot_device`
pub(super) async fn set_boot_device(
    State(conductor): State<Conductor>,
    Path(id): Path<String>,
    body: Bytes,
) -> Result<StatusCode, Refusal> {
    let request: BootDeviceRequest = read_json(&body)?;
    let supported = conductor.machines().boot_devices(&id).await?;
    let device = supported.iter().find(|device| device.as_str() == request.boot_device).ok_or_else(|| {
        let supported: Vec<_> = supported.iter().map(|device| device.as_str()).collect();
        Refusal::bad_request(format!(
            "boot_device {:?} is not supported by the machine; use one of: {}",
            request.boot_device,
            supported.join(", ")
        ))
    })?;
    conductor.machines().set_boot_device(&id, *device, request.persistent).await?;
    Ok(StatusCode::NO_CONTENT)
}

/// `GET /nodes/{node}/management/boot_device/supported`
pub(super) async fn boot_devices(
    State(conductor): State<Conductor>,
    Path(id): Path<String>,
) -> Result<Json<Value>, Refusal> {
    let supported: Vec<_> =
        conductor.machines().boot_devices(&id).await?.into_iter().map(BootDevice::as_str).collect();
    Ok(Json(json!({"supported_boot_devices": supported})))
}

/// `PUT /nodes/{node}/management/inject_nmi`
pub(super) async fn inject_nmi(
    State(conductor): State<Conductor>,
    asked: Asked,
    Path(id): Path<String>,
) -> Result<StatusCode, Refusal> {
    asked.part_since(29)?;
    conductor.machines().inject_nmi(&id).await?;
    Ok(StatusCode::NO_CONTENT)
}
