//! Physical volumes of LVM2, as far as they tell who uses their volume group.
//!
//! Only what is needed of the layout is read: the label in one of the first four sectors, the header behind it
//! with the places of data and metadata, and the beginning of the metadata, which is a text. Checksums are not
//! asked for: a damaged volume is still somebody's.

mod group;

pub use group::LogicalVolume;

use crate::table::read_exact_at;
use std::io::{self, Read, Seek};

/// Unit of the label's place in bytes, whatever the sector size of the device.
const SECTOR: u64 = 512;
/// How many sectors may have the label.
const LABEL_SECTORS: u64 = 4;
const LABEL: &[u8] = b"LABELONE";
const KIND: &[u8] = b"LVM2 001";
/// Where a label has its kind, and the offset of the header.
const KIND_AT: usize = 24;
const HEADER_AT: usize = 20;
/// Bytes of a header before the lists of areas: identity and size.
const HEADER: usize = 40;
const IDENTITY: usize = 32;
/// Bytes of an entry of these lists: offset and size.
const AREA: usize = 16;

/// First bytes of an area of metadata behind its checksum.
const METADATA_MAGIC: &[u8] = b" LVM2 x[5A%r0N*>";
const MAGIC_AT: usize = 4;
/// Where an area of metadata has the place of the text: offset and size, within the area.
const TEXT_AT: usize = 40;
/// Bytes of the text that are read; what is said of the group stands before its volumes.
const MOST_TEXT: u64 = 64 * 1024;

/// What a group says of itself that several machines use at the same time.
const LOCK_TYPE: &str = "lock_type";
const SHARED_LOCKS: [&str; 3] = ["dlm", "sanlock", "idm"];
const STATUS: &str = "status";
const CLUSTERED: &str = "CLUSTERED";

/// A physical volume.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PhysicalVolume {
    /// Where in it, in bytes, the first extent begins, if it has any.
    pub data: Option<u64>,
    /// Whether several machines use its volume group.
    pub is_shared: bool,
}

impl PhysicalVolume {
    /// Finds the physical volume in `size` bytes from `start` of `source`.
    ///
    /// # Errors
    ///
    /// Whatever reading brings.
    pub fn find(source: &mut (impl Read + Seek), start: u64, size: u64) -> io::Result<Option<Self>> {
        let mut volume = Volume { source, start, size };
        let Some(label) = volume.label()? else { return Ok(None) };
        volume.describe(&label).map(Some)
    }
}

/// The logical volumes that begin on the physical volume in `size` bytes from `start` of `source`; none where it is
/// none.
///
/// # Errors
///
/// Whatever reading brings.
pub fn logical_volumes(
    source: &mut (impl Read + Seek),
    start: u64,
    size: u64,
) -> io::Result<Vec<LogicalVolume>> {
    let mut volume = Volume { source, start, size };
    let Some(label) = volume.label()? else { return Ok(Vec::new()) };
    let identity = header(&label).get(..IDENTITY).unwrap_or_default().to_vec();
    let mut found = Vec::new();
    for (offset, size) in areas(&label).1 {
        found
            .extend(group::logical_volumes(&volume.text(offset, size)?, &String::from_utf8_lossy(&identity)));
    }
    found.sort();
    found.dedup();
    Ok(found)
}

/// The bytes of the volume, none of which is believed to be there.
struct Volume<'a, T> {
    source: &'a mut T,
    start: u64,
    size: u64,
}

