//! What operators ask a machine's board for: boot mode, secure boot, virtual drives, and its console.

use crate::stand_ins::agent::Script;
use crate::stand_ins::operator::{ask, ask_in, get};
use crate::stand_ins::stage::{Stage, fault};
use async_trait::async_trait;
use farrier_conductor::interfaces::{
    BootDeviceSetting, ConsoleAccess, ConsoleInterface, FirmwareVersion, Indicator, IndicatorState,
    Interface, InterfaceError, ManagementInterface, VirtualMedium,
};
use farrier_conductor::model::{BootDevice, BootMode, Node};
use farrier_conductor::{Drivers, HardwareType};
use reqwest::Method;
use serde_json::{Map, Value, json};
use std::sync::{Arc, Mutex};

/// A board with UEFI alone, one virtual drive, and two lights, of which one can only be looked at.
#[derive(Clone, Default)]
struct Board(Arc<Mutex<Option<String>>>, Arc<Mutex<Option<IndicatorState>>>);

impl Interface for Board {}

#[async_trait]
impl ManagementInterface for Board {
    fn get_supported_boot_devices(&self, _: &Node) -> Vec<BootDevice> {
        vec![BootDevice::Disk]
    }

    async fn set_boot_device(&self, _: &Node, _: BootDevice, _: bool) -> Result<(), InterfaceError> {
        Ok(())
    }

    async fn get_boot_device(&self, _: &Node) -> Result<BootDeviceSetting, InterfaceError> {
        Ok(BootDeviceSetting::default())
    }

    fn get_supported_boot_modes(&self, _: &Node) -> Vec<BootMode> {
        vec![BootMode::Uefi]
    }

    async fn set_boot_mode(&self, _: &Node, _: BootMode) -> Result<(), InterfaceError> {
        Ok(())
    }

    async fn set_secure_boot_state(&self, _: &Node, _: bool) -> Result<(), InterfaceError> {
        Ok(())
    }

    async fn get_supported_indicators(&self, _: &Node) -> Result<Vec<Indicator>, InterfaceError> {
        let light = |component: &str, states: &[IndicatorState]| Indicator {
            component: component.into(),
            name: "1".into(),
            states: states.to_vec(),
        };
        Ok(vec![light("system", &[IndicatorState::On, IndicatorState::Off]), light("chassis", &[])])
    }

    async fn get_indicator_state(&self, _: &Node, _: &Indicator) -> Result<IndicatorState, InterfaceError> {
        Ok(self.1.lock().unwrap().unwrap_or(IndicatorState::Unknown))
    }

    async fn set_indicator_state(
        &self,
        _: &Node,
        _: &Indicator,
        state: IndicatorState,
    ) -> Result<(), InterfaceError> {
        *self.1.lock().unwrap() = Some(state);
        Ok(())
    }

    async fn get_firmware_versions(&self, _: &Node) -> Result<Vec<FirmwareVersion>, InterfaceError> {
        Ok(vec![FirmwareVersion { component: "bmc".into(), version: "2.44".into() }])
    }

    async fn get_sensors_data(&self, _: &Node) -> Result<Map<String, Value>, InterfaceError> {
        Ok(Map::from_iter([("Fan".to_owned(), json!({"0@1": {"reading": 2100}}))]))
    }

    async fn get_virtual_media(&self, _: &Node) -> Result<Vec<VirtualMedium>, InterfaceError> {
        let image = self.0.lock().unwrap().clone();
        Ok(vec![VirtualMedium { inserted: image.is_some(), image, media_types: vec![BootDevice::Cdrom] }])
    }

    async fn attach_virtual_media(&self, _: &Node, _: BootDevice, url: &str) -> Result<(), InterfaceError> {
        *self.0.lock().unwrap() = Some(url.to_owned());
        Ok(())
    }

    async fn detach_virtual_media(&self, _: &Node, _: &[BootDevice]) -> Result<(), InterfaceError> {
        *self.0.lock().unwrap() = None;
        Ok(())
    }
}

