//! Its resources.

use super::{Inner, Manner, PASSWORD, SYSTEM, Seen, json_answer, refusal};
use axum::http::StatusCode;
use axum::response::Response;
use farrier_drivers::redfish::quirks::Quirk;
use serde_json::{Value, json};

const RESET: &str = "/redfish/v1/Systems/1/Actions/ComputerSystem.Reset";
const FIRMWARE: &str = "/redfish/v1/Systems/1/Bios";
const FIRMWARE_SETTINGS: &str = "/redfish/v1/Systems/1/Bios/Settings";
const SECURE_BOOT: &str = "/redfish/v1/Systems/1/SecureBoot";
const CHASSIS: &str = "/redfish/v1/Chassis/1";
const TASK: &str = "/redfish/v1/TaskService/TaskMonitors/1";

impl Inner {
    pub(super) fn resource(&mut self, seen: &Seen) -> Response {
        let path = seen.path.trim_end_matches('/');
        match (seen.method.as_str(), path) {
            ("GET", SYSTEM) => self.versioned(|inner| inner.system()),
            ("PATCH", SYSTEM) => self.change(seen, Self::change_boot),
            ("GET", SECURE_BOOT) => {
                let on = self.machine.secure_boot;
                self.versioned(|_| json!({"@odata.id": SECURE_BOOT, "SecureBootEnable": on}))
            }
            ("PATCH", SECURE_BOOT) => self.change(seen, |inner, body| {
                inner.machine.secure_boot = body["SecureBootEnable"].as_bool().unwrap();
                None
            }),
            ("PATCH", FIRMWARE_SETTINGS) => {
                self.machine.pending_mode = seen.body["Attributes"]["BootMode"].as_str().map(str::to_owned);
                json_answer(StatusCode::OK, &json!({}))
            }
            ("POST", RESET) => self.reset(seen),
            ("GET", TASK) => self.task(),
            ("PATCH", CHASSIS) => {
                // This one's light is out of order.
                let wanted = seen.body["IndicatorLED"].as_str().unwrap();
                self.machine.led =
                    if wanted == "Blinking" { self.machine.led.clone() } else { wanted.to_owned() };
                json_answer(StatusCode::OK, &json!({}))
            }
            ("GET", path) => match self.plain(path) {
                Some(body) => json_answer(StatusCode::OK, &body),
                None => refusal(StatusCode::NOT_FOUND, "Base.1.0.ResourceMissingAtURI", "nothing here"),
            },
            _ => refusal(StatusCode::METHOD_NOT_ALLOWED, "Base.1.0.OperationNotAllowed", "not here"),
        }
    }

    fn plain(&self, path: &str) -> Option<Value> {
        let link = |path: &str| json!({"@odata.id": path});
        Some(match path {
            "/redfish/v1" => json!({
                "Vendor": self.machine.bmc_maker, "Systems": link("/redfish/v1/Systems"), "Managers": link("/redfish/v1/Managers"),
                "Links": {"Sessions": link("/redfish/v1/SessionService/Sessions")},
            }),
            "/redfish/v1/Systems" if self.has(Manner::TwoMachines) => {
                json!({"Members": [link(SYSTEM), link("/redfish/v1/Systems/2")]})
            }
            "/redfish/v1/Systems" => json!({"Members": [link(SYSTEM)]}),
            "/redfish/v1/Systems/1/EthernetInterfaces" => {
                json!({"Members": [link("/redfish/v1/nic/1"), link("/redfish/v1/nic/gone"), link("/redfish/v1/nic/2")]})
            }
            "/redfish/v1/nic/1" => {
                json!({"MACAddress": "52:54:00:00:00:09", "PermanentMACAddress": "52:54:00:00:00:01"})
            }
            "/redfish/v1/nic/2" => json!({"MACAddress": "52:54:00:00:00:02"}),
            FIRMWARE => json!({
                "Attributes": {"BootMode": "Uefi"},
                "@Redfish.Settings": {"SettingsObject": link(FIRMWARE_SETTINGS)},
            }),
            FIRMWARE_SETTINGS => {
                json!({"Attributes": {"BootMode": self.machine.pending_mode.as_deref().unwrap_or("Uefi")}})
            }
            CHASSIS => json!({
                "Id": "1", "IndicatorLED": self.machine.led, "Thermal": link("/redfish/v1/Chassis/1/Thermal"), "Power": link("/redfish/v1/Chassis/1/Gone"),
            }),
            "/redfish/v1/Chassis/1/Thermal" => json!({
                "Fans": [{"MemberId": "0", "Reading": 2100, "ReadingUnits": "RPM", "Status": {"Health": "OK"}}],
                "Temperatures": [{"MemberId": "3", "ReadingCelsius": 21.5}],
            }),
            _ => return None,
        })
    }

