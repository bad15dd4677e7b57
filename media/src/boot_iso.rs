//! An ISO with other kernel parameters than it was made with, and with the network of a machine (section 6.8).
//!
//! Nothing is copied: what changes is the text that its boot loaders read, and a file that was left empty, which is a few
//! sectors. They are laid over what is read from the file, so that a medium of its own for each boot of each machine costs
//! some kilobytes.

use crate::iso9660::{self, both_u32};
use crate::{KernelParameters, Overlay};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::io::{self, Read, Seek, SeekFrom};

/// Bytes of a sector.
const SECTOR: u64 = iso9660::SECTOR as u64;
/// Where volume descriptors begin, and how many there may be.
const DESCRIPTORS: std::ops::Range<u64> = 16..48;
/// Types of descriptors: a volume, one with other names (Joliet), and the end of all.
const PRIMARY: u8 = 1;
const SUPPLEMENTARY: u8 = 2;
const END: u8 = 255;
/// Places in a descriptor: the label and its length, the sectors of the volume, and the record of the root directory.
const LABEL: usize = 40;
const LABEL_LENGTH: usize = 32;
const VOLUME_SECTORS: usize = 80;
const ROOT: usize = 156;
/// Places in the record of a file: its first sector, its length, that of its name, and the name. Numbers stand there in
/// both orders of their bytes.
const FIRST_SECTOR: usize = 2;
const LENGTH: usize = 10;
const NAME_LENGTH: usize = 32;
const NAME: usize = 33;

/// Longest directory and longest configuration that are read, in bytes.
const LONGEST_DIRECTORY: u32 = 1 << 20;
const LONGEST_CONFIGURATION: u32 = 64 << 10;
/// Longest that a configuration grows with parameters in each line with a kernel, in bytes.
const LONGEST_CHANGED: usize = 256 << 10;

/// What boot loaders read: GRUB of `farrier-image`, GRUB of Ironic, and isolinux.
const CONFIGURATIONS: &[&[&str]] =
    &[&["boot", "grub", "grub.cfg"], &["efi", "boot", "grub.cfg"], &["isolinux", "isolinux.cfg"]];

/// The file with the network, in Ironic's place, and the label of media that have it.
pub const NETWORK_DATA: &str = "openstack/latest/network_data.json";
pub(crate) const LABEL_WITH_NETWORK_DATA: &str = "config-2";

/// Words that begin a line with kernel parameters, and those that end one.
const KERNEL_LINES: &[&str] = &["linux", "linuxefi", "linux16", "append"];
const ENDS: &[&str] = &["--", "---"];

/// An ISO cannot get other kernel parameters.
#[derive(Debug, thiserror::Error)]
pub enum BootIsoError {
    /// It cannot be read.
    #[error("it cannot be read: {0}")]
    Read(#[from] io::Error),
    /// It is none.
    #[error("it is no ISO 9660 image ({0}); give one that farrier-image has made, or one of Ironic's")]
    NotAnIso(&'static str),
    /// No boot loader of it is known.
    #[error(
        "it has no configuration of GRUB or isolinux with a kernel; give one that farrier-image has made"
    )]
    NoKernel,
    /// Each of many lines would get the parameters.
    #[error(
        "its boot loader has a configuration with too many kernels; give one that farrier-image has made"
    )]
    TooManyKernels,
    /// There is no file that the network could be written to.
    #[error(
        "it has no empty file {NETWORK_DATA} for the network; give one that farrier-image has made since"
    )]
    NoNetworkData,
}

/// What an ISO gets for one boot.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Additions {
    /// Parameters after those that its kernel gets already.
    pub parameters: KernelParameters,
    /// The network of the machine, as OpenStack's `network_data.json`, where it does not come by DHCP.
    pub network_data: Option<String>,
}

/// A file of a volume, as one of its directories has it.
#[derive(Debug, Clone, Copy)]
struct Found {
    /// Where its record is, in bytes.
    record: u64,
    sector: u32,
    length: u32,
}

