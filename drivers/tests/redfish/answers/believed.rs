//! What a single answer of a BMC decides, and what it does not.

use crate::stage::{Stage, settings};
use crate::stand_in::rules::Rule;
use crate::stand_in::{Manner, SYSTEM};
use crate::wrong_answers::http::Wrong;
use axum::http::Method;
use farrier_conductor::interfaces::{InterfaceError, ManagementInterface, PowerInterface};
use farrier_conductor::model::{BootDevice, BootMode, PowerState};
use farrier_drivers::redfish::RedfishSettings;
use serde_json::{Value, json};
use std::time::Duration;

const SESSIONS: &str = "/Sessions";
const RESET: &str = "/ComputerSystem.Reset";
const CD: &str = "/VirtualMedia/CD";
const USB: &str = "/VirtualMedia/USB";
const EJECT: &str = "/CD/Actions/VirtualMedia.EjectMedia";
const INSERT_USB: &str = "/USB/Actions/VirtualMedia.InsertMedia";
const SECURE_BOOT: &str = "/SecureBoot";
const ISO: &str = "http://192.0.2.5/v1/media/5d2c.iso";

/// An answer to requests of a kind, so often, in place of what they ask for.
fn rule(method: Method, path: &'static str, times: u32, status: u16) -> Rule {
    Rule {
        method,
        path,
        times,
        acts: false,
        status,
        body: json!({"error": {"code": "Base.1.0.GeneralError"}}),
    }
}

fn error(code: &str) -> Value {
    json!({"error": {"code": code, "@Message.ExtendedInfo": [{"MessageId": code, "Message": "no more"}]}})
}

/// The settings of a site in which nothing is waited for in vain for long.
fn brief() -> RedfishSettings {
    let ms = Duration::from_millis;
    RedfishSettings { media_wait: ms(300), power_wait: ms(2000), ..settings() }
}

#[tokio::test]
async fn c01_a_login_that_is_refused_now_and_then_decides_nothing() {
    for (has_worked, refused) in [(true, 1), (true, 2), (false, 1)] {
        let Stage { bmc, node, power, .. } = Stage::new([]).await;
        if has_worked {
            power.power_state(&node).await.unwrap();
        }
        bmc.inner().forget_sessions();
        bmc.inner().rules.push(rule(Method::POST, SESSIONS, refused, 401));
        assert_eq!(power.power_state(&node).await.unwrap(), PowerState::Off);
        power.power_on(&node).await.unwrap();
    }
}

#[tokio::test]
async fn c01_a_reading_that_was_not_made_says_so() {
    for manner in [None, Some(Manner::NoSessions)] {
        let Stage { bmc, node, power, .. } = Stage::new(manner).await;
        power.power_state(&node).await.unwrap();
        bmc.inner().forget_sessions();
        bmc.inner().rules.push(rule(Method::POST, SESSIONS, u32::MAX, 401));
        bmc.inner().rules.push(rule(Method::GET, SYSTEM, u32::MAX, 401));
        let asked = power.power_state(&node).await.unwrap_err();
        assert!(matches!(asked, InterfaceError::Driver(_)), "{asked:?}");
        let count = bmc.asked().len();
        let not_asked = power.power_state(&node).await.unwrap_err();
        assert!(matches!(not_asked, InterfaceError::NotAsked(_)), "{not_asked:?}");
        assert_eq!(bmc.asked().len(), count);
    }
}

