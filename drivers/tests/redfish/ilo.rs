//! Machines of HPE: what an iLO is asked, request by request, for a boot from virtual media, as HPE's documentation has it.

use crate::stage::settings;
use crate::stand_in::{Manner, Mockup, PASSWORD, StandIn, USER};
use axum::http::Method;
use farrier_conductor::interfaces::{IndicatorState, Interface, ManagementInterface, PowerInterface};
use farrier_conductor::model::clock::{Clock, SystemClock};
use farrier_conductor::model::{BootDevice, BootMode, NewNode, Node, PowerState};
use farrier_drivers::ilo::{IloManagement, IloPower};
use farrier_drivers::redfish::quirks::Quirk;
use farrier_drivers::redfish::{Bmcs, Lasting};
use serde_json::{Value, json};

const ISO: &str = "http://192.0.2.5/horse.iso";

/// An iLO of some kind, a node of its machine, and the interfaces that lead it.
struct Stable {
    ilo: StandIn,
    node: Node,
    power: IloPower,
    management: IloManagement,
}

fn node(info: Value) -> Node {
    let driver_info = info.as_object().unwrap().clone().into();
    let new = NewNode { driver: "ilo".into(), driver_info, ..NewNode::default() };
    Node::enrol(new, SystemClock.now())
}

async fn stable(manners: &[Quirk]) -> Stable {
    stable_of(StandIn::start(manners.iter().map(|quirk| Manner::Odd(*quirk))).await)
}

fn stable_of(ilo: StandIn) -> Stable {
    rustls::crypto::ring::default_provider().install_default().ok();
    let node = node(json!({"ilo_address": ilo.url, "ilo_username": USER, "ilo_password": PASSWORD}));
    let (bmcs, lasting) = (Bmcs::new(settings()), Lasting::default());
    let power = IloPower::new(bmcs.clone(), lasting.clone());
    Stable { ilo, node, power, management: IloManagement::new(bmcs, lasting) }
}

/// What changes something, with its body.
fn orders(ilo: &StandIn) -> Vec<(String, Value)> {
    let inner = ilo.inner();
    let is_order = |method: &Method| *method != Method::GET;
    let orders = inner.seen.iter().filter(|seen| is_order(&seen.method) && !seen.path.ends_with("/Sessions"));
    let short = |path: &str| path.trim_start_matches("/redfish/v1/").to_owned();
    orders.map(|seen| (format!("{} {}", seen.method, short(&seen.path)), seen.body.clone())).collect()
}

/// Boots a machine from a medium and takes that out again, and tells the orders.
async fn lead(stable: &Stable) -> Vec<(String, Value)> {
    let Stable { ilo, node, power, management } = stable;
    power.validate(node).await.unwrap();
    management.attach_virtual_media(node, BootDevice::Cdrom, ISO).await.unwrap();
    management.set_boot_device(node, BootDevice::Cdrom, false).await.unwrap();
    power.power_on(node).await.unwrap();
    management.detach_virtual_media(node, &[BootDevice::Cdrom]).await.unwrap();
    assert_eq!(power.power_state(node).await.unwrap(), PowerState::On);
    assert_eq!(ilo.inner().machine.started_from, ["Cd"]);
    assert_eq!(ilo.inner().drives.cd.image, None);
    orders(ilo)
}

fn once_from_cd() -> (String, Value) {
    let boot = json!({"BootSourceOverrideTarget": "Cd", "BootSourceOverrideEnabled": "Once"});
    ("PATCH Systems/1".into(), json!({"Boot": boot}))
}

fn power_on() -> (String, Value) {
    ("POST Systems/1/Actions/ComputerSystem.Reset".into(), json!({"ResetType": "On"}))
}

fn order(path: &str, body: Value) -> (String, Value) {
    (path.replace("CD", "Managers/1/VirtualMedia/CD"), body)
}

#[tokio::test]
async fn an_ilo_5_to_7_is_led_by_the_actions_of_the_schema() {
    let expected = [
        order("POST CD/Actions/VirtualMedia.InsertMedia", json!({"Image": ISO})),
        once_from_cd(),
        power_on(),
        order("POST CD/Actions/VirtualMedia.EjectMedia", Value::Null),
        // Without a body it is refused.
        order("POST CD/Actions/VirtualMedia.EjectMedia", json!({})),
    ];
    assert_eq!(lead(&stable(&[Quirk::EmptyEject]).await).await, expected);
}