impl<T: Read + Seek> Volume<'_, T> {
    /// Nothing where the volume ends before.
    fn read<const N: usize>(&mut self, offset: u64) -> io::Result<Option<[u8; N]>> {
        let mut content = [0; N];
        Ok(self.read_into(&mut content, offset)?.then_some(content))
    }

    fn read_into(&mut self, content: &mut [u8], offset: u64) -> io::Result<bool> {
        let is_within = offset.checked_add(content.len() as u64).is_some_and(|end| end <= self.size);
        if is_within {
            read_exact_at(self.source, self.start + offset, content)?;
        }
        Ok(is_within)
    }

    /// The sector with the label.
    fn label(&mut self) -> io::Result<Option<[u8; SECTOR as usize]>> {
        for sector in 0..LABEL_SECTORS {
            let Some(label) = self.read::<{ SECTOR as usize }>(sector * SECTOR)? else { break };
            if label.starts_with(LABEL) && label[KIND_AT..].starts_with(KIND) {
                return Ok(Some(label));
            }
        }
        Ok(None)
    }

    fn describe(&mut self, label: &[u8; SECTOR as usize]) -> io::Result<PhysicalVolume> {
        let (data, metadata) = areas(label);
        let mut is_shared = false;
        for (offset, size) in metadata {
            is_shared |= is_shared_group(&self.text(offset, size)?);
        }
        Ok(PhysicalVolume { data: data.first().map(|(offset, _)| *offset), is_shared })
    }

    /// The beginning of the text in the area of metadata of `size` bytes at `offset`; empty where there is none.
    fn text(&mut self, offset: u64, size: u64) -> io::Result<String> {
        let Some(head) = self.read::<{ SECTOR as usize }>(offset)? else { return Ok(String::new()) };
        if !head[MAGIC_AT..].starts_with(METADATA_MAGIC) {
            return Ok(String::new());
        }
        let (place, length) = (number(&head, TEXT_AT), number(&head, TEXT_AT + 8));
        // The area is a ring behind its head.
        let first = length.min(MOST_TEXT).min(size.saturating_sub(place));
        let rest = length.min(MOST_TEXT) - first;
        let mut text = vec![0; first as usize];
        let mut end = vec![0; rest as usize];
        let is_there = self.read_into(&mut text, offset.saturating_add(place))?
            && self.read_into(&mut end, offset.saturating_add(SECTOR))?;
        text.extend(end);
        Ok(if is_there { String::from_utf8_lossy(&text).into_owned() } else { String::new() })
    }
}

/// The header behind a label.
fn header(label: &[u8; SECTOR as usize]) -> &[u8] {
    let at = [label[HEADER_AT], label[HEADER_AT + 1], label[HEADER_AT + 2], label[HEADER_AT + 3]];
    label.get(u32::from_le_bytes(at) as usize..).unwrap_or_default()
}

/// Areas of a physical volume, each with offset and size.
type Areas = Vec<(u64, u64)>;

/// The areas of data and those of metadata.
fn areas(label: &[u8; SECTOR as usize]) -> (Areas, Areas) {
    let lists = header(label).get(HEADER..).unwrap_or_default();
    let mut areas = lists.chunks_exact(AREA).map(|area| (number(area, 0), number(area, 8)));
    // The list of data areas ends with an empty one, and that of metadata too.
    let is_some = |area: &(u64, u64)| *area != (0, 0);
    let data = areas.by_ref().take_while(is_some).collect();
    (data, areas.take_while(is_some).collect())
}

fn number(bytes: &[u8], at: usize) -> u64 {
    let mut number = [0; 8];
    number.copy_from_slice(&bytes[at..at + 8]);
    u64::from_le_bytes(number)
}

