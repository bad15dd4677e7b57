//! What a machine starts from.

use super::state::Disk;
use crate::file::Vendor;
use tokio::sync::watch;

/// For how long an override of the boot device holds.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Holds {
    /// There is none.
    #[default]
    Disabled,
    /// For the next start.
    Once,
    /// For all.
    Continuous,
}

/// The override of the boot device, as Redfish has it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Override {
    /// The boot device, as `Cd` or `Pxe`; empty where none was ever set.
    pub target: String,
    /// For how long it holds.
    pub holds: Holds,
    /// From where firmware boots by HTTP.
    pub http_url: Option<String>,
}

/// What a machine has started.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum BootSource {
    /// The ramdisk, from the medium at this URL.
    Medium(String),
    /// The ramdisk, from the network.
    Network,
    /// What is on its disk.
    Disk,
    /// Nothing: there is nothing to start.
    Nothing,
}

/// A start of a machine that leads to the ramdisk.
#[derive(Debug)]
pub struct Boot {
    /// Number of the machine.
    pub machine: u32,
    /// Number of the start, from 1 on.
    pub number: u64,
    /// From where the ramdisk comes.
    pub source: BootSource,
    /// Closed when the machine goes off or starts again.
    pub ends: watch::Receiver<()>,
}

impl Override {
    /// What a machine starts, with a medium in its virtual CD drive and something on its disk, and the override that is left.
    pub fn start(self, vendor: Vendor, medium: Option<&str>, disk: &Disk) -> (BootSource, Self) {
        let of_disk = match disk {
            Disk::Image(_) => BootSource::Disk,
            Disk::Blank | Disk::Cut => BootSource::Nothing,
        };
        let target = match self.holds {
            Holds::Disabled => "",
            Holds::Once | Holds::Continuous => &self.target,
        };
        let source = match (target, medium, &self.http_url) {
            (target, Some(medium), _) if target == vendor.virtual_cd() => {
                BootSource::Medium(medium.to_owned())
            }
            ("UefiHttp", _, Some(url)) => BootSource::Medium(url.clone()),
            ("Pxe", ..) | ("UefiHttp", _, None) => BootSource::Network,
            _ => of_disk,
        };
        let left = match self.holds {
            Holds::Once => Self { target: "None".to_owned(), holds: Holds::Disabled, ..self },
            Holds::Continuous | Holds::Disabled => self,
        };
        (source, left)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_machine_starts_what_it_is_told_to_and_else_its_disk() {
        const ISO: &str = "http://192.0.2.5/ramdisk.iso";
        let medium = || BootSource::Medium(ISO.to_owned());
        let image = Disk::Image("debian".to_owned());
        for (vendor, target, holds, inserted, disk, expected) in [
            (Vendor::Generic, "Cd", Holds::Once, Some(ISO), &Disk::Blank, medium()),
            (Vendor::Generic, "Cd", Holds::Once, None, &image, BootSource::Disk),
            (Vendor::Generic, "Cd", Holds::Disabled, Some(ISO), &Disk::Blank, BootSource::Nothing),
            (Vendor::Supermicro, "Cd", Holds::Once, Some(ISO), &image, BootSource::Disk),
            (Vendor::Supermicro, "UsbCd", Holds::Continuous, Some(ISO), &image, medium()),
            (Vendor::Dell, "Pxe", Holds::Once, Some(ISO), &image, BootSource::Network),
            (Vendor::Dell, "Hdd", Holds::Continuous, Some(ISO), &image, BootSource::Disk),
            (Vendor::Dell, "Hdd", Holds::Continuous, None, &Disk::Cut, BootSource::Nothing),
        ] {
            let before = Override { target: target.to_owned(), holds, http_url: None };
            let (source, after) = before.clone().start(vendor, inserted, disk);
            assert_eq!(source, expected, "{vendor:?} {target} {holds:?}");
            match holds {
                Holds::Once => assert_eq!(after.holds, Holds::Disabled),
                Holds::Continuous | Holds::Disabled => assert_eq!(after, before),
            }
        }
        let http =
            Override { target: "UefiHttp".to_owned(), holds: Holds::Once, http_url: Some(ISO.to_owned()) };
        assert_eq!(http.start(Vendor::Generic, None, &image).0, medium());
    }
}
