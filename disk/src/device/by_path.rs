//! The name of a disk by the way to it, as it stands under `/dev/disk/by-path` (section 8.3).
//!
//! No device manager makes these links in the ramdisk, so the name is made here from the tree of devices,
//! by the rules of systemd's `path_id`: the buses on the way, the nearest last.

use farrier_linux::sysfs;
use std::path::Path;

/// Links under `/dev/disk/by-path` of the disk whose sysfs directory is `directory`, the one that inventories
/// show first; none for a disk that is on no bus, such as an array.
pub fn by_paths(directory: &Path) -> Vec<String> {
    let Ok(device) = directory.canonicalize() else { return Vec::new() };
    // Of two names of a disk, the older one is that which Python agents tell.
    let names = [Age::Old, Age::New].map(|age| name(&device, age));
    let mut links: Vec<_> =
        names.into_iter().flatten().map(|name| format!("/dev/disk/by-path/{name}")).collect();
    links.dedup();
    links
}

/// Which rules make a name: some disks have got a second one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Age {
    Old,
    New,
}

fn name(device: &Path, age: Age) -> Option<String> {
    let mut parts = Vec::new();
    let mut is_below_pci = false;
    for place in device.ancestors().skip(1) {
        let subsystem = sysfs::link_name(place, "subsystem");
        let is_pci = subsystem.as_deref() == Some("pci");
        // Of a row of bridges the last one counts.
        if !(is_pci && is_below_pci) {
            parts.extend(part(place, subsystem.as_deref().unwrap_or_default(), device, age));
        }
        is_below_pci = is_pci;
    }
    // A disk without its bus could be any disk.
    let is_on_bus = parts.last().is_some_and(|part| BUSES.iter().any(|bus| part.starts_with(bus)));
    parts.reverse();
    let is_virtio = name_of(device).starts_with("vd") && age == Age::Old;
    let prefix = if is_virtio { "virtio-" } else { "" };
    is_on_bus.then(|| format!("{prefix}{}", parts.join("-")))
}

/// What the topmost part of a name begins with.
const BUSES: &[&str] = &["pci-", "platform-", "acpi-", "ccw-", "xen-"];

fn part(place: &Path, subsystem: &str, device: &Path, age: Age) -> Option<String> {
    let name = place.file_name()?.to_str()?;
    match subsystem {
        "nvme" => Some(format!("nvme-{}", sysfs::attribute(device, "nsid")?)),
        "scsi" => scsi(place, name, age),
        "usb" if name.contains(':') => Some(format!("usb-0:{}", name.split_once('-')?.1)),
        "pci" | "platform" | "acpi" | "ccw" | "xen" => Some(format!("{subsystem}-{name}")),
        _ => None,
    }
}

/// Only the device at the end of a SCSI bus has a name with host, channel, target and LUN.
fn scsi(place: &Path, name: &str, age: Age) -> Option<String> {
    let mut numbers = name.split(':').map(str::parse::<u64>);
    let mut number = || numbers.next()?.ok();
    let (host, channel, target, lun) = (number()?, number()?, number()?, number()?);
    let above = |mark: &str| place.ancestors().find(|one| name_of(one).starts_with(mark));
    if let Some(port) = above("ata") {
        // Ports are counted by controller; the number in the name goes on from one to the next.
        let counted = sysfs::attribute(&port.join("ata_port").join(name_of(port)), "port_no");
        let number = counted.or_else(|| Some(name_of(port).strip_prefix("ata")?.to_owned()))?;
        return Some(match (age, channel) {
            (Age::Old, _) => format!("ata-{number}"),
            (Age::New, 0) => format!("ata-{number}.{target}"),
            // Behind a port multiplier.
            (Age::New, bus) => format!("ata-{number}.{bus}.0"),
        });
    }
    if let Some(remote) = above("rport-") {
        let port = remote.join("fc_remote_ports").join(name_of(remote));
        return Some(format!("fc-{}-lun-{lun}", sysfs::attribute(&port, "port_name")?));
    }
    if let Some(end) = above("end_device-") {
        let address = sysfs::attribute(&end.join("sas_device").join(name_of(end)), "sas_address")?;
        return Some(format!("sas-{address}-lun-{lun}"));
    }
    // Numbers of hosts depend on the order of drivers; within their controller they do not.
    let controller = above("host")?.parent()?;
    let hosts = sysfs::entries(controller);
    let first = hosts.iter().filter_map(|name| name.strip_prefix("host")?.parse().ok()).min().unwrap_or(host);
    Some(format!("scsi-{}:{channel}:{target}:{lun}", host.saturating_sub(first)))
}

