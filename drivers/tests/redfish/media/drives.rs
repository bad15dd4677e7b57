//! Virtual drives.

use crate::stage::{Stage, settings};
use crate::stand_in::Manner;
use axum::http::Method;
use farrier_conductor::interfaces::ManagementInterface;
use farrier_conductor::model::BootDevice;
use farrier_drivers::redfish::RedfishSettings;
use serde_json::json;
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
    let read: Vec<_> = media.iter().map(|medium| (medium.image.as_deref(), medium.inserted)).collect();
    assert_eq!(read, [(None, false), (Some(ISO), true)]);
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
        error.contains("accepted the order to change the medium in") && error.contains("that nothing is out"),
        "{error}"
    );
}

#[tokio::test]
async fn c07_a_bmc_that_forgets_a_change_of_media_gets_the_order_again() {
    let settings = RedfishSettings { media_wait: Duration::from_millis(200), ..settings() };
    let Stage { bmc, node, management, .. } =
        Stage::with([Manner::ForgetsFirstChangeOfMedia], settings).await;
    management.attach_virtual_media(&node, BootDevice::Cdrom, ISO).await.unwrap();
    assert_eq!(bmc.inner().drives.cd.image.as_deref(), Some(ISO));
    management.detach_virtual_media(&node, &[BootDevice::Cdrom]).await.unwrap();
    assert!(bmc.inner().drives.cd.image.is_none());
}
