use super::super::fixtures::{self, booting, images, node};
use super::*;
use farrier_conductor::interfaces::Noop;
use proptest::prelude::*;
use serde_json::{Value, json};
use std::path::Path;
use std::time::Duration;

const UUID: &str = "1be26c0b-03f2-4d2e-ae87-c02d7f33c123";

fn netboot() -> Netboot {
    fixtures::netboot_of(Path::new("/"))
}

fn interface(method: Method) -> NetworkBoot {
    NetworkBoot::new(method, Arc::new(netboot()))
}

fn files() -> Value {
    json!({"deploy_kernel": "/srv/images/k", "deploy_ramdisk": "file:///srv/images/r"})
}

/// A node that is to boot the agent from files of this host, and starts like this.
fn local(mode: &str) -> Node {
    let mut node = booting(&files(), "ipa-api-url=http://192.0.2.5:6385");
    node.uuid = UUID.parse().unwrap();
    node.properties.insert("capabilities".into(), json!(format!("boot_mode:{mode}")));
    node
}

fn text(netboot: &Netboot, method: Method, node: &Node, name: &str) -> Option<String> {
    match file(netboot, method, node, &Name::parse(name).unwrap()).unwrap() {
        Some(BootFile::Text(text)) => Some(text),
        Some(other) => panic!("{other:?}"),
        None => None,
    }
}

#[tokio::test]
async fn a_script_is_there_while_the_ramdisk_is_to_be_booted() {
    let ipxe = interface(Method::Ipxe);
    let node = node(&images(&json!({})));
    assert_eq!(ipxe.get_boot_config(&node, SCRIPT).await.unwrap(), None);
    let node = booting(&images(&json!({})), "ipa-api-url=http://192.0.2.5:6385");
    for name in ["boot.ipxx", "config", "../boot.ipxe", ""] {
        assert_eq!(ipxe.get_boot_config(&node, name).await.unwrap(), None, "{name}");
    }
    assert_eq!(interface(Method::Pxe).get_boot_config(&node, SCRIPT).await.unwrap(), None);
    let script = ipxe.get_boot_config(&node, SCRIPT).await.unwrap().unwrap();
    let kernel = "kernel --name kernel http://h/k selinux=0 troubleshoot=0 text nofb vga=normal \
                  ipa-api-url=http://192.0.2.5:6385 BOOTIF=${mac} initrd=ramdisk || goto retry";
    assert!(script.lines().any(|line| line == kernel), "{script}");
    assert!(script.lines().any(|line| line == "initrd --name ramdisk http://h/r || goto retry"), "{script}");
    assert!(script.contains("iseq ${try} 10 && goto failed"), "{script}");
    assert!(!script.contains("token"), "{script}");
}

#[test]
fn every_loader_gets_a_script_in_its_language_by_its_own_names() {
    let words = "selinux=0 troubleshoot=0 text nofb vga=normal ipa-api-url=http://192.0.2.5:6385";
    let card = "52-54-00-00-00-01";
    for (method, mode, names, lines) in [
        (
            Method::Pxe,
            "bios",
            vec![format!("pxelinux.cfg/01-{card}"), format!("pxelinux.cfg/{UUID}")],
            vec![
                "default deploy".to_owned(),
                format!("kernel {UUID}/deploy_kernel"),
                format!("append initrd={UUID}/deploy_ramdisk {words}"),
                "ipappend 2".to_owned(),
            ],
        ),
        (
            Method::Pxe,
            "uefi",
            vec![format!("grub/grub.cfg-01-{card}"), "52:54:00:00:00:01.conf".to_owned()],
            vec![
                "set default=deploy".to_owned(),
                format!("  if linux /{UUID}/deploy_kernel {words} boot_server=${{net_default_server}}; then"),
                format!("    if initrd /{UUID}/deploy_ramdisk; then"),
            ],
        ),
        (
            Method::HttpIpxe,
            "uefi",
            vec![format!("pxelinux.cfg/{card}")],
            vec![
                "goto deploy".to_owned(),
                format!(
                    "kernel --name kernel /{UUID}/deploy_kernel {words} BOOTIF=${{mac}} initrd=ramdisk || goto retry"
                ),
            ],
        ),
    ] {
        let (netboot, node) = (netboot(), local(mode));
        let all = [vec![format!("{UUID}/config")], names].concat();
        for name in &all {
            let found = text(&netboot, method, &node, name).unwrap_or_else(|| panic!("no {name}"));
            for line in &lines {
                assert!(found.lines().any(|found| found == line), "{line:?} in {found}");
            }
        }
        let others = [
            format!("pxelinux.cfg/01-{card}"),
            format!("pxelinux.cfg/{card}"),
            format!("grub.cfg-01-{card}"),
        ];
        let answered = others.iter().filter(|name| text(&netboot, method, &node, name).is_some());
        assert_eq!(answered.count(), 1, "a loader of another kind is told nothing");
    }
}

