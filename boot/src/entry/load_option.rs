//! `EFI_LOAD_OPTION`, the content of a boot entry (UEFI specification, sections 3.1.3 and 10.3).

use super::esp::Loader;
use farrier_disk::table::{Partition, PartitionKind};

/// The entry takes part in booting.
const ACTIVE: u32 = 1;

/// Bytes before the description: attributes and length of the device path.
const FIXED: usize = 6;

const MEDIA: u8 = 4;
const HARD_DRIVE: u8 = 1;
const FILE_PATH: u8 = 4;
const MESSAGING: u8 = 3;
const MESSAGING_VENDOR: u8 = 10;
const MESSAGING_USB_CLASS: u8 = 15;
const END: [u8; 4] = [0x7f, 0xff, 4, 0];

/// How a hard drive node says which table it means, and what its signature is.
const MBR: u8 = 1;
const GPT: u8 = 2;

/// A boot entry for a file on a partition.
#[derive(Debug)]
pub struct LoadOption {
    description: Vec<u8>,
    device_path: Vec<u8>,
    /// What the loader is given.
    optional_data: Vec<u8>,
}

impl LoadOption {
    /// An entry `label` for a loader on `esp`. Options are UTF-16 without a zero at the end, as shim's fallback program
    /// writes them.
    pub fn new(label: &str, loader: &Loader, esp: &Partition, sector_size: u32) -> Self {
        let mut device_path = node(MEDIA, HARD_DRIVE, &hard_drive(esp, u64::from(sector_size)));
        device_path.extend(node(MEDIA, FILE_PATH, &utf16(&loader.path)));
        device_path.extend(END);
        let optional_data = loader.options.encode_utf16().flat_map(u16::to_le_bytes).collect();
        Self { description: utf16(label), device_path, optional_data }
    }

    /// The content of the variable.
    pub fn to_bytes(&self) -> Vec<u8> {
        let length = u16::try_from(self.device_path.len()).expect("paths on FAT are short");
        let mut bytes = ACTIVE.to_le_bytes().to_vec();
        bytes.extend(length.to_le_bytes());
        bytes.extend(&self.description);
        bytes.extend(&self.device_path);
        bytes.extend(&self.optional_data);
        bytes
    }
}

/// Label of an entry that a new one of the same label replaces: one that boots from local media.
/// Nothing for entries that cannot be decoded (F12).
pub fn replaceable_label(data: &[u8]) -> Option<String> {
    let path = device_path(data)?;
    let is_network = path.first() == Some(&MESSAGING)
        && !matches!(path.get(1), Some(&(MESSAGING_VENDOR | MESSAGING_USB_CLASS)));
    label(data).filter(|_| !is_network)
}

/// Text of an entry in the firmware's menu; nothing when it cannot be decoded.
pub fn label(data: &[u8]) -> Option<String> {
    String::from_utf16(&description(data)?).ok()
}

/// The device path of an entry, and what may follow it; nothing when it is cut off before.
pub fn device_path(data: &[u8]) -> Option<&[u8]> {
    data.get(FIXED + 2 * (description(data)?.len() + 1)..)
}

fn description(data: &[u8]) -> Option<Vec<u16>> {
    let units = data.get(FIXED..)?.chunks_exact(2).map(|bytes| u16::from_le_bytes([bytes[0], bytes[1]]));
    Some(units.take_while(|unit| *unit != 0).collect())
}

fn hard_drive(esp: &Partition, sector_size: u64) -> Vec<u8> {
    let mut data = esp.number.to_le_bytes().to_vec();
    data.extend((esp.start / sector_size).to_le_bytes());
    data.extend((esp.size / sector_size).to_le_bytes());
    match &esp.kind {
        PartitionKind::Gpt { guid, .. } => {
            data.extend(guid.to_bytes_le());
            data.extend([GPT, GPT]);
        }
        PartitionKind::Mbr { disk_identifier, .. } => {
            data.extend(disk_identifier.to_le_bytes());
            data.extend([0; 12]);
            data.extend([MBR, MBR]);
        }
    }
    data
}

fn node(kind: u8, subtype: u8, data: &[u8]) -> Vec<u8> {
    let length = u16::try_from(data.len() + 4).expect("paths on FAT are short");
    let mut bytes = vec![kind, subtype];
    bytes.extend(length.to_le_bytes());
    bytes.extend(data);
    bytes
}

fn utf16(text: &str) -> Vec<u8> {
    text.encode_utf16().chain([0]).flat_map(u16::to_le_bytes).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use uuid::uuid;

    fn esp(kind: PartitionKind) -> Partition {
        Partition { number: 15, start: 1 << 20, size: 64 << 20, kind }
    }

    #[test]
    fn a08_the_bytes_are_those_of_the_specification_and_options_follow() {
        let guid = uuid!("01234567-89ab-cdef-0123-456789abcdef");
        let kind = PartitionKind::Gpt { type_guid: guid, guid };
        let plain = Loader { path: r"\a.efi".into(), label: String::new(), options: String::new() };
        let bytes = LoadOption::new("os", &plain, &esp(kind.clone()), 512).to_bytes();
        let expected = [
            "01000000 4000 6f00 7300 0000",
            "04012a00 0f000000 0008000000000000 0000020000000000",
            "67452301ab89efcd0123456789abcdef 0202",
            "04041200 5c00 6100 2e00 6500 6600 6900 0000",
            "7fff0400",
        ]
        .concat()
        .replace(' ', "");
        let hex: String = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
        assert_eq!(hex, expected);
        let with_options = Loader { options: r"\a ".into(), ..plain };
        let longer = LoadOption::new("os", &with_options, &esp(kind), 512).to_bytes();
        assert_eq!(longer, [&bytes[..], &[0x5c, 0, 0x61, 0, 0x20, 0]].concat(), "A08: no zero at the end");
    }

    #[test]
    fn an_mbr_partition_is_named_by_the_disk_identifier() {
        let kind = PartitionKind::Mbr { type_id: 0xef, disk_identifier: 0x1234_5678 };
        let data = hard_drive(&esp(kind), 4096);
        assert_eq!(data[4..12], 256_u64.to_le_bytes());
        assert_eq!(data[20..], [0x78, 0x56, 0x34, 0x12, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 1]);
    }

    #[test]
    fn f12_only_decodable_local_entries_are_replaceable() {
        let entry = |path: &[u8]| [&[1, 0, 0, 0, 4, 0], &utf16("debian")[..], path].concat();
        for (data, expected) in [
            (entry(&[MEDIA, HARD_DRIVE, 42, 0]), Some("debian")),
            (entry(&[2, 1, 12, 0]), Some("debian")),
            (entry(&[MESSAGING, MESSAGING_VENDOR, 20, 0]), Some("debian")),
            (entry(&[MESSAGING, 11, 37, 0]), None),
            (vec![1, 0, 0, 0, 4, 0, 0x00, 0xd8, 0, 0, MEDIA], None),
            (vec![1, 0, 0], None),
            (vec![1, 0, 0, 0, 4, 0, b'd', 0], None),
        ] {
            assert_eq!(replaceable_label(&data).as_deref(), expected, "{data:?}");
        }
    }
}
