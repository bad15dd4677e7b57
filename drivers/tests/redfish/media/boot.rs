//! Boot from virtual media of ISOs of this host: what a BMC reads, and until when.

use super::stage::{MediaStage, holds};
use crate::stage::Stage;
use crate::stand_in::Manner;
use farrier_conductor::interfaces::{
    BootExtension, BootInterface, Interface, ManagementInterface, PowerInterface,
};
use farrier_conductor::model::{BootDevice, RamdiskInstance};
use farrier_media::{KernelParameters, config_drive};
use farrier_tests::images::server::{ImageServer, Reply};
use serde_json::json;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::sync::Arc;

const ISO: &str = "http://192.0.2.5/horse.iso";

/// A machine whose ramdisk is the ISO of the site.
async fn stage(manners: impl IntoIterator<Item = Manner>) -> MediaStage {
    let mut stage = MediaStage::new(Stage::new(manners).await);
    let iso = stage.folder.path().join("farrier.iso");
    stage.stage.node.driver_info.insert("deploy_iso".into(), json!(iso));
    stage
}

#[tokio::test]
async fn a_machine_boots_from_a_medium_of_its_own_that_ends_with_the_boot() {
    let mut stage = stage([]).await;
    stage.stage.node.driver_info.insert("kernel_append_params".into(), json!("console=ttyS1 %default%"));
    let (boot, context, bmc) = (&stage.boot, stage.context(), &stage.stage.bmc);
    boot.validate(context.node).await.unwrap();
    boot.prepare_ramdisk(context, &"ipa-api-url=http://192.0.2.5:6385".parse().unwrap()).await.unwrap();
    let first = bmc.inner().drives.cd.image.clone();
    // The conductor that takes over serves the same.
    let line = "linux /vmlinuz console=ttyS1 boot_method=vmedia ipa-api-url=http://192.0.2.5:6385\n";
    assert!(holds(&stage.medium().await.unwrap(), line));
    boot.prepare_ramdisk(context, &KernelParameters::default()).await.unwrap();
    assert_ne!(bmc.inner().drives.cd.image, first, "each boot has an address of its own");
    stage.stage.power.power_on(context.node).await.unwrap();
    assert_eq!(bmc.inner().machine.started_from, ["Cd"]);
    boot.prepare_instance(context).await.unwrap();
    assert_eq!((bmc.inner().drives.cd.image.clone(), stage.kept()), (None, 0));
    stage.stage.power.reboot(context.node).await.unwrap();
    assert_eq!(bmc.inner().machine.started_from, ["Cd", "Hdd"]);
    let asked = bmc.asked().len();
    boot.clean_up_ramdisk(context).await.unwrap();
    assert_eq!(bmc.asked().len(), asked, "nothing happens where nothing was prepared");
}

