//! What is on the screen of a machine. Redfish has nothing for that; iDRAC has an action of Dell's.

use super::error::RedfishError;
use super::system::System;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::json;

/// The service of an iDRAC that tells, as its manager links it, and the action.
const SERVICE: &str = "/Links/Oem/Dell/DellLCService";
const ACTION: &str = "DellLCService.ExportServerScreenShot";
const ANSWER: &str = "/ServerScreenShotFile";
/// What a PNG begins with.
const PNG: &[u8] = b"\x89PNG\r\n\x1a\n";

/// The screen of a machine, as PNG; nothing where its BMC has no such action.
///
/// # Errors
///
/// [`RedfishError`].
pub(super) async fn read(system: &System) -> Result<Option<Vec<u8>>, RedfishError> {
    let seen = system.read().await?;
    for manager in system.managers(&seen).await? {
        let manager = system.bmc.get(&manager).await?;
        let Some(service) = manager.link(SERVICE) else { continue };
        let service = system.bmc.get(service).await?;
        let Some(target) = service.action(ACTION) else { continue };
        let answer = system.bmc.ask(target, &json!({"FileType": "ServerScreenShot"})).await?;
        let text = answer.pointer(ANSWER).and_then(|text| text.as_str()).unwrap_or_default();
        let text: String = text.split_whitespace().collect();
        return match STANDARD.decode(text) {
            Ok(image) if image.starts_with(PNG) => Ok(Some(image)),
            _ => Err(system.lacks("a screen that it tells as no PNG", "look whether the machine is on")),
        };
    }
    Ok(None)
}
