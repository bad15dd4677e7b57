//! What firmware starts from, set by an override of its own order (section 9.4).
//!
//! BMCs need different requests, and some accept an order and do another thing. So the least is sent first, and
//! then more; what counts is what the machine has when it is read again (F24, F57).

use super::client::bmc::Changed;
use super::client::error::RedfishError;
use super::client::resource::Resource;
use super::quirks::Quirk;
use super::system::System;
use farrier_conductor::model::{BootDevice, BootMode};
use serde_json::{Map, Value, json};
use std::time::Duration;

/// Names of devices, the usual one of each first.
const TARGETS: &[(BootDevice, &str)] = &[
    (BootDevice::Pxe, "Pxe"),
    (BootDevice::Disk, "Hdd"),
    (BootDevice::Cdrom, "Cd"),
    (BootDevice::Cdrom, "UsbCd"),
    (BootDevice::Bios, "BiosSetup"),
    (BootDevice::Uefihttp, "UefiHttp"),
    (BootDevice::Floppy, "Floppy"),
];

const TARGET: &str = "BootSourceOverrideTarget";
const ENABLED: &str = "BootSourceOverrideEnabled";
const MODE: &str = "BootSourceOverrideMode";
const HTTP_URL: &str = "HttpBootUri";

/// How long an override holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Holds {
    /// For the next start.
    Once,
    /// For all.
    Continuous,
    /// Not at all.
    Disabled,
}

impl Holds {
    fn as_str(self) -> &'static str {
        match self {
            Self::Once => "Once",
            Self::Continuous => "Continuous",
            Self::Disabled => "Disabled",
        }
    }

    pub(super) fn read(system: &Resource) -> Option<Self> {
        let text = system.text(&format!("/Boot/{ENABLED}"))?;
        [Self::Once, Self::Continuous, Self::Disabled].into_iter().find(|one| is(Some(text), one.as_str()))
    }
}

/// The allowable boot devices of a machine, if it lists them.
pub(super) fn device(system: &Resource) -> Option<BootDevice> {
    let target = system.text(&format!("/Boot/{TARGET}"))?;
    TARGETS.iter().find(|(_, name)| is(Some(target), name)).map(|(device, _)| *device)
}

/// Whether a BMC says this word. Some write their words with other capital letters than the schema.
fn is(said: Option<&str>, word: &str) -> bool {
    said.is_some_and(|said| said.eq_ignore_ascii_case(word))
}

/// The devices that there are names for.
pub(super) fn devices() -> Vec<BootDevice> {
    let mut devices: Vec<_> = TARGETS.iter().map(|(device, _)| *device).collect();
    devices.dedup();
    devices
}

/// How a machine starts.
pub(super) fn mode(system: &Resource) -> Option<BootMode> {
    let said = system.text(&format!("/Boot/{MODE}"));
    let modes = [("UEFI", BootMode::Uefi), ("Legacy", BootMode::Bios)];
    modes.into_iter().find(|(name, _)| is(said, name)).map(|(_, mode)| mode)
}

/// The override of a machine: the pending one if there is one.
///
/// # Errors
///
/// [`RedfishError`].
pub(super) async fn read(system: &System) -> Result<Resource, RedfishError> {
    let seen = system.read().await?;
    place(system, &seen, TARGET).await
}

/// Sets the boot device of a machine, and returns how long it holds.
///
/// # Errors
///
/// [`RedfishError`]; of several ways that failed, that of the last.
pub(super) async fn set(
    system: &System,
    device: BootDevice,
    persistent: bool,
) -> Result<Holds, RedfishError> {
    let seen = system.read().await?;
    let place = place(system, &seen, TARGET).await?;
    let is_left_to_firmware = persistent
        && device == BootDevice::Disk
        && mode(&seen) != Some(BootMode::Bios)
        && system.has_quirk(Quirk::FirmwareOrder, &seen).await;
    if is_left_to_firmware {
        let none = Wish { target: "None", holds: Holds::Disabled, mode: None };
        return change(system, &place, none.least(&place), &none).await;
    }
    let target = target(system, &seen, device).await?;
    let holds = if persistent { Holds::Continuous } else { Holds::Once };
    let wish = Wish { target, holds, mode: place.text(&format!("/Boot/{MODE}")) };
    let mut failure = match change(system, &place, wish.least(&place), &wish).await {
        Err(error) if may_be_for_want_of_more(&error) => error,
        done => return done,
    };
    let minds_partial = system.bmc.minds(Quirk::CompleteBoot) || system.bmc.minds(Quirk::ModeFallsBack);
    let complete = minds_partial.then_some(holds);
    for holds in complete.into_iter().chain(other(system, holds)) {
        let way = Wish { holds, ..wish };
        let boot = if minds_partial { way.complete() } else { way.least(&place) };
        match change(system, &place, boot, &way).await {
            Err(error) if may_be_for_want_of_more(&error) => failure = error,
            done => return done,
        }
    }
    Err(failure)
}

