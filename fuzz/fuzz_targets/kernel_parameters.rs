//! Kernel parameters of records, in the configurations of all boot loaders.

#![no_main]

use farrier_conductor::interfaces::BootFile;
use farrier_conductor::model::{NewNode, Node};
use farrier_drivers::netboot::boot_roots::BootRoots;
use farrier_drivers::netboot::interface::{Netboot, file};
use farrier_drivers::netboot::method::Method;
use farrier_drivers::netboot::names::Name;
use farrier_drivers::netboot::loaders::Loaders;
use farrier_drivers::netboot::scripts::render::Renderer;
use farrier_drivers::netboot::target::Defaults;
use farrier_drivers::netboot::scripts::templates::Templates;
use libfuzzer_sys::fuzz_target;
use std::sync::LazyLock;
use time::OffsetDateTime;

static NETBOOT: LazyLock<Netboot> = LazyLock::new(|| Netboot {
    defaults: Defaults::default(),
    renderer: Renderer { templates: Templates::load(None).expect("they are built in"), timeout: None, http_url: None },
    loaders: Loaders::default(),
    dhcp: None,
    roots: BootRoots::default(),
});

fn script(append: Option<&str>, conductor: &str, kernel: &str) -> Option<String> {
    let mut node = Node::enrol(NewNode::default(), OffsetDateTime::UNIX_EPOCH);
    node.uuid = "1be26c0b-03f2-4d2e-ae87-c02d7f33c123".parse().expect("a UUID");
    if let Some(append) = append {
        node.driver_info.insert("kernel_append_params".into(), append.into());
    }
    node.driver_info.insert("deploy_kernel".into(), kernel.into());
    node.driver_info.insert("deploy_ramdisk".into(), "http://h/r".into());
    node.driver_internal_info.ramdisk_parameters = Some(conductor.into());
    let name = Name::parse("1be26c0b-03f2-4d2e-ae87-c02d7f33c123/config")?;
    match file(&NETBOOT, Method::Ipxe, &node, &name) {
        Ok(Some(BootFile::Text(text))) => Some(text),
        _ => None,
    }
}

fuzz_target!(|input: (&str, &str, &str)| {
    let (append, conductor, path) = input;
    let plain = script(None, "", "http://h/k").expect("a plain record renders");
    let Some(text) = script(Some(append), conductor, &format!("http://h/{path}")) else { return };
    let shape = |text: &str| {
        let first = text.lines().map(|line| line.split(' ').next().unwrap_or_default().to_owned());
        let own = text.chars().filter(|character| "$;|&<>`{}\r".contains(*character)).count();
        (first.collect::<Vec<_>>(), own)
    };
    assert_eq!(shape(&plain), shape(&text), "a record changed more than its words:\n{text}");
});
