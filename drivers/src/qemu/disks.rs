//! The disks of a machine: `file;serial=X;bus=virtio|nvme|sata|scsi;format=raw|qcow2`, comma separated.

use farrier_conductor::interfaces::InterfaceError;
use std::path::PathBuf;

/// How a disk is attached.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Bus {
    Virtio,
    Nvme,
    Sata,
    Scsi,
}

/// A disk image and how the guest sees it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Disk {
    pub(super) file: PathBuf,
    pub(super) bus: Bus,
    pub(super) serial: String,
    pub(super) format: &'static str,
}

impl Disk {
    /// Reads a comma separated list; an empty one is no disk at all.
    pub(super) fn parse_list(text: &str) -> Result<Vec<Self>, InterfaceError> {
        let entries = text.split(',').map(str::trim).filter(|entry| !entry.is_empty());
        entries.enumerate().map(|(index, entry)| Self::parse(index, entry)).collect()
    }

    fn parse(index: usize, entry: &str) -> Result<Self, InterfaceError> {
        let invalid =
            |reason: &str| InterfaceError::driver_info("qemu_disks", format!("{entry:?}: {reason}"));
        let mut parts = entry.split(';');
        let file = PathBuf::from(parts.next().unwrap_or_default());
        if !file.is_absolute() {
            return Err(invalid("the file must be an absolute path, since the conductor runs elsewhere"));
        }
        let mut disk = Self { file, bus: Bus::Virtio, serial: format!("farrier-{index}"), format: "raw" };
        for option in parts {
            match option.split_once('=') {
                Some(("serial", serial)) if is_serial(serial) => disk.serial = serial.to_owned(),
                Some(("bus", "virtio")) => disk.bus = Bus::Virtio,
                Some(("bus", "nvme")) => disk.bus = Bus::Nvme,
                Some(("bus", "sata")) => disk.bus = Bus::Sata,
                Some(("bus", "scsi")) => disk.bus = Bus::Scsi,
                Some(("format", "raw")) => disk.format = "raw",
                Some(("format", "qcow2")) => disk.format = "qcow2",
                _ => {
                    return Err(invalid(
                        "the options are serial=TEXT, bus=virtio|nvme|sata|scsi, format=raw|qcow2",
                    ));
                }
            }
        }
        Ok(disk)
    }
}

/// No bus takes more than 20 characters.
fn is_serial(text: &str) -> bool {
    (1..=20).contains(&text.len())
        && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"._-".contains(&byte))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn disk(file: &str, bus: Bus, serial: &str, format: &'static str) -> Disk {
        Disk { file: file.into(), bus, serial: serial.into(), format }
    }

    #[test]
    fn lists() {
        for (text, expected) in [
            ("", Some(vec![])),
            ("/a.img", Some(vec![disk("/a.img", Bus::Virtio, "farrier-0", "raw")])),
            (
                "/a.img;serial=ROOT1;bus=nvme, /b c.img;bus=sata;format=qcow2,/d;bus=scsi",
                Some(vec![
                    disk("/a.img", Bus::Nvme, "ROOT1", "raw"),
                    disk("/b c.img", Bus::Sata, "farrier-1", "qcow2"),
                    disk("/d", Bus::Scsi, "farrier-2", "raw"),
                ]),
            ),
            ("a.img", None),
            ("/a.img;bus=ide", None),
            ("/a.img;serial=", None),
            ("/a.img;serial=a b", None),
            ("/a.img;serial=123456789012345678901", None),
            ("/a.img;readonly", None),
            ("/a.img;format=vmdk", None),
        ] {
            assert_eq!(Disk::parse_list(text).ok(), expected, "{text:?}");
        }
    }
}
