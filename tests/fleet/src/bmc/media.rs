//! Virtual drives: one for CDs and one for sticks.

use super::{Bmc, refusal};
use crate::fault::Kind;
use crate::file::Vendor;
use crate::http::Answer;
use crate::machine::Drive;
use hyper::StatusCode;
use serde_json::{Value, json};

/// The drives, with their names and what they take.
const DRIVES: [(Drive, &str, [&str; 2]); 2] =
    [(Drive::Cd, "CD", ["CD", "DVD"]), (Drive::Usb, "RemovableDisk", ["USBStick", "Floppy"])];

/// The path of the drives.
pub(super) fn collection(vendor: Vendor) -> String {
    let owner = if vendor.has_drives_at_system() { vendor.system() } else { vendor.manager() };
    format!("{owner}/VirtualMedia")
}

impl Bmc {
    /// The drives, or one of them; nothing at another path.
    pub(super) fn medium(&self, path: &str) -> Option<Value> {
        let collection = collection(self.machine().vendor);
        if path == collection {
            let members = DRIVES.map(|(_, name, _)| json!({"@odata.id": format!("{collection}/{name}")}));
            return Some(json!({"Members": members, "Members@odata.count": DRIVES.len()}));
        }
        let name = path.strip_prefix(&collection)?.strip_prefix('/')?;
        let (drive, _, types) = *DRIVES.iter().find(|(_, one, _)| *one == name)?;
        let medium = self.machine().medium(drive);
        let target = |action: &str| json!({"target": format!("{path}/Actions/VirtualMedia.{action}")});
        Some(json!({
            "@odata.id": path, "Id": name, "MediaTypes": types, "Inserted": medium.is_some(), "Image": medium,
            "ConnectedVia": if medium.is_some() { "URI" } else { "NotConnected" }, "WriteProtected": true,
            "Actions": {
                "#VirtualMedia.InsertMedia": target("InsertMedia"),
                "#VirtualMedia.EjectMedia": target("EjectMedia"),
            },
        }))
    }

    pub(super) fn media_action(&self, path: &str, body: &Value) -> Answer {
        let vendor = self.machine().vendor;
        let collection = collection(vendor);
        let found = DRIVES.into_iter().find_map(|(drive, name, _)| {
            let action = path.strip_prefix(&format!("{collection}/{name}/Actions/VirtualMedia."))?;
            Some((drive, action))
        });
        match found {
            Some((drive, "InsertMedia")) => self.insert(drive, body),
            Some((_, "EjectMedia")) if body.is_null() && vendor.wants_eject_body() => {
                refusal(StatusCode::BAD_REQUEST, "Base.1.8.MalformedJSON", "the request has no body")
            }
            Some((drive, "EjectMedia")) => self.put(drive, None),
            _ => refusal(StatusCode::METHOD_NOT_ALLOWED, "Base.1.8.OperationNotAllowed", "not here"),
        }
    }

    fn insert(&self, drive: Drive, body: &Value) -> Answer {
        let machine = self.machine();
        if machine.vendor.wants_protocol() && !body["TransferProtocolType"].is_string() {
            let message = "the action needs TransferProtocolType";
            return refusal(StatusCode::BAD_REQUEST, "Base.1.8.ActionParameterMissing", message);
        }
        if machine.medium(drive).is_some() {
            let message = "there is a medium in the drive";
            return refusal(StatusCode::BAD_REQUEST, "Base.1.8.ResourceInUse", message);
        }
        match body["Image"].as_str() {
            Some(image) => self.put(drive, Some(image.to_owned())),
            None => refusal(StatusCode::BAD_REQUEST, "Base.1.8.ActionParameterMissing", "Image"),
        }
    }

    fn put(&self, drive: Drive, medium: Option<String>) -> Answer {
        self.carry_out(Kind::ForgetsMedium, |machine| machine.put_medium(drive, medium))
    }
}