#[tokio::test]
async fn c02_a_session_that_could_not_be_begun_once_is_begun_later() {
    for (status, code) in [
        (500, "Base.1.0.InternalError"),
        (400, "Base.1.0.SessionLimitExceeded"),
        (401, "IDRAC.2.8.RAC0218"),
        (403, "Base.1.0.InsufficientPrivilege"),
        (404, "Base.1.0.ResourceMissingAtURI"),
        (409, "Base.1.0.ResourceInUse"),
    ] {
        for times in 1..=2 {
            let Stage { bmc, node, power, .. } = Stage::new([Manner::NoBasic]).await;
            let refused = Rule { body: error(code), ..rule(Method::POST, SESSIONS, times, status) };
            bmc.inner().rules.push(refused);
            let read = power.power_state(&node).await;
            // The path may be missing twice where a wrong password is refused in the same way.
            assert!(read.is_ok() || status == 404 && times == 2, "{status}: {read:?}");
        }
    }
    // One that never begins is named, and not the password.
    let Stage { bmc, node, power, .. } = Stage::new([Manner::NoBasic]).await;
    let full = Rule { body: error("Base.1.0.SessionLimitExceeded"), ..rule(Method::POST, SESSIONS, 9, 400) };
    bmc.inner().rules.push(full);
    let error = power.power_state(&node).await.unwrap_err().to_string();
    assert!(
        error.contains("begins no session for user") && error.contains("SessionLimitExceeded"),
        "{error}"
    );
    bmc.inner().rules.clear();
    power.power_state(&node).await.unwrap();
}

#[tokio::test]
async fn c02_a_bmc_that_begins_no_sessions_for_a_user_gets_the_password_with_each_request() {
    let Stage { bmc, node, power, .. } = Stage::new([]).await;
    bmc.inner().rules.push(rule(Method::POST, SESSIONS, u32::MAX, 400));
    for _ in 0..3 {
        power.power_state(&node).await.unwrap();
    }
    assert_eq!(bmc.count("POST /redfish/v1/SessionService/Sessions"), 1);
}

#[tokio::test]
async fn c02_a_root_without_machines_is_read_again() {
    let Stage { bmc, node, power, .. } = Stage::new([]).await;
    let empty = Rule { body: json!({}), ..rule(Method::GET, "/redfish/v1", 2, 200) };
    bmc.inner().rules.push(empty);
    power.power_state(&node).await.unwrap_err();
    assert_eq!(power.power_state(&node).await.unwrap(), PowerState::Off);
}

#[tokio::test]
async fn c07_an_ejection_is_judged_by_what_is_in_the_drive() {
    for status in [400, 404, 409, 500] {
        for acts in [true, false] {
            let Stage { bmc, node, management, .. } = Stage::with([], brief()).await;
            management.attach_virtual_media(&node, BootDevice::Cdrom, ISO).await.unwrap();
            bmc.inner().rules.push(Rule { acts, ..rule(Method::POST, EJECT, u32::MAX, status) });
            let ejected = management.detach_virtual_media(&node, &[BootDevice::Cdrom]).await;
            assert_eq!(ejected.is_ok(), acts, "{status}: {ejected:?}");
            assert_eq!(bmc.inner().drives.cd.image.is_none(), acts);
            if let Err(error) = ejected {
                assert!(error.to_string().contains(&status.to_string()), "{error}");
            }
        }
        // An empty drive that tells of its last image, and will not be emptied.
        let Stage { bmc, node, management, .. } = Stage::with([Manner::KeepsImage], brief()).await;
        management.attach_virtual_media(&node, BootDevice::Cdrom, ISO).await.unwrap();
        management.detach_virtual_media(&node, &[]).await.unwrap();
        bmc.inner().rules.push(rule(Method::POST, EJECT, u32::MAX, status));
        management.detach_virtual_media(&node, &[]).await.unwrap();
        management.attach_virtual_media(&node, BootDevice::Cdrom, ISO).await.unwrap();
        assert!(bmc.inner().drives.cd.image.is_some());
    }
}

#[tokio::test]
async fn c07_orders_that_are_refused_and_carried_out_are_carried_out() {
    let acts = |method, path, status| Rule { acts: true, ..rule(method, path, u32::MAX, status) };
    for status in [400, 409, 500] {
        let Stage { bmc, node, management, .. } = Stage::with([], brief()).await;
        bmc.inner().rules.extend([
            acts(Method::POST, "/CD/Actions/VirtualMedia.InsertMedia", status),
            acts(Method::PATCH, SYSTEM, status),
            acts(Method::PATCH, SECURE_BOOT, status),
        ]);
        management.attach_virtual_media(&node, BootDevice::Cdrom, ISO).await.unwrap();
        management.set_boot_device(&node, BootDevice::Cdrom, false).await.unwrap();
        management.set_boot_mode(&node, BootMode::Bios).await.unwrap();
        management.set_boot_mode(&node, BootMode::Uefi).await.unwrap();
        management.set_secure_boot_state(&node, true).await.unwrap();
        let lights = management.get_supported_indicators(&node).await.unwrap();
        management.set_indicator_state(&node, &lights[0], lights[0].states[0]).await.unwrap();
    }
}