#[test]
fn f58_a_port_that_is_not_enabled_for_pxe_has_no_file() {
    let (netboot, mut node) = (netboot(), local("bios"));
    let name = "pxelinux.cfg/01-52-54-00-00-00-01";
    assert!(text(&netboot, Method::Pxe, &node, name).is_some());
    assert!(text(&netboot, Method::Pxe, &node, "pxelinux.cfg/01-52-54-00-00-00-02").is_none());
    node.ports[0].pxe_enabled = false;
    assert!(text(&netboot, Method::Pxe, &node, name).is_none());
    // What firmware is known by is another matter: the boot configuration API answers for any card.
    assert!(text(&netboot, Method::Pxe, &node, &format!("{UUID}/config")).is_some());
}

#[test]
fn f59_machines_pause_longer_after_each_failure_and_unknown_values_are_left_out() {
    let netboot = netboot();
    let script = text(&netboot, Method::Ipxe, &local("bios"), &format!("{UUID}/config")).unwrap();
    let lines: Vec<_> = script.lines().collect();
    let retry = lines.iter().position(|line| *line == ":retry").unwrap();
    assert_eq!(lines[retry + 1], "inc try", "{script}");
    assert!(lines[retry..].contains(&"sleep ${try}") && lines[retry..].contains(&"goto deploy"), "{script}");
    for (method, mode, bootif) in [
        (Method::Ipxe, "bios", "BOOTIF=${mac} "),
        (Method::Pxe, "bios", "ipappend 2"),
        (Method::Pxe, "uefi", ""),
    ] {
        let config = text(&netboot, method, &local(mode), &format!("{UUID}/config")).unwrap();
        assert!(config.contains(bootif), "{config}");
        let known = config.replace("BOOTIF=${mac} ", "");
        assert!(!known.contains("BOOTIF=") && !known.contains("None") && !known.contains("none"), "{config}");
    }
}

/// What other conductors take for the path of a template.
#[test]
fn s44_no_record_chooses_a_template() {
    let (netboot, name) = (netboot(), format!("{UUID}/config"));
    for (method, mode) in [(Method::Ipxe, "uefi"), (Method::Pxe, "bios"), (Method::Pxe, "uefi")] {
        let mut node = local(mode);
        let plain = text(&netboot, method, &node, &name).unwrap();
        for key in ["pxe_template", "ipxe_template", "ipxe_config_template", "pxe_config_template"] {
            node.driver_info.insert(key.into(), json!("/etc/passwd"));
            node.instance_info.insert(key.into(), json!("{{ 7 * 7 }}"));
        }
        let of_instance = json!("x={{kernel}}");
        assert_eq!(text(&netboot, method, &node, &name).unwrap(), plain);
        node.instance_info.insert("kernel_append_params".into(), of_instance);
        assert!(file(&netboot, method, &node, &Name::parse(&name).unwrap()).is_err());
    }
}

#[test]
fn files_are_those_that_the_machine_is_to_boot_now() {
    let (netboot, mut node) = (netboot(), local("bios"));
    let found = |node: &Node, name: &str| {
        file(&netboot, Method::Pxe, node, &Name::parse(&format!("{UUID}/{name}")).unwrap()).unwrap()
    };
    let kernel = Some(BootFile::File("/srv/images/k".into()));
    assert_eq!(found(&node, "deploy_kernel"), kernel);
    assert_eq!(found(&node, "deploy_ramdisk"), Some(BootFile::File("/srv/images/r".into())));
    for name in ["rescue_kernel", "kernel", "boot_iso"] {
        assert_eq!(found(&node, name), None, "{name}");
    }
    node.provision_state = farrier_conductor::model::ProvisionState::Rescuing;
    assert_eq!((found(&node, "rescue_kernel"), found(&node, "deploy_kernel")), (kernel, None));
    node.driver_internal_info.ramdisk_parameters = None;
    assert_eq!(found(&node, "rescue_kernel"), None);
}

