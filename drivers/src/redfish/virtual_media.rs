//! Virtual drives (section 9.5).
//!
//! A drive is emptied before something is put into it: most BMCs refuse a second medium, and some skip one whose URL they
//! have already (F55). What counts is what the drive says when it is read again, whatever the BMC has answered to an order.
//! The least is sent first; what the BMC misses is added then (F56). A drive that cannot be read, for want of a licence, hides
//! no other.

mod drives;
mod image;

use self::drives::{Drives, drives};
use self::image::is_same;
use super::client::error::RedfishError;
use super::client::message::Refusal;
use super::client::resource::{MakersAction, Resource};
use super::quirks::Quirk;
use super::system::System;
use farrier_conductor::interfaces::VirtualMedium;
use farrier_conductor::model::BootDevice;
use reqwest::StatusCode;
use serde_json::{Value, json};
use std::time::Duration;
use tokio::time::{Instant, sleep};

/// How often an insertion is tried that the BMC itself fails at.
const MOST_FAILURES: u32 = 3;

/// Kinds of media, by what firmware takes them for.
const KINDS: &[(BootDevice, &str)] = &[
    (BootDevice::Cdrom, "CD"),
    (BootDevice::Cdrom, "DVD"),
    (BootDevice::Floppy, "Floppy"),
    (BootDevice::Floppy, "USBStick"),
];

/// What some BMCs miss in an insertion, with the quirk; the value is made by [`missing`].
const OPTIONAL: &[(&str, Quirk)] = &[
    ("TransferProtocolType", Quirk::WantsProtocol),
    ("TransferMethod", Quirk::WantsMethod),
    ("UserName", Quirk::WantsNames),
    ("Password", Quirk::WantsNames),
];

/// What is in the drives.
///
/// # Errors
///
/// [`RedfishError`].
pub(super) async fn media(system: &System) -> Result<Vec<VirtualMedium>, RedfishError> {
    let kinds = |drive: &Resource| {
        let mut kinds: Vec<_> = drive.words("/MediaTypes").into_iter().filter_map(kind).collect();
        kinds.dedup();
        kinds
    };
    let medium = |drive: &Resource| VirtualMedium {
        image: drive.text("/Image").map(str::to_owned),
        inserted: is_inserted(drive),
        media_types: kinds(drive),
    };
    Ok(drives(system).await?.seen.iter().map(medium).collect())
}

/// Puts the medium at a URL into the first drive that takes it.
///
/// # Errors
///
/// [`RedfishError`]; where several drives failed, that of the last.
pub(super) async fn insert(system: &System, device: BootDevice, url: &str) -> Result<(), RedfishError> {
    let mut drives = drives(system).await?;
    if !drives.seen.iter().any(|drive| takes(system, drive, device)) {
        drives.read_again(system).await;
    }
    let Drives { seen: drives, mut failure, .. } = drives;
    let mut those: Vec<_> = drives.iter().filter(|drive| takes(system, drive, device)).collect();
    if device == BootDevice::Floppy {
        // In a drive that takes both may be what the machine starts from.
        those.sort_by_key(|drive| is_inserted(drive));
    }
    for drive in those {
        match replace(system, drive, url).await {
            Err(error) if may_be_of_drive(&error) => failure = Some(error),
            inserted => return inserted,
        }
        // What comes late is not to be in two drives.
        let emptied = match system.bmc.get(drive.path()).await {
            Ok(drive) => eject_from(system, &drive).await,
            Err(error) => Err(error),
        };
        if let Err(error) = emptied {
            tracing::debug!("{error}");
        }
    }
    Err(failure.unwrap_or_else(|| {
        let kinds: Vec<_> = drives.iter().flat_map(|drive| drive.words("/MediaTypes")).collect();
        let what = format!("no virtual drive for a {device}, but for: {}", kinds.join(", "));
        system.lacks(&what, "choose another boot interface, or look at the BMC's licence")
    }))
}

async fn replace(system: &System, drive: &Resource, url: &str) -> Result<(), RedfishError> {
    eject_from(system, drive).await?;
    insert_into(system, drive, url).await
}

/// Whether what failed with one drive may work with another.
fn may_be_of_drive(error: &RedfishError) -> bool {
    matches!(
        error,
        RedfishError::Refused { .. }
            | RedfishError::Nonsense { .. }
            | RedfishError::NotDone { .. }
            | RedfishError::TaskFailed { .. }
            | RedfishError::Lacks { .. }
    )
}

/// Empties the drives for these devices, or all.
///
/// # Errors
///
/// [`RedfishError`] of the last that failed; the others are empty.
pub(super) async fn eject(system: &System, devices: &[BootDevice]) -> Result<(), RedfishError> {
    let mut drives = drives(system).await?;
    // A medium would stay in one that could not be read once.
    drives.read_again(system).await;
    if let Some(failure) = &drives.failure {
        tracing::warn!("virtual drive skipped: {failure}");
    }
    let mut ejected = Ok(());
    for drive in drives.seen {
        if devices.is_empty() || devices.iter().any(|device| takes(system, &drive, *device)) {
            ejected = eject_from(system, &drive).await.and(ejected);
        }
    }
    ejected
}

