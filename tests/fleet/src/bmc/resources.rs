//! What a BMC tells of its machine, and the orders that change it.

use super::{Bmc, ROOT, change, media, refusal, sessions};
use crate::fault::Kind;
use crate::file::Vendor;
use crate::http::{Answer, json};
use crate::machine::{Holds, Power, Reset};
use hyper::StatusCode;
use serde_json::{Value, json};

const SYSTEMS: &str = "/redfish/v1/Systems";
const MANAGERS: &str = "/redfish/v1/Managers";
const CHASSIS: &str = "/redfish/v1/Chassis";

/// The path of the action that switches a machine.
pub(super) fn reset_action(vendor: Vendor) -> String {
    format!("{}/Actions/ComputerSystem.Reset", vendor.system())
}

fn link(path: &str) -> Value {
    json!({"@odata.id": path})
}

impl Bmc {
    pub(super) fn resource(&self, path: &str) -> Answer {
        let vendor = self.machine().vendor;
        let (system, manager) = (vendor.system(), vendor.manager());
        let body = match path {
            ROOT => json!({
                "@odata.id": ROOT, "RedfishVersion": "1.11.0", "Vendor": vendor.manufacturer(),
                "UUID": self.machine().identity.uuid(), "Systems": link(SYSTEMS), "Managers": link(MANAGERS),
                "Chassis": link(CHASSIS), "SessionService": link(sessions::SERVICE),
                "Links": {"Sessions": link(sessions::COLLECTION)},
            }),
            SYSTEMS => json!({"Members": [link(system)], "Members@odata.count": 1}),
            MANAGERS => json!({"Members": [link(manager)], "Members@odata.count": 1}),
            CHASSIS => json!({"Members": [], "Members@odata.count": 0}),
            sessions::SERVICE => json!({"ServiceEnabled": true, "Sessions": link(sessions::COLLECTION)}),
            path if path == system => self.system(),
            path if path == manager => self.manager(),
            path if path == cards(vendor) => json!({"Members": [link(&format!("{path}/1"))]}),
            path if path.strip_suffix("/1") == Some(&cards(vendor)) => {
                let mac = self.machine().identity.mac();
                json!({"Id": "1", "MACAddress": mac, "PermanentMACAddress": mac, "Status": {"State": "Enabled"}})
            }
            path => match self.medium(path) {
                Some(body) => body,
                None => {
                    return refusal(
                        StatusCode::NOT_FOUND,
                        "Base.1.8.ResourceMissingAtURI",
                        "nothing is here",
                    );
                }
            },
        };
        json(StatusCode::OK, &body)
    }

    fn system(&self) -> Value {
        let machine = self.machine();
        let (vendor, boot) = (machine.vendor, machine.boot());
        let enabled = match boot.holds {
            Holds::Disabled => "Disabled",
            Holds::Once => "Once",
            Holds::Continuous => "Continuous",
        };
        let target = if boot.target.is_empty() { "None" } else { &boot.target };
        let resets = Reset::ALL.map(|(name, _)| name);
        let targets = ["None", "Pxe", vendor.virtual_cd(), "Hdd", "BiosSetup", "UefiHttp"];
        json!({
            "@odata.id": vendor.system(), "Id": "1", "UUID": machine.identity.uuid(),
            "Manufacturer": vendor.manufacturer(), "Model": "Fleet 1", "SerialNumber": machine.identity.serial(),
            "BiosVersion": "1.0", "Status": {"State": "Enabled", "Health": "OK"},
            "PowerState": if machine.power() == Power::On { "On" } else { "Off" },
            "ProcessorSummary": {"Count": 2}, "MemorySummary": {"TotalSystemMemoryGiB": 128},
            "EthernetInterfaces": link(&cards(vendor)),
            "VirtualMedia": if vendor.has_drives_at_system() { link(&media::collection(vendor)) } else { Value::Null },
            "Links": {"ManagedBy": [link(vendor.manager())], "Chassis": []},
            "Boot": {
                "BootSourceOverrideTarget": target, "BootSourceOverrideEnabled": enabled,
                "BootSourceOverrideMode": "UEFI", "HttpBootUri": boot.http_url,
                "BootSourceOverrideTarget@Redfish.AllowableValues": targets,
            },
            "Actions": {"#ComputerSystem.Reset": {
                "target": reset_action(vendor), "ResetType@Redfish.AllowableValues": resets,
            }},
        })
    }

    fn manager(&self) -> Value {
        let vendor = self.machine().vendor;
        let media = match vendor.has_drives_at_system() {
            true => Value::Null,
            false => link(&media::collection(vendor)),
        };
        json!({
            "@odata.id": vendor.manager(), "ManagerType": "BMC", "FirmwareVersion": "1.0", "VirtualMedia": media,
            "Links": {"ManagerForServers": [link(vendor.system())]},
        })
    }

    pub(super) fn change_boot(&self, body: &Value) -> Answer {
        self.carry_out(Kind::ForgetsBootDevice, |machine| {
            machine.change_boot(|now| change(now, &body["Boot"]))
        })
    }

    pub(super) fn reset(&self, body: &Value) -> Answer {
        let kind = body["ResetType"].as_str().unwrap_or_default();
        match Reset::ALL.into_iter().find(|(name, _)| *name == kind) {
            None => refusal(StatusCode::BAD_REQUEST, "Base.1.8.ActionParameterNotSupported", kind),
            Some((_, reset)) => self.carry_out(Kind::ForgetsPower, |machine| machine.reset(reset)),
        }
    }
}

fn cards(vendor: Vendor) -> String {
    format!("{}/EthernetInterfaces", vendor.system())
}
