//! Storage of a machine that no block device shows: nothing lists it, so nothing erases it, and its data wait for the
//! next user.
//!
//! What holds data as a disk does keeps every erase step from calling the machine clean, unless the node's property
//! `farrier_skip_controllers` names it. What no step of erasing disks is about (tapes, the members of a hardware RAID,
//! RPMB) is listed as not examined.

mod cards;
mod memory;
mod nvme;
mod scsi;
#[cfg(test)]
mod tree;

use farrier_linux::driverless::{self, Driverless, Kind};
use farrier_linux::sysfs;
use std::fmt;
use std::path::Path;

/// The search for storage beside the block devices of a machine, and its findings.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Examination {
    /// Controllers, buses and regions that were asked, each with what they have, in words.
    pub examined: Vec<String>,
    /// Storage that no block device shows.
    pub unseen: Vec<Unseen>,
    /// Storage controllers without a driver: nothing of what they lead to is known.
    pub without_driver: Vec<Driverless>,
    /// What the operator has the step leave alone.
    pub left_alone: LeftAlone,
}

/// Storage and controllers that an operator excluded from erase steps: the step continues, and nothing is proven of
/// them.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct LeftAlone {
    /// Storage that no block device shows.
    pub unseen: Vec<Unseen>,
    /// Storage controllers without a driver.
    pub without_driver: Vec<Driverless>,
}

/// Storage that no block device shows.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Unseen {
    /// What it is.
    pub storage: Storage,
    /// Addresses and identities by which an operator may say that it is left alone.
    pub names: Vec<String>,
    /// Which one, and what to do about it.
    pub text: String,
}

/// What kind of storage is not shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Storage {
    /// An NVMe controller that does not work, or does not tell what it has.
    NvmeController,
    /// An NVMe namespace that is allocated and not attached to a controller of this machine.
    DetachedNamespace,
    /// An NVMe namespace that is attached, in a form that the kernel does not know.
    UnknownNamespace,
    /// Capacity of an NVMe controller that has no namespace at all.
    UnallocatedNvme,
    /// NVMe disks that a SATA controller shows to one vendor's driver alone (Intel RST).
    RemappedNvme,
    /// Persistent memory, or a part of it, that is no block device (mode devdax, or without a namespace).
    PersistentMemory,
    /// A card or eMMC device whose driver does not drive it.
    Card,
    /// A disk of SCSI that its driver does not drive, such as a host-managed one.
    ScsiDisk,
    /// A member, a spare, or an unused disk of a hardware RAID.
    RaidMember,
    /// A tape, or another medium of SCSI that is no disk.
    ScsiMedium,
    /// The replay protected area of an eMMC device, which only who has its key can write.
    ReplayProtected,
}

impl Storage {
    /// Whether a machine that has it is not clean. Otherwise it is listed as not examined.
    pub fn refuses(self) -> bool {
        !matches!(self, Self::RaidMember | Self::ScsiMedium | Self::ReplayProtected)
    }

    /// Name in statements.
    pub fn name(self) -> &'static str {
        match self {
            Self::NvmeController => "nvme-controller",
            Self::DetachedNamespace => "nvme-detached-namespace",
            Self::UnknownNamespace => "nvme-unknown-namespace",
            Self::UnallocatedNvme => "nvme-unallocated",
            Self::RemappedNvme => "nvme-remapped",
            Self::PersistentMemory => "persistent-memory",
            Self::Card => "card",
            Self::ScsiDisk => "scsi-disk",
            Self::RaidMember => "raid-member",
            Self::ScsiMedium => "scsi-medium",
            Self::ReplayProtected => "emmc-rpmb",
        }
    }
}

impl fmt::Display for Unseen {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl fmt::Display for Examination {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let drivers = self.without_driver.iter().map(|one| format!("{one} has no driver"));
        let unseen = self.unseen.iter().map(ToString::to_string);
        let lines: Vec<_> = self.examined.iter().cloned().chain(unseen).chain(drivers).collect();
        f.write_str(&lines.join("; "))
    }
}

impl Examination {
    /// Looks at the machine whose sysfs is mounted at `sysfs`.
    pub fn of(sysfs: &Path) -> Self {
        Self::with(sysfs, &nvme::ask)
    }

