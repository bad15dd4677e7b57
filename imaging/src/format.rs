//! What an image is, judged by declaration and by content (section 5.6).
//!
//! Raw means the exact bytes (D08), so a declared raw image is never converted. Otherwise the content
//! tells the format; it must be the declared one, be permitted, and be safe in itself (S11).

mod boot_sector;

use crate::compression::{self, Compression};
use crate::error::Error;
use crate::qcow2;
use crate::target::Target;

/// Formats that operators may permit when they say nothing else (section 3.3).
pub const PERMITTED: &[&str] = &["raw", "gpt", "qcow2"];
/// Declarations that declare nothing.
const UNDECLARED: &[&str] = &["", "unknown"];

/// Bytes of a sector of most disks, for which most images are made.
const SMALLEST_SECTOR: u32 = 512;

/// A format of disk images.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Format {
    /// The bytes of a disk.
    Raw,
    /// The same, with a partition table.
    Gpt,
    /// QEMU's format.
    Qcow2,
    /// One that is recognised in order to refuse it.
    Foreign(&'static str),
}

/// What was declared about an image.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Declared {
    /// A format.
    As(Format),
    /// Nothing.
    Unknown,
}

/// Which formats may be written, and how closely images are examined.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Policy {
    /// Names of the formats that may be written (`permitted_image_formats`).
    pub permitted: Vec<String>,
    /// Whether the content must be safe in itself, beyond what writing it needs
    /// (`disable_deep_image_inspection` turns it off).
    pub is_deep: bool,
}

impl Default for Policy {
    fn default() -> Self {
        Self { permitted: PERMITTED.iter().map(ToString::to_string).collect(), is_deep: true }
    }
}

impl Policy {
    fn permits(&self, format: Format) -> bool {
        let is_listed = |name: &str| self.permitted.iter().any(|permitted| permitted == name);
        match format {
            // Both are written alike, and the content decides which of the two names fits.
            Format::Raw | Format::Gpt => is_listed("raw") || is_listed("gpt"),
            other => is_listed(other.name()),
        }
    }
}

impl Format {
    /// Name as conductors spell it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Raw => "raw",
            Self::Gpt => "gpt",
            Self::Qcow2 => "qcow2",
            Self::Foreign(name) => name,
        }
    }
}

/// Reads a declaration; nothing when it is a format that cannot be written.
pub fn declared(disk_format: Option<&str>) -> Option<Declared> {
    match disk_format.unwrap_or_default() {
        format if UNDECLARED.contains(&format) => Some(Declared::Unknown),
        "raw" => Some(Declared::As(Format::Raw)),
        "gpt" => Some(Declared::As(Format::Gpt)),
        "qcow2" => Some(Declared::As(Format::Qcow2)),
        _ => None,
    }
}

impl Declared {
    /// Whether the image is the exact bytes of a disk, whatever they look like.
    pub fn is_exact(self) -> bool {
        matches!(self, Self::As(Format::Raw | Format::Gpt))
    }
}

/// Judges the first MiB of an image, unpacked if it was compressed: raw or qcow2, or an error.
pub(crate) fn judge(start: &[u8], declared: Declared, policy: &Policy, url: &str) -> Result<Format, Error> {
    require_unpacked(start, url)?;
    if declared.is_exact() {
        return match compressed_only(start) {
            Some(compression) => Err(Error::NotRaw { url: url.to_owned(), compression }),
            None => permitted(Format::Raw, policy, url),
        };
    }
    let refused = |reason: String| Error::Content { url: url.to_owned(), reason };
    if let Some(compression) = Compression::recognize(start) {
        return Err(refused(format!("it holds a {} image: compress it once", compression.name())));
    }
    let found = recognize(start);
    let format = match found.as_slice() {
        [] => Format::Raw,
        [format] => *format,
        [one, other, ..] if policy.is_deep => {
            return Err(refused(format!("it looks like {} and like {}", one.name(), other.name())));
        }
        [format, ..] => *format,
    };
    if let Declared::As(declared) = declared
        && declared != format
    {
        return Err(refused(format!("it is declared as {} and is {}", declared.name(), format.name())));
    }
    if format == Format::Gpt && policy.is_deep {
        boot_sector::require_safe(start).map_err(refused)?;
    }
    permitted(format, policy, url)
}