fn kind(word: &str) -> Option<BootDevice> {
    KINDS.iter().find(|(_, name)| *name == word).map(|(device, _)| *device)
}

fn takes(system: &System, drive: &Resource, device: BootDevice) -> bool {
    let is_left_out = |word: &str| word == "DVD" && !system.bmc.minds(Quirk::DvdOnly);
    drive.words("/MediaTypes").into_iter().any(|word| kind(word) == Some(device) && !is_left_out(word))
}

fn is_inserted(drive: &Resource) -> bool {
    drive.at("/Inserted").as_bool().unwrap_or_else(|| drive.text("/Image").is_some())
}

async fn eject_from(system: &System, drive: &Resource) -> Result<(), RedfishError> {
    if !is_inserted(drive) && drive.text("/Image").is_none() {
        return Ok(());
    }
    match change(system, drive, None, |now| !is_inserted(now)).await {
        // It was taken out, and the BMC says what was before: what comes next will tell.
        Err(RedfishError::NotDone { .. }) if system.bmc.minds(Quirk::StaleInserted) => Ok(()),
        ejected => ejected,
    }
}

/// Orders that a drive is emptied, or has the medium at a URL, and reads the drive until that is so. A BMC that takes the order and does not carry it out gets
/// it once more: some forget one.
async fn change(
    system: &System,
    drive: &Resource,
    url: Option<&str>,
    is_made: impl Fn(&Resource) -> bool,
) -> Result<(), RedfishError> {
    let mut undone = None;
    loop {
        let ordered = match url {
            Some(url) => order_insertion(system, drive, url).await,
            None => order_ejection(system, drive).await,
        };
        let limit = limit(system, &ordered);
        match (proven(system, drive, limit, &is_made).await, ordered) {
            (Ok(()), _) => return Ok(()),
            // A second order may be refused because the first one is carried out after all, and is not shown.
            (Err(_), Err(error)) => return Err(undone.unwrap_or(error)),
            (Err(error @ RedfishError::NotDone { .. }), Ok(())) if undone.is_none() => {
                tracing::warn!("the order is given again: {error}");
                undone = Some(error);
            }
            (unproven, Ok(())) => return unproven,
        }
    }
}

async fn order_ejection(system: &System, drive: &Resource) -> Result<(), RedfishError> {
    let bmc = &system.bmc;
    let ways = Ways::of(system, drive, "VirtualMedia.EjectMedia", "VirtualMedia.EjectVirtualMedia");
    match ways {
        Ways { schema: Some(target), makers } => match (eject_by(system, target).await, makers) {
            (Err(RedfishError::Refused { .. }), Some(action)) => {
                bmc.post(action.target, Some(&json!({}))).await
            }
            (ejected, _) => ejected,
        },
        Ways { makers: Some(action), .. } => bmc.post(action.target, Some(&json!({}))).await,
        _ if bmc.minds(Quirk::MediaByPatch) => patch(system, drive, None).await,
        _ => Err(system.lacks("a virtual drive that lets nothing out", "look at the BMC's licence")),
    }
}

/// The time for a drive to reach the ordered state, which may also come later.
fn limit(system: &System, ordered: &Result<(), RedfishError>) -> Duration {
    let settings = &system.bmc.settings;
    match ordered {
        Ok(()) => settings.media_wait,
        Err(error) if error.is_about_password() => Duration::ZERO,
        Err(_) => settings.refusal_pause.min(settings.media_wait),
    }
}

async fn eject_by(system: &System, target: &str) -> Result<(), RedfishError> {
    match system.bmc.post(target, None).await {
        Err(error) if wants_body(&error) && system.bmc.minds(Quirk::EmptyEject) => {
            system.bmc.post(target, Some(&json!({}))).await
        }
        ejected => ejected,
    }
}

/// The actions by which something can be done to a drive.
struct Ways<'a> {
    schema: Option<&'a str>,
    makers: Option<MakersAction<'a>>,
}

impl<'a> Ways<'a> {
    fn of(system: &System, drive: &'a Resource, schema: &str, makers: &str) -> Self {
        let makers = drive.makers_action(makers).filter(|_| system.bmc.minds(Quirk::MediaByMaker));
        Self { schema: drive.action(schema), makers }
    }
}

/// Changes a drive as a resource.
async fn patch(system: &System, drive: &Resource, url: Option<&str>) -> Result<(), RedfishError> {
    let mut body = json!({"Image": url, "Inserted": url.is_some()});
    if url.is_some() {
        body["WriteProtected"] = json!(true);
    }
    let patched = match system.bmc.patch(drive.path(), &body).await {
        Err(RedfishError::Refused { refusal, .. })
            if refusal.names("Inserted") && system.bmc.minds(Quirk::ImageAlone) =>
        {
            system.bmc.patch(drive.path(), &json!({"Image": url})).await
        }
        patched => patched,
    };
    patched.map(drop)
}

