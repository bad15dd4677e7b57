//! Virtual drives of a machine, and what is in them.

use crate::wire::asked::Asked;
use crate::wire::reply::{Refusal, read_json};
use axum::Json;
use axum::body::Bytes;
use axum::extract::{Extension, Path, State};
use axum::http::StatusCode;
use farrier_access::{Identity, sees_consoles};
use farrier_conductor::model::BootDevice;
use farrier_engine::Conductor;
use farrier_protocol::lookup::MASKED;
use serde::Deserialize;
use serde_json::{Value, json};

/// First versions: of filling and emptying drives, and of looking into them.
pub(super) const CHANGES: u16 = 89;
const LOOKS: u16 = 93;

/// Drives that may be virtual.
const DRIVES: [BootDevice; 3] = [BootDevice::Cdrom, BootDevice::Disk, BootDevice::Floppy];

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Medium {
    device_type: String,
    image_url: String,
    #[serde(default)]
    image_download_source: Option<String>,
}

/// `GET /nodes/{node}/vmedia`. Whoever has the URL of a medium may read it, with the token of an agent in it, so readers
/// are told no URL.
pub(super) async fn list(
    State(conductor): State<Conductor>,
    asked: Asked,
    identity: Option<Extension<Identity>>,
    Path(id): Path<String>,
) -> Result<Json<Value>, Refusal> {
    asked.part_since(LOOKS)?;
    let mut drives = json!(conductor.machines().virtual_media(&id).await?);
    if !sees_consoles(identity.as_deref()) {
        for image in drives.as_array_mut().into_iter().flatten().filter_map(|drive| drive.get_mut("image")) {
            *image = if image.is_string() { MASKED.into() } else { Value::Null };
        }
    }
    Ok(Json(drives))
}

/// `POST /nodes/{node}/vmedia`
pub(super) async fn attach(
    State(conductor): State<Conductor>,
    asked: Asked,
    Path(id): Path<String>,
    body: Bytes,
) -> Result<StatusCode, Refusal> {
    asked.part_since(CHANGES)?;
    let Medium { device_type, image_url, image_download_source } = read_json(&body)?;
    if let Some(source) = image_download_source.filter(|source| source != "http") {
        let text = format!("image_download_source: {source:?} is not offered; give a URL, and http");
        return Err(Refusal::bad_request(text));
    }
    if !["http://", "https://"].iter().any(|scheme| image_url.starts_with(scheme)) {
        return Err(Refusal::bad_request(format!("image_url: {image_url:?} must be a URL of HTTP")));
    }
    conductor.machines().attach_virtual_media(&id, drive(&device_type)?, &image_url).await?;
    Ok(StatusCode::NO_CONTENT)
}

/// `DELETE /nodes/{node}/vmedia`
pub(super) async fn detach(
    State(conductor): State<Conductor>,
    mut asked: Asked,
    Path(id): Path<String>,
) -> Result<StatusCode, Refusal> {
    asked.part_since(CHANGES)?;
    let words = asked.take("device_types", CHANGES)?;
    asked.done()?;
    let words = words.iter().flat_map(|words| words.split(',')).map(str::trim);
    let drives: Vec<_> = words.map(drive).collect::<Result<_, _>>()?;
    conductor.machines().detach_virtual_media(&id, &drives).await?;
    Ok(StatusCode::NO_CONTENT)
}

fn drive(word: &str) -> Result<BootDevice, Refusal> {
    DRIVES.into_iter().find(|drive| drive.as_str() == word).ok_or_else(|| {
        let known = DRIVES.map(BootDevice::as_str).join(", ");
        Refusal::bad_request(format!("device type {word:?} is not known; use one of: {known}"))
    })
}
