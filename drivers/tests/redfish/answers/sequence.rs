//! What is done to a machine, each with what has to be done before and what must be left then.

use crate::stage::{Stage, settings};
use crate::wrong_answers::http::PATIENCE;
use farrier_conductor::interfaces::{InterfaceError, ManagementInterface, PowerInterface};
use farrier_conductor::model::BootDevice;
use farrier_drivers::redfish::RedfishSettings;
use std::time::Duration;

const ISO: &str = "http://192.0.2.5/v1/media/5d2c.iso";

/// What is done to a machine.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Sequence {
    Manage,
    PowerOn,
    PowerOff,
    Reboot,
    BootFromCd,
    BootFromDisk,
    Media,
    Sensors,
    EventLog,
}

impl Sequence {
    pub const ALL: [Self; 9] = [
        Self::Manage,
        Self::PowerOn,
        Self::PowerOff,
        Self::Reboot,
        Self::BootFromCd,
        Self::BootFromDisk,
        Self::Media,
        Self::Sensors,
        Self::EventLog,
    ];

    /// Those that are tried each time.
    pub const USUAL: [Self; 1] = [Self::Manage];

    pub fn name(self) -> &'static str {
        match self {
            Self::Manage => "manage",
            Self::PowerOn => "power on",
            Self::PowerOff => "power off",
            Self::Reboot => "reboot",
            Self::BootFromCd => "boot from CD once",
            Self::BootFromDisk => "boot from disk always",
            Self::Media => "insert and eject",
            Self::Sensors => "sensors",
            Self::EventLog => "event log",
        }
    }

    /// Has the machine be where it is begun.
    pub async fn prepare(self, stage: &Stage) -> Result<(), InterfaceError> {
        match self {
            Self::PowerOn => stage.power.power_off(&stage.node).await,
            Self::PowerOff | Self::Reboot => stage.power.power_on(&stage.node).await,
            _ => Ok(()),
        }
    }

    pub async fn run(self, stage: &Stage) -> Result<(), InterfaceError> {
        let Stage { node, power, management, .. } = stage;
        match self {
            Self::Manage => power.power_state(node).await.map(drop),
            Self::PowerOn => power.power_on(node).await,
            Self::PowerOff => power.power_off(node).await,
            Self::Reboot => power.reboot(node).await,
            Self::BootFromCd => management.set_boot_device(node, BootDevice::Cdrom, false).await,
            Self::BootFromDisk => management.set_boot_device(node, BootDevice::Disk, true).await,
            Self::Media => {
                let inserted = management.attach_virtual_media(node, BootDevice::Cdrom, ISO).await;
                let ejected = management.detach_virtual_media(node, &[BootDevice::Cdrom]).await;
                inserted.and(ejected)
            }
            Self::Sensors => management.get_sensors_data(node).await.map(drop),
            Self::EventLog => {
                let since = time::OffsetDateTime::UNIX_EPOCH;
                management.get_event_log(node, since).await.map(drop)
            }
        }
    }
}

/// The settings of a site that waits for nothing long.
pub fn impatient() -> RedfishSettings {
    RedfishSettings {
        request_timeout: PATIENCE,
        power_wait: Duration::from_secs(60),
        media_wait: Duration::from_millis(50),
        ..settings()
    }
}

/// Whether a medium is in a drive.
pub async fn has_medium(stage: &Stage) -> bool {
    let media = stage.management.get_virtual_media(&stage.node).await;
    media.is_ok_and(|media| media.iter().any(|medium| medium.image.as_deref() == Some(ISO)))
}
