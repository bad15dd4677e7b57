//! What is had of machines that stay silent: what their controllers and consoles say, in the record and to operators.

use super::explain::explain;
use crate::interfaces::IpxeScript;
use crate::stand_ins::agent::Script;
use crate::stand_ins::stage::{MAC, PATIENCE, Stage};
use async_trait::async_trait;
use farrier_conductor::interfaces::{BootDeviceSetting, Interface, InterfaceError, ManagementInterface};
use farrier_conductor::model::{BootDevice, InterfaceKind, LogEntry, Node, ProvisionState};
use farrier_conductor::{Drivers, HardwareType, Settings};
use farrier_engine::records::Order;
use farrier_engine::store::EvidenceStore;
use std::time::{Duration, Instant};
use time::OffsetDateTime;

/// A controller with a log.
#[derive(Debug, Clone, Copy)]
enum Controller {
    /// The agent's doctor has left a record in it.
    HasRecord,
    /// There is much in it, and nothing that matters.
    Chatters,
    /// It does not answer.
    Hangs,
    /// It refuses.
    Refuses,
    /// It has no log, and shows the screen.
    ShowsScreen(&'static [u8]),
}

impl Interface for Controller {}

#[async_trait]
impl ManagementInterface for Controller {
    fn get_supported_boot_devices(&self, _: &Node) -> Vec<BootDevice> {
        vec![BootDevice::Disk]
    }

    async fn set_boot_device(&self, _: &Node, _: BootDevice, _: bool) -> Result<(), InterfaceError> {
        Ok(())
    }

    async fn get_boot_device(&self, _: &Node) -> Result<BootDeviceSetting, InterfaceError> {
        Ok(BootDeviceSetting::default())
    }

    async fn get_event_log(
        &self,
        node: &Node,
        since: OffsetDateTime,
    ) -> Result<Vec<LogEntry>, InterfaceError> {
        let entry = |at, said: &str| LogEntry { at, said: said.to_owned() };
        // The machine is powered on before its node waits.
        assert!(since < node.provision_updated_at, "{since}");
        match self {
            Self::HasRecord => Ok(vec![
                entry(Some(node.provision_updated_at), "System Event, OEM System boot event"),
                entry(None, "OEM record e0, 66617272696572746370000000"),
            ]),
            Self::Chatters => Ok((0..1000).map(|_| entry(None, &"fan ".repeat(1000))).collect()),
            Self::Hangs => std::future::pending().await,
            Self::Refuses => Err(InterfaceError::driver_info("fake", "is wrong; ipa-agent-token=oats")),
            Self::ShowsScreen(_) => Ok(Vec::new()),
        }
    }

