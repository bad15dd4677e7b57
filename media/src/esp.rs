//! EFI system partitions in a file.

use fatfs::{FileSystem, FormatVolumeOptions, FsOptions, format_volume};
use std::collections::BTreeMap;
use std::io::{self, Cursor, Write};

const MEBIBYTE: usize = 1 << 20;
/// Identifies the volume; the same bytes every time.
const VOLUME_ID: u32 = 0x4641_5252;

/// A FAT file system that holds `files`, by path, and little more.
///
/// # Errors
///
/// A name that FAT does not know; there is no other reason.
pub(crate) fn image(files: &BTreeMap<String, Vec<u8>>) -> io::Result<Vec<u8>> {
    let content: usize = files.values().map(|content| content.len().next_multiple_of(4096)).sum();
    let size = (content + MEBIBYTE / 2).next_multiple_of(MEBIBYTE);
    let mut image = Cursor::new(vec![0; size]);
    let options = FormatVolumeOptions::new().volume_id(VOLUME_ID).volume_label(*b"FARRIER    ");
    format_volume(&mut image, options)?;
    {
        let volume = FileSystem::new(&mut image, FsOptions::new())?;
        let root = volume.root_dir();
        for (path, content) in files {
            for (end, _) in path.match_indices('/') {
                root.create_dir(&path[..end])?;
            }
            root.create_file(path)?.write_all(content)?;
        }
    }
    Ok(image.into_inner())
}

#[cfg(test)]
mod tests {
    use std::io::Read;

    use super::*;

    #[test]
    fn files_are_read_back_and_bytes_repeat() {
        let files = BTreeMap::from([
            ("EFI/BOOT/BOOTX64.EFI".to_owned(), vec![1; 900_000]),
            ("EFI/BOOT/grubx64.efi".to_owned(), vec![2; 1_600_000]),
        ]);
        let bytes = image(&files).unwrap();
        assert_eq!(bytes, image(&files).unwrap());
        let volume = FileSystem::new(Cursor::new(bytes), FsOptions::new()).unwrap();
        for (path, content) in &files {
            let mut found = Vec::new();
            volume.root_dir().open_file(path).unwrap().read_to_end(&mut found).unwrap();
            assert!(found == *content, "{path}");
        }
    }
}