/// Whether the text of a group says that several machines use it. Nothing that people may name can begin a line.
fn is_shared_group(text: &str) -> bool {
    let mut values = text.lines().filter_map(|line| line.split_once('='));
    values.any(|(key, value)| match key.trim() {
        LOCK_TYPE => SHARED_LOCKS.contains(&value.trim().trim_matches('"')),
        STATUS => value.contains(&format!("\"{CLUSTERED}\"")),
        _ => false,
    })
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::io::Cursor;

    /// Where the physical volumes made here have their metadata and their data.
    const METADATA: usize = 4096;
    const METADATA_SIZE: usize = 8192;
    pub const DATA: usize = 1 << 20;

    /// Puts a physical volume with this text of its group at `start`; the text lies so near to the end of its
    /// area that it continues at the beginning.
    pub fn write_volume(content: &mut [u8], start: usize, text: &str) {
        let mut put =
            |at: usize, bytes: &[u8]| content[start + at..start + at + bytes.len()].copy_from_slice(bytes);
        put(512, LABEL);
        put(512 + HEADER_AT, &32_u32.to_le_bytes());
        put(512 + KIND_AT, KIND);
        put(512 + 32, &[b'0'; IDENTITY]);
        let areas = [(DATA, 0), (0, 0), (METADATA, METADATA_SIZE), (0, 0)];
        for (index, (offset, size)) in areas.into_iter().enumerate() {
            let at = 512 + 32 + HEADER + index * AREA;
            put(at, &(offset as u64).to_le_bytes());
            put(at + 8, &(size as u64).to_le_bytes());
        }
        let place = METADATA_SIZE - 20;
        put(METADATA + MAGIC_AT, METADATA_MAGIC);
        put(METADATA + TEXT_AT, &(place as u64).to_le_bytes());
        put(METADATA + TEXT_AT + 8, &(text.len() as u64).to_le_bytes());
        let (first, rest) = text.split_at(20);
        put(METADATA + place, first.as_bytes());
        put(METADATA + 512, rest.as_bytes());
    }

    /// The text of a group, as LVM writes it, with these lines about it.
    pub fn group(lines: &str) -> String {
        format!(
            "vg0 {{\nid = \"6BIIqs-w9Dm\"\nseqno = 2\nformat = \"lvm2\"\n{lines}\nextent_size = 8192\n\n\
             physical_volumes {{\n\npv0 {{\nstatus = [\"ALLOCATABLE\"]\npe_start = 2048\n}}\n}}\n}}\n"
        )
    }

    /// The text of a group of this one physical volume with a logical volume of one extent, 4 MiB, at this one.
    pub fn group_with(name: &str, extent: u64) -> String {
        let identity = "0".repeat(6) + &"-0000".repeat(5) + "-000000";
        format!(
            "vg0 {{\nid = \"6BIIqs-w9Dm\"\nextent_size = 8192\n\nphysical_volumes {{\n\npv0 {{\nid = \"{identity}\"\n\
             pe_start = 2048\n}}\n}}\n\nlogical_volumes {{\n\n{name} {{\nid = \"x\"\nsegment_count = 1\n\nsegment1 {{\n\
             start_extent = 0\nextent_count = 1\n\ntype = \"striped\"\nstripe_count = 1\n\nstripes = [\n\
             \"pv0\", {extent}\n]\n}}\n}}\n}}\n}}\n"
        )
    }

    fn find(content: &[u8], start: u64) -> Option<PhysicalVolume> {
        PhysicalVolume::find(&mut Cursor::new(content), start, content.len() as u64 - start).unwrap()
    }

    #[test]
    fn x06_the_group_of_a_physical_volume_tells_whether_machines_share_it() {
        for (lines, is_shared) in [
            ("status = [\"RESIZEABLE\", \"READ\", \"WRITE\"]\nflags = []", false),
            ("status = [\"RESIZEABLE\", \"READ\", \"WRITE\"]\nlock_type = \"sanlock\"", true),
            ("status = [\"RESIZEABLE\"]\nlock_type = \"dlm\"\nlock_args = \"1.0.0:cluster\"", true),
            ("status = [\"RESIZEABLE\", \"READ\", \"WRITE\", \"CLUSTERED\"]", true),
            ("status = [\"RESIZEABLE\"]\nlock_type = \"none\"", false),
            ("tags = [\"lock_type = dlm\", \"CLUSTERED\"]", false),
        ] {
            for start in [0, 1 << 20] {
                let mut content = vec![0; start + 2 * DATA];
                assert_eq!(find(&content, start as u64), None);
                write_volume(&mut content, start, &group(lines));
                let expected = PhysicalVolume { data: Some(DATA as u64), is_shared };
                assert_eq!(find(&content, start as u64), Some(expected), "{lines}");
            }
        }
    }

    proptest! {
        #[test]
        fn x06_nothing_that_a_volume_says_is_believed(
            label in 0_usize..5,
            header in any::<u32>(),
            numbers in proptest::collection::vec(prop_oneof![any::<u64>(), 0_u64..20_000], 8..24),
            text in proptest::collection::vec(any::<u64>(), 2),
        ) {
            let mut content = vec![0; 16 << 10];
            write_volume(&mut content[..], 0, &group("lock_type = \"dlm\""));
            let at = label * 512;
            content[at..at + 8].copy_from_slice(LABEL);
            content[at + KIND_AT..at + KIND_AT + 8].copy_from_slice(KIND);
            content[at + HEADER_AT..at + HEADER_AT + 4].copy_from_slice(&header.to_le_bytes());
            for (index, number) in numbers.iter().enumerate() {
                let place = 512 + 72 + 8 * index;
                content[place..place + 8].copy_from_slice(&number.to_le_bytes());
            }
            for (index, number) in text.iter().enumerate() {
                let place = METADATA + TEXT_AT + 8 * index;
                content[place..place + 8].copy_from_slice(&number.to_le_bytes());
            }
            find(&content, 0);
            logical_volumes(&mut Cursor::new(&content), 0, content.len() as u64).unwrap();
        }
    }
}