#[tokio::test]
async fn c08_a_drive_that_cannot_be_read_hides_no_other() {
    for status in [403, 404, 500] {
        let Stage { bmc, node, management, .. } = Stage::with([], brief()).await;
        bmc.inner().rules.push(rule(Method::GET, USB, u32::MAX, status));
        management.attach_virtual_media(&node, BootDevice::Cdrom, ISO).await.unwrap();
        assert_eq!(management.get_virtual_media(&node).await.unwrap().len(), 1);
        management.detach_virtual_media(&node, &[]).await.unwrap();
        assert_eq!(bmc.inner().drives.cd.image, None);
        // Where there is none, the reason is told.
        bmc.inner().rules.push(rule(Method::GET, CD, u32::MAX, status));
        let error = management.attach_virtual_media(&node, BootDevice::Cdrom, ISO).await.unwrap_err();
        assert!(error.to_string().contains(&status.to_string()), "{error}");
    }
}

#[tokio::test]
async fn c08_a_medium_is_not_left_in_a_drive_that_could_not_be_read_once() {
    for status in [400, 404, 409] {
        let Stage { bmc, node, management, .. } = Stage::with([], brief()).await;
        management.attach_virtual_media(&node, BootDevice::Cdrom, ISO).await.unwrap();
        bmc.inner().rules.push(rule(Method::GET, CD, 1, status));
        management.detach_virtual_media(&node, &[]).await.unwrap();
        assert_eq!(bmc.inner().drives.cd.image, None, "{status}");
    }
}

#[tokio::test]
async fn c08_a_drive_that_takes_an_order_and_does_nothing_hides_no_other() {
    let Stage { bmc, node, management, .. } = Stage::with([Manner::DrivesTakeAll], brief()).await;
    let nothing = Rule { body: json!({}), ..rule(Method::POST, INSERT_USB, u32::MAX, 200) };
    bmc.inner().rules.push(nothing);
    management.attach_virtual_media(&node, BootDevice::Cdrom, ISO).await.unwrap();
    assert_eq!(bmc.inner().drives.cd.image.as_deref(), Some(ISO));
}

#[tokio::test]
async fn c09_an_image_may_be_written_in_another_way() {
    let others: [fn(&str) -> String; 4] = [
        |image| image.rsplit('/').next().unwrap().to_owned(),
        |image| image.split_once("192.0.2.5").unwrap().1.to_owned(),
        |image| image.replace("192.0.2.5", "192.0.2.5:80"),
        |_| String::new(),
    ];
    for says in others {
        let Stage { bmc, node, management, .. } = Stage::with([], brief()).await;
        bmc.inner().drives.says = Some(says);
        management.attach_virtual_media(&node, BootDevice::Cdrom, ISO).await.unwrap();
    }
    let Stage { bmc, node, management, .. } = Stage::with([], brief()).await;
    bmc.inner().drives.says = Some(|_| "other.iso".to_owned());
    management.attach_virtual_media(&node, BootDevice::Cdrom, ISO).await.unwrap_err();
}

#[tokio::test]
async fn c11_packed_answers_are_unpacked() {
    let Stage { bmc, node, power, management } = Stage::new([Manner::WantsPacking]).await;
    bmc.spoiler.spoil_all(Wrong::Packed);
    power.power_on(&node).await.unwrap();
    management.set_boot_device(&node, BootDevice::Disk, true).await.unwrap();
}

