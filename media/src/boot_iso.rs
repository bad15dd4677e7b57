//! An ISO with other kernel parameters than it was made with (section 6.8).
//!
//! Nothing is copied: what changes is the text that its boot loaders read, which is a few sectors. [`BootIso`] knows those,
//! and lays them over what is read from the file. So a medium of its own for each boot of each machine costs some
//! kilobytes, and parts of it can be read in any order.

use crate::KernelParameters;
use std::collections::BTreeMap;
use std::io::{self, Read, Seek, SeekFrom};

/// Bytes of a sector.
const SECTOR: u64 = 2048;
/// Where volume descriptors begin, and how many there may be.
const DESCRIPTORS: std::ops::Range<u64> = 16..48;
/// Types of descriptors: a volume, one with other names (Joliet), and the end of all.
const PRIMARY: u8 = 1;
const SUPPLEMENTARY: u8 = 2;
const END: u8 = 255;
/// Places in a descriptor: the sectors of the volume, and the record of the root directory.
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

/// What boot loaders read: GRUB of `farrier-image`, GRUB of Ironic, and isolinux.
const CONFIGURATIONS: &[&[&str]] =
    &[&["boot", "grub", "grub.cfg"], &["efi", "boot", "grub.cfg"], &["isolinux", "isolinux.cfg"]];

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
}

/// An ISO with other kernel parameters than its file has.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BootIso {
    length: u64,
    /// What stands elsewhere than in the file, by its place in bytes. No two overlap.
    patches: BTreeMap<u64, Vec<u8>>,
}

/// A file of a volume, as one of its directories has it.
#[derive(Debug, Clone, Copy)]
struct Found {
    /// Where its record is, in bytes.
    record: u64,
    sector: u32,
    length: u32,
}

impl BootIso {
    /// Adds parameters to those that the kernel of an ISO gets.
    ///
    /// # Errors
    ///
    /// [`BootIsoError`].
    pub fn new(iso: &mut (impl Read + Seek), parameters: &KernelParameters) -> Result<Self, BootIsoError> {
        let bytes = iso.seek(SeekFrom::End(0))?;
        let mut end = bytes.div_ceil(SECTOR);
        let (volumes, found) = search(iso)?;
        let mut patches = BTreeMap::new();
        for ((sector, length), records) in found {
            let text = read(iso, u64::from(sector) * SECTOR, length as usize)?;
            let Some(text) = with_parameters(&String::from_utf8_lossy(&text), parameters) else { continue };
            let mut text = text.into_bytes();
            let new_length = text.len() as u32;
            let sectors = (text.len() as u64).div_ceil(SECTOR);
            text.resize((sectors * SECTOR) as usize, 0);
            let mut place = u64::from(sector);
            if sectors > u64::from(length).div_ceil(SECTOR) {
                (place, end) = (end, end + sectors);
            }
            patches.insert(place * SECTOR, text);
            for record in records {
                patches.insert(record + FIRST_SECTOR as u64, both(place as u32));
                patches.insert(record + LENGTH as u64, both(new_length));
            }
        }
        if patches.is_empty() {
            return Err(BootIsoError::NoKernel);
        }
        for volume in volumes {
            patches.insert(volume * SECTOR + VOLUME_SECTORS as u64, both(end as u32));
        }
        Ok(Self { length: end * SECTOR, patches })
    }

    /// Its length in bytes.
    pub fn length(&self) -> u64 {
        self.length
    }

    /// Lays what differs over bytes that were read from the file at a place; what is behind its end is zero there.
    pub fn lay_over(&self, place: u64, bytes: &mut [u8]) {
        let end = place + bytes.len() as u64;
        for (start, patch) in self.patches.range(..end) {
            let from = place.max(*start);
            let to = end.min(start + patch.len() as u64);
            if from < to {
                let target = &mut bytes[(from - place) as usize..(to - place) as usize];
                target.copy_from_slice(&patch[(from - start) as usize..(to - start) as usize]);
            }
        }
    }
}

/// The sectors of the volume descriptors, and the configurations by their place, with the records that point there.
type Search = (Vec<u64>, BTreeMap<(u32, u32), Vec<u64>>);

fn search(iso: &mut (impl Read + Seek)) -> Result<Search, BootIsoError> {
    let (mut volumes, mut found) = (Vec::new(), BTreeMap::<_, Vec<_>>::new());
    for sector in DESCRIPTORS {
        let descriptor = read(iso, sector * SECTOR, SECTOR as usize)
            .map_err(|_| BootIsoError::NotAnIso("it ends before its volume descriptors"))?;
        if &descriptor[1..6] != b"CD001" {
            return Err(BootIsoError::NotAnIso("it has no volume descriptor"));
        }
        match descriptor[0] {
            END => break,
            PRIMARY | SUPPLEMENTARY => volumes.push(sector),
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
                found.entry((sector, length)).or_default().push(record);
            }
        }
    }
    Ok((volumes, found))
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
        if let Some(name) = record.get(NAME..NAME + name_length)
            && self::name(name, volume).eq_ignore_ascii_case(first)
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

/// A number in both orders of its bytes.
fn both(number: u32) -> Vec<u8> {
    [number.to_le_bytes(), number.to_be_bytes()].concat()
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
    fn laid(file: &[u8], iso: &BootIso) -> Vec<u8> {
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
        let parameters = KernelParameters::default();
        for (file, part) in [
            (Vec::new(), "it ends before"),
            (vec![0; 1 << 20], "it has no volume descriptor"),
            (iso(&[("readme", "hello")]), "no configuration of GRUB or isolinux"),
            (iso(&[("boot/grub/grub.cfg", "set x=1\n")]), "no configuration of GRUB or isolinux"),
        ] {
            let error = BootIso::new(&mut Cursor::new(file), &parameters).unwrap_err().to_string();
            assert!(error.contains(part), "{error}");
        }
    }

    #[test]
    fn only_what_boot_loaders_read_differs() {
        let long = format!("{GRUB}{}", "# oats\n".repeat(280));
        for grub in [GRUB, &long] {
            let file = iso(&[("boot/grub/grub.cfg", grub), ("isolinux/isolinux.cfg", ISOLINUX)]);
            let parameters: KernelParameters = format!("a={} b=2", "x".repeat(200)).parse().unwrap();
            let iso = BootIso::new(&mut Cursor::new(&file), &parameters).unwrap();
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
}
