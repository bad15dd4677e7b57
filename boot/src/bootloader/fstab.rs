//! The line in `/etc/fstab` by which the deployed system mounts its EFI system partition (section 7.4).

use super::ESP_FOLDER;
use super::image_system::ImageSystem;
use super::site::Volume;
use crate::error::Error;
use std::fs::{self, File};
use std::io::{self, Read};
use std::path::Path;

const FSTAB: &str = "etc/fstab";
/// Most bytes of it that are read: the image decides what is there.
const MOST: u64 = 1 << 20;

/// Adds the line unless the system has one. A system without the file wants none.
///
/// # Errors
///
/// [`Error::BootLoader`].
pub fn add_esp(system: &ImageSystem<'_>, esp: &Volume) -> Result<(), Error> {
    let Some(file) = system.file(FSTAB) else { return Ok(()) };
    let written = read(&file).and_then(|text| match with_esp(&text, &esp.fstab_name()) {
        Some(text) => fs::write(&file, text),
        None => Ok(()),
    });
    written.map_err(|error| system.failed("adding the EFI system partition to /etc/fstab", error))
}

fn read(file: &Path) -> io::Result<String> {
    let mut text = String::new();
    File::open(file)?.take(MOST + 1).read_to_string(&mut text)?;
    if text.len() as u64 > MOST {
        return Err(io::Error::other(format!("it has more than {} MiB", MOST >> 20)));
    }
    Ok(text)
}

/// The text with the line; nothing when something is mounted there already, or the partition elsewhere.
fn with_esp(text: &str, name: &str) -> Option<String> {
    let is_there = text.lines().any(|line| {
        let mut fields = line.split_whitespace();
        let (what, place) = (fields.next(), fields.next());
        what == Some(name) || (what.is_some_and(is_no_comment) && place == Some(&format!("/{ESP_FOLDER}")))
    });
    let end = if text.is_empty() || text.ends_with('\n') { "" } else { "\n" };
    (!is_there).then(|| format!("{text}{end}{name}\t/{ESP_FOLDER}\tvfat\tumask=0077\t0\t1\n"))
}

fn is_no_comment(field: &str) -> bool {
    !field.starts_with('#')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_line_is_added_once() {
        const LINE: &str = "UUID=7C1A-9B2F\t/boot/efi\tvfat\tumask=0077\t0\t1\n";
        for (before, expected) in [
            ("", Some(LINE.to_owned())),
            ("/dev/sda2 / ext4\n", Some(format!("/dev/sda2 / ext4\n{LINE}"))),
            ("/dev/sda2 / ext4", Some(format!("/dev/sda2 / ext4\n{LINE}"))),
            ("# /dev/x /boot/efi vfat\n", Some(format!("# /dev/x /boot/efi vfat\n{LINE}"))),
            ("#/dev/x /boot/efi vfat\n", Some(format!("#/dev/x /boot/efi vfat\n{LINE}"))),
            (LINE, None),
            ("LABEL=ESP /boot/efi vfat\n", None),
            ("UUID=7C1A-9B2F /efi vfat\n", None),
        ] {
            assert_eq!(with_esp(before, "UUID=7C1A-9B2F"), expected, "{before:?}");
        }
    }

    #[test]
    fn a_file_without_end_is_not_read_to_its_end() {
        let file = tempfile::NamedTempFile::new().unwrap();
        for (length, fits) in [(MOST, true), (MOST + 1, false), (1 << 40, false)] {
            file.as_file().set_len(length).unwrap();
            assert_eq!(read(file.path()).is_ok(), fits, "{length}");
        }
    }
}