#[test]
fn an_instance_boots_from_the_network_at_every_start() {
    let (netboot, mut node) = (netboot(), local("bios"));
    node.driver_internal_info.ramdisk_parameters = None;
    node.driver_internal_info.netboots_instance = true;
    let instance = json!({"kernel": "/srv/images/ik", "ramdisk": "/srv/images/ir"});
    node.instance_info = serde_json::from_value(instance).unwrap();
    let name = format!("{UUID}/config");
    let pxelinux = text(&netboot, Method::Pxe, &node, &name).unwrap();
    let append = format!("append initrd={UUID}/ramdisk root=/dev/ram0 text");
    assert!(pxelinux.starts_with("default boot_ramdisk\n") && pxelinux.contains(&append), "{pxelinux}");
    let ipxe = text(&netboot, Method::Ipxe, &node, &name).unwrap();
    assert!(!ipxe.contains("poweroff") && ipxe.contains("goto boot_ramdisk"), "{ipxe}");
    node.instance_info = serde_json::from_value(json!({"boot_iso": "/srv/images/iso"})).unwrap();
    let ipxe = text(&netboot, Method::Ipxe, &node, &name).unwrap();
    assert!(ipxe.contains(&format!("sanboot /{UUID}/boot_iso || goto retry")), "{ipxe}");
    let refused = file(&netboot, Method::Pxe, &node, &Name::parse(&name).unwrap()).unwrap_err();
    assert!(refused.to_string().contains("can only be booted by iPXE"), "{refused}");
}

#[test]
fn c06_a_machine_that_boots_from_the_network_all_the_same_is_sent_to_its_disk() {
    let mut netboot = netboot();
    netboot.defaults.netboot_fallback = true;
    for (method, mode, line) in [
        (Method::Pxe, "bios", "localboot 0"),
        (Method::Pxe, "uefi", "    if chainloader \"$loader\"; then"),
        (Method::Ipxe, "bios", "sanboot --no-describe --drive 0x80 || exit 1"),
        (Method::Ipxe, "uefi", "sanboot --no-describe --drive 0x80 || exit 1"),
    ] {
        let mut node = local(mode);
        node.driver_internal_info.ramdisk_parameters = None;
        node.provision_state = farrier_conductor::model::ProvisionState::Active;
        let found = text(&netboot, method, &node, &format!("{UUID}/config")).unwrap();
        assert!(found.lines().any(|found| found == line), "{found}");
        assert!(!found.contains("kernel ") && !found.contains("linux "), "{found}");
    }
}

/// Without a configuration PXELINUX tells so, and starts over after some minutes.
#[test]
fn c06_pxelinux_sends_a_machine_without_a_configuration_to_its_disk() {
    let config = netboot().renderer.pxelinux_default().unwrap();
    let lines: Vec<_> = config.lines().filter(|line| !line.is_empty()).collect();
    assert_eq!(lines[..2], ["default boot_whole_disk", "label boot_whole_disk"], "{config}");
    assert_eq!(lines.last(), Some(&"localboot 0"), "{config}");
}

#[test]
fn a_timeout_holds_for_both_files_and_a_url_for_files_of_this_host() {
    let mut netboot = netboot();
    netboot.renderer.timeout = Some(Duration::from_secs(60));
    netboot.renderer.http_url = Some("http://192.0.2.5:8080/".into());
    let script = text(&netboot, Method::Ipxe, &local("bios"), &format!("{UUID}/config")).unwrap();
    let place = format!(" --timeout 60000 http://192.0.2.5:8080/{UUID}/deploy_");
    assert_eq!(script.matches(&place).count(), 2, "{script}");
}

#[tokio::test]
async fn what_cannot_boot_is_refused() {
    let mut without_card = node(&files());
    without_card.ports.clear();
    let mut bios = node(&files());
    bios.properties.insert("capabilities".into(), json!("boot_mode:bios"));
    for (method, node, part) in [
        (Method::Ipxe, without_card, "ports: there is none"),
        (
            Method::Ipxe,
            node(&json!({"deploy_ramdisk": "http://h/r"})),
            "driver_info deploy_kernel: is missing",
        ),
        (Method::Http, bios, "only UEFI boots by HTTP"),
        (Method::Pxe, node(&images(&json!({}))), "driver_info deploy_kernel: http://h/k must be a file"),
    ] {
        let error = interface(method).validate(&node).await.unwrap_err().to_string();
        assert!(error.contains(part), "{error}");
    }
    for (grub, is_good) in [("GET / HTTP/1.1\r\n", true), ("GET / TFTP", false)] {
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(file.path(), grub).unwrap();
        let loaders = Loaders::new([("grubx64.efi".to_owned(), file.path().to_owned())].into());
        let http = NetworkBoot::new(Method::Http, Arc::new(Netboot { loaders, ..netboot() }));
        assert_eq!(http.validate(&node(&files())).await.is_ok(), is_good, "{grub}");
    }
}