fn wants_body(error: &RedfishError) -> bool {
    let wants = [StatusCode::BAD_REQUEST, StatusCode::UNSUPPORTED_MEDIA_TYPE];
    error.refusal().is_some_and(|refusal| wants.contains(&refusal.status()))
}

async fn insert_into(system: &System, drive: &Resource, url: &str) -> Result<(), RedfishError> {
    // What a drive says that keeps the last image is no proof of the next one with such a name.
    let before = system.bmc.get(drive.path()).await.ok();
    let before = before.as_ref().and_then(|before| before.text("/Image"));
    let is_in = |now: &Resource| {
        let image = now.text("/Image");
        is_inserted(now)
            && image.is_none_or(|image| image == url || before != Some(image) && is_same(image, url))
    };
    change(system, drive, Some(url), is_in).await
}

async fn order_insertion(system: &System, drive: &Resource, url: &str) -> Result<(), RedfishError> {
    let ways = Ways::of(system, drive, "VirtualMedia.InsertMedia", "VirtualMedia.InsertVirtualMedia");
    match ways {
        Ways { schema: Some(target), makers } => match (order(system, target, url).await, makers) {
            (Err(RedfishError::Refused { .. }), Some(action)) => by_maker(system, drive, action, url).await,
            (inserted, _) => inserted,
        },
        Ways { makers: Some(action), .. } => by_maker(system, drive, action, url).await,
        _ if system.bmc.minds(Quirk::MediaByPatch) => patch(system, drive, Some(url)).await,
        _ => Err(system.lacks("a virtual drive that takes nothing", "look at the BMC's licence")),
    }
}

/// Inserts by the maker's own action. Where that is needed, the override of the schema may lead nowhere, so the drive is told by
/// itself to be started from once; where it will not, the override decides.
async fn by_maker(
    system: &System,
    drive: &Resource,
    action: MakersAction<'_>,
    url: &str,
) -> Result<(), RedfishError> {
    let MakersAction { maker, target } = action;
    system.bmc.post(target, Some(&json!({"Image": url}))).await?;
    let start = json!({"Oem": {maker: {"BootOnNextServerReset": true}}});
    if let Err(error) = system.bmc.patch(drive.path(), &start).await {
        tracing::debug!("{error}");
    }
    Ok(())
}

/// Asks for an insertion, with what the BMC misses in it, and again where the BMC itself fails.
async fn order(system: &System, target: &str, url: &str) -> Result<(), RedfishError> {
    let bmc = &system.bmc;
    let (mut body, mut failures) = (json!({"Image": url}), 0);
    loop {
        let error = match bmc.post(target, Some(&body)).await {
            Ok(()) => return Ok(()),
            Err(error) => error,
        };
        let added = error.refusal().is_some_and(|refusal| complete(system, &mut body, refusal, url));
        let is_failure = error.refusal().is_some_and(|refusal| refusal.status().is_server_error());
        if is_failure && failures < MOST_FAILURES && bmc.minds(Quirk::FailsToInsert) {
            failures += 1;
            sleep(bmc.settings.busy_pause).await;
        } else if !added {
            return Err(error);
        }
    }
}

/// Adds what the BMC misses; false where that is nothing more.
fn complete(system: &System, body: &mut Value, refusal: &Refusal, url: &str) -> bool {
    let mut added = false;
    for (property, quirk) in OPTIONAL {
        if refusal.names(property) && body.get(property).is_none() && system.bmc.minds(*quirk) {
            body[*property] = json!(missing(property, url));
            added = true;
        }
    }
    added
}

/// What stands for a property that does not matter. An empty name is refused by those that want one.
fn missing(property: &str, url: &str) -> &'static str {
    match property {
        "TransferProtocolType" if url.starts_with("https:") => "HTTPS",
        "TransferProtocolType" => "HTTP",
        "TransferMethod" => "Stream",
        _ => "none",
    }
}

/// Reads a drive until it is as it should be. One reading that fails proves nothing.
async fn proven(
    system: &System,
    drive: &Resource,
    limit: Duration,
    is_so: impl Fn(&Resource) -> bool,
) -> Result<(), RedfishError> {
    let start = Instant::now();
    loop {
        let now = system.bmc.get(drive.path()).await;
        if now.as_ref().is_ok_and(&is_so) {
            return Ok(());
        }
        if start.elapsed() >= limit || now.as_ref().is_err_and(RedfishError::is_about_password) {
            let now = now?;
            let image = now.text("/Image").unwrap_or("nothing");
            return Err(RedfishError::NotDone {
                bmc: system.bmc.label(),
                order: format!("to change the medium in {}", drive.path()),
                says: format!("that {image} is {}", if is_inserted(&now) { "in" } else { "out" }),
                limit,
            });
        }
        sleep(system.bmc.settings.power_poll).await;
    }
}
