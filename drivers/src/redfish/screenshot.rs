//! What is on the screen of a machine. Redfish has nothing for that; some makers have an action of their own, and which
//! way a BMC has is known by what it links:
//!
//! | BMC | action | what it is told, and what it answers |
//! |---|---|---|
//! | iDRAC | `DellLCService.ExportServerScreenShot` of a service of its manager | to export: PNG as base64 |
//! | iRMC | `FTSComputerSystem.Screenshot` of the machine | `Make`, and once it allows that, `Save`: JPEG |
//! | Supermicro | `OemDumpService.Collect` of a service of the root | `Create`, and `Download`: JPEG |
//!
//! Facts are from Dell's scripts (`iDRAC-Redfish-Scripting`); for iRMC from `fujitsu-redfish-samples`, Fujitsu's modules for
//! Ansible (which have both names of actions), and reports of users of an iRMC S4; for Supermicro from the recorded service
//! in gofish, which has the kinds of action too, and from tools of users that name the kind of dump.

use super::client::allowable::LIST;
use super::client::error::RedfishError;
use super::client::resource::Resource;
use super::system::System;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use farrier_conductor::interfaces::PictureFormat;
use serde_json::{Value, json};
use tokio::time::{Instant, sleep};

/// The service of an iDRAC for screenshots, as its manager links it, and the action.
const IDRAC_SERVICE: &str = "/Links/Oem/Dell/DellLCService";
const IDRAC_ACTION: &str = "DellLCService.ExportServerScreenShot";
const IDRAC_ANSWER: &str = "/ServerScreenShotFile";

/// The action of an iRMC, the end of the name of its parameter, and its default name.
const IRMC_ACTION: &str = "FTSComputerSystem.Screenshot";
const IRMC_PARAMETER_END: &str = "ScreenshotType";
const IRMC_PARAMETER: &str = "FTSScreenshotType";
/// The values for a picture, the best first: Fujitsu's sample saves it, and users of an iRMC S4 have it as a
/// preview.
const IRMC_READY: &[&str] = &["Save", "Preview"];

/// The service of a Supermicro BMC, as the root links it, the action, and the kind of dump that is a picture.
const SUPERMICRO_SERVICE: &str = "/Oem/Supermicro/DumpService";
const SUPERMICRO_ACTION: &str = "/Actions/#OemDumpService.Collect";
const SUPERMICRO_KIND: &str = "ScreenCapture";

/// The screen of a machine, as PNG or JPEG; nothing where its BMC has none of these ways.
///
/// # Errors
///
/// [`RedfishError`].
pub(super) async fn read(system: &System) -> Result<Option<Vec<u8>>, RedfishError> {
    let seen = system.read().await?;
    // Those that cost no request where they are not come first.
    let mut picture = of_irmc(system, &seen).await?;
    if picture.is_none() {
        picture = of_supermicro(system).await?;
    }
    if picture.is_none() {
        picture = of_idrac(system, &seen).await?;
    }
    match picture {
        Some(picture) if PictureFormat::of(&picture).is_none() => {
            let what = "a screen that it shows as neither PNG nor JPEG";
            Err(system.lacks(what, "look whether the machine is on, and at the BMC's remote console"))
        }
        picture => Ok(picture),
    }
}

async fn of_idrac(system: &System, seen: &Resource) -> Result<Option<Vec<u8>>, RedfishError> {
    for manager in system.managers(seen).await? {
        // One that cannot be read takes nothing from the others.
        let Ok(manager) = system.bmc.get(&manager).await else { continue };
        let Some(service) = manager.link(IDRAC_SERVICE) else { continue };
        let service = system.bmc.get(service).await?;
        let Some(target) = service.action(IDRAC_ACTION) else { continue };
        let answer = system.bmc.ask(target, &json!({"FileType": "ServerScreenShot"})).await?;
        let text = answer.pointer(IDRAC_ANSWER).and_then(Value::as_str).unwrap_or_default();
        let text: String = text.split_whitespace().collect();
        return Ok(Some(STANDARD.decode(text).unwrap_or_default()));
    }
    Ok(None)
}

/// The picture is requested once: users report that repeated requests block an iRMC for minutes.
async fn of_irmc(system: &System, seen: &Resource) -> Result<Option<Vec<u8>>, RedfishError> {
    let Some((action, target)) = irmc_action(seen) else { return Ok(None) };
    if seen.text("/PowerState") == Some("Off") {
        return Err(system.lacks("a machine that is off and shows nothing", "power the machine on"));
    }
    let parameter = irmc_parameter(action);
    system.bmc.post(target, Some(&json!({&parameter: "Make"}))).await?;
    let limit = system.bmc.settings.screen_wait;
    let end = Instant::now() + limit;
    loop {
        sleep(system.bmc.settings.task_poll).await;
        let seen = system.read().await?;
        let Some((action, target)) = irmc_action(&seen) else { return Ok(None) };
        let allowed = system.bmc.allowable(action, &parameter, IRMC_READY).await?;
        let ready = IRMC_READY.iter().find(|one| allowed.is_empty() || allowed.iter().any(|it| it == **one));
        if let Some(ready) = ready {
            return system.bmc.download(target, &json!({&parameter: ready})).await.map(Some);
        }
        if Instant::now() >= end {
            let (bmc, order) = (system.bmc.label(), "to take a screenshot".to_owned());
            return Err(RedfishError::NotDone { bmc, order, says: "that it has none".to_owned(), limit });
        }
    }
}

fn irmc_action(seen: &Resource) -> Option<(&Value, &str)> {
    let action = seen.oem_action(IRMC_ACTION)?;
    Some((action, action["target"].as_str()?))
}

/// The name of the parameter differs between versions of the firmware; the list beside the action has it.
fn irmc_parameter(action: &Value) -> String {
    let mut lists = action.as_object().into_iter().flatten().filter_map(|(name, _)| name.strip_suffix(LIST));
    lists.find(|name| name.ends_with(IRMC_PARAMETER_END)).unwrap_or(IRMC_PARAMETER).to_owned()
}

/// Whether its dumps have pictures among them depends on machine and firmware, and the action says so.
async fn of_supermicro(system: &System) -> Result<Option<Vec<u8>>, RedfishError> {
    let root = system.bmc.root().await?;
    let Some(service) = root.link(SUPERMICRO_SERVICE) else { return Ok(None) };
    let service = system.bmc.get(service).await?;
    let action = service.at(SUPERMICRO_ACTION);
    let Some(target) = action["target"].as_str() else { return Ok(None) };
    let kinds = system.bmc.allowable(action, "DumpType", &[SUPERMICRO_KIND]).await?;
    if !kinds.iter().any(|kind| kind == SUPERMICRO_KIND) {
        return Ok(None);
    }
    let order = |what: &str| json!({"DumpType": SUPERMICRO_KIND, "ActionType": what});
    system.bmc.post(target, Some(&order("Create"))).await?;
    system.bmc.download(target, &order("Download")).await.map(Some)
}
