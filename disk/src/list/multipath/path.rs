//! The paths of one disk: which are better than others, and which answer.

use crate::device::BlockDevice;
use farrier_linux::aligned::{ALIGNMENT, AlignedBuffer};
use farrier_linux::sysfs;
use std::fs::{self, File};
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::Path;

/// Byte of the standard inquiry data that says whether paths have states (TPGS), and its bits (SPC-5).
const STATES_BYTE: usize = 5;
const STATES_MASK: u8 = 0x30;
/// The kernel's handler of arrays whose paths have states: asymmetric logical unit access.
const HANDLER: &str = "alua";
/// States of paths as the kernel names them, best first.
const STATES: [&str; 3] = ["active/optimized", "active/non-optimized", "standby"];

/// A path to a disk.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DiskPath {
    /// Its device number, `major:minor`.
    number: String,
    /// Place of its state among [`STATES`]; nothing when paths of this disk have none.
    state: Option<usize>,
}

impl DiskPath {
    /// The path that a disk is, in its state of now; nothing when it went away.
    pub fn of(disk: &BlockDevice) -> Option<Self> {
        let directory = disk.directory();
        let state = sysfs::attribute(&directory.join("device"), "access_state");
        let place = |state: String| STATES.iter().position(|one| *one == state).unwrap_or(STATES.len());
        Some(Self { number: sysfs::attribute(directory, "dev")?, state: state.map(place) })
    }
}

/// The parts of the kernel's target: groups of paths, the best first. Paths in one state share the
/// work; where paths have no state, one is used at a time. Without any path left a request fails.
pub fn parameters(mut paths: Vec<DiskPath>) -> String {
    paths.sort_by_key(|path| path.state);
    let share = |one: &DiskPath, other: &DiskPath| one.state.is_some() && one.state == other.state;
    let groups: Vec<_> = paths.chunk_by(share).map(group).collect();
    format!("1 retain_attached_hw_handler 0 {} 1 {}", groups.len(), groups.join(" "))
}

fn group(paths: &[DiskPath]) -> String {
    let paths: Vec<_> = paths.iter().map(|path| format!("{} 1", path.number)).collect();
    format!("service-time 0 {} 1 {}", paths.len(), paths.join(" "))
}

/// Has the kernel ask for the states of a disk's paths, if these have any; true when it did not before.
pub fn attach_handler(disk: &BlockDevice) -> bool {
    let device = disk.directory().join("device");
    let inquiry = fs::read(device.join("inquiry")).unwrap_or_default();
    let has_states = inquiry.get(STATES_BYTE).is_some_and(|byte| byte & STATES_MASK != 0);
    let is_attached = sysfs::attribute(&device, "dh_state").is_some_and(|state| state != "detached");
    if !has_states || is_attached {
        return false;
    }
    let outcome = fs::write(device.join("dh_state"), HANDLER);
    if let Err(error) = &outcome {
        tracing::warn!(disk = disk.disk.name, %error, "the states of its paths are not known: pack scsi_dh_alua");
    }
    outcome.is_ok()
}

/// Device numbers of the paths that the kernel has left, in the target's words about its state.
pub fn failed(status: &str) -> Vec<String> {
    let words: Vec<_> = status.split_whitespace().collect();
    let is_failed = |pair: &&[&str]| pair[0].contains(':') && pair[1] == "F";
    words.windows(2).filter(is_failed).map(|pair| pair[0].to_owned()).collect()
}

/// Whether the disk in a directory of sysfs can be read over this path.
pub fn answers(directory: &Path) -> bool {
    let Some(name) = directory.file_name() else { return false };
    let mut options = File::options();
    // Nothing that the kernel remembers must answer for the disk.
    options.read(true).custom_flags(libc::O_DIRECT | libc::O_CLOEXEC);
    let mut buffer = AlignedBuffer::zeroed(ALIGNMENT);
    let read = options.open(Path::new("/dev").join(name)).and_then(|disk| disk.read_exact_at(&mut buffer, 0));
    read.is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fake_sysfs::FakeSysfs;

    #[test]
    fn paths_in_one_state_share_the_work_and_the_best_go_first() {
        let path = |number: &str, state| DiskPath { number: number.to_owned(), state };
        for (paths, expected) in [
            (
                vec![path("8:0", None), path("8:16", None)],
                "2 1 service-time 0 1 1 8:0 1 service-time 0 1 1 8:16 1",
            ),
            (
                vec![
                    path("8:0", Some(1)),
                    path("8:16", Some(0)),
                    path("8:32", Some(1)),
                    path("8:48", Some(0)),
                ],
                "2 1 service-time 0 2 1 8:16 1 8:48 1 service-time 0 2 1 8:0 1 8:32 1",
            ),
        ] {
            assert_eq!(parameters(paths), format!("1 retain_attached_hw_handler 0 {expected}"));
        }
    }

    #[test]
    fn states_are_those_of_the_kernel() {
        let sysfs = FakeSysfs::new();
        for (name, state, expected) in [
            ("sda", Some("active/optimized\n"), Some(0)),
            ("sdb", Some("standby\n"), Some(2)),
            ("sdc", Some("unavailable\n"), Some(3)),
            ("sdd", None, None),
        ] {
            let state = state.map(|state| ("device/access_state", state));
            let attributes: Vec<_> = std::iter::once(("dev", "8:0\n")).chain(state).collect();
            sysfs.disk(&format!("devices/{name}"), 5 << 30, &attributes);
            let disk = BlockDevice::describe(sysfs.path(), name).unwrap();
            assert_eq!(
                DiskPath::of(&disk),
                Some(DiskPath { number: "8:0".into(), state: expected }),
                "{name}"
            );
        }
    }

    #[test]
    fn the_handler_is_attached_where_paths_have_states() {
        let sysfs = FakeSysfs::new();
        for (name, inquiry, before, is_attached) in [
            ("sda", "\0\0\u{5}\u{2}\0\u{10}", "detached\n", true),
            ("sdb", "\0\0\u{5}\u{2}\0\u{10}", "rdac\n", false),
            ("sdc", "\0\0\u{5}\u{2}\0\0", "detached\n", false),
        ] {
            let attributes = [("device/inquiry", inquiry), ("device/dh_state", before)];
            sysfs.disk(&format!("devices/{name}"), 5 << 30, &attributes);
            let disk = BlockDevice::describe(sysfs.path(), name).unwrap();
            assert_eq!(attach_handler(&disk), is_attached, "{name}");
            let after = fs::read_to_string(disk.directory().join("device/dh_state")).unwrap();
            assert_eq!(after, if is_attached { HANDLER } else { before });
        }
    }

    #[test]
    fn failed_paths_are_read_from_the_state_of_the_target() {
        let status = "2 0 0 0 2 1 E 0 1 1 8:0 F 1 A 0 1 1 8:16 A 0";
        assert_eq!(failed(status), ["8:0"]);
        assert_eq!(failed(""), [""; 0]);
    }
}
