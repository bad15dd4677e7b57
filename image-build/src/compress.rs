//! Files in and out of the compressions that distributions and the ramdisk use.

use std::fs::{self, File};
use std::io::{self, Read, Write};
use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};
use std::thread;

use flate2::{Compress, Crc, FlushCompress};
use sha2::{Digest, Sha256};
use tempfile::NamedTempFile;

use crate::error::BuildError;

/// Level at which modules and firmware are packed: once built, they are transferred many times.
const LEVEL: i32 = 19;

/// Bytes of which gzip is tried at a time.
const STRETCH: usize = 256 << 10;
/// The part of a stretch by which it must become smaller.
const WORTHWHILE: usize = 16;
/// Starts a gzip file without a name or a time, at the best level, from Unix.
const GZIP_HEADER: [u8; 10] = [0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 2, 3];
/// An empty block that is the last one.
const LAST_BLOCK: [u8; 2] = [3, 0];

/// How distributions compress module and firmware files.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Compression {
    /// Not at all.
    None,
    /// `.gz`
    Gzip,
    /// `.xz`
    Xz,
    /// `.zst`
    Zstd,
}

impl Compression {
    /// By what a file's name ends in after the proper name; `None` for what is no such suffix.
    pub fn of(suffix: &str) -> Option<Self> {
        match suffix {
            "" => Some(Self::None),
            ".gz" => Some(Self::Gzip),
            ".xz" => Some(Self::Xz),
            ".zst" => Some(Self::Zstd),
            _ => None,
        }
    }
}

/// The bytes of a file, decompressed as its name says.
///
/// # Errors
///
/// [`BuildError::Read`] when the file cannot be read or decompressed.
pub fn read_decompressed(path: &Path) -> Result<Vec<u8>, BuildError> {
    let extension = path.extension().and_then(|extension| extension.to_str()).unwrap_or_default();
    let compression = Compression::of(&format!(".{extension}")).unwrap_or(Compression::None);
    let decompress = || -> io::Result<Vec<u8>> {
        let file = File::open(path)?;
        let mut reader: Box<dyn Read> = match compression {
            Compression::None => Box::new(file),
            Compression::Gzip => Box::new(flate2::read::MultiGzDecoder::new(file)),
            Compression::Xz => Box::new(liblzma::read::XzDecoder::new_multi_decoder(file)),
            Compression::Zstd => Box::new(zstd::Decoder::new(file)?),
        };
        let mut bytes = Vec::new();
        reader.read_to_end(&mut bytes)?;
        Ok(bytes)
    };
    decompress().map_err(BuildError::reading(path))
}

/// Bytes compressed with gzip (RFC 1952), the same every time. Stretches that are packed already are stored as
/// they are: a kernel copies those far faster than it unpacks what is hardly smaller.
pub fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut packed = GZIP_HEADER.to_vec();
    let mut checksum = Crc::new();
    for stretch in bytes.chunks(STRETCH) {
        checksum.update(stretch);
        let deflated = deflate(stretch);
        if deflated.len() < stretch.len() - stretch.len() / WORTHWHILE {
            packed.extend(deflated);
        } else {
            store(stretch, &mut packed);
        }
    }
    packed.extend(LAST_BLOCK);
    packed.extend(checksum.sum().to_le_bytes());
    packed.extend(checksum.amount().to_le_bytes());
    packed
}

/// Whole blocks of a stream in the "deflate" format (RFC 1951) that refer to nothing before them.
fn deflate(bytes: &[u8]) -> Vec<u8> {
    let mut packed = Vec::with_capacity(bytes.len() + bytes.len() / 8 + 64);
    let mut compress = Compress::new(flate2::Compression::best(), false);
    // There is room even for what does not become smaller, and nothing else fails.
    compress.compress_vec(bytes, &mut packed, FlushCompress::Full).expect("memory is enough");
    packed
}

/// Adds blocks of the same format that hold bytes as they are.
fn store(bytes: &[u8], packed: &mut Vec<u8>) {
    for block in bytes.chunks(usize::from(u16::MAX)) {
        let length = block.len() as u16;
        packed.push(0);
        packed.extend(length.to_le_bytes());
        packed.extend((!length).to_le_bytes());
        packed.extend(block);
    }
}

/// The files compressed with zstd, in the order of `sources`, by as many threads as there are processors. What was
/// compressed before is taken from the folder `cache`, and the rest is left there for the next build.
///
/// # Errors
///
/// [`BuildError::Read`] for the first file that cannot be read or decompressed, [`BuildError::Write`] for the cache.
pub fn compressed(sources: &[&Path], cache: Option<&Path>) -> Result<Vec<Vec<u8>>, BuildError> {
    let next = AtomicUsize::new(0);
    let results = Mutex::new(Vec::new());
    thread::scope(|scope| {
        for _ in 0..thread::available_parallelism().map_or(1, usize::from) {
            scope.spawn(|| {
                loop {
                    let index = next.fetch_add(1, Ordering::Relaxed);
                    let Some(path) = sources.get(index) else { return };
                    let result = compress(path, cache);
                    results.lock().unwrap_or_else(PoisonError::into_inner).push((index, result));
                }
            });
        }
    });
    let mut results = results.into_inner().unwrap_or_else(PoisonError::into_inner);
    results.sort_by_key(|(index, _)| *index);
    results.into_iter().map(|(_, result)| result).collect()
}

