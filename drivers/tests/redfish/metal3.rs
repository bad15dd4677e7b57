//! The requests of Metal3's baremetal-operator (02aa505, August 2026) for each scheme of its BMC addresses, from the
//! registration of a host to its deletion, against the hardware types `redfish` and `idrac` and a BMC.

use crate::media::stage::{fill, published_media};
use crate::stage::settings;
use crate::stand_in::{Manner, PASSWORD, SYSTEM, StandIn, USER};
use farrier_conductor::{Drivers, Settings};
use farrier_drivers::netboot::boot_roots::BootRoots;
use farrier_drivers::netboot::by_arch::ConfiguredImages;
use farrier_drivers::netboot::images::AllowedFolders;
use farrier_drivers::netboot::interface::Netboot;
use farrier_drivers::netboot::loaders::Loaders;
use farrier_drivers::netboot::scripts::render::Renderer;
use farrier_drivers::netboot::scripts::templates::Templates;
use farrier_drivers::netboot::target::Defaults;
use farrier_drivers::netboot::{self, with_netboot};
use farrier_drivers::redfish::{Bmcs, IDRAC, REDFISH, with_types};
use farrier_drivers::virtual_media::{self, VirtualMediaBoot, with_virtual_media};
use farrier_engine::Conductor;
use farrier_engine::store::sqlite::SqliteStore;
use farrier_node_api::nodes::nodes_router;
use reqwest::{Client, Method};
use serde_json::{Value, json};
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tempfile::TempDir;
use tokio::net::TcpListener;

/// Longest time that any test waits for anything.
const PATIENCE: Duration = Duration::from_secs(60);
const ISO: &str = "http://192.0.2.5/live.iso";
const INSTANCE: &str = "1f4c3c6e-62d4-4c6f-8a0a-3d0f6f0f2f11";

/// A scheme of BMC addresses, and what the operator makes of it.
struct Scheme {
    name: &'static str,
    driver: &'static str,
    boot: &'static str,
    /// What the machine is told to start from.
    device: &'static str,
}

const SCHEMES: [Scheme; 7] = [
    Scheme { name: "redfish", driver: REDFISH, boot: "ipxe", device: "Pxe" },
    Scheme { name: "ilo5-redfish", driver: REDFISH, boot: "ipxe", device: "Pxe" },
    Scheme { name: "redfish-virtualmedia", driver: REDFISH, boot: "redfish-virtual-media", device: "Cd" },
    Scheme { name: "ilo5-virtualmedia", driver: REDFISH, boot: "redfish-virtual-media", device: "Cd" },
    Scheme { name: "redfish-uefihttp", driver: REDFISH, boot: "redfish-https", device: "UefiHttp" },
    Scheme { name: "idrac-redfish", driver: IDRAC, boot: "ipxe", device: "Pxe" },
    Scheme { name: "idrac-virtualmedia", driver: IDRAC, boot: "idrac-redfish-virtual-media", device: "Cd" },
];

impl Scheme {
    /// How a host is registered; names that are not chosen are not sent.
    fn registration(&self, bmc: &str) -> Value {
        let mut node = json!({
            "driver": self.driver, "name": "metal3~host-0", "boot_interface": self.boot, "inspect_interface": "agent",
            "firmware_interface": "redfish", "raid_interface": "redfish", "disable_power_off": false,
            "driver_info": {
                "redfish_address": bmc, "redfish_username": USER, "redfish_password": PASSWORD,
                "redfish_verify_ca": false, "redfish_system_id": if self.boot == "redfish-https" { "" } else { SYSTEM },
            },
            "properties": {"capabilities": "boot_mode:uefi", "cpu_arch": ""},
        });
        if self.driver == IDRAC {
            for kind in ["bios", "management", "power", "raid", "vendor"] {
                node[format!("{kind}_interface")] = "idrac-redfish".into();
            }
        }
        node
    }
}

/// A conductor composed as `farrier` composes it, its BMC, and a client.
struct Site {
    bmc: StandIn,
    api: String,
    http: Client,
    _folder: TempDir,
}

impl Site {
    async fn new() -> Self {
        let _ = rustls::crypto::ring::default_provider().install_default();
        let folder = tempfile::tempdir().unwrap();
        fill(folder.path());
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let api = format!("http://{}", listener.local_addr().unwrap());
        let conductor = conductor(folder.path(), &api).await;
        tokio::spawn(axum::serve(listener, nodes_router(conductor.clone())).into_future());
        tokio::spawn(async move { conductor.run().await });
        let bmc = StandIn::start([Manner::BootsByHttp]).await;
        let http = Client::builder().tls_certs_only([]).build().unwrap();
        Self { bmc, api, http, _folder: folder }
    }