fn permitted(format: Format, policy: &Policy, url: &str) -> Result<Format, Error> {
    let name = format.name();
    let reason = match format {
        Format::Foreign(_) => format!("it holds a {name} image: convert it to raw or qcow2"),
        _ if !policy.permits(format) => format!("{name} is not among permitted_image_formats"),
        Format::Gpt => return Ok(Format::Raw),
        _ => return Ok(format),
    };
    Err(Error::Content { url: url.to_owned(), reason })
}

/// Formats that the first bytes of an image show; none for plain bytes.
pub fn recognize(start: &[u8]) -> Vec<Format> {
    const MAGIC: &[(usize, &[u8], Format)] = &[
        (0, qcow2::MAGIC, Format::Qcow2),
        (0, b"KDMV", Format::Foreign("vmdk")),
        (0, b"COWD", Format::Foreign("vmdk")),
        (0, b"\xbe\xba\xfe\xca\0\0\0\0", Format::Foreign("vmdk")),
        (0, b"# Disk DescriptorFile", Format::Foreign("vmdk")),
        (0, b"vhdxfile", Format::Foreign("vhdx")),
        (0, b"conectix", Format::Foreign("vhd")),
        (0, b"QED\0", Format::Foreign("qed")),
        (0, b"LUKS\xba\xbe", Format::Foreign("luks")),
        (0, b"WithoutFreeSpace", Format::Foreign("parallels")),
        (0, b"WithouFreSpacExt", Format::Foreign("parallels")),
        (0, b"Bochs Virtual HD Image", Format::Foreign("bochs")),
        (0, b"#!/bin/sh\n#V2.0 Format\n", Format::Foreign("cloop")),
        (0, b"MSWIM\0\0\0", Format::Foreign("wim")),
        (0, b"\x3a\xff\x26\xed", Format::Foreign("Android sparse")),
        (257, b"ustar", Format::Foreign("tar")),
        (0x40, b"\x7f\x10\xda\xbe", Format::Foreign("vdi")),
        (32769, b"CD001", Format::Foreign("iso")),
        (32769, b"NSR02", Format::Foreign("iso")),
        (32769, b"NSR03", Format::Foreign("iso")),
    ];
    let shows =
        |(offset, magic): (usize, &[u8])| start.get(offset..).is_some_and(|rest| rest.starts_with(magic));
    let magic =
        MAGIC.iter().filter(|(offset, magic, _)| shows((*offset, magic))).map(|(_, _, format)| *format);
    magic.chain(boot_sector::is_table(start).then_some(Format::Gpt)).collect()
}

/// Refuses what is compressed in a way that is not unpacked, whatever was declared: such bytes are no disk.
fn require_unpacked(start: &[u8], url: &str) -> Result<(), Error> {
    let foreign = compression::recognize_foreign(start).filter(|_| !boot_sector::is_signed(start));
    foreign.map_or(Ok(()), |compression| {
        Err(Error::Packed { url: url.to_owned(), compression, known: Compression::names() })
    })
}

/// Name of the compression of an image that cannot be a disk as it is. Boot code may begin with
/// any bytes, but it ends with a signature.
fn compressed_only(start: &[u8]) -> Option<&'static str> {
    let is_boot_sector = boot_sector::is_signed(start);
    Compression::recognize(start).filter(|_| !is_boot_sector).map(Compression::name)
}

/// Refuses a disk when the table of an image of at most `length` bytes was made for sectors of another size.
pub(crate) fn require_fitting_sectors(
    start: &[u8],
    length: u64,
    target: &Target<'_>,
    url: &str,
) -> Result<(), Error> {
    let disk_sector = target.sector_size();
    let mbr = || mbr_sector_size(start, length, disk_sector).filter(|_| target.is_whole());
    match gpt_sector_size(start).or_else(mbr) {
        Some(image_sector) if image_sector != disk_sector => Err(Error::SectorSize {
            url: url.to_owned(),
            image_sector,
            disk: target.path().to_owned(),
            disk_sector,
        }),
        _ => Ok(()),
    }
}