/// What an ISO differs in from its file with these additions.
///
/// # Errors
///
/// [`BootIsoError`].
pub fn overlay(iso: &mut (impl Read + Seek), additions: &Additions) -> Result<Overlay, BootIsoError> {
    let end = iso.seek(SeekFrom::End(0))?.div_ceil(SECTOR);
    let places = Places::search(iso)?;
    let mut changed = Overlay::new(end * SECTOR);
    for ((sector, length), records) in &places.configurations {
        let text = read(iso, u64::from(*sector) * SECTOR, *length as usize)?;
        if let Some(text) = with_parameters(&String::from_utf8_lossy(&text), &additions.parameters) {
            if text.len() > LONGEST_CHANGED {
                return Err(BootIsoError::TooManyKernels);
            }
            replace(&mut changed, (*sector, *length), records, text);
        }
    }
    if changed.is_empty() {
        return Err(BootIsoError::NoKernel);
    }
    if let Some(network_data) = &additions.network_data {
        // A system that sees several volumes may read any of them.
        if places.network_data.len() < places.volumes.len() {
            return Err(BootIsoError::NoNetworkData);
        }
        replace(&mut changed, (0, 0), &places.network_data, network_data.clone());
        for (sector, volume) in &places.volumes {
            changed.put(sector * SECTOR + LABEL as u64, label(*volume));
        }
    }
    let sectors = (changed.length() / SECTOR) as u32;
    for (sector, _) in &places.volumes {
        changed.put(sector * SECTOR + VOLUME_SECTORS as u64, both_u32(sectors).to_vec());
    }
    Ok(changed)
}

/// Has a file, by its sector and length, have another text: where it is, or behind the end if it grows too long.
fn replace(changed: &mut Overlay, (sector, length): (u32, u32), records: &[u64], text: String) {
    let mut text = text.into_bytes();
    let new_length = text.len() as u32;
    text.resize(text.len().next_multiple_of(SECTOR as usize), 0);
    let place = match text.len() > (length as usize).next_multiple_of(SECTOR as usize) {
        true => changed.length(),
        false => u64::from(sector) * SECTOR,
    };
    changed.put(place, text);
    for record in records {
        changed.put(record + FIRST_SECTOR as u64, both_u32((place / SECTOR) as u32).to_vec());
        changed.put(record + LENGTH as u64, both_u32(new_length).to_vec());
    }
}

/// Where in an ISO the things are that may change.
#[derive(Debug, Default)]
struct Places {
    /// Sectors of the descriptors of volumes, and their types.
    volumes: Vec<(u64, u8)>,
    /// Configurations by their sector and length, with the records that point there.
    configurations: BTreeMap<(u32, u32), Vec<u64>>,
    /// The records of the file with the network.
    network_data: Vec<u64>,
}

impl Places {
    fn search(iso: &mut (impl Read + Seek)) -> Result<Self, BootIsoError> {
        let mut places = Self::default();
        for sector in DESCRIPTORS {
            let descriptor = read(iso, sector * SECTOR, SECTOR as usize)
                .map_err(|_| BootIsoError::NotAnIso("it ends before its volume descriptors"))?;
            if &descriptor[1..6] != b"CD001" {
                return Err(BootIsoError::NotAnIso("it has no volume descriptor"));
            }
            match descriptor[0] {
                END => break,
                volume @ (PRIMARY | SUPPLEMENTARY) => places.volumes.push((sector, volume)),
                _ => continue,
            }
            let root = Found {
                record: sector * SECTOR + ROOT as u64,
                sector: number(&descriptor, ROOT + FIRST_SECTOR),
                length: number(&descriptor, ROOT + LENGTH),
            };
            for path in CONFIGURATIONS {
                if let Some(Found { record, sector, length }) = find(iso, root, path, descriptor[0])?
                    && length <= LONGEST_CONFIGURATION
                {
                    places.configurations.entry((sector, length)).or_default().push(record);
                }
            }
            let network_data: Vec<_> = NETWORK_DATA.split('/').collect();
            let found = find(iso, root, &network_data, descriptor[0])?;
            places.network_data.extend(found.map(|found| found.record));
        }
        Ok(places)
    }
}

/// The label of a volume with the network, in the letters of the volume.
fn label(volume: u8) -> Vec<u8> {
    let is_wide = volume == SUPPLEMENTARY;
    let letter = |letter: u8| if is_wide { vec![0, letter] } else { vec![letter] };
    let letters = LABEL_WITH_NETWORK_DATA.bytes().chain(std::iter::repeat(b' '));
    letters.flat_map(letter).take(LABEL_LENGTH).collect()
}

/// The file at a path below a directory.
fn find(
    iso: &mut (impl Read + Seek),
    directory: Found,
    path: &[&str],
    volume: u8,
) -> Result<Option<Found>, BootIsoError> {
    let Some((first, rest)) = path.split_first() else { return Ok(Some(directory)) };
    let start = u64::from(directory.sector) * SECTOR;
    let records = read(iso, start, directory.length.min(LONGEST_DIRECTORY) as usize)?;
    let mut at = 0;
    while let Some(record) = records.get(at..) {
        let length = usize::from(record.first().copied().unwrap_or_default());
        if length == 0 {
            // What is left of a sector is empty when the next record is too long for it.
            at = (at / SECTOR as usize + 1) * SECTOR as usize;
            continue;
        }
        let name_length = usize::from(record.get(NAME_LENGTH).copied().unwrap_or_default());
        let is_named = |name: &[u8]| self::name(name, volume).eq_ignore_ascii_case(first);
        let record = &record[..length.min(record.len())];
        if record.get(NAME..NAME + name_length).is_some_and(is_named)
            || long_name(record, name_length).is_some_and(|name| name.eq_ignore_ascii_case(first.as_bytes()))
        {
            let found = Found {
                record: start + at as u64,
                sector: number(record, FIRST_SECTOR),
                length: number(record, LENGTH),
            };
            return find(iso, found, rest, volume);
        }
        at += length;
    }
    Ok(None)
}

