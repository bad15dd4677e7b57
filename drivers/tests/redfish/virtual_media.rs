//! Virtual drives, and the boot interface that works by them.

use crate::stage::{Stage, settings};
use crate::stand_in::{Manner, StandIn};
use axum::http::Method;
use farrier_conductor::interfaces::{
    BootContext, BootInterface, Interface, ManagementInterface, Noop, PowerInterface,
};
use farrier_conductor::model::{BootDevice, RamdiskInstance};
use farrier_drivers::netboot::images::AllowedFolders;
use farrier_drivers::redfish::RedfishSettings;
use farrier_drivers::virtual_media::{Shelf, VirtualMediaBoot};
use farrier_media::boot_iso::NETWORK_DATA;
use farrier_media::{KernelParameters, config_drive};
use serde_json::json;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::time::Duration;

const ISO: &str = "http://192.0.2.5/horse.iso";
const EJECT: &str = "POST /redfish/v1/Managers/1/VirtualMedia/CD/Actions/VirtualMedia.EjectMedia";

#[tokio::test]
async fn f55_a_drive_is_emptied_before_it_is_filled_with_the_same_again() {
    let Stage { bmc, node, management, .. } = Stage::new([]).await;
    management.attach_virtual_media(&node, BootDevice::Cdrom, ISO).await.unwrap();
    assert_eq!(bmc.count(EJECT), 0, "an empty drive is left alone");
    management.attach_virtual_media(&node, BootDevice::Cdrom, ISO).await.unwrap();
    assert_eq!(bmc.count(EJECT), 1);
    let media = management.get_virtual_media(&node).await.unwrap();
    let told: Vec<_> = media.iter().map(|medium| (medium.image.as_deref(), medium.inserted)).collect();
    assert_eq!(told, [(None, false), (Some(ISO), true)]);
    assert_eq!(media[1].media_types, [BootDevice::Cdrom]);
    management.detach_virtual_media(&node, &[BootDevice::Floppy]).await.unwrap();
    assert!(bmc.inner().drives.cd.image.is_some());
    management.detach_virtual_media(&node, &[BootDevice::Cdrom]).await.unwrap();
    assert!(bmc.inner().drives.cd.image.is_none());
}

#[tokio::test]
async fn the_least_is_said_and_sticks_are_sticks() {
    let Stage { bmc, node, management, .. } = Stage::new([]).await;
    management.attach_virtual_media(&node, BootDevice::Floppy, "http://192.0.2.5/x.img").await.unwrap();
    assert!(bmc.inner().drives.usb.image.is_some());
    let inserted = bmc.bodies(&Method::POST).into_iter().filter(|body| body.get("Image").is_some());
    assert_eq!(inserted.collect::<Vec<_>>(), [json!({"Image": "http://192.0.2.5/x.img"})]);
}

#[tokio::test]
async fn f56_what_one_drive_refuses_the_next_may_take() {
    let Stage { bmc, node, management, .. } = Stage::new([Manner::FirstDriveIsBroken]).await;
    management.attach_virtual_media(&node, BootDevice::Cdrom, ISO).await.unwrap();
    assert_eq!(bmc.inner().drives.cd.image.as_deref(), Some(ISO));
    let error =
        management.attach_virtual_media(&node, BootDevice::Floppy, ISO).await.unwrap_err().to_string();
    assert!(error.contains("no virtual drive for a floppy, but for: CD, CD, DVD"), "{error}");
}

#[tokio::test]
async fn a_medium_that_is_not_in_is_not_taken_for_inserted() {
    let settings = RedfishSettings { media_wait: Duration::from_millis(200), ..settings() };
    let Stage { bmc: _bmc, node, management, .. } = Stage::with([Manner::ForgetsInsertions], settings).await;
    let error = management.attach_virtual_media(&node, BootDevice::Cdrom, ISO).await.unwrap_err().to_string();
    assert!(
        error.contains("was told to change the medium in") && error.contains("that nothing is out"),
        "{error}"
    );
}

/// A folder with an ISO, made like those of `farrier-image`.
fn folder() -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    let tree = folder.path().join("tree");
    std::fs::create_dir_all(tree.join("boot/grub")).unwrap();
    std::fs::write(tree.join("boot/grub/grub.cfg"), "linux /vmlinuz\ninitrd /initramfs.img\nboot\n").unwrap();
    std::fs::create_dir_all(tree.join("openstack/latest")).unwrap();
    std::fs::write(tree.join(NETWORK_DATA), "").unwrap();
    let packed = config_drive::pack(&tree).unwrap();
    let iso = config_drive::unpack(&tree, &packed).unwrap();
    std::fs::write(folder.path().join("farrier.iso"), iso).unwrap();
    folder
}

