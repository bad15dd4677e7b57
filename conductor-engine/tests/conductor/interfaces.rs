//! Which interfaces a node has, what they say about it, and conductors that cannot be composed.

use crate::stand_ins::agent::Script;
use crate::stand_ins::machine::FakeMachine;
use crate::stand_ins::stage::{MAC, PATIENCE, Stage, fault, image, new_node, quick};
use async_trait::async_trait;
use farrier_conductor::interfaces::{BootCapability, BootContext, BootInterface, Interface, InterfaceError};
use farrier_conductor::model::{InterfaceKind, NewNode, Node, ProvisionState};
use farrier_conductor::{Drivers, Error as TaskError, HardwareType, Settings};
use farrier_engine::records::Order;
use farrier_engine::store::sqlite::SqliteStore;
use farrier_engine::{Conductor, Error};
use farrier_media::KernelParameters;
use farrier_node_api::ramdisk::boot_router;
use farrier_node_api::ramdisk::ramdisk_router;
use serde_json::{Value, json};
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::net::TcpListener;

/// Boots nothing, and has a boot configuration while the ramdisk is to be booted.
pub struct IpxeScript;

impl Interface for IpxeScript {}

#[async_trait]
impl BootInterface for IpxeScript {
    fn capabilities(&self) -> &[BootCapability] {
        &[BootCapability::PxeBoot]
    }

    async fn prepare_ramdisk(&self, _: BootContext<'_>, _: &KernelParameters) -> Result<(), InterfaceError> {
        Ok(())
    }

    async fn clean_up_ramdisk(&self, _: BootContext<'_>) -> Result<(), InterfaceError> {
        Ok(())
    }

    async fn prepare_instance(&self, boot: BootContext<'_>) -> Result<(), InterfaceError> {
        boot.boot_from_disk(self).await
    }

    async fn clean_up_instance(&self, _boot: BootContext<'_>) -> Result<(), InterfaceError> {
        Ok(())
    }

    async fn get_boot_config(&self, node: &Node, name: &str) -> Result<Option<String>, InterfaceError> {
        let parameters = node.driver_internal_info.ramdisk_parameters.as_ref();
        Ok(parameters.filter(|_| name == "boot.ipxe").map(|words| format!("#!ipxe\nkernel k {words}\n")))
    }
}

/// Nodes of type `fake`, with another boot interface and another type beside.
fn drivers() -> Drivers {
    let script = HardwareType::new("script").power(["fake"]).boot(["script", "fake"]).deploy(["direct"]);
    let machine = FakeMachine::new(Script { silent: true, ..Script::default() });
    machine.drivers().boot("script", IpxeScript).hardware_type(script)
}

/// A conductor with these drivers.
async fn started(folder: &tempfile::TempDir, drivers: Drivers) -> Result<Conductor, Error> {
    started_as("farrier", folder, drivers).await
}

async fn started_as(name: &str, folder: &tempfile::TempDir, drivers: Drivers) -> Result<Conductor, Error> {
    let store = Arc::new(SqliteStore::open(&folder.path().join("nodes.sqlite")).await.unwrap());
    // Nothing boots, so a deployment waits for as long as a test takes.
    let settings = Settings {
        conductor_name: name.to_owned(),
        deploy_callback_timeout: PATIENCE,
        ..quick("http://127.0.0.1:1")
    };
    Conductor::builder(settings, store, drivers).start().await
}

#[tokio::test]
async fn what_cannot_work_together_is_refused_at_the_start_with_every_reason() {
    let folder = tempfile::tempdir().unwrap();
    started(&folder, drivers()).await.unwrap();
    let impossible = drivers()
        .hardware_type(HardwareType::new("bare").power(["fake"]).deploy(["direct"]))
        .hardware_type(HardwareType::new("fake").power(["strip"]).boot(["fake"]).deploy(["direct"]))
        .default_interface(InterfaceKind::Vendor, "agent");
    let Err(error @ Error::Task(TaskError::Hardware(_))) = started(&folder, impossible).await.map(drop)
    else {
        panic!("it started")
    };
    for reason in [
        "hardware type \"bare\": deploy interface \"direct\" needs a boot interface, and the type has: none",
        "hardware type \"fake\" is declared twice",
        "hardware type \"fake\" names power interface \"strip\", which is not registered; there are: fake",
        "the default vendor interface \"agent\" is not enabled; enabled are: no-vendor",
    ] {
        assert!(error.to_string().contains(reason), "{reason:?} in {error}");
    }
}

