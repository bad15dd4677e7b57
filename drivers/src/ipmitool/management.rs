//! The management interface `ipmitool` (section 9.7): what a machine starts from.
//!
//! The boot mode cannot be set by IPMI; that of the record decides how a boot device is named: with UEFI the flags are sent
//! as they are, since ipmitool sets those of the boot sector.

use super::bmcs::{Bmc, Bmcs};
use super::connection::{self, Connection};
use super::error::IpmiError;
use super::event_log;
use async_trait::async_trait;
use farrier_conductor::interfaces::{
    BootDeviceSetting, Interface, InterfaceError, ManagementInterface, Properties,
};
use farrier_conductor::model::{BootDevice, BootMode, InterfaceKind, LogEntry, Node};
use time::OffsetDateTime;

/// Devices, with ipmitool's names, their number in the boot flags, and their text in the parameter.
const DEVICES: &[(BootDevice, &str, u8, &str)] = &[
    (BootDevice::Pxe, "pxe", 0x04, "Force PXE"),
    (BootDevice::Disk, "disk", 0x08, "Force Boot from default Hard-Drive"),
    (BootDevice::Safe, "safe", 0x0c, "Force Boot from default Hard-Drive, request Safe-Mode"),
    (BootDevice::Cdrom, "cdrom", 0x14, "Force Boot from CD/DVD"),
    (BootDevice::Bios, "bios", 0x18, "Force Boot into BIOS Setup"),
];

/// Boot flags that are valid, by UEFI, for the next start and for all (IPMI 2.0, table 28-14).
const UEFI_ONCE: &str = "0xa0";
const UEFI_ALWAYS: &str = "0xe0";

/// Keeps the flags when no start follows within a minute.
const KEEP_FLAGS: &[&str] = &["raw", "0x00", "0x08", "0x03", "0x08"];

/// The disk by UEFI, to BMCs of Supermicro (FAQ 25559), and how they tell of it.
const SUPERMICRO_UEFI_DISK: u8 = 0x24;
const SUPERMICRO_UEFI_DISK_SELECTOR: &str = "Force Boot from primary remote media";

const READ_FLAGS: &[&str] = &["chassis", "bootparam", "get", "5"];

/// Manages machines by ipmitool.
#[derive(Debug)]
pub struct IpmiManagement {
    bmcs: Bmcs,
}

impl IpmiManagement {
    /// Manages the machines of these BMCs.
    pub fn new(bmcs: Bmcs) -> Self {
        Self { bmcs }
    }
}

/// What the boot flags say.
fn read_flags(said: &str) -> BootDeviceSetting {
    let selector = said.lines().find_map(|line| line.trim().strip_prefix("- Boot Device Selector : "));
    let device = selector.map(str::trim).and_then(|selector| match selector {
        SUPERMICRO_UEFI_DISK_SELECTOR => Some(BootDevice::Disk),
        _ => DEVICES.iter().find(|(.., order)| *order == selector).map(|(device, ..)| *device),
    });
    let says = |text: &str| said.contains(text);
    let persistent = match device {
        None => None,
        Some(_) if says("Options apply to all future boots") => Some(true),
        Some(_) => says("Options apply to only next boot").then_some(false),
    };
    BootDeviceSetting { device, persistent }
}

fn is_supermicro(maker: &str) -> bool {
    ["supermicro", "super micro"].iter().any(|name| maker.contains(name))
}

/// Orders the boot flags of a device with this name and number.
async fn order(
    bmc: &Bmc,
    mode: BootMode,
    (name, number): (&str, u8),
    persistent: bool,
) -> Result<(), IpmiError> {
    let number = format!("{number:#04x}");
    let (valid, options): (_, &[_]) = match persistent {
        true => (UEFI_ALWAYS, &["options=persistent"]),
        false => (UEFI_ONCE, &[]),
    };
    let ordered = match mode {
        BootMode::Bios => bmc.run(&[&["chassis", "bootdev", name], options].concat()).await,
        BootMode::Uefi => {
            bmc.run(&["raw", "0x00", "0x08", "0x05", valid, &number, "0x00", "0x00", "0x00"]).await
        }
    };
    ordered.map(drop)
}

