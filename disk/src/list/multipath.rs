//! Multipath: one disk of several paths to it (section 9.5): device mapper's `multipath` target, without a daemon.
//!
//! SCSI disks are taken for paths to one when they say the same of themselves. A single path is a disk like
//! others, and NVMe namespaces are joined by the kernel itself. A path that fails is left by the kernel at
//! once; [`reinstate`] has it used again when it answers.

mod path;

use crate::device::{BlockDevice, stack};
use crate::error::Error;
use crate::list;
use farrier_linux::device_mapper::{DeviceMapper, Map};
use farrier_linux::sysfs;
use path::DiskPath;
use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::path::{Path, PathBuf};
use std::thread;
use std::time::Duration;

/// What the kernel calls a target of several paths.
const KIND: &str = "multipath";
/// Unit of device mapper in bytes, whatever the sector size of the device.
const MAPPED_SECTOR: u64 = 512;
/// Time for the kernel to ask a target in which state its paths are, once it knows that they have states.
const PATH_STATES: Duration = Duration::from_secs(1);
/// Transports by which a disk has one path. Cheap disks there share names that they should not.
const SINGLE_PATH: [&str; 3] = ["usb", "sata", "ata"];

/// What the paths to a disk have in common, and other disks have not.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Identity {
    /// Name in the form of SCSI, which says its kind before a dot.
    name: String,
    serials: Vec<String>,
    vendor: Option<String>,
    model: Option<String>,
    /// Bytes of the disk and of its sectors.
    size: (u64, u32),
}

impl Identity {
    /// The identity of a SCSI disk, or of a multipath device, which has that of its paths; nothing for disks
    /// that have one path.
    pub(crate) fn of(device: &BlockDevice) -> Option<Self> {
        let is_candidate = ["sd", "dm-"].iter().any(|prefix| device.kernel_name().starts_with(prefix));
        let disk = &device.disk;
        if !is_candidate || disk.tran.as_deref().is_some_and(|transport| SINGLE_PATH.contains(&transport)) {
            return None;
        }
        let name = device.wwns.iter().find(|name| identifier(name).is_some())?.clone();
        Some(Self {
            name,
            serials: device.serials.clone(),
            vendor: disk.vendor.clone(),
            model: disk.model.clone(),
            size: (disk.size, disk.logical_sectors),
        })
    }
}

/// A World Wide Name in the form that others know the device by: a digit for its kind, and its own digits.
fn identifier(name: &str) -> Option<String> {
    let (kind, digits) = name.split_once('.')?;
    let kind = [("eui", '2'), ("naa", '3')].iter().find(|(prefix, _)| *prefix == kind)?.1;
    let is_assigned =
        digits.chars().all(|digit| digit.is_ascii_hexdigit()) && digits.chars().any(|c| c != '0');
    is_assigned.then(|| format!("{kind}{digits}"))
}

/// Leaves one device for each disk: its multipath device, which comes first in the order of names, or one
/// path where the kernel could make none (D23).
pub(crate) fn one_for_each(devices: Vec<BlockDevice>) -> Vec<BlockDevice> {
    let mut seen = BTreeSet::new();
    let is_first = |device: &BlockDevice| Identity::of(device).is_none_or(|identity| seen.insert(identity));
    devices.into_iter().filter(is_first).collect()
}

/// Makes a device of every disk in the sysfs mounted at `sysfs` that has several paths. Where that fails, one
/// line reports that, and the first path stands for the disk.
///
/// # Errors
///
/// [`Error::Device`] when the disks cannot be listed, [`Error::Multipath`] when there are paths, and the kernel
/// has no driver for them.
pub fn assemble(sysfs: &Path) -> Result<(), Error> {
    let disks = with_several_paths(list::every_path(sysfs)?);
    let Some(first) = disks.first() else { return Ok(()) };
    let mapper = DeviceMapper::open().map_err(|source| not_joined(first, source))?;
    let attached = disks.iter().flatten().filter(|path| path::attach_handler(path));
    if attached.count() > 0 {
        thread::sleep(PATH_STATES);
    }
    for paths in &disks {
        match join(&mapper, paths) {
            Ok(device) => {
                let names: Vec<_> = paths.iter().map(BlockDevice::kernel_name).collect();
                tracing::info!(device, paths = names.join(","), "the paths to a disk are joined");
            }
            Err(error) => tracing::warn!("{}", not_joined(paths, error)),
        }
    }
    Ok(())
}