/// Sets the URL of the HTTP boot of a machine; without one the firmware asks its network.
///
/// # Errors
///
/// [`RedfishError`].
pub(super) async fn set_http_url(system: &System, url: Option<&str>) -> Result<(), RedfishError> {
    let seen = system.read().await?;
    let place = place(system, &seen, HTTP_URL).await?;
    let has = |seen: &Resource| seen.text(&format!("/Boot/{HTTP_URL}")).filter(|url| !url.is_empty()) == url;
    if has(&place) {
        return Ok(());
    }
    system.bmc.patch(place.path(), &json!({"Boot": {HTTP_URL: url}})).await?;
    let now = system.bmc.get(place.path()).await?;
    match has(&now) {
        true => Ok(()),
        false => Err(not_done(system, &format!("to boot from {}", url.unwrap_or("no URL")), &now)),
    }
}

/// Has a machine start in a mode.
///
/// # Errors
///
/// [`RedfishError`].
pub(super) async fn set_mode(system: &System, mode: BootMode) -> Result<(), RedfishError> {
    let seen = system.read().await?;
    let name = match mode {
        BootMode::Uefi => "UEFI",
        BootMode::Bios => "Legacy",
    };
    let place = place(system, &seen, MODE).await?;
    // What is to be counts, and where that is nothing what is so.
    if [&place, &seen].into_iter().find_map(|one| one.text(&format!("/Boot/{MODE}"))) == Some(name) {
        return Ok(());
    }
    let failure = match change_mode(system, &place, json!({MODE: name}), name).await {
        Err(error) if may_be_for_want_of_more(&error) => error,
        done => return done,
    };
    if system.bmc.minds(Quirk::ModeInFirmware)
        && let Some(settings) = firmware_settings(system, &seen).await?
    {
        return change_firmware_mode(system, &settings, mode).await;
    }
    if !system.bmc.minds(Quirk::CompleteBoot) {
        return Err(failure);
    }
    let key =
        |key: &str, otherwise: &str| place.text(&format!("/Boot/{key}")).unwrap_or(otherwise).to_owned();
    let complete = json!({TARGET: key(TARGET, "None"), ENABLED: key(ENABLED, "Disabled"), MODE: name});
    change_mode(system, &place, complete, name).await
}

async fn change_mode(system: &System, place: &Resource, boot: Value, name: &str) -> Result<(), RedfishError> {
    let is_so = |now: &Resource| is(now.text(&format!("/Boot/{MODE}")), name);
    match system.bmc.change(place.path(), &json!({"Boot": boot}), is_so).await? {
        Changed::Done => Ok(()),
        Changed::Not(now) => Err(not_done(system, &format!("to start by {name}"), &now)),
    }
}

/// The pending settings of the firmware, where the boot mode is one of them.
async fn firmware_settings(system: &System, seen: &Resource) -> Result<Option<Resource>, RedfishError> {
    let Some(bios) = seen.link("/Bios").or(seen.link("/Oem/Hp/links/BIOS")) else { return Ok(None) };
    let bios = system.bmc.get(bios).await?;
    let settings = match bios.link("/@Redfish.Settings/SettingsObject") {
        Some(settings) => system.bmc.get(settings).await?,
        None => bios,
    };
    Ok(firmware_mode(&settings).is_some().then_some(settings))
}

/// The boot mode in the settings of the firmware, and whether it stands among attributes, as since iLO 5.
fn firmware_mode(settings: &Resource) -> Option<(&str, bool)> {
    let attribute = settings.text("/Attributes/BootMode").map(|mode| (mode, true));
    attribute.or(settings.text("/BootMode").map(|mode| (mode, false)))
}

async fn change_firmware_mode(
    system: &System,
    settings: &Resource,
    mode: BootMode,
) -> Result<(), RedfishError> {
    let name = match mode {
        BootMode::Uefi => "Uefi",
        BootMode::Bios => "LegacyBios",
    };
    let Some((now, is_attribute)) = firmware_mode(settings) else { return Ok(()) };
    if now == name {
        return Ok(());
    }
    let value = json!({"BootMode": name});
    let body = if is_attribute { json!({"Attributes": value}) } else { value };
    let is_so = |now: &Resource| firmware_mode(now).is_some_and(|(now, _)| now == name);
    match system.bmc.change(settings.path(), &body, is_so).await? {
        Changed::Done => Ok(()),
        Changed::Not(now) => Err(not_done(system, &format!("to start by {name}"), &now)),
    }
}

