//! Files in and out of the compressions that distributions and the ramdisk use.

use std::fs::File;
use std::io::{self, Read};
use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};
use std::thread;

use flate2::GzBuilder;

use crate::error::BuildError;

/// Level at which modules and firmware are packed: once built, they are transferred many times.
const LEVEL: i32 = 19;

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

/// Bytes compressed with gzip, the same every time.
pub fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = GzBuilder::new().mtime(0).read(bytes, flate2::Compression::best());
    let mut packed = Vec::new();
    // Reading from memory does not fail.
    encoder.read_to_end(&mut packed).unwrap_or_default();
    packed
}

/// The files compressed with zstd, in the order of `sources`, by as many threads as there are processors.
///
/// # Errors
///
/// [`BuildError::Read`] for the first file that cannot be read or decompressed.
pub fn compressed(sources: &[&Path]) -> Result<Vec<Vec<u8>>, BuildError> {
    let next = AtomicUsize::new(0);
    let results = Mutex::new(Vec::new());
    thread::scope(|scope| {
        for _ in 0..thread::available_parallelism().map_or(1, usize::from) {
            scope.spawn(|| {
                loop {
                    let index = next.fetch_add(1, Ordering::Relaxed);
                    let Some(path) = sources.get(index) else { return };
                    let result = compress(path);
                    results.lock().unwrap_or_else(PoisonError::into_inner).push((index, result));
                }
            });
        }
    });
    let mut results = results.into_inner().unwrap_or_else(PoisonError::into_inner);
    results.sort_by_key(|(index, _)| *index);
    results.into_iter().map(|(_, result)| result).collect()
}

fn compress(path: &Path) -> Result<Vec<u8>, BuildError> {
    // At once, so that the frame tells its size and is unpacked into a buffer of it.
    zstd::bulk::compress(&read_decompressed(path)?, LEVEL).map_err(BuildError::reading(path))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn many_files_come_back_in_their_order() {
        let folder = tempfile::tempdir().unwrap();
        let paths: Vec<_> = (0..40u8).map(|number| folder.path().join(format!("{number}"))).collect();
        for (number, path) in (0..).zip(&paths) {
            std::fs::write(path, vec![number; 1000 * usize::from(number)]).unwrap();
        }
        let sources: Vec<_> = paths.iter().map(|path| &**path).collect();
        for (number, packed) in (0..).zip(compressed(&sources).unwrap()) {
            assert_eq!(zstd::decode_all(&*packed).unwrap(), vec![number; 1000 * usize::from(number)]);
        }
        let absent = folder.path().join("absent");
        let error = compressed(&[&paths[0], &absent]).unwrap_err().to_string();
        assert!(error.starts_with(&format!("cannot read {}", absent.display())), "{error}");
    }
}