#[tokio::test]
async fn an_ilo_5_that_refuses_these_is_led_by_its_own() {
    let stable = stable(&[Quirk::MediaByMaker]).await;
    let expected = [
        order("POST CD/Actions/VirtualMedia.InsertMedia", json!({"Image": ISO})),
        order("POST CD/Actions/Oem/Hpe/HpeiLOVirtualMedia.InsertVirtualMedia", json!({"Image": ISO})),
        order("PATCH CD", json!({"Oem": {"Hpe": {"BootOnNextServerReset": true}}})),
        once_from_cd(),
        power_on(),
        order("POST CD/Actions/VirtualMedia.EjectMedia", Value::Null),
        // Is it the body that it misses?
        order("POST CD/Actions/VirtualMedia.EjectMedia", json!({})),
        order("POST CD/Actions/Oem/Hpe/HpeiLOVirtualMedia.EjectVirtualMedia", json!({})),
    ];
    assert_eq!(lead(&stable).await, expected);
    assert!(stable.ilo.inner().drives.starts_next);
}

#[tokio::test]
async fn an_ilo_4_without_actions_gets_the_image_alone() {
    let expected = [
        order("PATCH CD", json!({"Image": ISO, "Inserted": true, "WriteProtected": true})),
        order("PATCH CD", json!({"Image": ISO})),
        once_from_cd(),
        power_on(),
        order("PATCH CD", json!({"Image": null, "Inserted": false})),
        order("PATCH CD", json!({"Image": null})),
    ];
    assert_eq!(lead(&stable(&[Quirk::ImageAlone]).await).await, expected);
}

#[tokio::test]
async fn the_boot_mode_of_an_ilo_is_a_pending_setting_of_the_firmware() {
    let Stable { ilo, node, management, .. } = stable(&[Quirk::ModeInFirmware]).await;
    management.set_boot_mode(&node, BootMode::Uefi).await.unwrap();
    assert_eq!(orders(&ilo), [], "it is so already");
    management.set_boot_mode(&node, BootMode::Bios).await.unwrap();
    assert_eq!(ilo.inner().machine.pending_mode.as_deref(), Some("LegacyBios"));
    let last = orders(&ilo).pop().unwrap();
    assert_eq!(
        last,
        ("PATCH Systems/1/Bios/Settings".into(), json!({"Attributes": {"BootMode": "LegacyBios"}}))
    );
}

#[tokio::test]
async fn lights_and_firmware_of_an_ilo_are_read() {
    let ilo = StandIn::of(Mockup::read("hpe-ilo7")).await;
    let Stable { ilo: _ilo, node, management, .. } = stable_of(ilo);
    let lights = management.get_supported_indicators(&node).await.unwrap();
    let [enclosure] = lights.as_slice() else { panic!("{lights:?}") };
    assert_eq!(management.get_indicator_state(&node, enclosure).await.unwrap(), IndicatorState::On);
    management.set_indicator_state(&node, enclosure, IndicatorState::Off).await.unwrap();
    assert_eq!(management.get_indicator_state(&node, enclosure).await.unwrap(), IndicatorState::Off);
    let versions = management.get_firmware_versions(&node).await.unwrap();
    let read: Vec<_> = versions.iter().map(|one| one.version.as_str()).collect();
    assert_eq!(read, ["U68 v1.40 (05/22/2025)", "1.14.00 May 28 2025"]);
}

#[tokio::test]
async fn what_an_ilo_refuses_is_reported_with_the_keys_of_its_node() {
    let Stable { ilo, power, .. } = stable(&[]).await;
    let wrong = node(json!({"ilo_address": ilo.url, "ilo_username": USER, "ilo_password": "hay+oats"}));
    for _ in 0..3 {
        let error = power.power_state(&wrong).await.unwrap_err().to_string();
        assert!(error.contains("change ilo_username and ilo_password"), "{error}");
        assert!(!error.contains("hay+oats"), "{error}");
    }
    let attempts = ilo.count("POST /redfish/v1/SessionService/Sessions");
    assert_eq!(attempts, 2, "two attempts lock nobody out");
    power.shut_down().await;
}
