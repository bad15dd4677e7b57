//! Nodes for the tests of this room.

use super::boot_roots::BootRoots;
use super::by_arch::{ByArch, ConfiguredImages};
use super::images::AllowedFolders;
use super::interface::Netboot;
use super::loaders::Loaders;
use super::scripts::render::Renderer;
use super::scripts::templates::Templates;
use super::target::Defaults;
use farrier_conductor::model::clock::{Clock, SystemClock};
use farrier_conductor::model::{NewNode, Node};
use serde_json::{Value, json};
use std::path::Path;

/// A node with one network card.
pub(super) fn node(info: &Value) -> Node {
    let new = NewNode {
        name: Some("n1".into()),
        driver: "qemu".into(),
        driver_info: info.as_object().unwrap().clone().into(),
        ports: vec!["52:54:00:00:00:01".parse().unwrap()],
        ..NewNode::default()
    };
    Node::enrol(new, SystemClock.now())
}

/// A node whose machine is to boot the agent, with these parameters of the conductor's.
pub(super) fn booting(info: &Value, parameters: &str) -> Node {
    let mut node = node(info);
    node.driver_internal_info.ramdisk_parameters = Some(parameters.into());
    node
}

/// What names kernel and ramdisk of the agent, and more.
pub(super) fn images(more: &Value) -> Value {
    let mut info = json!({"deploy_kernel": "http://h/k", "deploy_ramdisk": "http://h/r"});
    info.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    info
}

/// What takes files from below this folder or `/srv/images`.
pub(super) fn netboot_of(folder: &Path) -> Netboot {
    let allowed = vec!["/srv/images".into(), folder.canonicalize().unwrap()];
    let defaults = Defaults {
        allowed: AllowedFolders::new(allowed).unwrap(),
        images: ConfiguredImages::default(),
        kernel_append_params: "nofb vga=normal".parse().unwrap(),
        kernel_append_params_by_arch: ByArch::default(),
        netboot_fallback: false,
    };
    Netboot {
        defaults,
        renderer: Renderer { templates: Templates::load(None).unwrap(), timeout: None, http_url: None },
        loaders: Loaders::default(),
        dhcp: None,
        roots: BootRoots::default(),
    }
}