fn shelf(folder: &Path) -> Shelf {
    Shelf::open(folder.join("media"), "http://192.0.2.5:6385/media/").unwrap()
}

fn boot_interface(folder: &Path) -> VirtualMediaBoot {
    VirtualMediaBoot::new(shelf(folder), AllowedFolders::new(vec![folder.to_owned()]).unwrap())
}

/// The medium that the stand-in has in its drive, read as its BMC would.
fn medium(folder: &Path, bmc: &StandIn) -> Option<String> {
    let url = bmc.inner().drives.cd.image.clone()?;
    let name = url.strip_prefix("http://192.0.2.5:6385/media/").unwrap();
    assert!(name.ends_with(".iso") && name.len() == 36, "{name}");
    let medium = shelf(folder).medium(name)?;
    let bytes = medium.read_at(0, usize::MAX).unwrap();
    assert_eq!(bytes.len() as u64, medium.length());
    Some(String::from_utf8_lossy(&bytes).into_owned())
}

#[tokio::test]
async fn a_machine_boots_from_a_medium_of_its_own_that_ends_with_the_boot() {
    let Stage { bmc, mut node, power, management } = Stage::new([]).await;
    let (folder, network) = (folder(), Noop);
    let iso = folder.path().join("farrier.iso");
    node.driver_info.insert("deploy_iso".into(), json!(iso));
    node.driver_info.insert("kernel_append_params".into(), json!("console=ttyS1"));
    let boot = boot_interface(folder.path());
    boot.validate(&node).await.unwrap();
    let context = BootContext { node: &node, management: &management, network: &network };
    boot.prepare_ramdisk(context, &"ipa-api-url=http://192.0.2.5:6385".parse().unwrap()).await.unwrap();
    let first = bmc.inner().drives.cd.image.clone();
    // Whoever takes up the conductor's work serves the same.
    let text = medium(folder.path(), &bmc).unwrap();
    let line = "linux /vmlinuz console=ttyS1 boot_method=vmedia ipa-api-url=http://192.0.2.5:6385\n";
    assert!(text.contains(line));
    boot.prepare_ramdisk(context, &KernelParameters::default()).await.unwrap();
    assert_ne!(bmc.inner().drives.cd.image, first, "each boot has an address of its own");
    power.power_on(&node).await.unwrap();
    assert_eq!(bmc.inner().machine.started_from, ["Cd"]);
    boot.prepare_instance(context).await.unwrap();
    assert_eq!(bmc.inner().drives.cd.image, None);
    assert_eq!(std::fs::read_dir(folder.path().join("media")).unwrap().count(), 0);
    power.reboot(&node).await.unwrap();
    assert_eq!(bmc.inner().machine.started_from, ["Cd", "Hdd"]);
    let asked = bmc.asked().len();
    boot.clean_up_ramdisk(context).await.unwrap();
    assert_eq!(bmc.asked().len(), asked, "nothing happens where nothing was prepared");
}

