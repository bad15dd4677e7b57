//! Device paths as text (UEFI specification, sections 10.3 and 10.6), as far as whoever looks for boot
//! entries needs it: partitions and files in full, other nodes by their names.

use std::fmt::Write;
use uuid::Uuid;

/// Bytes of a node before its data: kind, subtype, length.
const HEADER: usize = 4;
const END_OF_PATH: u8 = 0x7f;
const HARD_DRIVE: (u8, u8) = (4, 1);
const FILE: (u8, u8) = (4, 4);
const ACPI: (u8, u8) = (2, 1);
/// The identifier of a PCI root bridge among ACPI's devices.
const PCI_ROOT: [u8; 4] = 0x0a03_41d0_u32.to_le_bytes();

/// Names of the other nodes with which paths begin.
const NAMES: &[((u8, u8), &str)] = &[
    ((1, 1), "Pci"),
    ((1, 4), "VenHw"),
    ((3, 10), "VenMsg"),
    ((3, 11), "MAC"),
    ((3, 15), "UsbClass"),
    ((4, 3), "VenMedia"),
    ((4, 6), "FvFile"),
    ((4, 7), "FvVol"),
    ((5, 1), "BBS"),
];

/// Writes a path down, its nodes with slashes between. What is cut off is left out.
pub fn text(path: &[u8]) -> String {
    let mut nodes = Vec::new();
    let mut rest = path;
    while let [kind, subtype, low, high, ..] = *rest {
        let length = usize::from(u16::from_le_bytes([low, high]));
        let Some(data) = rest.get(HEADER..length).filter(|_| kind != END_OF_PATH) else { break };
        nodes.push(node((kind, subtype), data));
        rest = &rest[length..];
    }
    nodes.join("/")
}

fn node(kind: (u8, u8), data: &[u8]) -> String {
    match kind {
        HARD_DRIVE => hard_drive(data).unwrap_or_else(|| generic("HD", data)),
        FILE => format!("File({})", file(data)),
        ACPI if data.starts_with(&PCI_ROOT) => generic("PciRoot", &data[PCI_ROOT.len()..]),
        _ => match NAMES.iter().find(|(known, _)| *known == kind) {
            Some((_, name)) => generic(name, data),
            None => generic(&format!("Path{},{}", kind.0, kind.1), data),
        },
    }
}

/// Number, kind of table, signature, first sector and sectors of a partition.
fn hard_drive(data: &[u8]) -> Option<String> {
    let number = u32::from_le_bytes(data.get(..4)?.try_into().ok()?);
    let start = u64::from_le_bytes(data.get(4..12)?.try_into().ok()?);
    let size = u64::from_le_bytes(data.get(12..20)?.try_into().ok()?);
    let signature: [u8; 16] = data.get(20..36)?.try_into().ok()?;
    let (table, signature) = match data.get(37)? {
        1 => ("MBR", format!("0x{:08x}", u32::from_le_bytes(signature[..4].try_into().ok()?))),
        2 => ("GPT", Uuid::from_bytes_le(signature).to_string()),
        _ => return None,
    };
    Some(format!("HD({number},{table},{signature},0x{start:x},0x{size:x})"))
}

fn file(data: &[u8]) -> String {
    let units = data.chunks_exact(2).map(|bytes| u16::from_le_bytes([bytes[0], bytes[1]]));
    char::decode_utf16(units.take_while(|unit| *unit != 0))
        .map(|decoded| decoded.unwrap_or(char::REPLACEMENT_CHARACTER))
        .collect()
}

fn generic(name: &str, data: &[u8]) -> String {
    let mut text = format!("{name}(");
    for byte in data {
        // Writing to a string cannot fail.
        let _ = write!(text, "{byte:02x}");
    }
    text + ")"
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn bytes(hex: &str) -> Vec<u8> {
        let digits: Vec<_> = hex.bytes().filter(|byte| !byte.is_ascii_whitespace()).collect();
        let byte = |pair: &[u8]| u8::from_str_radix(std::str::from_utf8(pair).unwrap(), 16).unwrap();
        digits.chunks(2).map(byte).collect()
    }

    #[test]
    fn paths_are_written_down() {
        let partition = "04012a00 0f000000 0008000000000000 0000020000000000
                         67452301ab89efcd0123456789abcdef 0202";
        let mbr = "04012a00 01000000 0008000000000000 0000020000000000
                   78563412000000000000000000000000 0101";
        let file = "04040c00 5c00 6100 2e00 0000";
        let end = "7fff0400";
        for (hex, expected) in [
            (
                format!("{partition}{file}{end}"),
                r"HD(15,GPT,01234567-89ab-cdef-0123-456789abcdef,0x800,0x20000)/File(\a.)",
            ),
            (format!("{mbr}{end}"), "HD(1,MBR,0x12345678,0x800,0x20000)"),
            ("02010c00 d041030a 00000000 01010600 0003 7fff0400".to_owned(), "PciRoot(00000000)/Pci(0003)"),
            ("030b0600 5254 7fff0400".to_owned(), "MAC(5254)"),
            ("05010600 0200".to_owned(), "BBS(0200)"),
            ("09090400".to_owned(), "Path9,9()"),
            // Cut off, too short to be a node, and longer than what is there.
            (partition[..20].to_owned(), ""),
            ("04010000 7fff0400".to_owned(), ""),
            (String::new(), ""),
        ] {
            assert_eq!(text(&bytes(&hex)), expected, "{hex}");
        }
    }

    proptest! {
        #[test]
        fn no_path_is_fatal(path in proptest::collection::vec(any::<u8>(), 0..200)) {
            text(&path);
        }
    }
}