async fn flags(bmc: &Bmc) -> Result<BootDeviceSetting, IpmiError> {
    Ok(read_flags(&bmc.run(READ_FLAGS).await?))
}

#[async_trait]
impl Interface for IpmiManagement {
    fn get_properties(&self) -> Properties {
        connection::KEYS
    }

    async fn validate(&self, node: &Node) -> Result<(), InterfaceError> {
        Connection::read(node)?;
        node.boot_mode()?;
        Ok(())
    }
}

#[async_trait]
impl ManagementInterface for IpmiManagement {
    fn get_supported_boot_devices(&self, _node: &Node) -> Vec<BootDevice> {
        DEVICES.iter().map(|(device, ..)| *device).collect()
    }

    async fn set_boot_device(
        &self,
        node: &Node,
        device: BootDevice,
        persistent: bool,
    ) -> Result<(), InterfaceError> {
        let (bmc, mode) = (self.bmcs.bmc(node)?, node.boot_mode()?);
        let Some((_, name, number, _)) = DEVICES.iter().find(|(one, ..)| *one == device) else {
            return InterfaceError::unsupported(InterfaceKind::Management, "this boot device");
        };
        if bmc.connection.disable_boot_timeout
            && let Err(error) = bmc.run(KEEP_FLAGS).await
        {
            if error.is_final() {
                return Err(error.into());
            }
            // Some have no such parameter.
            tracing::debug!("{error}");
        }
        let number = match (mode, device) {
            (BootMode::Uefi, BootDevice::Disk)
                if bmc.maker(node).await.is_some_and(|it| is_supermicro(&it)) =>
            {
                SUPERMICRO_UEFI_DISK
            }
            _ => *number,
        };
        let ordered = order(&bmc, mode, (name, number), persistent).await;
        // Some take the flags and keep others (F57), and what was not answered may be done.
        match flags(&bmc).await {
            Ok(now) if now.device == Some(device) => Ok(()),
            Ok(BootDeviceSetting { device: Some(other), .. }) => {
                let (order, says) = (format!("to start from {device}"), other.to_string());
                let limit = std::time::Duration::ZERO;
                let not_done = IpmiError::NotDone { bmc: bmc.connection.label(), order, says, limit };
                Err(ordered.err().unwrap_or(not_done).into())
            }
            // Others take them and tell of none.
            Ok(BootDeviceSetting { device: None, .. }) => Ok(ordered?),
            Err(error) if error.is_final() => Err(error.into()),
            Err(error) => {
                tracing::debug!("{error}");
                Ok(ordered?)
            }
        }
    }

    async fn get_boot_device(&self, node: &Node) -> Result<BootDeviceSetting, InterfaceError> {
        Ok(flags(&self.bmcs.bmc(node)?).await?)
    }

    async fn get_event_log(
        &self,
        node: &Node,
        since: OffsetDateTime,
    ) -> Result<Vec<LogEntry>, InterfaceError> {
        Ok(event_log::read(&self.bmcs.bmc(node)?, since).await?)
    }

    async fn inject_nmi(&self, node: &Node) -> Result<(), InterfaceError> {
        Ok(self.bmcs.bmc(node)?.run_once(&["power", "diag"]).await.map(drop)?)
    }

    async fn detect_vendor(&self, node: &Node) -> Result<String, InterfaceError> {
        Ok(self.bmcs.bmc(node)?.manufacturer().await?)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn boot_flags_are_read() {
        for (said, device, persistent) in [
            (
                " Boot Flags :\n   - Boot Flag Valid\n   - Options apply to all future boots\n   - Boot Device Selector : \
                 Force PXE\n",
                Some(BootDevice::Pxe),
                Some(true),
            ),
            (
                "   - Options apply to only next boot\n   - Boot Device Selector : Force Boot from CD/DVD\n",
                Some(BootDevice::Cdrom),
                Some(false),
            ),
            ("   - Options apply to only next boot\n   - Boot Device Selector : No override\n", None, None),
            ("", None, None),
        ] {
            assert_eq!(read_flags(said), BootDeviceSetting { device, persistent }, "{said}");
        }
    }
}