/// A machine without DHCP, on whose medium is its network.
#[tokio::test]
async fn the_network_of_a_node_is_on_its_medium() {
    let mut stage = stage([]).await;
    stage.stage.node.network_data.insert("links".into(), json!([{"id": "oats"}]));
    stage.boot.validate(&stage.stage.node).await.unwrap();
    stage.boot.prepare_ramdisk(stage.context(), &KernelParameters::default()).await.unwrap();
    let medium = stage.medium().await.unwrap();
    assert!(holds(&medium, r#"{"links":[{"id":"oats"}]}"#) && holds(&medium, "config-2"));
    let note = fs::read_dir(stage.folder.path().join("media")).unwrap().next().unwrap().unwrap();
    assert_eq!(note.metadata().unwrap().permissions().mode() & 0o777, 0o600, "there may be a token in it");
}

/// From a file of the conductor's host it is read as it is; the BMC fetches one of a server by itself.
#[tokio::test]
async fn an_instance_that_is_an_iso_is_started_from_as_long_as_it_lasts() {
    let mut stage = stage([]).await;
    let iso = stage.folder.path().join("farrier.iso");
    for (image, is_ours) in [(iso.to_str().unwrap(), true), (ISO, false)] {
        stage.stage.node.instance_info.insert("boot_iso".into(), json!(image));
        let (context, bmc, power) = (stage.context(), &stage.stage.bmc, &stage.stage.power);
        let instance = RamdiskInstance::read(context.node).unwrap();
        stage.boot.prepare_ramdisk_instance(context, &instance, None).await.unwrap();
        match is_ours {
            true => assert_eq!(stage.medium().await.unwrap(), fs::read(&iso).unwrap()),
            false => assert_eq!(bmc.inner().drives.cd.image.as_deref(), Some(ISO)),
        }
        power.reboot(context.node).await.unwrap();
        power.reboot(context.node).await.unwrap();
        stage.boot.clean_up_instance(context).await.unwrap();
        assert_eq!((bmc.inner().drives.cd.image.clone(), stage.kept()), (None, 0));
    }
    assert_eq!(stage.stage.bmc.inner().machine.started_from, ["Cd"; 4]);
    stage.stage.node.instance_info.insert("boot_iso".into(), json!("/etc/passwd"));
    let instance = RamdiskInstance::read(&stage.stage.node).unwrap();
    let refused = stage.boot.prepare_ramdisk_instance(stage.context(), &instance, None).await;
    let refused = refused.unwrap_err().to_string();
    assert!(refused.contains("instance_info boot_iso: /etc/passwd is not below a folder"), "{refused}");
}

/// It is a stick beside the CD. A ramdisk that boots in between would take it for its own.
#[tokio::test]
async fn an_instance_that_is_an_iso_has_its_config_drive_in_another_drive() {
    for manner in [None, Some(Manner::DrivesTakeAll)] {
        let mut stage = stage(manner).await;
        let iso = stage.folder.path().join("farrier.iso");
        stage.stage.node.instance_info.insert("boot_iso".into(), json!(iso));
        let (context, drives) = (stage.context(), || {
            let drives = &stage.stage.bmc.inner().drives;
            [&drives.usb, &drives.cd].map(|drive| drive.image.clone())
        });
        let instance = RamdiskInstance::read(context.node).unwrap();
        let packed = config_drive::make(json!({"meta_data": {"oats": 7}}).as_object().unwrap()).unwrap();
        for _ in 0..2 {
            stage.boot.prepare_ramdisk_instance(context, &instance, Some(&packed)).await.unwrap();
            let urls: Vec<_> = drives().into_iter().flatten().collect();
            let drive = urls.iter().find(|url| url.ends_with(".img")).unwrap();
            assert!(urls.len() == 2 && urls.iter().any(|url| url.ends_with(".iso")), "{urls:?}");
            let read = stage.read(drive, ".img").await.unwrap();
            assert_eq!(read, config_drive::unpack(&iso, &packed).unwrap());
        }
        stage.stage.power.reboot(context.node).await.unwrap();
        assert_eq!(stage.stage.bmc.inner().machine.started_from, ["Cd"]);
        stage.boot.prepare_ramdisk(context, &KernelParameters::default()).await.unwrap();
        assert_eq!(drives().iter().flatten().count(), 1, "{:?}", drives());
        stage.boot.prepare_ramdisk_instance(context, &instance, Some(&packed)).await.unwrap();
        stage.boot.clean_up_instance(context).await.unwrap();
        assert_eq!((drives(), stage.kept()), ([None, None], 0));
    }
}

#[tokio::test]
async fn a_config_drive_may_be_on_a_server() {
    let mut stage = stage([]).await;
    stage.stage.node.instance_info.insert("boot_iso".into(), json!(ISO));
    let instance = RamdiskInstance::read(&stage.stage.node).unwrap();
    let packed = config_drive::make(&serde_json::Map::new()).unwrap();
    let body = Reply::Body(Arc::new(packed.clone().into_bytes()));
    let server = ImageServer::start(vec![Reply::Status(503), body, Reply::Status(404)]).unwrap();
    let url = format!("http://smith:horseshoe@127.0.0.1:{}/drive", server.port());
    stage.boot.prepare_ramdisk_instance(stage.context(), &instance, Some(&url)).await.unwrap();
    let drive = stage.stage.bmc.inner().drives.usb.image.clone().unwrap();
    let read = stage.read(&drive, ".img").await.unwrap();
    assert_eq!(read, config_drive::unpack(Path::new("x"), &packed).unwrap());
    let refused = stage.boot.prepare_ramdisk_instance(stage.context(), &instance, Some(&url)).await;
    let refused = refused.unwrap_err().to_string();
    assert!(refused.contains("/drive cannot be loaded: it answers 404 Not Found"), "{refused}");
    assert!(!refused.contains("horseshoe"), "{refused}");
}

#[tokio::test]
async fn a_config_drive_that_would_take_the_place_of_its_iso_is_refused() {
    let mut stage = stage([Manner::OneDrive]).await;
    stage.stage.node.instance_info.insert("boot_iso".into(), json!(ISO));
    let instance = RamdiskInstance::read(&stage.stage.node).unwrap();
    let packed = config_drive::make(&serde_json::Map::new()).unwrap();
    let prepare = async |drive| {
        let prepared = stage.boot.prepare_ramdisk_instance(stage.context(), &instance, Some(drive)).await;
        prepared.unwrap_err().to_string()
    };
    let refused = prepare(&packed).await;
    assert!(refused.contains("configdrive: finds no drive beside that of the ISO"), "{refused}");
    let refused = prepare("oats").await;
    assert!(refused.contains("config drive of the instance is neither"), "{refused}");
}

/// What a BMC says of a medium proves nothing; that it reads it does.
#[tokio::test]
async fn a_medium_that_is_said_to_be_inserted_and_never_read_is_known() {
    let stage = stage([]).await;
    let (context, published_media) = (stage.context(), &stage.published_media);
    let reads = || published_media.reads(context.node, BootDevice::Cdrom);
    stage.boot.prepare_ramdisk(context, &KernelParameters::default()).await.unwrap();
    let media = stage.stage.management.get_virtual_media(context.node).await.unwrap();
    assert!(media.iter().any(|medium| medium.inserted), "{media:?}");
    assert_eq!(reads().unwrap().requests, 0);
    let url = stage.stage.bmc.inner().drives.cd.image.clone().unwrap();
    published_media.note_reading(url.rsplit('/').next().unwrap(), 2048);
    assert_eq!(reads().unwrap().bytes, 2048);
    stage.boot.clean_up_ramdisk(context).await.unwrap();
    assert_eq!(reads(), None);
}

#[tokio::test]
async fn files_that_are_no_boot_media_or_nobody_may_have_are_refused() {
    let mut stage = stage([]).await;
    let elsewhere = tempfile::tempdir().unwrap();
    let (inside, outside) = (stage.folder.path().to_owned(), elsewhere.path().join("farrier.iso"));
    fs::copy(inside.join("farrier.iso"), &outside).unwrap();
    std::os::unix::fs::symlink(&outside, inside.join("link.iso")).unwrap();
    fs::write(inside.join("text.iso"), "oats").unwrap();
    let refused = "driver_info deploy_iso: ";
    for (iso, part) in [
        (json!(null), format!("{refused}is missing; give the ramdisk's ISO, or deploy_kernel and")),
        (json!("/etc/passwd"), format!("{refused}/etc/passwd is not below a folder")),
        (json!(outside), format!("{refused}{} is not below a folder", outside.display())),
        (json!(inside.join("link.iso")), format!("{refused}is no file that may be taken")),
        (json!(inside.join("none.iso")), format!("{refused}is no file that may be taken")),
        (json!("tftp://h/farrier.iso"), format!("{refused}must be a file:// URL, or one with http or https")),
        (json!(inside.join("text.iso")), "it is no ISO 9660 image".to_owned()),
    ] {
        stage.stage.node.driver_info.insert("deploy_iso".into(), iso);
        let error = stage.boot.validate(&stage.stage.node).await.unwrap_err().to_string();
        assert!(error.contains(&part), "{error}");
    }
}