#[tokio::test]
async fn files_for_another_server_are_there_before_the_machine_starts_and_gone_after() {
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path().join("tftpboot");
    std::fs::create_dir(&root).unwrap();
    let image = folder.path().canonicalize().unwrap().join("image");
    std::fs::write(&image, "image").unwrap();
    let roots = BootRoots::open(Some(&root), None).unwrap();
    let pxe = Arc::new(Netboot { roots, ..fixtures::netboot_of(folder.path()) });
    let mut node = node(&json!({"deploy_kernel": image, "deploy_ramdisk": image}));
    node.properties.insert("capabilities".into(), json!("boot_mode:bios"));
    let link = root.join("pxelinux.cfg/01-52-54-00-00-00-01");
    let own = root.join(node.uuid.to_string());
    fn context(node: &Node) -> BootContext<'_> {
        BootContext { node, management: &Noop, network: &Noop }
    }
    let interface = |method| NetworkBoot::new(method, Arc::clone(&pxe));
    interface(Method::Pxe).prepare_ramdisk(context(&node), &"x=1".parse().unwrap()).await.unwrap();
    let config = std::fs::read_to_string(&link).unwrap();
    assert!(config.starts_with("default deploy\n") && config.contains(" x=1\n"), "{config}");
    interface(Method::Pxe).clean_up_ramdisk(context(&node)).await.unwrap();
    assert!(!own.exists() && std::fs::symlink_metadata(&link).is_err());

    node.instance_info = serde_json::from_value(json!({"kernel": image, "ramdisk": image})).unwrap();
    let instance = RamdiskInstance::read(&node).unwrap();
    let prepare = interface(Method::Pxe);
    prepare.prepare_ramdisk_instance(context(&node), &instance, None).await.unwrap();
    assert!(std::fs::read_to_string(&link).unwrap().starts_with("default boot_ramdisk\n"));
    assert!(own.join("kernel").exists() && !own.join("deploy_kernel").exists());
    // Its files are elsewhere with another boot interface, for which there is no other server here.
    interface(Method::Ipxe).prepare_ramdisk(context(&node), &"x=1".parse().unwrap()).await.unwrap();
    assert!(!own.exists() && std::fs::symlink_metadata(&link).is_err());
}

#[tokio::test]
async fn a_config_drive_of_a_ramdisk_is_refused_and_never_left_out() {
    let mut node = local("uefi");
    node.instance_info.insert("kernel".into(), json!("/srv/images/k"));
    node.instance_info.insert("ramdisk".into(), json!("/srv/images/r"));
    let instance = RamdiskInstance::read(&node).unwrap();
    for method in Method::ALL {
        let interface = interface(method);
        assert!(!interface.capabilities().contains(&BootCapability::RamdiskBootConfigdrive));
        for (drive, is_refused) in [(Some("H4sI"), true), (None, false)] {
            let context = BootContext { node: &node, management: &Noop, network: &Noop };
            let prepared = interface.prepare_ramdisk_instance(context, &instance, drive).await;
            let error = prepared.err().map(|error| error.to_string()).unwrap_or_default();
            assert_eq!(error.starts_with("configdrive: has no way"), is_refused, "{method:?}: {error}");
        }
    }
}

proptest! {
    /// Whatever a record holds, it changes words of lines that are there, and adds none.
    #[test]
    fn s43_nothing_that_a_record_holds_adds_a_line(
        append in "\\PC{0,40}|[ a-z=;$|\\n\\r{}%\"'#-]{0,40}",
        kernel in "(/srv/images/|file:///srv/images/|http://h/)[\\PC\\n\\r]{0,30}",
        parameters in "\\PC{0,40}",
        method in prop::sample::select(Method::ALL.to_vec()),
        mode in prop::sample::select(vec!["bios", "uefi"]),
    ) {
        let netboot = netboot();
        let mut node = local(mode);
        let name = Name::parse(&format!("{UUID}/config")).unwrap();
        let plain = file(&netboot, method, &node, &name);
        node.driver_info.insert("kernel_append_params".into(), json!(append));
        node.driver_info.insert("deploy_kernel".into(), json!(kernel));
        node.driver_internal_info.ramdisk_parameters = Some(parameters);
        if let (Ok(Some(BootFile::Text(plain))), Ok(Some(BootFile::Text(text)))) =
            (plain, file(&netboot, method, &node, &name))
        {
            let first = |text: &str| text.lines().map(|line| {
                line.split_whitespace().next().unwrap_or_default().to_owned()
            }).collect::<Vec<_>>();
            prop_assert_eq!(first(&plain), first(&text), "{}", text);
            let interpreted = |text: &str| text.chars().filter(|c| "$;|&<>`{}".contains(*c)).count();
            prop_assert_eq!(interpreted(&plain), interpreted(&text), "{}", text);
        }
    }
}
