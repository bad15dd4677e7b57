//! Reservations by which another machine keeps a disk for itself (D03; SPC-5, section 5.14; NVM Express Base
//! Specification 2.0, section 8.19).

use crate::device::BlockDevice;
use crate::device::command_set::CommandSet;
use crate::device::stack;
use crate::error::Error;
use crate::probe::ReadableDisk;
use farrier_linux::nvme::{self, NvmeDevice};
use farrier_linux::scsi::{self, ScsiDevice};
use std::fmt::Display;

/// Whether another machine has reserved the device, or a disk that it lies on.
///
/// A disk that does not know the question, or fails at it, counts as free: if it is not, it refuses writes by
/// itself.
///
/// # Errors
///
/// [`Error::Device`] when a disk cannot be opened.
pub(super) fn is_held(device: &BlockDevice) -> Result<bool, Error> {
    for (disk, commands) in asked(device) {
        if is_reserved(&disk, commands)? {
            return Ok(true);
        }
    }
    Ok(false)
}

/// Who is asked about a device: itself and what it lies on, as far as these can be reserved.
/// One behind an ATA translation is asked nothing: the answer would not be its own.
fn asked(device: &BlockDevice) -> impl Iterator<Item = (BlockDevice, CommandSet)> {
    let below = stack::below(device.directory());
    let below = below.into_iter().filter_map(|disk| device.relative(&disk));
    let disks = std::iter::once(device.clone()).chain(below);
    let can_be_reserved = |set: &CommandSet| *set != CommandSet::Ata;
    disks.filter_map(move |disk| CommandSet::of(&disk).filter(can_be_reserved).map(|set| (disk, set)))
}

fn is_reserved(disk: &BlockDevice, commands: CommandSet) -> Result<bool, Error> {
    let (name, disk) = (&disk.disk.name, ReadableDisk::open(disk)?);
    Ok(match commands {
        CommandSet::Ata => false,
        CommandSet::Scsi => free_if_unknown(name, scsi::is_reserved(&ScsiDevice::new(&disk))),
        CommandSet::Nvme => {
            let controller = NvmeDevice::new(&disk);
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
    fn d03_disks_that_can_be_reserved_are_asked_also_below_arrays_and_paths() {
        let sysfs = FakeSysfs::new();
        for (name, vendor) in
            [("sda", "SEAGATE"), ("sdb", "ATA"), ("nvme0n1", ""), ("vda", ""), ("md127", ""), ("dm-0", "")]
        {
            sysfs.disk(&format!("devices/{name}"), 1 << 20, &[("device/vendor", vendor)]);
        }
        for (lower, upper) in [("sda", "dm-0"), ("dm-0", "md127"), ("sdb", "md127"), ("nvme0n1", "md127")] {
            sysfs.stack(&format!("devices/{lower}"), &format!("devices/{upper}"));
        }
        let (scsi, nvme) = (("sda", CommandSet::Scsi), ("nvme0n1", CommandSet::Nvme));
        for (name, expected) in [
            ("sda", vec![scsi]),
            ("sdb", vec![]),
            ("nvme0n1", vec![nvme]),
            ("vda", vec![]),
            ("dm-0", vec![scsi]),
            ("md127", vec![nvme, scsi]),
        ] {
            let device = BlockDevice::describe(sysfs.path(), name).unwrap();
            let mut found: Vec<_> =
                asked(&device).map(|(disk, set)| (disk.kernel_name().to_owned(), set)).collect();
            found.sort_by(|one, other| one.0.cmp(&other.0));
            let expected: Vec<_> = expected.into_iter().map(|(name, one)| (name.to_owned(), one)).collect();
            assert_eq!(found, expected, "{name}");
        }
    }

    #[test]
    fn d03_a_disk_that_does_not_answer_is_free() {
        for (answer, expected) in [(Ok(true), true), (Ok(false), false), (Err("no such command"), false)] {
            assert_eq!(free_if_unknown("/dev/sda", answer), expected, "{answer:?}");
        }
    }
}