    fn system(&mut self) -> Value {
        let silent = self.has(Manner::SilentPower);
        let on_system = match self.is_odd(Quirk::MediaOnSystem) {
            true => json!({"@odata.id": super::virtual_media::COLLECTION}),
            false => Value::Null,
        };
        let firmware = match self.is_odd(Quirk::ModeInFirmware) {
            true => json!({"@odata.id": FIRMWARE}),
            false => Value::Null,
        };
        let power = self.machine.read_power();
        let boot = &self.machine.boot;
        let mut targets = vec!["None", "Pxe", "Cd", "UsbCd", "Hdd", "BiosSetup"];
        targets.extend(self.has(Manner::BootsByHttp).then_some("UefiHttp"));
        json!({
            "@odata.id": SYSTEM,
            "Manufacturer": self.machine.maker,
            "Model": self.machine.model,
            "BiosVersion": "U30 v2.1",
            "LocationIndicatorActive": self.machine.is_located,
            "PowerState": if silent { Value::Null } else { power.into() },
            "SecureBoot": {"@odata.id": SECURE_BOOT},
            "EthernetInterfaces": {"@odata.id": "/redfish/v1/Systems/1/EthernetInterfaces"},
            "VirtualMedia": on_system,
            "Bios": firmware,
            "Links": {
                "Chassis": [{"@odata.id": "/redfish/v1/Chassis/1"}],
                "ManagedBy": [{"@odata.id": "/redfish/v1/Managers/1"}],
            },
            "Boot": {
                "BootSourceOverrideTarget": boot.target,
                "BootSourceOverrideEnabled": boot.enabled,
                "BootSourceOverrideMode": boot.mode,
                "HttpBootUri": boot.http_url,
                "BootSourceOverrideTarget@Redfish.AllowableValues": targets,
            },
            "Actions": {"#ComputerSystem.Reset": {
                "target": RESET,
                "ResetType@Redfish.AllowableValues": ["On", "ForceOff", "GracefulShutdown", "ForceRestart", "Nmi"],
            }},
        })
    }

    fn versioned(&mut self, body: impl FnOnce(&mut Self) -> Value) -> Response {
        let body = body(self);
        let mut answer = json_answer(StatusCode::OK, &body);
        let etag = match self.has(Manner::EmptyEtags) {
            true => String::new(),
            false => format!("W/\"{}\"", self.machine.version),
        };
        answer.headers_mut().insert("etag", etag.parse().unwrap());
        answer
    }

    fn change(
        &mut self,
        seen: &Seen,
        change: impl FnOnce(&mut Self, &Value) -> Option<Response>,
    ) -> Response {
        let version = seen.headers.get("if-match").map(|version| version.to_str().unwrap().to_owned());
        if self.has(Manner::EmptyEtags) && version.is_some() {
            return refusal(StatusCode::BAD_REQUEST, "Base.1.0.GeneralError", "no version");
        }
        let expected = match self.is_odd(Quirk::StrongEtags) {
            true => format!("\"{}\"", self.machine.version),
            false => format!("W/\"{}\"", self.machine.version),
        };
        let is_wrong = |version: String| self.is_odd(Quirk::WrongEtags) || version != expected;
        let is_missing = version.is_none() && self.is_odd(Quirk::StrongEtags);
        if is_missing || version.is_some_and(is_wrong) {
            return refusal(
                StatusCode::PRECONDITION_FAILED,
                "Base.1.0.PreconditionFailed",
                "changed meanwhile",
            );
        }
        self.machine.version += 1;
        change(self, &seen.body).unwrap_or_else(|| json_answer(StatusCode::OK, &json!({})))
    }