/// The fallback durations of an override, if a machine lacks the wanted one.
fn other(system: &System, holds: Holds) -> Option<Holds> {
    match holds {
        Holds::Continuous if system.bmc.minds(Quirk::OnceOnly) => Some(Holds::Once),
        Holds::Once if system.bmc.minds(Quirk::ContinuousOnly) => Some(Holds::Continuous),
        _ => None,
    }
}

/// What is wanted of the override.
#[derive(Clone, Copy)]
struct Wish<'a> {
    target: &'a str,
    holds: Holds,
    /// The mode, which stays.
    mode: Option<&'a str>,
}

impl Wish<'_> {
    /// What has to be said at least: some BMCs refuse what is so already.
    fn least(&self, seen: &Resource) -> Value {
        let mut boot = Map::from_iter([(ENABLED.to_owned(), json!(self.holds.as_str()))]);
        if Holds::read(seen) == Some(self.holds) {
            boot.clear();
        }
        if self.holds != Holds::Disabled {
            boot.insert(TARGET.to_owned(), json!(self.target));
        }
        Value::Object(boot)
    }

    fn complete(&self) -> Value {
        let mut boot = json!({TARGET: self.target, ENABLED: self.holds.as_str()});
        if let Some(mode) = self.mode {
            boot[MODE] = json!(mode);
        }
        boot
    }

    /// Whether a machine has it.
    fn is_met_by(&self, system: &System, seen: &Resource) -> bool {
        let is_mode = self.mode.is_none_or(|mode| is(seen.text(&format!("/Boot/{MODE}")), mode));
        let is_target = is(seen.text(&format!("/Boot/{TARGET}")), self.target);
        let holds = Holds::read(seen) == Some(self.holds);
        holds
            && (is_target || self.holds == Holds::Disabled)
            && (is_mode || !system.bmc.minds(Quirk::ModeFallsBack))
    }
}

/// The resource for the change of a property: some BMCs have a separate resource for pending settings, and many of these have a part of
/// it alone.
async fn place(system: &System, seen: &Resource, property: &str) -> Result<Resource, RedfishError> {
    if let Some(settings) = seen.link("/@Redfish.Settings/SettingsObject") {
        let settings = system.bmc.get(settings).await?;
        if settings.has(&format!("/Boot/{property}")) {
            return Ok(settings);
        }
    }
    Ok(seen.clone())
}

async fn change(
    system: &System,
    place: &Resource,
    boot: Value,
    wish: &Wish<'_>,
) -> Result<Holds, RedfishError> {
    let is_so = |now: &Resource| wish.is_met_by(system, now);
    let changed = match boot.as_object().is_some_and(Map::is_empty) {
        true => Changed::Not(system.bmc.get(place.path()).await?),
        false => system.bmc.change(place.path(), &json!({"Boot": boot}), is_so).await?,
    };
    match changed {
        Changed::Not(now) if !is_so(&now) => {
            Err(not_done(system, &format!("to start from {} ({})", wish.target, wish.holds.as_str()), &now))
        }
        Changed::Done | Changed::Not(_) => Ok(wish.holds),
    }
}

/// Whether more may help than was said: the BMC found it wanting, or did something else.
fn may_be_for_want_of_more(error: &RedfishError) -> bool {
    match error {
        RedfishError::NotDone { .. } => true,
        RedfishError::Refused { refusal, .. } => !refusal.is_for_now() && !refusal.is_out_of_service(),
        _ => false,
    }
}

/// The name of a device at this machine.
async fn target<'a>(
    system: &System,
    seen: &'a Resource,
    device: BootDevice,
) -> Result<&'a str, RedfishError> {
    let allowed = seen.words(&format!("/Boot/{TARGET}@Redfish.AllowableValues"));
    let mut names: Vec<_> = TARGETS.iter().filter(|(one, _)| *one == device).map(|(_, name)| *name).collect();
    if system.has_quirk(Quirk::UsbCd, seen).await {
        names.reverse();
    } else {
        names.truncate(1);
    }
    let found = names.into_iter().find(|name| allowed.is_empty() || allowed.contains(name));
    found.ok_or_else(|| {
        let what = format!("a machine that cannot start from {device}, but from {}", allowed.join(", "));
        system.lacks(&what, "choose another boot interface or boot device")
    })
}

fn not_done(system: &System, order: &str, now: &Resource) -> RedfishError {
    let says = [TARGET, ENABLED, MODE].map(|key| now.text(&format!("/Boot/{key}")).unwrap_or("nothing"));
    RedfishError::NotDone {
        bmc: system.bmc.label(),
        order: order.to_owned(),
        says: says.join(", "),
        limit: Duration::ZERO,
    }
}
