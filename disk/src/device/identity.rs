//! Serial numbers and World Wide Names, in every form other tools print them (F27).
//!
//! lsblk and udev derive different texts from the same device, and operators copy hints from either.

mod ata;

use crate::device::command_set::ATA_VENDOR;
use farrier_linux::ata::IdentifyData;
use farrier_linux::sysfs;
use std::fs;
use std::path::{Path, PathBuf};

/// Header of a SCSI vital product data page.
const VPD_HEADER: usize = 4;

/// Hexadecimal digits of the part of a 16-byte World Wide Name that udev calls the name itself.
const WWN_DIGITS: usize = 16;

/// What of a disk's identity does not come as one attribute.
#[derive(Debug)]
pub struct Identity {
    /// Every form of the model; the full one comes first.
    pub models: Vec<String>,
    /// Every form of the serial number; the plain one comes first.
    pub serials: Vec<String>,
}

impl Identity {
    /// Reads the identity of the disk in `directory`.
    pub fn read(directory: &Path) -> Self {
        let device = directory.join("device");
        let ata = ata::identify(directory);
        // Inquiry data have room for the first 16 characters only.
        let inquiry = sysfs::attribute(&device, "model");
        let full = ata.as_ref().and_then(IdentifyData::model).or_else(|| inquiry.clone());
        let joined = full.as_deref().map(joined);
        let models = deduplicated([&full, &joined, &inquiry].into_iter().flatten().cloned());

        let usb = usb_device(directory).and_then(|usb| sysfs::attribute(&usb, "serial"));
        let plain = sysfs::attribute(directory, "serial")
            .or_else(|| sysfs::attribute(&device, "serial"))
            .or_else(|| vital_product_serial(&device))
            .or_else(|| ata.as_ref().and_then(IdentifyData::serial));
        let long = plain.iter().flat_map(|serial| long_serials(directory, &models, serial));
        let at_usb = usb.iter().flat_map(|serial| usb_serials(directory, serial));
        let naa = naa_digits(directory);
        let scsi = naa.iter().flat_map(|digits| [digits.clone(), format!("3{digits}")]);
        let t10 = raw_name(directory)
            .and_then(|name| Some(format!("1{}", self::joined(name.strip_prefix("t10.")?))));
        Self {
            serials: deduplicated(plain.clone().into_iter().chain(long).chain(at_usb).chain(scsi).chain(t10)),
            models,
        }
    }
}

/// The serial number with the model before it: as udev's ID_SERIAL has it for ATA and NVMe disks, newer ones with
/// the number of the namespace, and for SCSI disks that have no name of their own.
fn long_serials(directory: &Path, models: &[String], serial: &str) -> Vec<String> {
    let mut forms: Vec<_> = models.iter().map(|model| joined(&format!("{model} {serial}"))).collect();
    let namespace = sysfs::attribute(directory, "nsid");
    let numbered = models.first().zip(namespace);
    forms.extend(numbered.map(|(model, number)| joined(&format!("{model} {serial} {number}"))));
    let device = directory.join("device");
    let vendor = sysfs::attribute(&device, "vendor").filter(|vendor| vendor != ATA_VENDOR);
    if let (Some(vendor), Some(model)) = (vendor, models.first()) {
        forms.extend(["0", "S"].map(|kind| joined(&format!("{kind}{vendor} {model} {serial}"))));
    }
    forms
}

/// The serial number of a USB device, and as udev's ID_SERIAL has it for the disk in `directory` behind it.
fn usb_serials(directory: &Path, serial: &str) -> Vec<String> {
    let device = directory.join("device");
    let mut forms = vec![serial.to_owned()];
    let names = sysfs::attribute(&device, "vendor").zip(sysfs::attribute(&device, "model"));
    let address = sysfs::entries(&device.join("scsi_device")).into_iter().next();
    if let (Some((vendor, model)), Some(address)) = (names, address) {
        let unit: Vec<_> = address.split(':').skip(2).collect();
        forms.push(format!("{}-{}", joined(&format!("{vendor} {model} {serial}")), unit.join(":")));
    }
    forms
}

/// The directory of the USB device that the disk in `directory` is behind.
fn usb_device(directory: &Path) -> Option<PathBuf> {
    let place = directory.canonicalize().ok()?;
    place.ancestors().find(|place| place.join("idVendor").exists()).map(Path::to_owned)
}

/// A text in one word, as udev writes it.
fn joined(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join("_")
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
