//! What a medium carries: the type of its file system, and how it is labelled.

use std::io::{self, Read, Seek, SeekFrom};

/// Where the primary volume descriptor of ISO 9660 lies, in bytes (ECMA-119, 6.2.1).
const DESCRIPTOR: u64 = 32768;
/// Bytes of a sector of ISO 9660.
const SECTOR: u64 = 2048;
/// Type 1, the standard's identifier, version 1.
const DESCRIPTOR_START: &[u8] = b"\x01CD001\x01";

/// The file system of a medium.
#[derive(Debug, PartialEq, Eq)]
pub struct Volume {
    /// Type, as the kernel calls it.
    pub file_system: &'static str,
    /// Label in lower case, without the blanks that fill it up.
    pub label: String,
    /// Publisher in lower case; only ISO 9660 has one.
    pub publisher: String,
    /// The program that made it, in lower case; only ISO 9660 has it.
    pub application: String,
}

impl Volume {
    /// Reads the beginning of a medium; nothing when it has no file system that media have.
    ///
    /// # Errors
    ///
    /// It cannot be read, for instance because the drive is empty.
    pub fn read(medium: &mut (impl Read + Seek)) -> io::Result<Option<Self>> {
        let descriptor = block(medium, DESCRIPTOR)?;
        Ok(Self::of_iso9660(&descriptor).or(Self::of_fat(&block(medium, 0)?)))
    }

    fn of_iso9660(descriptor: &[u8]) -> Option<Self> {
        let rest = descriptor.strip_prefix(DESCRIPTOR_START)?;
        let start = DESCRIPTOR_START.len();
        let field = |from: usize, to: usize| rest.get(from - start..to - start).map(text);
        let file_system = "iso9660";
        let (label, publisher, application) = (field(40, 72)?, field(318, 446)?, field(574, 702)?);
        Some(Self { file_system, label, publisher, application })
    }

    /// A boot sector with the label that formatting programs leave there.
    fn of_fat(sector: &[u8]) -> Option<Self> {
        if sector.get(510..512) != Some(&[0x55, 0xaa]) {
            return None;
        }
        // Label and type of FAT12 and FAT16, then those of FAT32.
        let places = [(43..54, 54..59), (71..82, 82..87)];
        let (label, _) = places
            .into_iter()
            .find(|(_, kind)| matches!(sector.get(kind.clone()), Some(b"FAT12" | b"FAT16" | b"FAT32")))?;
        let label = text(sector.get(label)?);
        let (publisher, application) = (String::new(), String::new());
        Some(Self { file_system: "vfat", label, publisher, application })
    }
}

/// Up to a sector from an offset; fewer bytes at the end of the medium.
fn block(medium: &mut (impl Read + Seek), offset: u64) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    medium.seek(SeekFrom::Start(offset))?;
    medium.take(SECTOR).read_to_end(&mut bytes)?;
    Ok(bytes)
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).trim_matches([' ', '\0']).to_lowercase()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ramdisk_media::APPLICATION;
    use proptest::prelude::*;
    use std::collections::BTreeMap;
    use std::io::Cursor;

    fn fat(label_at: usize, kind: &[u8]) -> Vec<u8> {
        let mut sector = vec![0; 512];
        sector[510..].copy_from_slice(&[0x55, 0xaa]);
        sector[label_at..label_at + 11].copy_from_slice(b"IR-VFD-DEV ");
        sector[label_at + 11..label_at + 11 + kind.len()].copy_from_slice(kind);
        sector
    }

    fn iso(label: &str, publisher: &str) -> Vec<u8> {
        let mut bytes = vec![b' '; 34816];
        bytes[32768..32775].copy_from_slice(DESCRIPTOR_START);
        bytes[32808..32808 + label.len()].copy_from_slice(label.as_bytes());
        bytes[33086..33086 + publisher.len()].copy_from_slice(publisher.as_bytes());
        bytes
    }

    #[test]
    fn labels_are_found_in_every_kind_of_medium() {
        for (bytes, expected) in [
            (fat(43, b"FAT12"), Some(("vfat", "ir-vfd-dev", ""))),
            (fat(71, b"FAT32"), Some(("vfat", "ir-vfd-dev", ""))),
            (fat(43, b"NTFS!"), None),
            (iso("VMEDIA_BOOT_ISO", "ab-12"), Some(("iso9660", "vmedia_boot_iso", "ab-12"))),
            (iso("config-2", ""), Some(("iso9660", "config-2", ""))),
            (vec![0; 100], None),
            (vec![], None),
        ] {
            let found = Volume::read(&mut Cursor::new(bytes)).unwrap();
            let found = found
                .as_ref()
                .map(|volume| (volume.file_system, volume.label.as_str(), volume.publisher.as_str()));
            assert_eq!(found, expected);
        }
    }

    #[test]
    fn a_volume_of_farrier_tells_what_made_it() {
        let volume = crate::iso9660::Volume { label: "FARRIER", files: BTreeMap::new(), boot: Vec::new() };
        let found = Volume::read(&mut Cursor::new(volume.write().to_vec())).unwrap().unwrap();
        assert_eq!((found.label.as_str(), found.application.as_str()), ("farrier", APPLICATION));
        assert_eq!(found.publisher, "farrier");
    }

    proptest! {
        #[test]
        fn no_sector_is_too_odd(bytes in prop::collection::vec(any::<u8>(), 0..600), is_iso: bool) {
            let mut bytes = bytes;
            if is_iso {
                bytes.splice(0..0, DESCRIPTOR_START.iter().copied());
            }
            Volume::of_iso9660(&bytes);
            Volume::of_fat(&bytes);
        }
    }
}