/// The name that Rock Ridge gives a record beside its short one (`NM` of IEEE P1282), where it fits in one part.
fn long_name(record: &[u8], name_length: usize) -> Option<&[u8]> {
    // The name is followed by a byte that makes the length even.
    let mut entries = record.get((NAME + name_length).next_multiple_of(2)..)?;
    loop {
        let length = usize::from(*entries.get(2)?);
        let entry = entries.get(..length).filter(|entry| entry.len() > 4)?;
        if entry.starts_with(b"NM") {
            return entry.get(5..);
        }
        entries = &entries[length..];
    }
}

/// A name without its version.
fn name(bytes: &[u8], volume: u8) -> String {
    let text = match volume {
        SUPPLEMENTARY => {
            let units: Vec<_> =
                bytes.chunks_exact(2).map(|unit| u16::from_be_bytes([unit[0], unit[1]])).collect();
            String::from_utf16_lossy(&units)
        }
        _ => String::from_utf8_lossy(bytes).into_owned(),
    };
    text.split(';').next().unwrap_or_default().trim_end_matches('.').to_owned()
}

/// A configuration with further parameters in each line with a kernel; nothing where there is none.
fn with_parameters(text: &str, parameters: &KernelParameters) -> Option<String> {
    let (mut lines, mut is_changed) = (Vec::new(), false);
    for line in text.trim_end_matches('\0').split('\n') {
        let words: Vec<_> = line.split_whitespace().collect();
        let has_kernel =
            words.first().is_some_and(|word| KERNEL_LINES.contains(&word.to_ascii_lowercase().as_str()));
        if !has_kernel {
            lines.push(line.to_owned());
            continue;
        }
        is_changed = true;
        let indent = &line[..line.len() - line.trim_start().len()];
        let (words, end) = match words.split_last() {
            Some((last, before)) if ENDS.contains(last) => (before, format!(" {last}")),
            _ => (&words[..], String::new()),
        };
        lines.push(format!("{indent}{} {parameters}{end}", words.join(" ")));
    }
    is_changed.then(|| lines.join("\n"))
}

fn read(iso: &mut (impl Read + Seek), place: u64, length: usize) -> io::Result<Vec<u8>> {
    let mut bytes = vec![0; length];
    iso.seek(SeekFrom::Start(place))?;
    iso.read_exact(&mut bytes)?;
    Ok(bytes)
}