#[async_trait]
impl ConsoleInterface for Board {
    async fn start_console(&self, _: &Node) -> Result<(), InterfaceError> {
        Ok(())
    }

    async fn stop_console(&self, _: &Node) -> Result<(), InterfaceError> {
        Ok(())
    }

    async fn get_console(&self, _: &Node) -> Result<ConsoleAccess, InterfaceError> {
        Ok(ConsoleAccess { kind: "socat".into(), url: "tcp://h:1".into() })
    }
}

fn with_board(drivers: Drivers) -> Drivers {
    let board = Board::default();
    let hardware = HardwareType::new("board").power(["fake"]).boot(["fake"]).deploy(["direct"]);
    drivers
        .management("board", board.clone())
        .console("board", board)
        .hardware_type(hardware.management(["board"]).console(["board"]))
}

async fn put(stage: &Stage, path: &str, body: Value) -> (u16, String) {
    let reply = ask(stage, Method::PUT, &format!("/v1/nodes/n1/states/{path}"), &body).await;
    let status = reply.status().as_u16();
    (status, if status == 202 { String::new() } else { fault(reply).await })
}

#[tokio::test]
async fn firmware_is_told_how_to_start_the_machine() {
    let stage = Stage::composed(Script::default(), "board", with_board).await;
    for (path, target, status, part) in [
        ("boot_mode", json!("uefi"), 202, ""),
        (
            "boot_mode",
            json!("bios"),
            400,
            "boot_mode: the BMC cannot set the boot mode bios; it supports: uefi",
        ),
        ("boot_mode", json!("openfirmware"), 400, "must be bios or uefi"),
        ("secure_boot", json!("maybe"), 400, "must be true or false"),
        ("secure_boot", json!("on"), 202, ""),
    ] {
        let (got, text) = put(&stage, path, json!({"target": target})).await;
        assert!(got == status && text.contains(part), "{path} {target}: {got} {text}");
    }
    let node = get(&stage, "/v1/nodes/n1").await;
    assert_eq!((&node["boot_mode"], &node["secure_boot"]), (&json!("uefi"), &json!(true)));
    let body = json!({"target": "uefi"});
    let early = ask_in("1.75", &stage, Method::PUT, "/v1/nodes/n1/states/boot_mode", &body).await;
    assert_eq!(early.status(), 404);
    let setting = ask(&stage, Method::GET, "/v1/nodes/n1/bios/ProcVirtualization", &Value::Null).await;
    assert_eq!(setting.status(), 404);
}

#[tokio::test]
async fn a_console_is_opened_to_users_and_closed() {
    let stage = Stage::composed(Script::default(), "board", with_board).await;
    let path = "/v1/nodes/n1/states/console";
    let closed = json!({"console_enabled": false, "console_info": null});
    assert_eq!(get(&stage, path).await, closed);
    assert_eq!(put(&stage, "console", json!({"enabled": true})).await.0, 202);
    let open = json!({"console_enabled": true, "console_info": {"type": "socat", "url": "tcp://h:1"}});
    assert_eq!(get(&stage, path).await, open);
    assert_eq!(get(&stage, "/v1/nodes/n1").await["console_enabled"], json!(true));
    assert_eq!(
        get(&stage, "/v1/nodes?fields=console_enabled").await["nodes"][0]["console_enabled"],
        json!(true)
    );
    assert_eq!(put(&stage, "console", json!({"enabled": false})).await.0, 202);
    assert_eq!(get(&stage, path).await, closed);
}