/// A machine without DHCP, on whose medium is its network.
#[tokio::test]
async fn the_network_of_a_node_is_on_its_medium() {
    let Stage { bmc, mut node, management, .. } = Stage::new([]).await;
    let (folder, network) = (folder(), Noop);
    node.driver_info.insert("deploy_iso".into(), json!(folder.path().join("farrier.iso")));
    node.network_data.insert("links".into(), json!([{"id": "oats"}]));
    let boot = boot_interface(folder.path());
    boot.validate(&node).await.unwrap();
    let context = BootContext { node: &node, management: &management, network: &network };
    boot.prepare_ramdisk(context, &KernelParameters::default()).await.unwrap();
    let text = medium(folder.path(), &bmc).unwrap();
    assert!(text.contains(r#"{"links":[{"id":"oats"}]}"#) && text.contains("config-2"));
    let note = std::fs::read_dir(folder.path().join("media")).unwrap().next().unwrap().unwrap();
    assert_eq!(note.metadata().unwrap().permissions().mode() & 0o777, 0o600, "there may be a token in it");
}

/// From a file of the conductor's host it is read as it is; the BMC fetches one of a server by itself.
#[tokio::test]
async fn an_instance_that_is_an_iso_is_started_from_as_long_as_it_lasts() {
    let Stage { bmc, mut node, power, management } = Stage::new([]).await;
    let (folder, network) = (folder(), Noop);
    let iso = folder.path().join("farrier.iso");
    let boot = boot_interface(folder.path());
    for (image, is_ours) in [(iso.to_str().unwrap(), true), (ISO, false)] {
        node.instance_info.insert("boot_iso".into(), json!(image));
        let context = BootContext { node: &node, management: &management, network: &network };
        let instance = RamdiskInstance::read(&node).unwrap();
        boot.prepare_ramdisk_instance(context, &instance, None).await.unwrap();
        match is_ours {
            true => assert!(medium(folder.path(), &bmc).unwrap().contains("linux /vmlinuz\ninitrd")),
            false => assert_eq!(bmc.inner().drives.cd.image.as_deref(), Some(ISO)),
        }
        power.reboot(&node).await.unwrap();
        power.reboot(&node).await.unwrap();
        boot.clean_up_instance(context).await.unwrap();
        assert_eq!(bmc.inner().drives.cd.image, None);
        assert_eq!(std::fs::read_dir(folder.path().join("media")).unwrap().count(), 0);
    }
    assert_eq!(bmc.inner().machine.started_from, ["Cd"; 4]);
    node.instance_info.insert("boot_iso".into(), json!("/etc/passwd"));
    let context = BootContext { node: &node, management: &management, network: &network };
    let instance = RamdiskInstance::read(&node).unwrap();
    let refused = boot.prepare_ramdisk_instance(context, &instance, None).await.unwrap_err().to_string();
    assert!(refused.contains("instance_info boot_iso: is no file below a folder"), "{refused}");
}

/// What a BMC says of a medium proves nothing; that it reads it does.
#[tokio::test]
async fn a_medium_that_is_said_to_be_inserted_and_never_read_is_known() {
    let Stage { bmc, mut node, management, .. } = Stage::new([]).await;
    let (folder, network) = (folder(), Noop);
    node.driver_info.insert("deploy_iso".into(), json!(folder.path().join("farrier.iso")));
    let shelf = shelf(folder.path());
    let boot =
        VirtualMediaBoot::new(shelf.clone(), AllowedFolders::new(vec![folder.path().to_owned()]).unwrap());
    let context = BootContext { node: &node, management: &management, network: &network };
    boot.prepare_ramdisk(context, &KernelParameters::default()).await.unwrap();
    let media = management.get_virtual_media(&node).await.unwrap();
    assert!(media.iter().any(|medium| medium.inserted), "{media:?}");
    assert_eq!(shelf.reads(&node).unwrap().requests, 0);
    let url = bmc.inner().drives.cd.image.clone().unwrap();
    shelf.note_reading(url.rsplit('/').next().unwrap(), 2048);
    assert_eq!(shelf.reads(&node).unwrap().bytes, 2048);
    boot.clean_up_ramdisk(context).await.unwrap();
    assert_eq!(shelf.reads(&node), None);
}

#[tokio::test]
async fn files_that_are_no_boot_media_or_nobody_may_have_are_refused() {
    let Stage { bmc: _bmc, mut node, .. } = Stage::new([]).await;
    let folder = folder();
    let elsewhere = tempfile::tempdir().unwrap();
    std::fs::copy(folder.path().join("farrier.iso"), elsewhere.path().join("farrier.iso")).unwrap();
    std::os::unix::fs::symlink(elsewhere.path().join("farrier.iso"), folder.path().join("link.iso")).unwrap();
    std::fs::write(folder.path().join("text.iso"), "oats").unwrap();
    let boot = boot_interface(folder.path());
    for (iso, part) in [
        (json!(null), "driver_info deploy_iso: is missing"),
        (json!("/etc/passwd"), "driver_info deploy_iso: is no file below a folder"),
        (json!(elsewhere.path().join("farrier.iso")), "driver_info deploy_iso: is no file below a folder"),
        (json!(folder.path().join("link.iso")), "driver_info deploy_iso: is no file below a folder"),
        (json!(folder.path().join("text.iso")), "it is no ISO 9660 image"),
    ] {
        node.driver_info.insert("deploy_iso".into(), iso);
        let error = boot.validate(&node).await.unwrap_err().to_string();
        assert!(error.contains(part), "{error}");
    }
}
