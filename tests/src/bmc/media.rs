//! Media as a conductor puts them into the virtual drives of a BMC.

use anyhow::{Context, Result};
use hadris_iso::read::PathSeparator;
use hadris_iso::rrip::RripOptions;
use hadris_iso::write::options::{CreationFeatures, IsoFormatOptions};
use hadris_iso::write::{InputTree, IsoImageWriter};
use std::fs::{self, File};
use std::io::{Cursor, Write};
use std::path::Path;

/// Bytes of a floppy disk.
const FLOPPY_BYTES: usize = 1_474_560;

/// Writes a FAT image with files in its root.
///
/// # Errors
///
/// The file cannot be written.
pub fn floppy(file: &Path, label: [u8; 11], files: &[(&str, &str)]) -> Result<()> {
    let mut image = Cursor::new(vec![0; FLOPPY_BYTES]);
    fatfs::format_volume(&mut image, fatfs::FormatVolumeOptions::new().volume_label(label))?;
    {
        let volume = fatfs::FileSystem::new(&mut image, fatfs::FsOptions::new())?;
        for (name, text) in files {
            volume.root_dir().create_file(name)?.write_all(text.as_bytes())?;
        }
    }
    fs::write(file, image.into_inner()).with_context(|| format!("cannot write {}", file.display()))
}

/// Writes an ISO 9660 image with Rock Ridge names and the content of a folder.
///
/// # Errors
///
/// The folder cannot be read, or the file cannot be written.
pub fn iso(file: &Path, label: &str, publisher: &str, folder: &Path) -> Result<()> {
    let tree = InputTree::from_fs(folder, PathSeparator::ForwardSlash)
        .map_err(|error| anyhow::anyhow!("{}: {error}", folder.display()))?;
    let options = IsoFormatOptions {
        volume_name: label.to_owned(),
        system_id: None,
        volume_set_id: None,
        publisher_id: Some(publisher.to_owned()),
        preparer_id: None,
        application_id: None,
        sector_size: 2048,
        path_separator: PathSeparator::ForwardSlash,
        strict_charset: false,
        features: CreationFeatures {
            rock_ridge: Some(RripOptions::default()),
            ..CreationFeatures::rock_ridge()
        },
    };
    let image = IsoImageWriter::create(Cursor::new(Vec::new()), tree, options)
        .map_err(|error| anyhow::anyhow!("{}: {error}", file.display()))?;
    File::create(file)?.write_all(&image.into_inner())?;
    Ok(())
}
