//! Making all of a disk accessible before it is erased: what a host protected area or an accessible maximum address
//! hides is shown, and the kernel learns the size that the disk has then.
//!
//! Only a disk that may be erased is changed. What stays hidden fails the erasure of the disk ([`disk_erase`](super::disk_erase)).

use super::command_set::{self, Cause, Hidden, Patience};
use farrier_disk::BlockDevice;
use farrier_disk::guard::{ErasePlan, EraseTarget};
use farrier_linux::sysfs;
use std::path::Path;
use std::thread;
use std::time::{Duration, Instant};

/// The time for the kernel to see the other size, and the interval of the checks.
const LONGEST: Duration = Duration::from_secs(20);
const POLL: Duration = Duration::from_millis(500);

/// Has the disks of a plan show what they hide. Returns whether one has another size than before, so that the disks
/// must be listed again.
pub fn make(plan: &ErasePlan, guard: bool, sysfs: &Path, patience: &Patience<'_>) -> bool {
    let mut has_grown = false;
    for target in plan.targets.iter().filter(|target| target.volumes().is_empty()) {
        if (patience.is_ending)() {
            break;
        }
        let device = target.device();
        if let Err(error) = command_set::make_ready(device, patience) {
            // The same is found again, and told, when its turn comes.
            tracing::warn!(disk = device.disk.name, "{error}");
            continue;
        }
        let hidden = command_set::hidden(device);
        if hidden.iter().any(is_shown_on_demand) && show(target, guard) {
            has_grown |= grows(device, &sysfs.join("block").join(device.kernel_name()), LONGEST);
        }
    }
    has_grown
}

fn is_shown_on_demand(hidden: &Hidden) -> bool {
    matches!(hidden.cause, Cause::HostProtectedArea | Cause::AccessibleMaximum)
}

fn show(target: &EraseTarget, guard: bool) -> bool {
    match target.open(guard) {
        Ok(disk) => command_set::of(&disk, target.device()).is_some_and(|own| own.show_hidden()),
        Err(error) => {
            tracing::warn!(disk = target.device().disk.name, "hidden sectors cannot be shown: {error}");
            false
        }
    }
}

/// Has the kernel ask the disk in `directory` of sysfs for its size, until it is another one.
fn grows(device: &BlockDevice, directory: &Path, longest: Duration) -> bool {
    let deadline = Instant::now() + longest;
    loop {
        if let Err(error) = sysfs::write(&directory.join("device"), "rescan", "1") {
            tracing::warn!(disk = device.disk.name, "the kernel does not ask it for its size: {error}");
        }
        let sectors: Option<u64> = sysfs::number(directory, "size");
        if sectors.is_some_and(|sectors| sectors * 512 > device.disk.size) {
            return true;
        }
        if Instant::now() >= deadline {
            tracing::warn!(disk = device.disk.name, "the kernel sees no other size of it");
            return false;
        }
        thread::sleep(POLL);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    #[test]
    fn a16_a_disk_that_shows_more_is_known_by_its_size() {
        let sysfs = tempfile::tempdir().unwrap();
        let directory = sysfs.path().join("block/sda");
        fs::create_dir_all(directory.join("device")).unwrap();
        fs::write(directory.join("device/rescan"), "").unwrap();
        fs::write(directory.join("size"), "1000").unwrap();
        let device = BlockDevice::describe(sysfs.path(), "sda").unwrap();
        assert!(!grows(&device, &directory, Duration::ZERO));
        assert_eq!(fs::read_to_string(directory.join("device/rescan")).unwrap(), "1");
        fs::write(directory.join("size"), "2000").unwrap();
        assert!(grows(&device, &directory, Duration::ZERO));
    }
}
