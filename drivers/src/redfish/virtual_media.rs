//! Virtual drives (section 9.5).
//!
//! A drive is emptied before something is put into it: most BMCs refuse a second medium, and some skip one whose URL they
//! have already (F55). What counts is what the drive says when it is read again. The least is sent first; what the BMC
//! misses is added then (F56).

use super::error::RedfishError;
use super::message::Refusal;
use super::quirks::Quirk;
use super::resource::{MakersAction, Resource};
use super::system::System;
use farrier_conductor::interfaces::VirtualMedium;
use farrier_conductor::model::BootDevice;
use reqwest::StatusCode;
use serde_json::{Value, json};
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
    Ok(drives(system).await?.iter().map(medium).collect())
}

/// Puts the medium at a URL into the first drive that takes it.
///
/// # Errors
///
/// [`RedfishError`]; where several drives failed, that of the last.
pub(super) async fn insert(system: &System, device: BootDevice, url: &str) -> Result<(), RedfishError> {
    let drives = drives(system).await?;
    let mut failure = None;
    let mut those: Vec<_> = drives.iter().filter(|drive| takes(system, drive, device)).collect();
    if device == BootDevice::Floppy {
        // In a drive that takes both may be what the machine starts from.
        those.sort_by_key(|drive| is_inserted(drive));
    }
    for drive in those {
        eject_from(system, drive).await?;
        match insert_into(system, drive, url).await {
            Err(error @ RedfishError::Refused { .. }) => failure = Some(error),
            inserted => return inserted,
        }
    }
    Err(failure.unwrap_or_else(|| {
        let kinds: Vec<_> = drives.iter().flat_map(|drive| drive.words("/MediaTypes")).collect();
        let what = format!("no virtual drive for a {device}, but for: {}", kinds.join(", "));
        system.lacks(&what, "choose another boot interface, or look at the BMC's licence")
    }))
}

/// Empties the drives for these devices, or all.
///
/// # Errors
///
/// [`RedfishError`] of the last that failed; the others are empty.
pub(super) async fn eject(system: &System, devices: &[BootDevice]) -> Result<(), RedfishError> {
    let mut ejected = Ok(());
    for drive in drives(system).await? {
        if devices.is_empty() || devices.iter().any(|device| takes(system, &drive, *device)) {
            ejected = eject_from(system, &drive).await.and(ejected);
        }
    }
    ejected
}

/// The drives of the machine, or else those of what manages it.
async fn drives(system: &System) -> Result<Vec<Resource>, RedfishError> {
    let seen = system.read().await?;
    let own = seen.link("/VirtualMedia").filter(|_| system.bmc.minds(Quirk::MediaOnSystem));
    let drives = drives_in(system, own).await?;
    if !drives.is_empty() {
        return Ok(drives);
    }
    for manager in system.managers(&seen).await? {
        let manager = system.bmc.get(&manager).await?;
        let drives = drives_in(system, manager.link("/VirtualMedia")).await?;
        if !drives.is_empty() {
            return Ok(drives);
        }
    }
    Ok(Vec::new())
}

async fn drives_in(system: &System, place: Option<&str>) -> Result<Vec<Resource>, RedfishError> {
    let Some(place) = place else { return Ok(Vec::new()) };
    let mut drives = Vec::new();
    for drive in system.bmc.members(place).await? {
        drives.push(system.bmc.get(&drive).await?);
    }
    Ok(drives)
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
    let bmc = &system.bmc;
    let ways = Ways::of(system, drive, "VirtualMedia.EjectMedia", "VirtualMedia.EjectVirtualMedia");
    match ways {
        Ways { schema: Some(target), makers } => match (eject_by(system, target).await, makers) {
            (Err(RedfishError::Refused { .. }), Some(action)) => {
                bmc.post(action.target, Some(&json!({}))).await?;
            }
            (ejected, _) => ejected?,
        },
        Ways { makers: Some(action), .. } => bmc.post(action.target, Some(&json!({}))).await?,
        _ if bmc.minds(Quirk::MediaByPatch) => patch(system, drive, None).await?,
        _ => return Err(system.lacks("a virtual drive that lets nothing out", "look at the BMC's licence")),
    }
    match proven(system, drive, |now| !is_inserted(now)).await {
        // It was taken out, and the BMC says what was before: what comes next will tell.
        Err(RedfishError::NotDone { .. }) if bmc.minds(Quirk::StaleInserted) => Ok(()),
        proven => proven,
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
    match system.bmc.patch(drive.path(), &body).await {
        Err(RedfishError::Refused { refusal, .. })
            if refusal.names("Inserted") && system.bmc.minds(Quirk::ImageAlone) =>
        {
            system.bmc.patch(drive.path(), &json!({"Image": url})).await
        }
        patched => patched,
    }
}

fn wants_body(error: &RedfishError) -> bool {
    let wants = [StatusCode::BAD_REQUEST, StatusCode::UNSUPPORTED_MEDIA_TYPE];
    error.refusal().is_some_and(|refusal| wants.contains(&refusal.status()))
}

async fn insert_into(system: &System, drive: &Resource, url: &str) -> Result<(), RedfishError> {
    let ways = Ways::of(system, drive, "VirtualMedia.InsertMedia", "VirtualMedia.InsertVirtualMedia");
    match ways {
        Ways { schema: Some(target), makers } => match (order(system, target, url).await, makers) {
            (Err(RedfishError::Refused { .. }), Some(action)) => by_maker(system, drive, action, url).await?,
            (inserted, _) => inserted?,
        },
        Ways { makers: Some(action), .. } => by_maker(system, drive, action, url).await?,
        _ if system.bmc.minds(Quirk::MediaByPatch) => patch(system, drive, Some(url)).await?,
        _ => return Err(system.lacks("a virtual drive that takes nothing", "look at the BMC's licence")),
    }
    proven(system, drive, |now| is_inserted(now) && now.text("/Image").is_none_or(|image| image == url)).await
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

/// Reads a drive until it is as it should be.
async fn proven(
    system: &System,
    drive: &Resource,
    is_so: impl Fn(&Resource) -> bool,
) -> Result<(), RedfishError> {
    let settings = &system.bmc.settings;
    let start = Instant::now();
    loop {
        let now = system.bmc.get(drive.path()).await?;
        if is_so(&now) {
            return Ok(());
        }
        if start.elapsed() >= settings.media_wait {
            let image = now.text("/Image").unwrap_or("nothing");
            return Err(RedfishError::NotDone {
                bmc: system.bmc.label(),
                told: format!("to change the medium in {}", drive.path()),
                says: format!("that {image} is {}", if is_inserted(&now) { "in" } else { "out" }),
                limit: settings.media_wait,
            });
        }
        sleep(settings.power_poll).await;
    }
}