async fn enrolled(conductor: &Conductor, driver: &str, boot: Option<&str>) -> Result<Node, Error> {
    let mut new = NewNode { driver: driver.to_owned(), ..new_node("n1", MAC) };
    boot.into_iter().for_each(|name| new.interfaces.set(InterfaceKind::Boot, name));
    conductor.create_node(new).await
}

#[tokio::test]
async fn a_node_is_enrolled_with_the_names_of_all_its_interfaces() {
    for (driver, chosen, default, expected) in [
        ("fake", None, None, Ok("fake")),
        ("script", None, None, Ok("script")),
        ("script", None, Some("fake"), Ok("fake")),
        ("script", Some("script"), Some("fake"), Ok("script")),
        (
            "fake",
            Some("script"),
            None,
            Err("boot_interface: \"script\" does not work for hardware type \"fake\""),
        ),
        ("fake", Some("pxe"), None, Err("use one of: fake")),
        ("strip", None, None, Err("driver: \"strip\" is not known; use one of: fake, script")),
    ] {
        let folder = tempfile::tempdir().unwrap();
        let mut drivers = drivers();
        if let Some(name) = default {
            drivers = drivers.default_interface(InterfaceKind::Boot, name);
        }
        let conductor = started(&folder, drivers).await.unwrap();
        match (enrolled(&conductor, driver, chosen).await, expected) {
            (Ok(node), Ok(boot)) => {
                let shown = json!(node);
                assert_eq!(shown["boot_interface"], boot);
                assert_eq!(
                    (&shown["network_interface"], &shown["vendor_interface"]),
                    (&json!("noop"), &json!("no-vendor"))
                );
                assert_eq!(conductor.node("n1").await.unwrap().interfaces, node.interfaces);
            }
            (Err(error), Err(text)) => assert!(error.to_string().contains(text), "{error}"),
            (enrolled, expected) => panic!("{enrolled:?}, not {expected:?}"),
        }
    }
}

#[tokio::test]
async fn each_interface_tells_what_is_missing() {
    let stage = Stage::new(Script::default()).await;
    let get = async |path: &str| stage.http.get(format!("{}{path}", stage.node_api)).send().await.unwrap();
    let expected = json!({
        "bios": {"result": false, "reason": "bios is not supported; choose another bios_interface for the node"},
        "boot": {"result": true},
        "console": {"result": true},
        "deploy": {"result": false, "reason": "image_source: is missing; give the URL of an image"},
        "firmware": {"result": false, "reason": "firmware is not supported; choose another firmware_interface for the node"},
        "inspect": {"result": true},
        "management": {"result": true},
        "network": {"result": true},
        "power": {"result": true},
        "raid": {"result": true},
        "rescue": {"result": true},
        "storage": {"result": true},
    });
    assert_eq!(get("/v1/nodes/n1/validate").await.json::<Value>().await.unwrap(), expected);
    stage.deploy().await;
    stage.wait_for(ProvisionState::Active).await;
    let deployed: Value = get("/v1/nodes/n1/validate").await.json().await.unwrap();
    assert_eq!(deployed["deploy"], json!({"result": true}));
    assert_eq!(get("/v1/nodes/none/validate").await.status(), 404);

    let properties: Value = get("/v1/drivers/fake/properties").await.json().await.unwrap();
    assert_eq!(properties, json!({"fake_broken": "must not be set"}));
    let unknown = get("/v1/drivers/strip/properties").await;
    assert_eq!(unknown.status(), 404);
    assert!(fault(unknown).await.contains("use one of: fake"));
}

/// Another conductor may have enrolled a node with interfaces that this one has not.
#[tokio::test]
async fn a_node_whose_interface_is_not_enabled_any_more_tells_so_and_others_go_on() {
    let folder = tempfile::tempdir().unwrap();
    let conductor = started(&folder, drivers()).await.unwrap();
    enrolled(&conductor, "script", Some("script")).await.unwrap();
    drop(conductor);
    let conductor = started(&folder, drivers().enabled(InterfaceKind::Boot, ["fake"])).await.unwrap();
    let refused = conductor.order("n1", Order::deploy(image())).await.unwrap_err().to_string();
    assert_eq!(refused, "boot_interface: \"script\" is not enabled; use one of: fake");
    let validities = conductor.machines().validate("n1").await.unwrap();
    assert_eq!(validities[&InterfaceKind::Boot].reason.as_deref(), Some(refused.as_str()));
    assert_eq!(validities[&InterfaceKind::Power].result, Some(true));
    let other =
        conductor.create_node(NewNode { driver: "script".into(), ..new_node("n2", "52:54:00:00:00:02") });
    assert_eq!(other.await.unwrap().interfaces.get(InterfaceKind::Boot), Some("fake"));
}

