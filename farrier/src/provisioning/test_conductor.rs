//! A conductor with one node whose machine boots from the network, for the tests of this room.

use crate::provisioning::files::{Files, Roots};
use farrier_conductor::model::clock::{Clock, SystemClock};
use farrier_conductor::model::{InterfaceKind, NewNode, Node};
use farrier_conductor::{Drivers, Settings};
use farrier_drivers::netboot::boot_roots::BootRoots;
use farrier_drivers::netboot::images::AllowedFolders;
use farrier_drivers::netboot::interface::Netboot;
use farrier_drivers::netboot::loaders::Loaders;
use farrier_drivers::netboot::scripts::render::Renderer;
use farrier_drivers::netboot::scripts::templates::Templates;
use farrier_drivers::netboot::target::Defaults;
use farrier_drivers::netboot::{self, with_netboot};
use farrier_drivers::qemu::{QemuSettings, with_qemu};
use farrier_engine::Conductor;
use farrier_engine::store::NodeStore;
use farrier_engine::store::sqlite::SqliteStore;
use serde_json::json;
use std::sync::Arc;
use tempfile::TempDir;

/// The address of the node's network card, as PXELINUX asks for it.
pub(super) const PXELINUX: &str = "pxelinux.cfg/01-52-54-00-00-00-01";

/// The conductor's files, and the node's.
pub(super) struct TestConductor {
    pub(super) files: Arc<Files>,
    pub(super) conductor: Conductor,
    pub(super) node: Node,
    /// What `deploy_kernel` and `deploy_ramdisk` are.
    pub(super) folder: TempDir,
}

impl TestConductor {
    /// Its node is to boot this kernel, with PXELINUX.
    pub(super) async fn new(kernel: &[u8]) -> Self {
        Self::with_roots(kernel, BootRoots::default()).await
    }

    /// The same, with folders of other servers.
    pub(super) async fn with_roots(kernel: &[u8], boot_roots: BootRoots) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let (images, state) = (folder.path().join("images"), folder.path().join("state"));
        std::fs::create_dir_all(&images).unwrap();
        std::fs::write(images.join("vmlinuz"), kernel).unwrap();
        std::fs::write(images.join("initramfs.img"), "ramdisk").unwrap();
        let mut new = NewNode {
            name: Some("horse".into()),
            driver: "qemu".into(),
            driver_info: serde_json::from_value(json!({
                "deploy_kernel": images.join("vmlinuz"), "deploy_ramdisk": images.join("initramfs.img"),
            }))
            .unwrap(),
            properties: serde_json::from_value(json!({"capabilities": "boot_mode:bios"})).unwrap(),
            ports: vec!["52:54:00:00:00:01".parse().unwrap()],
            ..NewNode::default()
        };
        new.interfaces.set(InterfaceKind::Boot, "pxe");
        let mut node = Node::enrol(new, SystemClock.now());
        node.driver_internal_info.ramdisk_parameters = Some("ipa-api-url=http://192.0.2.5:6385".into());
        let store = Arc::new(SqliteStore::open(&folder.path().join("nodes.sqlite")).await.unwrap());
        store.create(&node).await.unwrap();

        let templates = Templates::load(None).unwrap();
        let allowed = AllowedFolders::new(vec![images]).unwrap();
        let netboot = Arc::new(Netboot {
            defaults: Defaults { allowed, ..Defaults::default() },
            renderer: Renderer { templates, timeout: None, http_url: None },
            loaders: Loaders::default(),
            dhcp: None,
            roots: boot_roots,
        });
        let drivers = with_netboot(Drivers::default(), &netboot);
        let drivers = with_qemu(drivers, state, QemuSettings::default(), &netboot::NAMES);
        let settings = Settings::new("http://127.0.0.1:1");
        let conductor = Conductor::builder(settings, store, drivers).start().await.unwrap();
        let roots = Roots {
            ipxe: "#!ipxe\n".into(),
            grub: "set timeout=0\n".into(),
            pxelinux: "localboot 0\n".into(),
            loaders: Loaders::default(),
        };
        Self { files: Arc::new(Files::new(conductor.clone(), roots, 4, None)), conductor, node, folder }
    }

    /// The name of one of the node's own files.
    pub(super) fn name(&self, file: &str) -> String {
        format!("{}/{file}", self.node.uuid)
    }
}
