//! Reservations by which another machine keeps a disk for itself (D03; SPC-5, section 5.14; NVM Express Base
//! Specification 2.0, section 8.19).

use crate::device::BlockDevice;
use crate::error::Error;
use crate::stack;
use farrier_linux::nvme::{self, NvmeDevice};
use farrier_linux::scsi::{self, ScsiDevice};
use std::fmt::Display;
use std::fs::File;

/// By which commands a disk is asked who reserved it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Protocol {
    Scsi,
    Nvme,
}

impl Protocol {
    /// Nothing for a disk that cannot be reserved. One behind an ATA translation is asked nothing: the answer
    /// would not be its own.
    fn of(disk: &BlockDevice) -> Option<Self> {
        let name = disk.kernel_name();
        if name.starts_with("sd") && disk.disk.vendor.as_deref() != Some("ATA") {
            return Some(Self::Scsi);
        }
        name.starts_with("nvme").then_some(Self::Nvme)
    }
}

/// Whether another machine has reserved the device, or a disk that it lies on.
///
/// A disk that does not know the question, or fails at it, counts as free: if it is not, it refuses writes by
/// itself.
///
/// # Errors
///
/// [`Error::Device`] when a disk cannot be opened.
pub(super) fn is_held(device: &BlockDevice) -> Result<bool, Error> {
    let below = stack::below(device.directory());
    let below = below.iter().filter_map(|disk| device.relative(disk));
    for disk in std::iter::once(device.clone()).chain(below) {
        if let Some(protocol) = Protocol::of(&disk)
            && is_reserved(&disk, protocol)?
        {
            return Ok(true);
        }
    }
    Ok(false)
}

fn is_reserved(disk: &BlockDevice, protocol: Protocol) -> Result<bool, Error> {
    let name = &disk.disk.name;
    let file = File::open(name).map_err(|source| Error::Device {
        device: name.into(),
        action: "opening it for reading".to_owned(),
        source,
    })?;
    Ok(match protocol {
        Protocol::Scsi => free_if_unknown(name, scsi::is_reserved(&ScsiDevice::new(&file))),
        Protocol::Nvme => {
            let controller = NvmeDevice::new(&file);
            let namespace = controller.namespace().map_err(Into::into);
            free_if_unknown(name, namespace.and_then(|number| nvme::is_reserved(&controller, number)))
        }
    })
}

fn free_if_unknown<E: Display>(disk: &str, answer: Result<bool, E>) -> bool {
    answer.unwrap_or_else(|error| {
        tracing::warn!(disk, "it does not tell whether another machine reserved it: {error}");
        false
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fake_sysfs::FakeSysfs;

    #[test]
    fn d03_disks_that_can_be_reserved_are_asked() {
        let sysfs = FakeSysfs::new();
        for (name, vendor, expected) in [
            ("sda", "SEAGATE", Some(Protocol::Scsi)),
            ("sdb", "ATA", None),
            ("nvme0n1", "", Some(Protocol::Nvme)),
            ("vda", "", None),
            ("md127", "", None),
        ] {
            sysfs.disk(&format!("devices/{name}"), 1 << 20, &[("device/vendor", vendor)]);
            let disk = BlockDevice::describe(sysfs.path(), name).unwrap();
            assert_eq!(Protocol::of(&disk), expected, "{name}");
        }
    }

    #[test]
    fn d03_a_disk_that_does_not_answer_is_free() {
        for (answer, expected) in [(Ok(true), true), (Ok(false), false), (Err("no such command"), false)] {
            assert_eq!(free_if_unknown("/dev/sda", answer), expected, "{answer:?}");
        }
    }
}