fn compress(path: &Path, cache: Option<&Path>) -> Result<Vec<u8>, BuildError> {
    let content = read_decompressed(path)?;
    // At once, so that the frame tells its size and is unpacked into a buffer of it.
    let compress = || zstd::bulk::compress(&content, LEVEL).map_err(BuildError::reading(path));
    let Some(cache) = cache else { return compress() };
    // Another zstd makes other bytes of the same.
    let version = zstd::zstd_safe::version_number();
    let kept = cache.join(format!("{}-{version}-{LEVEL}.zst", hex::encode(Sha256::digest(&content))));
    if let Ok(packed) = fs::read(&kept)
        && zstd::bulk::decompress(&packed, content.len()).is_ok_and(|unpacked| unpacked == content)
    {
        return Ok(packed);
    }
    let packed = compress()?;
    keep(&packed, cache, &kept).map_err(BuildError::writing(&kept))?;
    Ok(packed)
}

/// Puts a whole file into the cache, also beside other processes.
fn keep(packed: &[u8], cache: &Path, kept: &Path) -> io::Result<()> {
    fs::create_dir_all(cache)?;
    let mut file = NamedTempFile::new_in(cache)?;
    file.write_all(packed)?;
    file.persist(kept)?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn gzip_gives_back_what_is_packed_and_what_is_stored() {
        let next = |state: &u64| Some(state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1));
        let numbers = std::iter::successors(Some(1), next);
        let random: Vec<_> = numbers.map(|number: u64| (number >> 40) as u8).take(STRETCH + 70_000).collect();
        let text = b"module ".repeat(STRETCH / 5);
        for bytes in [&b""[..], b"a", &text, &random, &[&*text, &random, &text].concat()] {
            let packed = gzip(bytes);
            let mut unpacked = Vec::new();
            flate2::read::GzDecoder::new(&*packed).read_to_end(&mut unpacked).unwrap();
            assert!(unpacked == bytes, "{} bytes", bytes.len());
            assert_eq!(packed, gzip(bytes));
        }
        assert!(gzip(&text).len() < text.len() / 50);
        // Three blocks for each stretch at most.
        assert!(gzip(&random).len() < random.len() + 64);
    }

    #[test]
    fn many_files_come_back_in_their_order() {
        let folder = tempfile::tempdir().unwrap();
        let paths: Vec<_> = (0..40u8).map(|number| folder.path().join(format!("{number}"))).collect();
        for (number, path) in (0..).zip(&paths) {
            std::fs::write(path, vec![number; 1000 * usize::from(number)]).unwrap();
        }
        let sources: Vec<_> = paths.iter().map(|path| &**path).collect();
        for (number, packed) in (0..).zip(compressed(&sources, None).unwrap()) {
            assert_eq!(zstd::decode_all(&*packed).unwrap(), vec![number; 1000 * usize::from(number)]);
        }
        let absent = folder.path().join("absent");
        let error = compressed(&[&paths[0], &absent], None).unwrap_err().to_string();
        assert!(error.starts_with(&format!("cannot read {}", absent.display())), "{error}");
    }

    #[test]
    fn a_cache_changes_no_byte_and_is_believed_only_where_it_is_right() {
        let folder = tempfile::tempdir().unwrap();
        let (file, cache) = (folder.path().join("a.ko"), folder.path().join("deep/cache"));
        fs::write(&file, b"module ".repeat(1000)).unwrap();
        let fresh = compressed(&[&file], None).unwrap();
        assert_eq!(compressed(&[&file], Some(&cache)).unwrap(), fresh);
        let kept = fs::read_dir(&cache).unwrap().next().unwrap().unwrap().path();
        assert_eq!(fs::read(&kept).unwrap(), fresh[0]);
        // Other bytes of the same content show that they come from there.
        let other = zstd::bulk::compress(&fs::read(&file).unwrap(), 1).unwrap();
        fs::write(&kept, &other).unwrap();
        assert_eq!(compressed(&[&file], Some(&cache)).unwrap(), [other]);
        fs::write(&kept, &fresh[0][..fresh[0].len() / 2]).unwrap();
        assert_eq!(compressed(&[&file], Some(&cache)).unwrap(), fresh);
        assert_eq!(fs::read(&kept).unwrap(), fresh[0]);
    }
}
