//! The table of quirks: with all of them every odd BMC is led, and each of them is needed.

use crate::stage::{Stage, settings};
use crate::stand_in::{Manner, PASSWORD};
use farrier_conductor::interfaces::{InterfaceError, ManagementInterface, PowerInterface};
use farrier_conductor::model::{BootDevice, BootMode};
use farrier_drivers::redfish::RedfishSettings;
use farrier_drivers::redfish::quirks::{QUIRKS, Quirk, Quirks};
use std::time::Duration;

/// A wait that is in vain.
const BRIEF: Duration = Duration::from_millis(200);

/// What happens to each machine: it starts from a virtual CD that is changed once, and then
/// from its disk; then its boot mode is changed.
async fn is_led(manner: Manner, settings: RedfishSettings) -> Result<bool, InterfaceError> {
    let Stage { bmc, node, power, management } = Stage::with([manner], settings).await;
    for url in ["http://192.0.2.5/1.iso", "http://192.0.2.5/2.iso"] {
        management.attach_virtual_media(&node, BootDevice::Cdrom, url).await?;
        assert_eq!(bmc.inner().drives.cd.image.as_deref(), Some(url), "{manner:?}");
    }
    management.set_boot_device(&node, BootDevice::Cdrom, false).await?;
    power.power_on(&node).await?;
    power.power_off(&node).await?;
    management.detach_virtual_media(&node, &[]).await?;
    assert_eq!(bmc.inner().drives.cd.image, None, "{manner:?}");
    management.set_boot_device(&node, BootDevice::Disk, true).await?;
    power.power_on(&node).await?;
    let started_by = bmc.inner().machine.boot.mode.clone();
    management.set_boot_mode(&node, BootMode::Bios).await?;
    let inner = bmc.inner();
    let last = inner.machine.started_from.last().cloned().unwrap_or_default();
    let leads_to_disk = ["Hdd", "its own order"].contains(&last.as_str());
    Ok(inner.machine.started_from[0] == "Cd" && leads_to_disk && started_by == "UEFI")
}

#[tokio::test]
async fn f23_f55_f56_f57_each_quirk_is_needed() {
    for row in QUIRKS {
        let manner = Manner::Odd(row.quirk);
        // A drive that goes on saying that it is full is waited for in vain by a driver that knows it, too.
        let media_wait = if row.quirk == Quirk::StaleInserted { BRIEF } else { settings().media_wait };
        let with = RedfishSettings { media_wait, ..settings() };
        assert!(is_led(manner, with).await.unwrap(), "{:?}", row.quirk);
        // Two rows have the same remedy.
        let mut quirks = Quirks::all().without(row.quirk);
        if matches!(row.quirk, Quirk::CompleteBoot | Quirk::ModeFallsBack) {
            quirks = quirks.without(Quirk::CompleteBoot).without(Quirk::ModeFallsBack);
        }
        if row.quirk == Quirk::StrongEtags {
            quirks = quirks.without(Quirk::WrongEtags);
        }
        let without = RedfishSettings { quirks, media_wait: BRIEF, ..settings() };
        let without = is_led(manner, without).await;
        assert!(!without.as_ref().is_ok_and(|led| *led), "{:?}: {without:?}", row.quirk);
        if let Err(error) = without {
            assert!(!error.to_string().contains(PASSWORD), "{error}");
        }
    }
}
