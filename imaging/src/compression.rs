//! Compressed images: recognising and unpacking them while they arrive.
//!
//! Each decoder proves the end of its stream by the format itself: an image that was cut, or that
//! is followed by anything but another member or frame, is an error (P04). None may use more
//! memory than [`MEMORY_LIMIT`], whatever a header asks for (S12), nor more than the machine has left:
//! an image that does not fit is refused at its first byte, and nothing is killed in the middle.
//! What is compressed in any other way is recognised too, so that it is never taken for a disk.

use farrier_linux::sysfs;
use liblzma::stream::{CONCATENATED, Stream};
use std::io::{self, BufRead, Read};

/// Bytes a decoder may use: a window of 128 MiB, which is what `zstd --long` makes and what `zstd` takes unless
/// it is told otherwise, and what else `xz` needs beside one.
const MEMORY_LIMIT: u64 = 130 << 20;
/// The smallest limit that zstd takes (RFC 8878).
const SMALLEST_WINDOW: u64 = 1 << 10;
/// Bytes that are left to everything else.
const RESERVE: u64 = 12 << 20;

/// A way in which an image can be compressed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Compression {
    Gzip,
    Zstd,
    Xz,
    Bzip2,
}

impl Compression {
    const ALL: [Self; 4] = [Self::Gzip, Self::Zstd, Self::Xz, Self::Bzip2];

    /// Tells by its first bytes how an image is compressed.
    pub(crate) fn recognize(start: &[u8]) -> Option<Self> {
        let is_skippable = is_skippable(start).then_some(Self::Zstd);
        Self::ALL.into_iter().find(|one| start.starts_with(one.magic())).or(is_skippable)
    }

    /// Names of those that are unpacked.
    pub(crate) fn names() -> String {
        Self::ALL.map(Self::name).join(", ")
    }

    /// Name for errors and logs.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Gzip => "gzip",
            Self::Zstd => "zstd",
            Self::Xz => "xz",
            Self::Bzip2 => "bzip2",
        }
    }

    fn magic(self) -> &'static [u8] {
        match self {
            Self::Gzip => b"\x1f\x8b",
            Self::Zstd => b"\x28\xb5\x2f\xfd",
            Self::Xz => b"\xfd7zXZ\0",
            Self::Bzip2 => b"BZh",
        }
    }

    /// A reader of what a compressed stream holds, all its members and frames in a row, with so many bytes of
    /// memory.
    pub(crate) fn decoder<'a>(
        self,
        memory: u64,
        packed: impl BufRead + 'a,
    ) -> io::Result<Box<dyn Read + 'a>> {
        Ok(match self {
            Self::Gzip => Box::new(flate2::bufread::MultiGzDecoder::new(packed)),
            Self::Zstd => {
                let mut decoder = zstd::stream::read::Decoder::with_buffer(packed)?;
                decoder.window_log_max(memory.max(SMALLEST_WINDOW).ilog2())?;
                Box::new(decoder)
            }
            Self::Xz => {
                let stream = Stream::new_stream_decoder(memory, CONCATENATED)?;
                Box::new(liblzma::bufread::XzDecoder::new_stream(packed, stream))
            }
            Self::Bzip2 => Box::new(bzip2::bufread::MultiBzDecoder::new(packed)),
        })
    }
}

/// Name of a compression that is not unpacked, if an image begins like one. Archives of files are among them:
/// no disk begins so.
pub(crate) fn recognize_foreign(start: &[u8]) -> Option<&'static str> {
    const MAGIC: &[(&[u8], &str)] = &[
        (b"\x04\x22\x4d\x18", "lz4"),
        (b"\x02\x21\x4c\x18", "lz4"),
        (b"LZIP", "lzip"),
        (b"\x89LZO\0\r\n\x1a\n", "lzop"),
        (b"\x1f\x9d", "compress"),
        (b"7z\xbc\xaf\x27\x1c", "7z"),
        (b"PK\x03\x04", "zip"),
    ];
    let found = MAGIC.iter().find(|(magic, _)| start.starts_with(magic)).map(|(_, name)| *name);
    found.or_else(|| is_lzma_alone(start).then_some("lzma"))
}

/// Whether a frame begins that carries no content: `pzstd` writes one first (RFC 8878, section 3.1.2).
fn is_skippable(start: &[u8]) -> bool {
    matches!(start, [0x50..=0x5f, 0x2a, 0x4d, 0x18, ..])
}