#[tokio::test]
async fn virtual_drives_are_filled_and_emptied() {
    let stage = Stage::composed(Script::default(), "board", with_board).await;
    let path = "/v1/nodes/n1/vmedia";
    let medium = |kind: &str, url: &str| json!({"device_type": kind, "image_url": url});
    for (body, status) in [
        (medium("tape", "http://h/i"), 400),
        (medium("cdrom", "ftp://h/i"), 400),
        (medium("cdrom", "http://h/i"), 204),
    ] {
        assert_eq!(ask(&stage, Method::POST, path, &body).await.status(), status, "{body}");
    }
    let held = json!([{"image": "http://h/i", "inserted": true, "media_types": ["cdrom"]}]);
    assert_eq!(get(&stage, path).await, held);
    let wrong = ask(&stage, Method::DELETE, &format!("{path}?device_types=cdrom,tape"), &Value::Null).await;
    assert_eq!(wrong.status(), 400);
    assert_eq!(ask(&stage, Method::DELETE, path, &Value::Null).await.status(), 204);
    let empty = json!([{"image": null, "inserted": false, "media_types": ["cdrom"]}]);
    assert_eq!(get(&stage, path).await, empty);
    // Boards without virtual drives say so.
    let plain = Stage::new(Script::default()).await;
    let refused = ask(&plain, Method::POST, path, &medium("cdrom", "http://h/i")).await;
    assert_eq!(refused.status(), 400);
    assert!(fault(refused).await.contains("attach_virtual_media is not supported"));
}

#[tokio::test]
async fn lights_are_listed_switched_and_looked_at() {
    let stage = Stage::composed(Script::default(), "board", with_board).await;
    let path = "/v1/nodes/n1/management/indicators";
    let names = |answer: &Value, key: &str| {
        let all = answer[key].as_array().unwrap().iter();
        all.map(|one| one["name"].as_str().unwrap().to_owned()).collect::<Vec<_>>()
    };
    assert_eq!(names(&get(&stage, path).await, "components"), ["system", "chassis"]);
    let lights = get(&stage, &format!("{path}/system")).await;
    let light = &lights["indicators"][0];
    assert_eq!(
        (&light["name"], &light["readonly"], &light["states"]),
        (&json!("1"), &json!(false), &json!(["on", "off"]))
    );
    assert_eq!(get(&stage, &format!("{path}/chassis")).await["indicators"][0]["readonly"], true);
    assert_eq!(get(&stage, &format!("{path}/system/1")).await, json!({"state": "unknown"}));
    for (light, state, status, part) in [
        ("system/1", "blinking", 400, "blinking is nothing that 1 of system does; it does: on, off"),
        ("chassis/1", "on", 400, "on is nothing that 1 of chassis does"),
        ("system/9", "on", 400, "the machine has no light system/9; it has: system/1, chassis/1"),
        ("system/1", "green", 400, "green"),
        ("system/1", "on", 204, ""),
    ] {
        let reply = ask(&stage, Method::PUT, &format!("{path}/{light}"), &json!({"state": state})).await;
        assert_eq!(reply.status(), status, "{light} {state}");
        let text = if status == 204 { String::new() } else { fault(reply).await };
        assert!(text.contains(part), "{light} {state}: {text}");
    }
    assert_eq!(get(&stage, &format!("{path}/system/1")).await, json!({"state": "on"}));
    let early = ask_in("1.62", &stage, Method::GET, path, &Value::Null).await;
    assert_eq!(early.status(), 404);
}

#[tokio::test]
async fn versions_of_firmware_and_sensors_are_told_where_the_board_tells_them() {
    let stage = Stage::composed(Script::default(), "board", with_board).await;
    let told = get(&stage, "/v1/nodes/n1/firmware").await;
    assert_eq!(
        (&told["firmware"][0]["component"], &told["firmware"][0]["current_version"]),
        (&json!("bmc"), &json!("2.44"))
    );
    let sensors = get(&stage, "/farrier/v1/nodes/n1/sensors").await;
    assert_eq!(sensors, json!({"sensors": {"Fan": {"0@1": {"reading": 2100}}}}));
    let plain = Stage::new(Script::default()).await;
    assert_eq!(get(&plain, "/v1/nodes/n1/firmware").await, json!({"firmware": []}));
    let refused = ask(&plain, Method::GET, "/farrier/v1/nodes/n1/sensors", &Value::Null).await;
    assert_eq!(refused.status(), 400);
    assert!(fault(refused).await.contains("get_sensors_data is not supported"));
}
