//! What an image is, judged by declaration and by content (section 5.6).
//!
//! Raw means the exact bytes (D08), so a declared raw image is never converted. Where nothing was
//! declared, compression is undone, and content of another format is refused instead of being
//! written as if it were a disk.

use crate::compression::Compression;

/// Formats whose bytes are those of a disk.
const RAW: &[&str] = &["raw", "gpt"];
/// Declarations that declare nothing.
const UNDECLARED: &[&str] = &["", "unknown"];

/// What was declared about an image.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Declared {
    /// The bytes of a disk.
    Raw,
    /// Nothing.
    Unknown,
}

/// Reads a declaration; nothing when it is a format that cannot be written.
pub fn declared(disk_format: Option<&str>) -> Option<Declared> {
    match disk_format.unwrap_or_default() {
        format if RAW.contains(&format) => Some(Declared::Raw),
        format if UNDECLARED.contains(&format) => Some(Declared::Unknown),
        _ => None,
    }
}

/// Name of the format that the first bytes of an image show, when it is not raw.
pub fn recognize(start: &[u8]) -> Option<&'static str> {
    const MAGIC: &[(&[u8], &str)] = &[
        (b"QFI\xfb", "qcow2"),
        (b"KDMV", "vmdk"),
        (b"# Disk DescriptorFile", "vmdk"),
        (b"vhdxfile", "vhdx"),
        (b"conectix", "vhd"),
        (b"QED\0", "qed"),
        (b"LUKS\xba\xbe", "luks"),
    ];
    let disk = MAGIC.iter().find(|(magic, _)| start.starts_with(magic)).map(|(_, name)| *name);
    disk.or_else(|| Compression::recognize(start).map(Compression::name))
}

/// Name of the compression of an image that cannot be a disk as it is. Boot code may begin with
/// any bytes, but it ends with a signature.
pub(crate) fn compressed_only(start: &[u8]) -> Option<&'static str> {
    let is_boot_sector = start.get(510..512) == Some(&[0x55, 0xaa]);
    Compression::recognize(start).filter(|_| !is_boot_sector).map(Compression::name)
}

/// Bytes of a sector for which the GPT of a raw image was made; nothing when it has none. The
/// header lies in the second sector.
pub fn gpt_sector_size(start: &[u8]) -> Option<u32> {
    [512, 4096].into_iter().find(|size| {
        start.get(*size as usize..).is_some_and(|second_sector| second_sector.starts_with(b"EFI PART"))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn declarations() {
        for (format, expected) in [
            (None, Some(Declared::Unknown)),
            (Some("unknown"), Some(Declared::Unknown)),
            (Some("raw"), Some(Declared::Raw)),
            (Some("gpt"), Some(Declared::Raw)),
            (Some("qcow2"), None),
            (Some("vmdk"), None),
        ] {
            assert_eq!(declared(format), expected, "{format:?}");
        }
    }

    #[test]
    fn s11_other_formats_are_recognized_by_their_content() {
        for (start, expected) in [
            (&b"QFI\xfb\0\0\0\x03"[..], Some("qcow2")),
            (b"KDMV....", Some("vmdk")),
            (b"\x1f\x8b\x08", Some("gzip")),
            (b"\xebc\x90", None),
            (b"", None),
        ] {
            assert_eq!(recognize(start), expected);
        }
    }

    #[test]
    fn d08_compressed_content_is_told_from_boot_code_by_the_signature() {
        let mut start = vec![0; 512];
        start[..3].copy_from_slice(b"BZh");
        assert_eq!(compressed_only(&start), Some("bzip2"));
        assert_eq!(compressed_only(b"\x1f\x8b\x08"), Some("gzip"));
        start[510..].copy_from_slice(&[0x55, 0xaa]);
        assert_eq!(compressed_only(&start), None);
        assert_eq!(compressed_only(&[0; 512]), None);
    }

    #[test]
    fn f11_the_place_of_the_gpt_header_tells_the_sector_size() {
        for (offset, expected) in [(512, Some(512)), (4096, Some(4096)), (1024, None)] {
            let mut start = vec![0; 8192];
            start[offset..offset + 8].copy_from_slice(b"EFI PART");
            assert_eq!(gpt_sector_size(&start), expected);
        }
        assert_eq!(gpt_sector_size(&[]), None);
    }
}
