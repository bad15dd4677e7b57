//! Serial numbers and World Wide Names, in every form other tools print them (F27).
//!
//! lsblk and udev derive different texts from the same device, and operators copy hints from either.

use farrier_linux::sysfs;
use std::fs;
use std::path::Path;

/// Header of a SCSI vital product data page.
const VPD_HEADER: usize = 4;

/// Hexadecimal digits of the part of a 16-byte World Wide Name that udev calls the name itself.
const WWN_DIGITS: usize = 16;

/// Every form of the serial number of the disk in `directory`; the plain one comes first.
pub fn serials(directory: &Path) -> Vec<String> {
    let device = directory.join("device");
    let plain = sysfs::attribute(directory, "serial")
        .or_else(|| sysfs::attribute(&device, "serial"))
        .or_else(|| vital_product_serial(&device));
    let model = sysfs::attribute(&device, "model");
    let long = plain.as_ref().zip(model).map(|(serial, model)| {
        // udev joins the words of both for NVMe and ATA disks.
        format!("{model}_{serial}").split_whitespace().collect::<Vec<_>>().join("_")
    });
    let naa = naa_digits(directory);
    let scsi = naa.iter().flat_map(|digits| [digits.clone(), format!("3{digits}")]);
    deduplicated(plain.into_iter().chain(long).chain(scsi))
}

/// The parts of a World Wide Name as udev splits it.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct WorldWideName {
    /// What lsblk shows.
    pub name: Option<String>,
    /// The name with the vendor's extension; only SCSI and ATA disks have one.
    pub with_extension: Option<String>,
    /// The vendor's extension alone.
    pub vendor_extension: Option<String>,
    raw: Option<String>,
}

impl WorldWideName {
    /// Reads the name of the disk in `directory`.
    pub fn read(directory: &Path) -> Self {
        let raw = raw_name(directory);
        let Some(digits) = naa_digits(directory) else {
            return Self { name: raw.clone(), raw, ..Self::default() };
        };
        let (name, extension) = digits.split_at_checked(WWN_DIGITS).unwrap_or((&digits, ""));
        Self {
            name: Some(format!("0x{name}")),
            with_extension: Some(format!("0x{digits}")),
            vendor_extension: (!extension.is_empty()).then(|| format!("0x{extension}")),
            raw,
        }
    }

    /// Every form a `wwn` hint may name.
    pub fn forms(&self) -> Vec<String> {
        deduplicated([&self.name, &self.with_extension, &self.raw].into_iter().flatten().cloned())
    }
}

fn raw_name(directory: &Path) -> Option<String> {
    sysfs::attribute(directory, "wwid").or_else(|| sysfs::attribute(&directory.join("device"), "wwid"))
}

/// The digits of a network address authority name: `naa.5000c500…` without its prefix.
fn naa_digits(directory: &Path) -> Option<String> {
    raw_name(directory)?.strip_prefix("naa.").map(str::to_owned)
}

fn vital_product_serial(device: &Path) -> Option<String> {
    let page = fs::read(device.join("vpd_pg80")).ok()?;
    let text = String::from_utf8_lossy(page.get(VPD_HEADER..)?).into_owned();
    let text = text.trim_matches(|c: char| c.is_whitespace() || c == '\0');
    (!text.is_empty()).then(|| text.to_owned())
}

fn deduplicated(values: impl Iterator<Item = String>) -> Vec<String> {
    let mut seen = Vec::new();
    for value in values {
        if !seen.contains(&value) {
            seen.push(value);
        }
    }
    seen
}