fn not_joined(paths: &[BlockDevice], source: io::Error) -> Error {
    Error::Multipath { device: paths[0].disk.name.clone().into(), paths: paths.len(), source }
}

/// Disks with several paths that no device joins yet.
fn with_several_paths(devices: Vec<BlockDevice>) -> Vec<Vec<BlockDevice>> {
    let mut disks: BTreeMap<Identity, Vec<BlockDevice>> = BTreeMap::new();
    for device in devices {
        if let Some(identity) = Identity::of(&device) {
            disks.entry(identity).or_default().push(device);
        }
    }
    let is_joined = |paths: &[BlockDevice]| paths.iter().any(|path| stack::is_multipath(path.directory()));
    disks.into_values().filter(|paths| paths.len() > 1 && !is_joined(paths)).collect()
}

/// Makes one device of the paths to a disk, and gives its kernel name.
fn join(mapper: &DeviceMapper, paths: &[BlockDevice]) -> io::Result<String> {
    let disk = &paths[0];
    let name = disk.wwns.iter().find_map(|name| identifier(name)).unwrap_or_default();
    let paths: Vec<_> = paths.iter().filter_map(DiskPath::of).collect();
    mapper.create(&Map {
        name: &name,
        identifier: &format!("mpath-{name}"),
        sectors: disk.disk.size / MAPPED_SECTOR,
        kind: KIND,
        parameters: &path::parameters(paths),
    })
}

/// The multipath devices in the sysfs mounted at `sysfs`.
fn devices(sysfs: &Path) -> Vec<PathBuf> {
    let block = sysfs.join("block");
    let directories = sysfs::entries(&block).into_iter().map(|name| block.join(name));
    directories.filter(|directory| stack::is_multipath(directory)).collect()
}

/// Whether there is a multipath device in the sysfs mounted at `sysfs`.
pub fn is_used(sysfs: &Path) -> bool {
    !devices(sysfs).is_empty()
}

/// Has the kernel use again every path that it has left and that can be read. One for which that fails does
/// not hold the others.
///
/// # Errors
///
/// Whatever device mapper reports first; the next call tries again.
pub fn reinstate(sysfs: &Path) -> io::Result<()> {
    let mapper = DeviceMapper::open()?;
    first_error(devices(sysfs).iter().map(|device| reinstate_paths(&mapper, device)))
}

fn reinstate_paths(mapper: &DeviceMapper, device: &Path) -> io::Result<()> {
    let Some(name) = sysfs::attribute(&device.join("dm"), "name") else { return Ok(()) };
    let failed = path::failed(&mapper.status(&name)?);
    let number = |disk: &PathBuf| sysfs::attribute(disk, "dev").filter(|number| failed.contains(number));
    let left = stack::below(device).into_iter().filter_map(|disk| Some((number(&disk)?, disk)));
    first_error(left.filter(|(_, disk)| path::answers(disk)).map(|(number, disk)| {
        mapper.tell(&name, &format!("reinstate_path {number}"))?;
        tracing::info!(device = name, path = %disk.display(), "the path is used again");
        Ok(())
    }))
}

