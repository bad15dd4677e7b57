//! Its virtual drives: one for USB sticks and one for CDs.

use super::{Inner, Manner, Seen, json_answer, refusal};
use axum::http::StatusCode;
use axum::response::Response;
use farrier_drivers::redfish::quirks::Quirk;
use serde_json::{Value, json};

pub(super) const COLLECTION: &str = "/redfish/v1/Managers/1/VirtualMedia";

/// A drive.
#[derive(Debug, Default)]
pub struct Drive {
    /// What is in it.
    pub image: Option<String>,
    /// What was in it when it was emptied last.
    past: Option<String>,
}

/// The drives.
#[derive(Debug, Default)]
pub struct Drives {
    pub usb: Drive,
    pub cd: Drive,
    /// Whether the machine starts from a drive by itself.
    pub starts_next: bool,
    /// How it tells of an image, where that is in other words.
    pub says: Option<fn(&str) -> String>,
    failures: u32,
}

impl Inner {
    pub(super) fn virtual_media(&mut self, seen: &Seen) -> Option<Response> {
        let is_hidden = self.is_odd(Quirk::MediaOnSystem);
        if seen.path == "/redfish/v1/Managers/1" {
            let media = if is_hidden { Value::Null } else { json!({"@odata.id": COLLECTION}) };
            let manager = json!({
                "VirtualMedia": media, "FirmwareVersion": "iLO 5 v2.44", "DateTime": self.clock(0), "LogServices": {"@odata.id": super::event_log::SERVICES},
            });
            return Some(json_answer(StatusCode::OK, &manager));
        }
        let rest = seen.path.strip_prefix(COLLECTION)?;
        if rest.is_empty() {
            let drives: &[_] = if self.has(Manner::OneDrive) { &["CD"] } else { &["USB", "CD"] };
            let member = |name: &&str| json!({"@odata.id": format!("{COLLECTION}/{name}")});
            let members: Vec<_> = drives.iter().map(member).collect();
            return Some(json_answer(StatusCode::OK, &json!({"Members": members})));
        }
        let (name, action) = rest[1..].split_once('/').unwrap_or((&rest[1..], ""));
        Some(match (seen.method.as_str(), action) {
            ("GET", "") => json_answer(StatusCode::OK, &self.drive(name)),
            ("PATCH", "") if self.is_odd(Quirk::ImageAlone) && seen.body.get("Inserted").is_some() => {
                refusal(StatusCode::BAD_REQUEST, "Base.0.10.PropertyNotWritable", "Inserted")
            }
            ("PATCH", "") if self.is_patched() => self.put(name, &seen.body),
            ("PATCH", "") if self.is_odd(Quirk::MediaByMaker) => self.start_from_drive(&seen.body),
            ("POST", "Actions/VirtualMedia.InsertMedia" | "Actions/VirtualMedia.EjectMedia")
                if self.is_odd(Quirk::MediaByMaker) =>
            {
                refusal(StatusCode::BAD_REQUEST, "iLO.0.10.ActionNotSupported", "not by this firmware")
            }
            ("POST", "Actions/Oem/Hpe/HpeiLOVirtualMedia.InsertVirtualMedia") => {
                match seen.body.as_object().is_some_and(|body| body.keys().eq(["Image"])) {
                    true => self.insert(name, &seen.body),
                    false => refusal(StatusCode::BAD_REQUEST, "Base.0.10.ActionParameterUnknown", "too much"),
                }
            }
            ("POST", "Actions/Oem/Hpe/HpeiLOVirtualMedia.EjectVirtualMedia") => {
                self.put(name, &json!({"Image": null}))
            }
            ("POST", "Actions/VirtualMedia.InsertMedia") => self.insert(name, &seen.body),
            ("POST", "Actions/VirtualMedia.EjectMedia")
                if seen.body.is_null() && self.is_odd(Quirk::EmptyEject) =>
            {
                refusal(StatusCode::UNSUPPORTED_MEDIA_TYPE, "Base.1.4.MalformedJSON", "no body")
            }
            ("POST", "Actions/VirtualMedia.EjectMedia") => self.put(name, &json!({"Image": null})),
            _ => refusal(StatusCode::METHOD_NOT_ALLOWED, "Base.1.0.OperationNotAllowed", "not here"),
        })
    }

