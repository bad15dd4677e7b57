//! Files of the ramdisk that are compressed with zstd.

use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};

/// What a packed file's name ends in.
const SUFFIX: &str = ".zst";

/// Bytes of the largest content for which memory is taken because a packed file says that it has so many.
const MOST: u64 = 64 << 20;

/// Content of a file, unpacked when its name says that it is packed.
///
/// # Errors
///
/// The file is missing, or it is cut or damaged.
pub fn read(path: &Path) -> io::Result<Vec<u8>> {
    let content = fs::read(path)?;
    if !path.as_os_str().as_encoded_bytes().ends_with(SUFFIX.as_bytes()) {
        return Ok(content);
    }
    match zstd::zstd_safe::get_frame_content_size(&content) {
        // Straight into a buffer of that size, which is far faster.
        Ok(Some(size)) if size <= MOST => zstd::bulk::decompress(&content, size as usize),
        _ => zstd::decode_all(&*content),
    }
}

/// Makes `path` out of its packed form, which goes away to give its memory back. There may be neither:
/// drivers name more firmware than exists.
///
/// # Errors
///
/// The packed file is cut or damaged, or there is no room.
pub fn unpack_in_place(path: &Path) -> io::Result<()> {
    let mut packed = path.as_os_str().to_owned();
    packed.push(SUFFIX);
    let packed = PathBuf::from(packed);
    let source = match File::open(&packed) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        result => result?,
    };
    // Under another name first: the kernel may be asked for the file by another driver meanwhile.
    let unfinished = path.with_extension("unfinished");
    zstd::stream::copy_decode(source, File::create(&unfinished)?)?;
    fs::rename(&unfinished, path)?;
    fs::remove_file(&packed)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn packed_and_plain_files_are_read() {
        let folder = tempfile::tempdir().unwrap();
        let (plain, packed) = (folder.path().join("a.ko"), folder.path().join("b.ko.zst"));
        let content = vec![7; 100_000];
        fs::write(&plain, &content).unwrap();
        assert_eq!(read(&plain).unwrap(), content);
        // With and without the size of the content at the start.
        for bytes in [zstd::bulk::compress(&content, 1).unwrap(), zstd::encode_all(&*content, 1).unwrap()] {
            fs::write(&packed, &bytes).unwrap();
            assert_eq!(read(&packed).unwrap(), content);
            fs::write(&packed, &bytes[..bytes.len() - 4]).unwrap();
            assert!(read(&packed).is_err());
        }
    }

    #[test]
    fn firmware_replaces_its_packed_form() {
        let folder = tempfile::tempdir().unwrap();
        let (path, packed) = (folder.path().join("nic.bin"), folder.path().join("nic.bin.zst"));
        unpack_in_place(&path).unwrap();
        assert!(!path.exists());
        fs::write(&packed, zstd::encode_all(&b"firmware"[..], 1).unwrap()).unwrap();
        for _ in 0..2 {
            unpack_in_place(&path).unwrap();
            assert_eq!(fs::read(&path).unwrap(), b"firmware");
        }
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1);
    }
}