/// Whether this is the old format of LZMA, which has no magic: a byte of properties, the size of the dictionary,
/// and the size of the content or none. No tool makes other dictionaries than 2^n or 2^n + 2^(n-1).
fn is_lzma_alone(start: &[u8]) -> bool {
    const PROPERTIES: u8 = 9 * 5 * 5;
    const LARGEST: u64 = 1 << 38;
    let (Some(head), Some(size)) = (start.first_chunk::<5>(), start.get(5..13)) else { return false };
    let dictionary = u32::from_le_bytes([head[1], head[2], head[3], head[4]]);
    let is_made = dictionary >= 1 << 12
        && (dictionary.count_ones() == 1 || dictionary >> dictionary.trailing_zeros() == 3);
    let size = u64::from_le_bytes(size.try_into().expect("the slice has eight bytes"));
    head[0] < PROPERTIES && is_made && (size == u64::MAX || (1..LARGEST).contains(&size))
}

/// Bytes that a decoder may take now.
pub(crate) fn memory() -> u64 {
    allowance(sysfs::available_bytes())
}

/// Bytes for a window where so many are available.
fn allowance(available: Option<u64>) -> u64 {
    available.map_or(MEMORY_LIMIT, |available| available.saturating_sub(RESERVE).min(MEMORY_LIMIT))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::io::Write;

    fn pack(compression: Compression, content: &[u8]) -> Vec<u8> {
        let mut packed = Vec::new();
        match compression {
            Compression::Gzip => {
                let mut encoder = flate2::write::GzEncoder::new(&mut packed, flate2::Compression::fast());
                encoder.write_all(content).unwrap();
                encoder.finish().unwrap();
            }
            Compression::Zstd => packed = zstd::encode_all(content, 1).unwrap(),
            Compression::Xz => {
                let mut encoder = liblzma::write::XzEncoder::new(&mut packed, 1);
                encoder.write_all(content).unwrap();
                encoder.finish().unwrap();
            }
            Compression::Bzip2 => {
                let mut encoder = bzip2::write::BzEncoder::new(&mut packed, bzip2::Compression::fast());
                encoder.write_all(content).unwrap();
                encoder.finish().unwrap();
            }
        }
        packed
    }

    fn unpack(compression: Compression, packed: &[u8]) -> io::Result<Vec<u8>> {
        let mut content = Vec::new();
        compression.decoder(MEMORY_LIMIT, packed)?.read_to_end(&mut content)?;
        Ok(content)
    }

    #[test]
    fn each_is_recognized_and_unpacked() {
        let content = b"farrier".repeat(10_000);
        for compression in Compression::ALL {
            let packed = pack(compression, &content);
            assert_eq!(Compression::recognize(&packed), Some(compression));
            assert!(unpack(compression, &packed).unwrap() == content, "{compression:?}");
        }
        assert_eq!(Compression::recognize(b"\xebc\x90"), None);
        assert_eq!(Compression::recognize(b""), None);
    }

    #[test]
    fn p03_p04_members_and_frames_in_a_row_are_one_image() {
        for compression in Compression::ALL {
            let packed = [pack(compression, b"first"), pack(compression, b""), pack(compression, b"second")];
            assert_eq!(unpack(compression, &packed.concat()).unwrap(), b"firstsecond", "{compression:?}");
        }
    }

    #[test]
    fn p04_a_stream_cut_anywhere_is_an_error() {
        for compression in Compression::ALL {
            let packed = pack(compression, b"some content, some content");
            for length in 1..packed.len() {
                assert!(unpack(compression, &packed[..length]).is_err(), "{compression:?} cut at {length}");
            }
        }
    }

    #[test]
    fn p04_anything_behind_the_end_is_an_error() {
        for compression in Compression::ALL {
            for rest in [&b"garbage behind the end"[..], b"x"] {
                let packed = [&pack(compression, b"content"), rest].concat();
                assert!(unpack(compression, &packed).is_err(), "{compression:?} followed by {rest:?}");
            }
        }
    }

    #[test]
    fn s12_the_memory_limit_bites() {
        let mut zstd = zstd::stream::write::Encoder::new(Vec::new(), 1).unwrap();
        zstd.window_log(28).unwrap();
        zstd.long_distance_matching(true).unwrap();
        zstd.write_all(b"content").unwrap();
        let zstd = zstd.finish().unwrap();
        let mut options = liblzma::stream::LzmaOptions::new_preset(1).unwrap();
        options.dict_size(256 << 20);
        let mut filters = liblzma::stream::Filters::new();
        filters.lzma2(&options);
        let check = liblzma::stream::Check::Crc32;
        let encoder = Stream::new_stream_encoder(&filters, check).unwrap();
        let mut xz = Vec::new();
        liblzma::bufread::XzEncoder::new_stream(&b"content"[..], encoder).read_to_end(&mut xz).unwrap();
        for (compression, packed) in [(Compression::Zstd, zstd), (Compression::Xz, xz)] {
            let error = unpack(compression, &packed).unwrap_err().to_string();
            assert!(error.contains("memory"), "{compression:?}: {error}");
        }
    }

    #[test]
    fn s12_the_strongest_xz_preset_fits_the_limit() {
        let mut packed = Vec::new();
        liblzma::bufread::XzEncoder::new(&b"content"[..], 9).read_to_end(&mut packed).unwrap();
        assert_eq!(unpack(Compression::Xz, &packed).unwrap(), b"content");
    }

    #[test]
    fn x37_what_zstd_takes_by_itself_is_taken_where_there_is_memory_for_it() {
        let content = b"farrier".repeat(1000);
        let mut long = zstd::stream::write::Encoder::new(Vec::new(), 1).unwrap();
        long.window_log(27).unwrap();
        long.write_all(&content).unwrap();
        let long = long.finish().unwrap();
        assert_eq!(unpack(Compression::Zstd, &long).unwrap(), content);
        let mut decoder = Compression::Zstd.decoder(127 << 20, &long[..]).unwrap();
        let error = decoder.read(&mut [0; 7]).unwrap_err().to_string();
        assert!(error.contains("memory"), "{error}");
    }

    #[test]
    fn x47_skippable_frames_are_frames_wherever_they_are() {
        let skippable = |kind: u8, length: u32| {
            let mut frame = vec![kind, 0x2a, 0x4d, 0x18];
            frame.extend(length.to_le_bytes());
            frame.resize(8 + length as usize, 0xaa);
            frame
        };
        let frame = pack(Compression::Zstd, b"content");
        for (kind, length) in [(0x50, 4), (0x5f, 0), (0x53, 300_000)] {
            let skippable = skippable(kind, length);
            let packed = [&skippable, &frame, &skippable, &frame, &skippable].map(Vec::as_slice).concat();
            assert_eq!(Compression::recognize(&packed), Some(Compression::Zstd), "{kind:#x}");
            assert_eq!(unpack(Compression::Zstd, &packed).unwrap(), b"contentcontent", "{kind:#x}");
            // The magic is no proof: LZ4 shares it.
            let other = [&skippable[..], b"\x04\x22\x4d\x18"].concat();
            assert!(unpack(Compression::Zstd, &other).is_err());
        }
        for start in [&b"\x4f\x2a\x4d\x18"[..], b"\x60\x2a\x4d\x18", b"\x50\x2a\x4d"] {
            assert_eq!(Compression::recognize(start), None);
        }
    }

    #[test]
    fn x47_other_compressions_are_known_by_name() {
        let mut lzma = Vec::new();
        let options = liblzma::stream::LzmaOptions::new_preset(6).unwrap();
        let encoder = Stream::new_lzma_encoder(&options).unwrap();
        liblzma::bufread::XzEncoder::new_stream(&b"content"[..], encoder).read_to_end(&mut lzma).unwrap();
        for (start, expected) in [
            (&lzma[..], Some("lzma")),
            // With a dictionary of three quarters, and the size of the content.
            (b"\x5d\0\0\xc0\0\0\0\x10\0\0\0\0\0", Some("lzma")),
            (b"\x5d\0\0\xd0\0\0\0\x10\0\0\0\0\0", None),
            (b"\xe1\0\0\x80\0\xff\xff\xff\xff\xff\xff\xff\xff", None),
            (b"\x5d\0\0\x80\0\xff\xff\xff\xff\xff\xff\xff\xfe", None),
            (b"\x04\x22\x4d\x18", Some("lz4")),
            (b"PK\x03\x04", Some("zip")),
            (&[0; 512], None),
            (b"\xebc\x90", None),
            (b"", None),
        ] {
            assert_eq!(recognize_foreign(start), expected, "{start:?}");
        }
    }

    #[test]
    fn too_little_memory_is_told_before_anything_is_unpacked() {
        for (available, expected) in [
            (None, MEMORY_LIMIT),
            (Some(1 << 40), MEMORY_LIMIT),
            (Some(256 << 20), MEMORY_LIMIT),
            (Some(40 << 20), 28 << 20),
            (Some(1 << 20), 0),
        ] {
            assert_eq!(allowance(available), expected, "{available:?}");
        }
        let mut packed = Vec::new();
        liblzma::bufread::XzEncoder::new(&b"content"[..], 9).read_to_end(&mut packed).unwrap();
        let mut decoder = Compression::Xz.decoder(28 << 20, &packed[..]).unwrap();
        let error = decoder.read(&mut [0; 7]).unwrap_err().to_string();
        assert!(error.contains("memory"), "{error}");
    }

    proptest! {
        #[test]
        fn damaged_streams_never_panic(
            content in proptest::collection::vec(any::<u8>(), 0..512),
            at in any::<proptest::sample::Index>(),
            flip in 1..=255_u8,
        ) {
            for compression in Compression::ALL {
                let mut packed = pack(compression, &content);
                let at = at.index(packed.len());
                packed[at] ^= flip;
                // Not each format notices each change; the digest does.
                unpack(compression, &packed).ok();
            }
        }
    }
}