    /// Whether its drives have no actions.
    fn is_patched(&self) -> bool {
        self.is_odd(Quirk::MediaByPatch) || self.is_odd(Quirk::ImageAlone)
    }

    fn start_from_drive(&mut self, body: &Value) -> Response {
        self.drives.starts_next = body["Oem"]["Hpe"]["BootOnNextServerReset"] == true;
        json_answer(StatusCode::OK, &json!({}))
    }

    fn slot(&mut self, name: &str) -> &mut Drive {
        if name == "CD" { &mut self.drives.cd } else { &mut self.drives.usb }
    }

    fn drive(&mut self, name: &str) -> Value {
        let types = match name {
            _ if self.has(Manner::DrivesTakeAll) || self.has(Manner::OneDrive) => vec!["CD", "USBStick"],
            "CD" if self.is_odd(Quirk::DvdOnly) => vec!["DVD"],
            "CD" => vec!["CD", "DVD"],
            _ if self.has(Manner::FirstDriveIsBroken) => vec!["CD"],
            _ => vec!["USBStick"],
        };
        let (has_actions, is_stale) = (!self.is_patched(), self.is_odd(Quirk::StaleInserted));
        let (keeps, says) = (self.has(Manner::KeepsImage), self.drives.says);
        let is_hpe = self.is_odd(Quirk::MediaByMaker);
        let Drive { image, past } = self.slot(name);
        let reported = image.clone().or(past.clone().filter(|_| is_stale));
        let kept = reported.clone().or(past.clone().filter(|_| keeps));
        let kept = kept.map(|image| says.map_or(image.clone(), |says| says(&image)));
        let target =
            |action: &str| json!({"target": format!("{COLLECTION}/{name}/Actions/VirtualMedia.{action}")});
        let actions = match has_actions {
            true => {
                json!({"#VirtualMedia.InsertMedia": target("InsertMedia"), "#VirtualMedia.EjectMedia": target("EjectMedia")})
            }
            false => json!({}),
        };
        let makers = |action: &str| json!({"target": format!("{COLLECTION}/{name}/Actions/Oem/Hpe/HpeiLOVirtualMedia.{action}")});
        let own = match is_hpe {
            true => json!({"Hpe": {"Actions": {
                "#HpeiLOVirtualMedia.InsertVirtualMedia": makers("InsertVirtualMedia"),
                "#HpeiLOVirtualMedia.EjectVirtualMedia": makers("EjectVirtualMedia"),
            }}}),
            false => json!({}),
        };
        json!({
            "MediaTypes": types, "Inserted": reported.is_some(), "Image": kept, "Actions": actions, "Oem": own,
        })
    }

    fn insert(&mut self, name: &str, body: &Value) -> Response {
        let is_missing = |property: &str| body[property].as_str().is_none_or(str::is_empty);
        for (quirk, property) in [
            (Quirk::WantsProtocol, "TransferProtocolType"),
            (Quirk::WantsMethod, "TransferMethod"),
            (Quirk::WantsNames, "UserName"),
            (Quirk::WantsNames, "Password"),
        ] {
            if self.is_odd(quirk) && is_missing(property) {
                let message = format!("the action needs {property}");
                return refusal(StatusCode::BAD_REQUEST, "Base.1.8.ActionParameterMissing", &message);
            }
        }
        if self.is_odd(Quirk::FailsToInsert) && self.drives.failures < 2 {
            self.drives.failures += 1;
            return refusal(StatusCode::INTERNAL_SERVER_ERROR, "Base.1.8.InternalError", "try again");
        }
        if self.has(Manner::FirstDriveIsBroken) && name != "CD" {
            return refusal(StatusCode::BAD_REQUEST, "Base.1.8.ActionNotSupported", "broken");
        }
        if self.slot(name).image.is_some() {
            return refusal(StatusCode::BAD_REQUEST, "VirtualMedia.1.0.ResourceInUse", "there is a medium");
        }
        match self.has(Manner::ForgetsInsertions) {
            true => json_answer(StatusCode::OK, &json!({})),
            false => self.put(name, body),
        }
    }

    fn put(&mut self, name: &str, body: &Value) -> Response {
        let drive = self.slot(name);
        let before = std::mem::replace(&mut drive.image, body["Image"].as_str().map(str::to_owned));
        // An empty drive that is emptied again still says what was in it.
        drive.past = before.or(drive.past.take());
        json_answer(StatusCode::OK, &json!({}))
    }
}