    fn with(sysfs: &Path, ask: &nvme::Ask<'_>) -> Self {
        let mut examination = Self::default();
        nvme::examine(sysfs, ask, &mut examination);
        scsi::examine(sysfs, &mut examination);
        cards::examine(sysfs, &mut examination);
        memory::examine(sysfs, &mut examination);
        let controllers = driverless::without_driver(sysfs);
        examination.without_driver =
            controllers.into_iter().filter(|one| one.kind == Kind::StorageController).collect();
        examination
    }

    /// The same, with what an operator leaves alone, by address or identity, set apart.
    pub fn without(mut self, is_skipped: impl Fn(&str) -> bool) -> Self {
        let is_unseen_skipped = |one: &mut Unseen| one.names.iter().any(|name| is_skipped(name));
        self.left_alone.unseen = self.unseen.extract_if(.., is_unseen_skipped).collect();
        let is_skipped = |one: &mut Driverless| is_skipped(&one.address) || is_skipped(&one.id);
        self.left_alone.without_driver = self.without_driver.extract_if(.., is_skipped).collect();
        self
    }

    fn examined(&mut self, text: String) {
        self.examined.push(text);
    }

    fn unseen(&mut self, storage: Storage, names: Vec<String>, text: String) {
        self.unseen.push(Unseen { storage, names, text });
    }
}

/// The names of the PCI function that a place in sysfs is below: its address, and its vendor and device.
fn names_of_controller(place: &Path) -> Vec<String> {
    let place = place.canonicalize().unwrap_or_default();
    let function = place.ancestors().find(|folder| {
        sysfs::attribute(folder, "class").is_some_and(|class| class.starts_with("0x"))
            && folder.join("vendor").exists()
    });
    let Some(function) = function else { return Vec::new() };
    let number = |file| sysfs::attribute(function, file).map(|text| text.trim_start_matches("0x").to_owned());
    let address = function.file_name().map(|name| name.to_string_lossy().into_owned());
    let id = number("vendor").zip(number("device")).map(|(vendor, device)| format!("{vendor}:{device}"));
    address.into_iter().chain(id).collect()
}

#[cfg(test)]
mod tests {
    use super::tree::Tree;
    use super::*;

    #[test]
    fn g03_each_kind_refuses_or_is_listed_and_has_a_name_of_its_own() {
        use Storage::*;
        let refusing = [
            NvmeController,
            DetachedNamespace,
            UnknownNamespace,
            UnallocatedNvme,
            RemappedNvme,
            PersistentMemory,
            Card,
            ScsiDisk,
        ];
        let listed = [RaidMember, ScsiMedium, ReplayProtected];
        assert!(refusing.iter().all(|storage| storage.refuses()));
        assert!(listed.iter().all(|storage| !storage.refuses()));
        let mut names: Vec<_> = refusing.iter().chain(&listed).map(|storage| storage.name()).collect();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), 11);
    }

    #[test]
    fn g03_a_machine_is_examined_and_an_operator_may_leave_some_of_it_alone() {
        let tree = Tree::new();
        tree.pci("0000:00:17.0", "0x010601", "0x8086", "0xa352");
        tree.write("devices/pci0000:00/0000:00:17.0/remapped_nvme", "2\n");
        tree.write("bus/pci/devices/0000:05:00.0/class", "0x080501");
        tree.write("bus/pci/devices/0000:05:00.0/vendor", "0x8086");
        tree.write("bus/pci/devices/0000:05:00.0/device", "0x5acc");
        tree.link("bus/pci/devices/0000:00:17.0/driver", "bus/pci/drivers/ahci");
        let found = || Examination::with(tree.path(), &|_, _| unreachable!());
        let all = found();
        assert_eq!((all.unseen.len(), all.without_driver.len()), (1, 1));
        let text = all.to_string();
        assert!(
            text.contains("2 NVMe disks") && text.contains("0000:05:00.0 (8086:5acc) has no driver"),
            "{text}"
        );
        for (skipped, unseen, drivers) in [
            ("0000:00:17.0", 0, 1),
            ("8086:a352", 0, 1),
            ("0000:05:00.0", 1, 0),
            ("8086:5acc", 1, 0),
            ("x", 1, 1),
        ] {
            let left = found().without(|name| name == skipped);
            assert_eq!((left.unseen.len(), left.without_driver.len()), (unseen, drivers), "{skipped}");
        }
    }
}
