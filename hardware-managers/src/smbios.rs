//! The SMBIOS table, in which firmware describes the machine (F45).
//!
//! Nothing in it is trusted: a structure that is cut short lacks its last fields, and reading ends
//! where lengths make no sense.

use std::fs;
use std::path::Path;

/// Bytes of a structure's header: type, length, handle.
const HEADER: usize = 4;
/// Type of the structure that ends the table.
const END_OF_TABLE: u8 = 127;
/// Largest table that is read.
const MAX_STRUCTURES: usize = 4096;

/// One structure of the table.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Structure {
    /// Type by the SMBIOS specification.
    pub kind: u8,
    /// Number by which other structures name this one.
    pub handle: u16,
    /// Formatted area with its header, so that offsets are those of the specification.
    data: Vec<u8>,
    strings: Vec<String>,
}

impl Structure {
    /// The byte at an offset.
    pub fn byte(&self, offset: usize) -> Option<u8> {
        self.data.get(offset).copied()
    }

    /// The 16-bit number at an offset.
    pub fn word(&self, offset: usize) -> Option<u16> {
        Some(u16::from_le_bytes(*self.data.get(offset..)?.first_chunk()?))
    }

    /// The 32-bit number at an offset.
    pub fn double_word(&self, offset: usize) -> Option<u32> {
        Some(u32::from_le_bytes(*self.data.get(offset..)?.first_chunk()?))
    }

    /// The 64-bit number at an offset.
    pub fn quad_word(&self, offset: usize) -> Option<u64> {
        Some(u64::from_le_bytes(*self.data.get(offset..)?.first_chunk()?))
    }

    /// The trimmed text whose number stands at an offset; nothing when there is none.
    pub fn text(&self, offset: usize) -> Option<&str> {
        let number = usize::from(self.byte(offset)?).checked_sub(1)?;
        self.strings.get(number).map(|text| text.trim()).filter(|text| !text.is_empty())
    }
}

/// The structures of this machine; none when its firmware has no table or it may not be read.
pub fn read(root: &Path) -> Vec<Structure> {
    let table = fs::read(root.join("sys/firmware/dmi/tables/DMI")).unwrap_or_default();
    parse(&table)
}

/// Takes a table apart.
pub fn parse(mut table: &[u8]) -> Vec<Structure> {
    let mut structures = Vec::new();
    while let Some((structure, rest)) = next(table) {
        if structure.kind == END_OF_TABLE || structures.len() == MAX_STRUCTURES {
            break;
        }
        structures.push(structure);
        table = rest;
    }
    structures
}

/// The first structure and what follows it. Its texts end with two zero bytes.
fn next(table: &[u8]) -> Option<(Structure, &[u8])> {
    let [kind, length, handle_low, handle_high] = *table.first_chunk::<HEADER>()?;
    let length = usize::from(length);
    if length < HEADER || length > table.len() {
        return None;
    }
    let (data, texts) = table.split_at(length);
    let end = texts.windows(2).position(|pair| pair == [0, 0]).unwrap_or(texts.len());
    let strings =
        texts[..end].split(|byte| *byte == 0).map(|text| String::from_utf8_lossy(text).into_owned());
    let structure = Structure {
        kind,
        handle: u16::from_le_bytes([handle_low, handle_high]),
        data: data.to_vec(),
        strings: strings.collect(),
    };
    Some((structure, texts.get(end + 2..).unwrap_or_default()))
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use proptest::prelude::*;

    /// A structure as firmware writes it; `data` begins at offset 4.
    pub fn structure(kind: u8, handle: u16, data: &[u8], strings: &[&str]) -> Vec<u8> {
        let mut bytes = vec![kind, (data.len() + HEADER) as u8];
        bytes.extend(handle.to_le_bytes());
        bytes.extend(data);
        for text in strings {
            bytes.extend(text.bytes());
            bytes.push(0);
        }
        bytes.extend(if strings.is_empty() { &[0, 0][..] } else { &[0] });
        bytes
    }

    #[test]
    fn structures_and_their_texts_are_read() {
        let table = [
            structure(0, 7, &[1, 2, 0x34, 0x12], &["Vendor ", "1.0"]),
            structure(16, 8, &[9], &[]),
            structure(127, 9, &[], &[]),
            structure(1, 10, &[], &[]),
        ]
        .concat();
        let found = parse(&table);
        assert_eq!(found.len(), 2);
        assert_eq!((found[0].kind, found[0].handle), (0, 7));
        assert_eq!((found[0].text(4), found[0].text(5)), (Some("Vendor"), Some("1.0")));
        assert_eq!((found[0].word(6), found[0].word(7)), (Some(0x1234), None));
        assert_eq!((found[1].byte(4), found[1].text(4)), (Some(9), None));
    }

    #[test]
    fn a_table_without_sense_ends_the_reading() {
        for table in [&b""[..], &[0, 3, 0, 0, 0, 0], &[0, 200, 0, 0], &[1, 4, 0]] {
            assert_eq!(parse(table), []);
        }
    }

    proptest! {
        #[test]
        fn no_table_is_too_odd(table in proptest::collection::vec(any::<u8>(), 0..512)) {
            for structure in parse(&table) {
                structure.text(4);
                structure.quad_word(7);
            }
        }
    }
}