/// Carries out all, and tells the first error.
fn first_error(outcomes: impl Iterator<Item = io::Result<()>>) -> io::Result<()> {
    outcomes.fold(Ok(()), Result::and)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fake_sysfs::FakeSysfs;
    use std::fs;

    const NAME: (&str, &str) = ("device/wwid", "naa.600508b1001c0123");
    const SERIAL: (&str, &str) = ("device/vpd_pg80", "\0\u{80}\0\u{4}SN-1");

    fn names(devices: &[BlockDevice]) -> Vec<&str> {
        devices.iter().map(BlockDevice::kernel_name).collect()
    }

    #[test]
    fn d23_paths_are_what_says_the_same_of_itself() {
        let sysfs = FakeSysfs::new();
        let other_serial = ("device/vpd_pg80", "\0\u{80}\0\u{4}SN-2");
        let nobody = ("device/wwid", "naa.0000000000000000");
        fs::create_dir_all(sysfs.path().join("devices/ata1/host4/scsi_host/host4")).unwrap();
        fs::write(sysfs.path().join("devices/ata1/host4/scsi_host/host4/proc_name"), "ahci").unwrap();
        for (path, size, attributes) in [
            ("host1/rport-1/sda", 5 << 30, [NAME, SERIAL]),
            ("host2/rport-2/sdb", 5 << 30, [NAME, SERIAL]),
            ("host2/rport-2/sdc", 5 << 30, [NAME, other_serial]),
            ("host2/rport-2/sdd", 6 << 30, [NAME, SERIAL]),
            ("usb1/host3/sde", 5 << 30, [NAME, SERIAL]),
            ("ata1/host4/sdf", 5 << 30, [NAME, SERIAL]),
            ("host5/sdg", 5 << 30, [nobody, SERIAL]),
            ("host6/sdh", 5 << 30, [nobody, SERIAL]),
            ("virtio0/vda", 5 << 30, [NAME, SERIAL]),
        ] {
            sysfs.disk(&format!("devices/{path}"), size, &attributes);
        }
        let disks = with_several_paths(list::every_path(sysfs.path()).unwrap());
        assert_eq!(disks.len(), 1);
        assert_eq!(names(&disks[0]), ["sda", "sdb"]);
        // Until they are joined, one stands for both.
        let listed = list::list(sysfs.path()).unwrap();
        assert_eq!(names(&listed), ["sda", "sdc", "sdd", "sde", "sdf", "sdg", "sdh", "vda"]);
    }

    #[test]
    fn d23_a_path_that_cannot_be_reinstated_does_not_hold_the_others() {
        let mut tried = Vec::new();
        let outcome = first_error(["sda", "sdb", "sdc"].iter().map(|path| {
            tried.push(*path);
            if *path == "sda" { Ok(()) } else { Err(io::Error::other(*path)) }
        }));
        assert_eq!(outcome.unwrap_err().to_string(), "sdb");
        assert_eq!(tried, ["sda", "sdb", "sdc"]);
    }

    #[test]
    fn d23_a_path_that_comes_late_is_no_disk() {
        let sysfs = FakeSysfs::new();
        sysfs.disk("devices/virtual/dm-0", 5 << 30, &[("dm/uuid", "mpath-3600508b1001c0123")]);
        for path in ["host1/rport-1/sda", "host2/rport-2/sdb", "host3/rport-3/sdc"] {
            sysfs.disk(&format!("devices/{path}"), 5 << 30, &[NAME, SERIAL]);
        }
        for path in ["host1/rport-1/sda", "host2/rport-2/sdb"] {
            sysfs.stack(&format!("devices/{path}"), "devices/virtual/dm-0");
        }
        assert_eq!(names(&list::list(sysfs.path()).unwrap()), ["dm-0"]);
        assert!(with_several_paths(list::every_path(sysfs.path()).unwrap()).is_empty());
        assert!(is_used(sysfs.path()));
    }

    #[test]
    fn names_have_the_form_that_others_know() {
        for (name, expected) in [
            ("naa.600508b1001c0123", Some("3600508b1001c0123")),
            ("eui.0025388b710116a1", Some("20025388b710116a1")),
            ("t10.ATA     QEMU HARDDISK", None),
            ("0x5000c500a1b2c3d4", None),
            ("naa.0000", None),
        ] {
            assert_eq!(identifier(name).as_deref(), expected, "{name}");
        }
    }
}