#[tokio::test]
async fn c12_the_cd_of_a_maker_is_known_by_its_bmc() {
    for (vendor, maker, model, expected) in [
        (None, "Supermicro", "ARS-111GL-NHR", "Cd"),
        (Some("Supermicro"), "Penguin Computing", "Altus", "UsbCd"),
        (None, "Super Micro Computer, Inc.", "X12", "UsbCd"),
        (Some("Farm"), "Farm", "X12", "Cd"),
    ] {
        let Stage { bmc, node, management, .. } = Stage::new([]).await;
        {
            let machine = &mut bmc.inner().machine;
            (machine.maker, machine.model, machine.bmc_maker) = (maker, model, vendor);
        }
        management.set_boot_device(&node, BootDevice::Cdrom, false).await.unwrap();
        assert_eq!(bmc.inner().machine.boot.target, expected, "{vendor:?} {maker} {model}");
        assert_eq!(management.detect_vendor(&node).await.unwrap(), vendor.unwrap_or(maker));
    }
}

#[tokio::test]
async fn c13_what_counts_from_the_next_start_on_is_not_refused() {
    let later = json!({"@Message.ExtendedInfo": [{"MessageId": "IDRAC.2.8.SystemResetRequired"}]});
    let task = json!({"@odata.id": "/redfish/v1/TaskService/Tasks/JID_1", "TaskState": "Pending"});
    for (status, body) in [(200, later), (202, task.clone())] {
        let settings = RedfishSettings { refusal_pause: Duration::from_millis(20), ..brief() };
        let Stage { bmc, node, management, .. } = Stage::with([], settings).await;
        let taken = |path| Rule { body: body.clone(), ..rule(Method::PATCH, path, u32::MAX, status) };
        let of_task = Rule { body: task.clone(), ..rule(Method::GET, "/JID_1", u32::MAX, 202) };
        bmc.inner().rules.extend([taken(SYSTEM), taken(SECURE_BOOT), of_task]);
        management.set_secure_boot_state(&node, true).await.unwrap();
        management.set_boot_mode(&node, BootMode::Bios).await.unwrap();
        assert_eq!(bmc.asked().iter().filter(|asked| asked.starts_with("PATCH")).count(), 2);
    }
    // The resource of what is to be says so.
    let Stage { bmc, node, management, .. } = Stage::with([], brief()).await;
    let pending = json!({"SecureBootEnable": false, "@Redfish.Settings": {"SettingsObject": {"@odata.id": "/redfish/v1/Pending"}}});
    bmc.inner().rules.extend([
        Rule { body: pending, ..rule(Method::GET, SECURE_BOOT, u32::MAX, 200) },
        Rule { body: json!({"SecureBootEnable": true}), ..rule(Method::GET, "/Pending", u32::MAX, 200) },
    ]);
    management.set_secure_boot_state(&node, true).await.unwrap();
    // What nothing says so of is refused.
    let Stage { bmc, node, management, .. } = Stage::with([], brief()).await;
    bmc.inner().rules.push(Rule { body: json!({}), ..rule(Method::PATCH, SECURE_BOOT, u32::MAX, 200) });
    management.set_secure_boot_state(&node, true).await.unwrap_err();
}

#[tokio::test]
async fn c21_a_power_on_that_is_refused_while_the_machine_goes_on_is_one() {
    for status in [400, 409] {
        let Stage { bmc, node, power, .. } = Stage::with([], brief()).await;
        bmc.inner().rules.push(Rule { acts: true, ..rule(Method::POST, RESET, u32::MAX, status) });
        power.power_on(&node).await.unwrap();
        assert_eq!(bmc.inner().machine.power, "On");
    }
}

#[tokio::test]
async fn c23_an_empty_etag_is_not_sent() {
    let Stage { bmc, node, management, .. } = Stage::new([Manner::EmptyEtags]).await;
    management.set_boot_device(&node, BootDevice::Cdrom, false).await.unwrap();
    assert!(bmc.inner().seen.iter().all(|seen| !seen.headers.contains_key("if-match")));
}

#[tokio::test]
async fn c28_the_drive_that_a_bmc_lists_first_is_filled_first() {
    let Stage { bmc, node, management, .. } = Stage::new([Manner::DrivesTakeAll]).await;
    for _ in 0..2 {
        management.attach_virtual_media(&node, BootDevice::Cdrom, ISO).await.unwrap();
        let inner = bmc.inner();
        assert_eq!((inner.drives.usb.image.as_deref(), &inner.drives.cd.image), (Some(ISO), &None));
    }
}