    fn change_boot(&mut self, body: &Value) -> Option<Response> {
        if let Some(lit) = body["LocationIndicatorActive"].as_bool() {
            self.machine.is_located = lit;
            return None;
        }
        let boot = &body["Boot"];
        if let Some(url) = boot.get("HttpBootUri") {
            self.machine.boot.http_url = url.as_str().map(str::to_owned);
        }
        let [target, enabled, mode] = ["Target", "Enabled", "Mode"]
            .map(|key| boot[format!("BootSourceOverride{key}")].as_str().map(str::to_owned));
        let is_complete = target.is_some() && enabled.is_some() && mode.is_some();
        if self.is_odd(Quirk::CompleteBoot) && !is_complete {
            return Some(refusal(
                StatusCode::BAD_REQUEST,
                "Base.1.8.PropertyMissing",
                "BootSourceOverrideMode",
            ));
        }
        if self.is_odd(Quirk::ModeInFirmware) && mode.is_some() {
            let message = "BootSourceOverrideMode";
            return Some(refusal(StatusCode::BAD_REQUEST, "Base.1.4.PropertyNotWritable", message));
        }
        if self.is_odd(Quirk::OnceOnly) && enabled.as_deref() == Some("Continuous") {
            return Some(refusal(StatusCode::BAD_REQUEST, "Base.1.8.PropertyValueNotInList", "Continuous"));
        }
        let lasts = self.is_odd(Quirk::ContinuousOnly) && enabled.as_deref() == Some("Once");
        let enabled = if lasts { Some("Continuous".to_owned()) } else { enabled };
        if self.is_odd(Quirk::ModeFallsBack) && mode.is_none() {
            self.machine.boot.mode = "Legacy".into();
        }
        let now = &mut self.machine.boot;
        for (value, place) in [(target, &mut now.target), (enabled, &mut now.enabled), (mode, &mut now.mode)]
        {
            if let Some(value) = value {
                *place = value;
            }
        }
        None
    }

    fn reset(&mut self, seen: &Seen) -> Response {
        let kind = seen.body["ResetType"].as_str().unwrap_or_default();
        let had_conflict = self.seen.iter().filter(|seen| seen.path == RESET).count() > 1;
        if self.is_odd(Quirk::ConflictingPowerOn) && kind == "On" && !had_conflict {
            return refusal(StatusCode::CONFLICT, "Base.1.8.ActionParameterValueConflict", "not now");
        }
        if self.has(Manner::RepeatsPassword) {
            let message = format!("user with password {PASSWORD} may not do this");
            return refusal(StatusCode::FORBIDDEN, "Base.1.8.InsufficientPrivilege", &message);
        }
        if self.has(Manner::FailingTasks) || self.has(Manner::EndlessTasks) {
            return self.accepted();
        }
        if !self.machine.reset(kind) {
            return refusal(StatusCode::BAD_REQUEST, "Base.1.8.ActionParameterNotSupported", kind);
        }
        match self.has(Manner::Tasks) {
            true => self.accepted(),
            false => json_answer(StatusCode::NO_CONTENT, &Value::Null),
        }
    }

    fn accepted(&mut self) -> Response {
        self.tasks = 0;
        let mut answer = json_answer(StatusCode::ACCEPTED, &json!({"TaskState": "New"}));
        answer.headers_mut().insert("location", TASK.parse().unwrap());
        answer
    }

    fn task(&mut self) -> Response {
        self.tasks += 1;
        let state = match () {
            () if self.has(Manner::EndlessTasks) => "Running",
            () if self.tasks < 3 => "Running",
            () if self.has(Manner::FailingTasks) => "Exception",
            () => "Completed",
        };
        let status = if state == "Running" { StatusCode::ACCEPTED } else { StatusCode::OK };
        let messages = json!([{"Message": format!("fuse blown, said {PASSWORD}")}]);
        json_answer(status, &json!({"TaskState": state, "Messages": messages}))
    }
}