fn name_of(place: &Path) -> &str {
    place.file_name().and_then(|name| name.to_str()).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;
    use std::os::unix::fs::symlink;

    /// A tree of devices with the subsystem of each place and attributes by path.
    fn tree(places: &[(&str, &str)], attributes: &[(&str, &str)]) -> tempfile::TempDir {
        let root = tempfile::tempdir().unwrap();
        for (place, subsystem) in places {
            fs::create_dir_all(root.path().join(place)).unwrap();
            symlink(format!("/sys/bus/{subsystem}"), root.path().join(place).join("subsystem")).unwrap();
        }
        for (path, content) in attributes {
            let file = root.path().join(path);
            fs::create_dir_all(file.parent().unwrap()).unwrap();
            fs::write(file, content).unwrap();
        }
        root
    }

    #[test]
    fn x04_names_are_all_those_of_the_device_manager() {
        let bridge = ("pci0000:00/0000:00:01.0", "pci");
        for (places, attributes, disk, expected) in [
            (
                vec![("0000:00:04.0", "pci"), ("0000:00:04.0/virtio1", "virtio")],
                vec![],
                "0000:00:04.0/virtio1/block/vda",
                &["virtio-pci-0000:00:04.0", "pci-0000:00:04.0"][..],
            ),
            (
                vec![
                    bridge,
                    ("pci0000:00/0000:00:01.0/0000:3b:00.0", "pci"),
                    ("pci0000:00/0000:00:01.0/0000:3b:00.0/nvme/nvme0", "nvme"),
                ],
                vec![("pci0000:00/0000:00:01.0/0000:3b:00.0/nvme/nvme0/nvme0n1/nsid", "1\n")],
                "pci0000:00/0000:00:01.0/0000:3b:00.0/nvme/nvme0/nvme0n1",
                &["pci-0000:3b:00.0-nvme-1"],
            ),
            (
                vec![
                    ("0000:00:17.0", "pci"),
                    ("0000:00:17.0/ata1/host0/target0:0:0", "scsi"),
                    ("0000:00:17.0/ata1/host0/target0:0:0/0:0:0:0", "scsi"),
                ],
                vec![],
                "0000:00:17.0/ata1/host0/target0:0:0/0:0:0:0/block/sda",
                &["pci-0000:00:17.0-ata-1", "pci-0000:00:17.0-ata-1.0"],
            ),
            // The sixth port of the machine, the second of its controller; a multiplier behind it.
            (
                vec![("0000:00:1f.2", "pci"), ("0000:00:1f.2/ata6/host5/target5:3:0/5:3:0:0", "scsi")],
                vec![("0000:00:1f.2/ata6/ata_port/ata6/port_no", "2\n")],
                "0000:00:1f.2/ata6/host5/target5:3:0/5:3:0:0/block/sdb",
                &["pci-0000:00:1f.2-ata-2", "pci-0000:00:1f.2-ata-2.3.0"],
            ),
            (
                vec![
                    ("0000:00:05.0", "pci"),
                    ("0000:00:05.0/virtio2", "virtio"),
                    ("0000:00:05.0/virtio2/host7/target7:0:3/7:0:3:1", "scsi"),
                ],
                vec![],
                "0000:00:05.0/virtio2/host7/target7:0:3/7:0:3:1/block/sdb",
                &["pci-0000:00:05.0-scsi-0:0:3:1"],
            ),
            (
                vec![
                    ("0000:00:06.0", "pci"),
                    ("0000:00:06.0/host2/port-2:0/end_device-2:0/target2:0:0/2:0:0:0", "scsi"),
                ],
                vec![(
                    "0000:00:06.0/host2/port-2:0/end_device-2:0/sas_device/end_device-2:0/sas_address",
                    "0x5000c50012345679\n",
                )],
                "0000:00:06.0/host2/port-2:0/end_device-2:0/target2:0:0/2:0:0:0/block/sdc",
                &["pci-0000:00:06.0-sas-0x5000c50012345679-lun-0"],
            ),
            (
                vec![
                    ("0000:00:14.0", "pci"),
                    ("0000:00:14.0/usb1/1-2", "usb"),
                    ("0000:00:14.0/usb1/1-2/1-2:1.0", "usb"),
                    ("0000:00:14.0/usb1/1-2/1-2:1.0/host9/target9:0:0/9:0:0:0", "scsi"),
                ],
                vec![],
                "0000:00:14.0/usb1/1-2/1-2:1.0/host9/target9:0:0/9:0:0:0/block/sdd",
                &["pci-0000:00:14.0-usb-0:2:1.0-scsi-0:0:0:0"],
            ),
        ] {
            let root = tree(&places, &attributes);
            fs::create_dir_all(root.path().join(disk)).unwrap();
            let expected: Vec<_> = expected.iter().map(|name| format!("/dev/disk/by-path/{name}")).collect();
            assert_eq!(by_paths(&root.path().join(disk)), expected, "{disk}");
        }
    }

    #[test]
    fn a_disk_on_no_bus_has_no_such_name() {
        let root = tree(&[], &[]);
        fs::create_dir_all(root.path().join("virtual/block/md127")).unwrap();
        assert!(by_paths(&root.path().join("virtual/block/md127")).is_empty());
        assert!(by_paths(&root.path().join("nosuch")).is_empty());
    }
}