/// Bytes of a sector for which the MBR of a raw image of at most `length` bytes was made. An MBR does not say
/// them; but partitions that end behind the image with the disk's sectors, and in it with smaller ones, were not
/// made for the disk's. Nothing where that tells nothing.
fn mbr_sector_size(start: &[u8], length: u64, disk_sector: u32) -> Option<u32> {
    let end = boot_sector::partitions_end(start)?;
    let is_in_image = |sector: u32| end * u64::from(sector) <= length;
    (!is_in_image(disk_sector) && is_in_image(SMALLEST_SECTOR)).then_some(SMALLEST_SECTOR)
}

/// Bytes of a sector for which the GPT of a raw image was made; nothing when it has none, or an MBR is its table: what
/// lies behind that may be of an earlier life (A01). The header lies in the second sector.
fn gpt_sector_size(start: &[u8]) -> Option<u32> {
    if boot_sector::partitions_end(start).is_some() {
        return None;
    }
    [512, 4096].into_iter().find(|size| {
        start.get(*size as usize..).is_some_and(|second_sector| second_sector.starts_with(b"EFI PART"))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn with(parts: &[(usize, &[u8])]) -> Vec<u8> {
        let mut start = vec![0; 40_000];
        parts.iter().for_each(|(offset, bytes)| start[*offset..][..bytes.len()].copy_from_slice(bytes));
        start
    }

    /// The boot sector of a disk with a GPT.
    fn protective() -> Vec<u8> {
        let entry = [0, 0, 2, 0, 0xee, 0xff, 0xff, 0xff, 1, 0, 0, 0, 9, 0, 0, 0];
        with(&[(446, &entry), (510, &[0x55, 0xaa])])
    }

    #[test]
    fn declarations() {
        for (format, expected) in [
            (None, Some(Declared::Unknown)),
            (Some("unknown"), Some(Declared::Unknown)),
            (Some("raw"), Some(Declared::As(Format::Raw))),
            (Some("gpt"), Some(Declared::As(Format::Gpt))),
            (Some("qcow2"), Some(Declared::As(Format::Qcow2))),
            (Some("vmdk"), None),
        ] {
            assert_eq!(declared(format), expected, "{format:?}");
        }
    }

    #[test]
    fn s11_the_content_must_be_what_was_declared_and_permitted() {
        let qcow2 = with(&[(0, b"QFI\xfb")]);
        let hybrid = {
            let mut hybrid = protective();
            hybrid[32769..32774].copy_from_slice(b"CD001");
            hybrid
        };
        let only = |name: &str| Policy { permitted: vec![name.to_owned()], ..Policy::default() };
        let (any, shallow) = (Policy::default(), Policy { is_deep: false, ..Policy::default() });
        for (start, declared, policy, expected) in [
            (&qcow2, None, &any, Ok(Format::Qcow2)),
            (&qcow2, Some("qcow2"), &any, Ok(Format::Qcow2)),
            (&qcow2, Some("raw"), &any, Ok(Format::Raw)),
            (&qcow2, None, &only("raw"), Err("qcow2 is not among permitted_image_formats")),
            (&protective(), None, &only("qcow2"), Err("gpt is not among permitted_image_formats")),
            (&protective(), Some("raw"), &only("qcow2"), Err("raw is not among permitted_image_formats")),
            (&protective(), None, &only("raw"), Ok(Format::Raw)),
            (&protective(), None, &any, Ok(Format::Raw)),
            (&protective(), Some("qcow2"), &any, Err("declared as qcow2 and is gpt")),
            (&with(&[]), Some("qcow2"), &any, Err("declared as qcow2 and is raw")),
            (&with(&[]), None, &any, Ok(Format::Raw)),
            (&hybrid, None, &any, Err("looks like iso and like gpt")),
            (&hybrid, None, &shallow, Err("holds a iso image")),
            (&with(&[(0, b"KDMV")]), None, &any, Err("holds a vmdk image")),
            (&with(&[(0, b"QED\0")]), None, &any, Err("holds a qed image")),
            (&with(&[(0x40, b"\x7f\x10\xda\xbe")]), None, &any, Err("holds a vdi image")),
            (&with(&[(0, b"\x1f\x8b\x08")]), None, &any, Err("holds a gzip image")),
            (&with(&[(0, b"\x1f\x8b\x08")]), Some("raw"), &any, Err("compressed with gzip")),
        ] {
            let declared = super::declared(declared).unwrap();
            match (judge(start, declared, policy, "http://x"), expected) {
                (Ok(format), Ok(expected)) => assert_eq!(format, expected),
                (Err(error), Err(expected)) => assert!(error.to_string().contains(expected), "{error}"),
                (outcome, expected) => panic!("{outcome:?} instead of {expected:?}"),
            }
        }
    }

    #[test]
    fn x47_what_is_no_disk_is_refused_by_name_and_declared_raw_stays_exact() {
        let lzma = b"\x5d\0\0\x80\0\xff\xff\xff\xff\xff\xff\xff\xff";
        let judge = |start: &[u8], declared: Option<&str>| {
            super::judge(start, super::declared(declared).unwrap(), &Policy::default(), "http://x")
        };
        for (place, magic, name) in [
            (0, &b"WithoutFreeSpace"[..], "parallels"),
            (0, b"WithouFreSpacExt", "parallels"),
            (0, b"Bochs Virtual HD Image", "bochs"),
            (0, b"COWD", "vmdk"),
            (0, b"MSWIM\0\0\0", "wim"),
            (257, b"ustar", "tar"),
        ] {
            let start = with(&[(place, magic)]);
            assert!(judge(&start, None).unwrap_err().to_string().contains(name), "{name}");
            assert!(judge(&start, Some("qcow2")).unwrap_err().to_string().contains(name), "{name}");
            assert_eq!(judge(&start, Some("raw")).unwrap(), Format::Raw, "D08: the exact bytes of {name}");
        }
        for (magic, name) in [(&lzma[..], "lzma"), (b"\x04\x22\x4d\x18", "lz4"), (b"PK\x03\x04", "zip")] {
            for declared in [None, Some("raw"), Some("gpt"), Some("qcow2")] {
                let error = judge(&with(&[(0, magic)]), declared).unwrap_err();
                assert_eq!(error.kind().name(), "InvalidImage");
                assert!(error.to_string().contains(&format!("compressed with {name}")), "{error}");
            }
            // Boot code may begin with any bytes.
            let signed = with(&[(0, magic), (510, &[0x55, 0xaa])]);
            assert_eq!(judge(&signed, Some("raw")).unwrap(), Format::Raw);
        }
        let skippable = with(&[(0, b"\x50\x2a\x4d\x18")]);
        assert!(judge(&skippable, Some("raw")).unwrap_err().to_string().contains("compressed with zstd"));
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
    fn x23_partitions_that_end_behind_the_image_were_made_for_smaller_sectors() {
        let entry = [0x80, 0, 0, 0, 0x83, 0, 0, 0, 0, 8, 0, 0, 0, 0x78, 0, 0];
        let start = with(&[(446, &entry), (510, &[0x55, 0xaa])]);
        // From 1 to 16 MiB, or from 8 to 128 MiB.
        for (length, disk_sector, expected) in [
            (16 << 20, 4096, Some(512)),
            ((128 << 20) - 1, 4096, Some(512)),
            (128 << 20, 4096, None),
            (16 << 20, 512, None),
            // A table that fits nowhere is nobody's.
            ((16 << 20) - 1, 4096, None),
        ] {
            assert_eq!(mbr_sector_size(&start, length, disk_sector), expected, "{length} {disk_sector}");
        }
        assert_eq!(mbr_sector_size(&protective(), 1 << 20, 4096), None);
    }

    #[test]
    fn f11_the_place_of_the_gpt_header_tells_the_sector_size() {
        for (offset, expected) in [(512, Some(512)), (4096, Some(4096)), (1024, None)] {
            let mut start = protective();
            start[offset..offset + 8].copy_from_slice(b"EFI PART");
            assert_eq!(gpt_sector_size(&start), expected);
            start[450] = 0x83;
            assert_eq!(gpt_sector_size(&start), None, "A01: no system believes it");
        }
        assert_eq!(gpt_sector_size(&[]), None);
    }
}