/// A number, of which there are always four bytes or it is zero.
fn number(bytes: &[u8], at: usize) -> u32 {
    bytes.get(at..at + 4).and_then(|four| four.try_into().ok()).map_or(0, u32::from_le_bytes)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config_drive::format_options;
    use hadris_iso::read::{IsoImage, PathSeparator};
    use hadris_iso::write::{InputEntry, InputTree, IsoImageWriter};
    use std::io::Cursor;

    const GRUB: &str = "linux /vmlinuz console=ttyS0\ninitrd /initramfs.img\nboot\n";
    const ISOLINUX: &str = "DEFAULT farrier\nLABEL farrier\n  APPEND initrd=/initrd text --\n";

    fn iso(files: &[(&str, &str)]) -> Vec<u8> {
        let folder = |name: &str, entries| InputEntry::directory(name, entries);
        let mut root = vec![InputEntry::file("vmlinuz", vec![7; 5000])];
        for (path, text) in files {
            let mut parts = path.split('/').rev();
            let mut entry = InputEntry::file(parts.next().unwrap(), text.as_bytes());
            for part in parts {
                entry = folder(part, vec![entry]);
            }
            root.push(entry);
        }
        let tree = InputTree { path_separator: PathSeparator::ForwardSlash, entries: root };
        IsoImageWriter::create(Cursor::new(Vec::new()), tree, format_options("FARRIER")).unwrap().into_inner()
    }

    /// The whole medium, read in pieces of a size that is no divisor of anything.
    fn laid(file: &[u8], iso: &Overlay) -> Vec<u8> {
        let mut whole = Vec::new();
        while (whole.len() as u64) < iso.length() {
            let place = whole.len();
            let mut piece = vec![0; 977.min(iso.length() as usize - place)];
            let of_file = file.get(place..).unwrap_or_default();
            let count = of_file.len().min(piece.len());
            piece[..count].copy_from_slice(&of_file[..count]);
            iso.lay_over(place as u64, &mut piece);
            whole.extend(piece);
        }
        whole
    }

    fn text(iso: &[u8], path: &str) -> String {
        let image = IsoImage::open(Cursor::new(iso.to_vec())).unwrap();
        let (mut directory, mut parts) = (image.root_dir().dir_ref(), path.split('/').peekable());
        loop {
            let part = parts.next().unwrap();
            let entries: Vec<_> = image.open_dir(directory).entries().map(|entry| entry.unwrap()).collect();
            let entry = entries.into_iter().find(|entry| entry.matches_name(part)).unwrap();
            if parts.peek().is_none() {
                return String::from_utf8(image.read_file(&entry).unwrap()).unwrap();
            }
            directory = entry.as_dir_ref(&image).unwrap();
        }
    }

    #[test]
    fn each_kernel_line_gets_the_parameters() {
        let parameters = "ipa-api-url=http://192.0.2.5:6385 boot_method=vmedia".parse().unwrap();
        assert_eq!(
            with_parameters(GRUB, &parameters).unwrap(),
            "linux /vmlinuz console=ttyS0 ipa-api-url=http://192.0.2.5:6385 boot_method=vmedia\n\
             initrd /initramfs.img\nboot\n"
        );
        assert_eq!(
            with_parameters(ISOLINUX, &parameters).unwrap(),
            "DEFAULT farrier\nLABEL farrier\n  APPEND initrd=/initrd text ipa-api-url=http://192.0.2.5:6385 \
             boot_method=vmedia --\n"
        );
        assert_eq!(with_parameters("set timeout=5\n", &parameters), None);
    }

    #[test]
    fn what_is_no_boot_medium_is_refused() {
        let parameters = "x".repeat(200).parse().unwrap();
        let additions = Additions { parameters, network_data: None };
        for (file, part) in [
            (Vec::new(), "it ends before"),
            (vec![0; 1 << 20], "it has no volume descriptor"),
            (iso(&[("readme", "hello")]), "no configuration of GRUB or isolinux"),
            (iso(&[("boot/grub/grub.cfg", "set x=1\n")]), "no configuration of GRUB or isolinux"),
            (iso(&[("boot/grub/grub.cfg", &"linux x\n".repeat(2000))]), "too many kernels"),
        ] {
            let error = overlay(&mut Cursor::new(file), &additions).unwrap_err().to_string();
            assert!(error.contains(part), "{error}");
        }
    }

    #[test]
    fn only_what_boot_loaders_read_differs() {
        let long = format!("{GRUB}{}", "# oats\n".repeat(280));
        for grub in [GRUB, &long] {
            let file = iso(&[("boot/grub/grub.cfg", grub), ("isolinux/isolinux.cfg", ISOLINUX)]);
            let parameters: KernelParameters = format!("a={} b=2", "x".repeat(200)).parse().unwrap();
            let additions = Additions { parameters: parameters.clone(), network_data: None };
            let iso = overlay(&mut Cursor::new(&file), &additions).unwrap();
            let medium = laid(&file, &iso);
            assert_eq!(medium.len() as u64, iso.length());
            assert_eq!(text(&medium, "boot/grub/grub.cfg"), with_parameters(grub, &parameters).unwrap());
            assert_eq!(
                text(&medium, "isolinux/isolinux.cfg"),
                with_parameters(ISOLINUX, &parameters).unwrap()
            );
            let changed = file.iter().zip(&medium).filter(|(old, new)| old != new).count();
            assert!(changed < 5000, "{changed} bytes differ");
        }
    }

    #[test]
    fn the_network_is_in_the_file_that_was_left_empty_and_the_label_says_so() {
        let additions =
            |text: &str| Additions { network_data: Some(text.to_owned()), ..Additions::default() };
        let file = iso(&[("boot/grub/grub.cfg", GRUB), (NETWORK_DATA, "")]);
        for network_data in [r#"{"links": []}"#.to_owned(), "x".repeat(5000)] {
            let changed = overlay(&mut Cursor::new(&file), &additions(&network_data)).unwrap();
            let medium = laid(&file, &changed);
            assert_eq!(text(&medium, NETWORK_DATA), network_data);
            assert_eq!(&medium[0x8000 + LABEL..][..LABEL_LENGTH], format!("{:32}", "config-2").as_bytes());
            assert_eq!(text(&medium, "vmlinuz"), "\u{7}".repeat(5000));
        }
        let without = iso(&[("boot/grub/grub.cfg", GRUB)]);
        let error = overlay(&mut Cursor::new(without), &additions("{}")).unwrap_err().to_string();
        assert!(error.contains("no empty file openstack/latest/network_data.json"), "{error}");
    }
}