    async fn send(&self, method: Method, path: &str, body: Value, status: u16) -> Value {
        let request = self.http.request(method.clone(), format!("{}/v1/{path}", self.api));
        let request = request.header("X-OpenStack-Ironic-API-Version", "1.110");
        let request = if body.is_null() { request } else { request.json(&body) };
        let reply = request.send().await.unwrap();
        let found = reply.status().as_u16();
        let text = reply.text().await.unwrap();
        assert_eq!(found, status, "{method} {path} {body}: {text}");
        serde_json::from_str(&text).unwrap_or_default()
    }

    async fn get(&self, path: &str) -> Value {
        self.send(Method::GET, path, Value::Null, 200).await
    }

    async fn patch(&self, changes: Value) {
        let add = |(path, value): (&String, &Value)| json!({"op": "add", "path": path, "value": value});
        let patch: Vec<_> = changes.as_object().unwrap().iter().map(add).collect();
        self.send(Method::PATCH, NODE, json!(patch), 200).await;
    }

    /// Orders an operation, and waits for the state that it ends in.
    async fn provision(&self, request: Value, state: &str) -> Value {
        self.send(Method::PUT, &format!("{NODE}/states/provision"), request.clone(), 202).await;
        let end = Instant::now() + PATIENCE;
        loop {
            let node = self.get(NODE).await;
            if node["provision_state"] == state && node["reservation"].is_null() {
                return node;
            }
            assert!(Instant::now() < end, "{request}: waited for {state}, but {node:#}");
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    }

    /// An operation that goes well.
    async fn succeed(&self, request: Value, state: &str) -> Value {
        let node = self.provision(request.clone(), state).await;
        assert_eq!(node["last_error"], Value::Null, "{request}");
        node
    }
}

const NODE: &str = "nodes/metal3~host-0";

async fn conductor(folder: &Path, api: &str) -> Conductor {
    let settings_ = Settings {
        check_interval: Duration::from_millis(20),
        power_check_interval: Duration::from_millis(20),
        power_poll_interval: Duration::from_millis(5),
        ..Settings::new(api)
    };
    let store = Arc::new(SqliteStore::open(&folder.join("nodes.sqlite")).await.unwrap());
    let file = |name: &str| Some(folder.join(name).display().to_string());
    let defaults = Defaults {
        allowed: AllowedFolders::new(vec![folder.to_owned()]).unwrap(),
        images: ConfiguredImages::default()
            .with("deploy_kernel", Some("http://192.0.2.5/vmlinuz".into()), [])
            .with("deploy_ramdisk", Some("http://192.0.2.5/initramfs".into()), [])
            .with("deploy_iso", file("farrier.iso"), []),
        ..Defaults::default()
    };
    let renderer = Renderer { templates: Templates::load(None).unwrap(), timeout: None, http_url: None };
    let (loaders, roots) = (Loaders::default(), BootRoots::default());
    let netboot = Netboot { defaults: defaults.clone(), renderer, loaders, dhcp: None, roots };
    let drivers = with_netboot(Drivers::default(), &Arc::new(netboot));
    let drivers = with_virtual_media(drivers, VirtualMediaBoot::new(published_media(folder), defaults));
    let by_media = [virtual_media::NAME, virtual_media::NAME_OF_HTTPS, virtual_media::NAME_OF_IDRAC];
    let boot = [&netboot::NAMES[..], &by_media].concat();
    let types = [(REDFISH, &boot[..]), (IDRAC, &boot[..])];
    let drivers = with_types(drivers, &Bmcs::new(settings()), &types);
    Conductor::builder(settings_, store, drivers).start().await.unwrap()
}

macro_rules! the_operator_leads_a_host_through_its_life {
    ($($test:ident: $scheme:literal,)*) => {
        $(
            #[tokio::test]
            async fn $test() {
                live(SCHEMES.iter().find(|scheme| scheme.name == $scheme).unwrap()).await;
            }
        )*
    };
}

the_operator_leads_a_host_through_its_life! {
    c04_k21_by_redfish: "redfish",
    c04_k21_by_redfish_of_an_ilo: "ilo5-redfish",
    c04_k21_by_virtual_media: "redfish-virtualmedia",
    c04_k21_by_virtual_media_of_an_ilo: "ilo5-virtualmedia",
    k30_by_https: "redfish-uefihttp",
    k30_by_redfish_of_an_idrac: "idrac-redfish",
    k30_by_virtual_media_of_an_idrac: "idrac-virtualmedia",
}

async fn live(scheme: &Scheme) {
    let site = Site::new().await;
    let started = || site.bmc.inner().machine.started_from.last().cloned();
    let message = format!("{}://", scheme.name);

    // Registration: no image and no port is known yet (K22).
    site.send(Method::GET, NODE, Value::Null, 404).await;
    let node = site.send(Method::POST, "nodes", scheme.registration(&site.bmc.url), 201).await;
    assert_eq!(node["provision_state"], "enroll", "{message}");
    site.succeed(json!({"target": "manage"}), "manageable").await;
    site.patch(json!({"/automated_clean": false, "/properties/cpu_arch": "x86_64"})).await;
    for key in ["deploy_kernel", "deploy_ramdisk", "deploy_iso", "external_http_url"] {
        site.patch(json!({format!("/driver_info/{key}"): null})).await;
    }

    // Inspection by the BMC (K30, K33), and by the ramdisk, which is not there.
    site.send(Method::GET, &format!("{NODE}/inventory"), Value::Null, 404).await;
    site.patch(json!({"/inspect_interface": "redfish"})).await;
    site.succeed(json!({"target": "inspect"}), "manageable").await;
    let inventory = site.get(&format!("{NODE}/inventory")).await;
    assert_eq!(inventory["inventory"]["interfaces"].as_array().unwrap().len(), 2, "{message}");
    assert!(inventory["plugin_data"]["all_interfaces"].is_object(), "{inventory}");
    let ports = site.get("ports?fields=node_uuid,uuid,address").await;
    let addresses: Vec<_> = ports["ports"].as_array().unwrap().iter().map(|port| &port["address"]).collect();
    assert!(addresses.contains(&&json!("52:54:00:00:00:01")) && addresses.len() == 2, "{ports}");
    site.patch(json!({"/inspect_interface": "agent"})).await;
    site.succeed(json!({"target": "inspect"}), "inspect wait").await;
    assert_eq!(started().as_deref(), Some(scheme.device), "{message}");
    let node = site.provision(json!({"target": "abort"}), "inspect failed").await;
    assert!(node["last_error"].as_str().unwrap().contains("aborted"), "{node}");
    site.succeed(json!({"target": "manage"}), "manageable").await;

    // Preparation: what is not done out of band is refused with the reason (K29).
    site.get(&format!("{NODE}/bios?detail=true")).await;
    site.get(&format!("{NODE}/firmware")).await;
    for (step, part) in [
        (
            json!({"interface": "firmware", "step": "update", "args": {"settings": []}}),
            "not updated out of band",
        ),
        (json!({"interface": "raid", "step": "delete_configuration"}), "not made out of band"),
        (json!({"interface": "bios", "step": "apply_configuration", "args": {"settings": []}}), "bios"),
    ] {
        let boots = site.bmc.inner().machine.started_from.len();
        let node = site.provision(json!({"target": "clean", "clean_steps": [step]}), "clean failed").await;
        assert!(node["last_error"].as_str().unwrap().contains(part), "{node}");
        assert_eq!(
            (&node["maintenance"], site.bmc.inner().machine.started_from.len()),
            (&json!(false), boots)
        );
        site.succeed(json!({"target": "manage"}), "manageable").await;
    }
    site.succeed(json!({"target": "provide"}), "available").await;

    // A live ISO, with the empty config drive of a client that has none (K24).
    site.patch(json!({
        "/deploy_interface": "ramdisk", "/instance_uuid": INSTANCE, "/instance_info/boot_iso": ISO,
        "/instance_info/capabilities": {"boot_mode": "uefi"},
    }))
    .await;
    let validity = site.get(&format!("{NODE}/validate")).await;
    assert_eq!((&validity["boot"]["result"], &validity["deploy"]["result"]), (&json!(true), &json!(true)));
    let node = site.succeed(json!({"target": "active", "configdrive": {}}), "active").await;
    assert_eq!(node["instance_info"].get("configdrive"), None, "{message}");
    assert_eq!((started().as_deref(), &node["power_state"]), (Some(scheme.device), &json!("power on")));
    {
        let bmc = site.bmc.inner();
        let images = [&bmc.drives.cd.image, &bmc.drives.usb.image, &bmc.machine.boot.http_url];
        let expected = match scheme.device {
            "Cd" => [Some(ISO), None, None],
            "UefiHttp" => [None, None, Some(ISO)],
            _ => [None; 3],
        };
        assert_eq!(images.map(|image| image.as_deref()), expected, "{message}");
    }
    let node = site.succeed(json!({"target": "deleted"}), "available").await;
    assert_eq!((&node["instance_uuid"], &node["instance_info"]), (&Value::Null, &json!({})));
    assert!(site.bmc.inner().drives.cd.image.is_none() && site.bmc.inner().machine.boot.http_url.is_none());
    site.send(Method::PATCH, NODE, json!([{"op": "remove", "path": "/deploy_interface"}]), 200).await;

    // An image, until the ramdisk is waited for, which is not there.
    site.patch(json!({
        "/instance_uuid": INSTANCE, "/instance_info/image_source": "http://192.0.2.5/debian.raw",
        "/instance_info/image_os_hash_algo": "sha256", "/instance_info/image_os_hash_value": "a".repeat(64),
        "/instance_info/image_disk_format": "raw", "/instance_info/capabilities": {"boot_mode": "uefi"},
    }))
    .await;
    let drive = json!({"meta_data": {"uuid": INSTANCE}, "user_data": "#!/bin/sh\n"});
    site.succeed(json!({"target": "active", "configdrive": drive}), "wait call-back").await;
    assert_eq!(started().as_deref(), Some(scheme.device), "{message}");
    let node = site.provision(json!({"target": "abort"}), "deploy failed").await;
    assert!(node["last_error"].as_str().unwrap().contains("aborted"), "{node}");
    site.succeed(json!({"target": "deleted"}), "available").await;

    // Adoption without an image (K23), and the end.
    site.succeed(json!({"target": "manage"}), "manageable").await;
    site.succeed(json!({"target": "adopt"}), "active").await;
    site.send(Method::PUT, &format!("{NODE}/maintenance"), json!({"reason": "host is going away"}), 202)
        .await;
    site.send(Method::DELETE, NODE, Value::Null, 204).await;
    site.send(Method::GET, NODE, Value::Null, 404).await;
}

/// What the operator sets for BMCs that reach the conductor by another address.
#[tokio::test]
async fn c05_media_are_found_below_the_external_url_of_a_node() {
    let site = Site::new().await;
    site.send(Method::POST, "nodes", SCHEMES[2].registration(&site.bmc.url), 201).await;
    let url = "http://[2001:db8::5]:6180";
    site.patch(json!({"/driver_info/external_http_url": url})).await;
    site.succeed(json!({"target": "manage"}), "manageable").await;
    site.succeed(json!({"target": "inspect"}), "inspect wait").await;
    let medium = site.bmc.inner().drives.cd.image.clone().unwrap();
    assert!(medium.starts_with(&format!("{url}/media/")) && medium.ends_with(".iso"), "{medium}");
}

/// A host that was registered without the address of its card.
#[tokio::test]
async fn k33_ports_are_made_of_the_cards_that_the_bmc_lists() {
    let site = Site::new().await;
    let node = site.send(Method::POST, "nodes", SCHEMES[0].registration(&site.bmc.url), 201).await;
    site.succeed(json!({"target": "manage"}), "manageable").await;
    assert_eq!(site.get("ports").await["ports"], json!([]));
    site.patch(json!({"/inspect_interface": "redfish"})).await;
    site.succeed(json!({"target": "inspect"}), "manageable").await;
    let ports = site.get("ports?fields=node_uuid,address").await;
    let ports = ports["ports"].as_array().unwrap();
    assert!(ports.iter().all(|port| port["node_uuid"] == node["uuid"]), "{ports:?}");
    let mut addresses: Vec<_> = ports.iter().map(|port| port["address"].as_str().unwrap()).collect();
    addresses.sort_unstable();
    assert_eq!(addresses, ["52:54:00:00:00:01", "52:54:00:00:00:02"]);
}

/// The operator asks for none; Ironic refuses one too where nothing says how it is reached.
#[tokio::test]
async fn k34_a_host_of_redfish_has_no_console() {
    let site = Site::new().await;
    let node = site.send(Method::POST, "nodes", SCHEMES[0].registration(&site.bmc.url), 201).await;
    assert_eq!((&node["console_interface"], &node["console_enabled"]), (&json!("no-console"), &json!(false)));
    let console = format!("{NODE}/states/console");
    site.send(Method::PUT, &console, json!({"enabled": true}), 400).await;
    assert_eq!(site.get(&console).await, json!({"console_enabled": false, "console_info": null}));
}