    async fn get_screenshot(&self, _: &Node) -> Result<Vec<u8>, InterfaceError> {
        match self {
            Self::ShowsScreen(picture) => Ok(picture.to_vec()),
            Self::Refuses => Err(InterfaceError::driver_info("fake", "is dark; ipa-agent-token=oats")),
            Self::HasRecord | Self::Chatters | Self::Hangs => {
                InterfaceError::unsupported(InterfaceKind::Management, "get_screenshot")
            }
        }
    }
}

/// A silent machine with a controller, whose deployment fails soon.
async fn silent(controller: Controller, change: impl FnOnce(&mut Settings)) -> Stage {
    let compose = |drivers: Drivers| {
        let hardware = HardwareType::new("led").power(["fake"]).boot(["fake"]).console(["fake"]);
        let hardware = hardware.management(["led"]).deploy(["direct"]);
        drivers.management("led", controller).hardware_type(hardware)
    };
    let quick = |settings: &mut Settings| {
        settings.deploy_callback_timeout = Duration::from_millis(100);
        settings.automated_clean = false;
        change(settings);
    };
    let script = Script { silent: true, ..Script::default() };
    let stage = Stage::built(script, quick, "led", compose).await;
    stage.deploy().await;
    stage
}

#[tokio::test]
async fn a_cause_that_the_doctor_left_is_named_and_kept_until_the_machine_boots_again() {
    let stage = silent(Controller::HasRecord, |_| {}).await;
    let node = stage.wait_for(ProvisionState::DeployFailed).await;
    let cause = format!("no server answers the machine at the conductor's address {}", stage.ramdisk_api);
    let error = node.last_error.unwrap();
    assert!(error.contains(&format!("; the cause may be that {cause} (the agent's doctor")), "{error}");
    let told = explain(&stage).await;
    assert_eq!(told.cause.unwrap().what, cause);
    let log: Vec<_> = told.evidence.iter().filter(|one| one.what == "event log").collect();
    assert_eq!(log.len(), 2, "{log:?}");
    assert!(log[0].said.ends_with("Z System Event, OEM System boot event"), "{log:?}");
    let kept = told.diagnosis.unwrap();
    assert_eq!(stage.store.diagnosis(node.uuid).await.unwrap().unwrap(), kept);
    assert_eq!(kept.console, ["farrier-agent: link eth0 is down"]);
    stage.change(|script| script.silent = false);
    stage.conductor.order("n1", Order::Retry).await.unwrap();
    stage.wait_for(ProvisionState::Active).await;
    assert_eq!(stage.store.diagnosis(node.uuid).await.unwrap(), None);
}

#[tokio::test]
async fn a_machine_that_is_waited_for_is_explained_by_what_can_be_had_now() {
    let stage =
        silent(Controller::HasRecord, |settings| settings.deploy_callback_timeout = Duration::ZERO).await;
    stage.wait_for(ProvisionState::DeployWait).await;
    let told = explain(&stage).await;
    assert!(told.cause.unwrap().what.starts_with("no server answers the machine"));
    let node = stage.node().await;
    assert_eq!(stage.store.diagnosis(node.uuid).await.unwrap(), None, "asking changes nothing");
}

/// Beside the logs of ramdisks, where such are kept.
#[tokio::test]
async fn the_screen_of_a_silent_machine_is_kept_and_found_again() {
    let folder = tempfile::tempdir().unwrap();
    let keeps = |settings: &mut Settings| {
        settings.agent.deploy_logs_local_path = Some(folder.path().join("logs"));
    };
    for (picture, ending, media_type) in [
        (&b"\x89PNG\r\n\x1a\n no bootable device"[..], "png", "image/png"),
        (b"\xff\xd8\xff\xe0 no bootable device", "jpg", "image/jpeg"),
    ] {
        let stage = silent(Controller::ShowsScreen(picture), keeps).await;
        let node = stage.wait_for(ProvisionState::DeployFailed).await;
        let name = stage.store.diagnosis(node.uuid).await.unwrap().unwrap().screenshot.unwrap();
        let is_named = name.starts_with(&format!("{}_n1_", node.uuid));
        assert!(is_named && name.ends_with(&format!("_screen.{ending}")), "{name}");
        assert_eq!(stage.conductor.evidence().log("n1", &name).await.unwrap().unwrap(), picture);
        let url = format!("{}/farrier/v1/nodes/n1/logs/{name}", stage.node_api);
        assert_eq!(stage.http.get(url).send().await.unwrap().headers()["content-type"], media_type);
        let told = explain(&stage).await;
        assert!(told.evidence.iter().any(|one| one.what == "screen" && one.said == name), "{told:?}");
    }

    for (controller, expected) in [
        (Controller::Refuses, "screen: driver_info fake: is dark; ipa-agent-token=******"),
        (
            Controller::ShowsScreen(b"<html>"),
            "screen: a picture that is neither PNG nor JPEG; look at the driver of the node",
        ),
    ] {
        let stage = silent(controller, keeps).await;
        let node = stage.wait_for(ProvisionState::DeployFailed).await;
        let words = stage.store.diagnosis(node.uuid).await.unwrap().unwrap();
        assert_eq!(words.screenshot, None);
        assert_eq!(words.missing.last().unwrap(), expected);
    }
}

/// The host name of a DHCP request, by the conductor's own server.
#[tokio::test]
async fn what_the_doctor_told_the_dhcp_server_names_the_cause() {
    let script = HardwareType::new("script").power(["fake"]).boot(["script"]).deploy(["direct"]);
    let silent = Script { silent: true, ..Script::default() };
    let compose = |drivers: Drivers| drivers.boot("script", IpxeScript).hardware_type(script);
    let stage = Stage::composed(silent, "script", compose).await;
    stage.deploy().await;
    stage.wait_for(ProvisionState::DeployWait).await;
    let (card, address) = (MAC.parse().unwrap(), "192.0.2.50".parse().unwrap());
    for (name, expected) in [
        (Some("horse"), None),
        (Some("farrier-dns"), Some("the agent's doctor, to the DHCP server: dns")),
        // It came up once more, and asks as it always does.
        (None, None),
    ] {
        stage.conductor.ramdisks().address_leased(&card, address, name).await;
        let end = Instant::now() + PATIENCE;
        let called = expected.map_or_else(String::new, |_| " as farrier-dns".to_owned());
        let leased = format!("address 192.0.2.50 leased{called},");
        // It is written down by somebody else, a moment later.
        let told = loop {
            let told = explain(&stage).await;
            if told.evidence.iter().any(|one| one.said.starts_with(&leased)) {
                break told;
            }
            assert!(Instant::now() < end, "no {leased} in {told:?}");
        };
        assert_eq!(told.cause.map(|cause| cause.named_by).as_deref(), expected);
    }
}

#[tokio::test]
async fn last_words_are_bounded_in_size_and_time() {
    let limit = Duration::from_millis(200);
    let hangs = "event log: driver \"led\" did not answer management.get_event_log within 0.2 s; look at the machine's BMC";
    for (controller, missing) in [
        (Controller::Chatters, None),
        (Controller::Hangs, Some(hangs)),
        (Controller::Refuses, Some("event log: driver_info fake: is wrong; ipa-agent-token=******")),
    ] {
        let begun = Instant::now();
        let stage = silent(controller, |settings| settings.diagnosis_timeout = limit).await;
        let node = stage.wait_for(ProvisionState::DeployFailed).await;
        assert!(begun.elapsed() < Duration::from_secs(30), "{controller:?}");
        let words = stage.store.diagnosis(node.uuid).await.unwrap().unwrap();
        assert_eq!(words.missing.first().map(String::as_str), missing);
        assert_eq!(words.cause, None);
        let size = serde_json::to_string(&words).unwrap().len();
        assert!(size < 40 * 400 + 1000, "{size}");
        assert!(!node.last_error.unwrap().contains("the cause may be"));
    }
}

#[tokio::test]
async fn a_ramdisk_that_panics_is_named() {
    let stage = silent(Controller::Chatters, |settings| {
        settings.deploy_callback_timeout = Duration::from_secs(2);
    })
    .await;
    let panic = "[    1.7] Kernel panic - not syncing: VFS: Unable to mount root fs on unknown-block(0,0)";
    std::fs::write(stage.machine.console.as_ref().unwrap(), format!("Booting\r\n{panic}\r\n")).unwrap();
    stage.wait_for(ProvisionState::DeployFailed).await;
    let cause = explain(&stage).await.cause.unwrap();
    assert_eq!(cause.what, "the kernel found no ramdisk that it can read");
    assert_eq!(cause.named_by, format!("the console says: {panic}"));
}