/// An address that has spellings.
const CARD: &str = "52:54:00:0a:00:01";

/// Where firmware asks a conductor what to boot.
async fn boot_url(conductor: &Conductor) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}/v1/boot", listener.local_addr().unwrap());
    let routes = ramdisk_router(conductor.clone()).merge(boot_router(conductor.clone()));
    tokio::spawn(axum::serve(listener, routes).into_future());
    url
}

#[tokio::test]
async fn firmware_gets_its_boot_configuration_while_the_ramdisk_boots_and_else_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let conductor = started(&folder, drivers()).await.unwrap();
    let new = NewNode { driver: "script".into(), ..new_node("n1", CARD) };
    conductor.create_node(new).await.unwrap();
    let url = boot_url(&conductor).await;
    let _ = rustls::crypto::ring::default_provider().install_default();
    let http = reqwest::Client::builder().tls_certs_only([]).build().unwrap();
    let get = async |path: &str| http.get(format!("{url}/{path}")).send().await.unwrap();

    let at_rest = get(&format!("{CARD}/boot.ipxe")).await;
    assert_eq!(at_rest.status(), 404);
    let nothing = fault(at_rest).await;
    conductor.order("n1", Order::deploy(image())).await.unwrap();
    let runner = conductor.clone();
    tokio::spawn(async move { runner.run().await });
    let end = Instant::now() + PATIENCE;
    let waits =
        |node: &Node| node.provision_state == ProvisionState::DeployWait && node.reservation.is_none();
    while !waits(&conductor.node("n1").await.unwrap()) {
        assert!(Instant::now() < end, "the ramdisk is not booted");
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    let found = async |url: &str, spelling: &str| {
        let found = http.get(format!("{url}/{spelling}/boot.ipxe")).send().await.unwrap();
        assert_eq!(found.headers()["content-type"], "text/plain; charset=utf-8", "{spelling}");
        let text = found.text().await.unwrap();
        assert_eq!(text, "#!ipxe\nkernel k ipa-api-url=http://127.0.0.1:1\n", "{spelling}");
    };
    for spelling in
        ["52:54:00:0A:00:01", "52-54-00-0A-00-01", "52-54-00-0a-00-01", "52%3a54%3A00:0A-00:01", CARD]
    {
        found(&url, spelling).await;
    }
    for path in [
        "52:54:00:00:00:02/boot.ipxe",
        "5254000a0001/boot.ipxe",
        "5254.000a.0001/boot.ipxe",
        "52:54:00:0a:00:01/grub.cfg",
        "52:54:00:0a:00:01/..%2fboot.ipxe",
        "52:54:00:0a:00:01/..%5cboot.ipxe",
        "52:54:00:0a:00:01/boot.ipxe%00",
        "52:54:00:0a:00:01%00/boot.ipxe",
        "52:54:00:0a:00:01/%ff",
        "..%2f52:54:00:0a:00:01/boot.ipxe",
        "nonsense/boot.ipxe",
        &format!("{CARD}/{}", "a".repeat(4096)),
        &format!("{}/boot.ipxe", "52:".repeat(1365)),
    ] {
        let refused = get(path).await;
        assert_eq!(refused.status(), 404, "{path}");
        assert_eq!(fault(refused).await, nothing, "{path}");
    }
    // A machine is known by its cards, so it does not matter whether its node may be renamed while it boots.
    let renamed =
        conductor.update("n1", |node| Ok::<_, Error>(Node { name: Some("n2".into()), ..node })).await;
    assert!(matches!(renamed, Err(Error::Task(TaskError::InvalidState { .. }))), "{renamed:?}");
    found(&url, CARD).await;
    // Another conductor, which does not own the node, answers as this one does.
    let other = started_as("other", &folder, drivers()).await.unwrap();
    found(&boot_url(&other).await, CARD).await;
}
