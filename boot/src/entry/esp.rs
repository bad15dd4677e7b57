//! Finding loaders on an EFI system partition, without mounting it.

use farrier_disk::foreign::{Budget, Foreign};
use farrier_disk::io::view::DiskView;
use farrier_disk::table::Partition;
use farrier_disk::{Error, Sectors};
use fatfs::{Dir, FileSystem, FsOptions, ReadWriteSeek};
use std::io::{self, Read, Seek, SeekFrom};

/// Files that name the loader of the system beside them (F15).
const CSV_NAMES: &[&str] = &["bootx64.csv", "bootaa64.csv", "boot.csv"];

/// Loaders of every architecture (F17).
const LOADER_NAMES: &[&str] = &[
    "bootia32.efi",
    "bootx64.efi",
    "bootia64.efi",
    "bootarm.efi",
    "bootaa64.efi",
    "bootriscv32.efi",
    "bootriscv64.efi",
    "bootriscv128.efi",
    "grubaa64.efi",
    "winload.efi",
];

/// Where firmware looks when it has forgotten its entries.
const REMOVABLE_DIRECTORY: &str = r"\efi\boot\";

/// Bounds for a file system that somebody else made.
const MAX_DEPTH: usize = 16;
const MAX_ENTRIES: usize = 20_000;
const MAX_CSV: u64 = 64 * 1024;

/// A loader and the label its entry gets.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Loader {
    /// Path with backslashes, from the root.
    pub path: String,
    /// Text in the boot menu.
    pub label: String,
}

/// Finds the loaders on `esp`: the one the first CSV file names, else every known name.
///
/// # Errors
///
/// [`Error::UnreadableEsp`].
pub fn find_loaders(disk: &dyn Sectors, esp: &Partition) -> Result<Vec<Loader>, Error> {
    let mut view = DiskView::range(disk, esp.start, esp.size);
    search(&mut view).map_err(|source| Error::UnreadableEsp {
        device: disk.path().to_owned(),
        number: esp.number,
        source,
    })
}

/// Finds the loaders in a FAT volume.
fn search(volume: &mut (impl Read + Seek)) -> io::Result<Vec<Loader>> {
    let budget = Budget::of_fat(volume.seek(SeekFrom::End(0))?, 0);
    let volume = FileSystem::new(Foreign::new(volume, &budget)?, FsOptions::new())?;
    let mut found = Found { csv: None, loaders: Vec::new(), budget: MAX_ENTRIES };
    found.walk(&volume.root_dir(), "", 0)?;
    let is_bootable = found.csv.is_some() || !found.loaders.is_empty();
    if is_bootable && !found.loaders.iter().any(|path| path.to_lowercase().starts_with(REMOVABLE_DIRECTORY)) {
        tracing::warn!(
            "no loader in {REMOVABLE_DIRECTORY}: should the firmware lose its entries, the disk will not boot"
        );
    }
    if let Some(loader) = found.csv {
        return Ok(vec![loader]);
    }
    let numbered = |(index, path)| Loader { path, label: format!("ironic{}", index + 1) };
    Ok(found.loaders.into_iter().enumerate().map(numbered).collect())
}

/// What a walk has found so far.
struct Found {
    csv: Option<Loader>,
    loaders: Vec<String>,
    budget: usize,
}

impl Found {
    fn walk<T: ReadWriteSeek>(&mut self, directory: &Dir<'_, T>, path: &str, depth: usize) -> io::Result<()> {
        for entry in directory.iter() {
            let entry = entry?;
            let name = entry.file_name();
            self.budget =
                self.budget.checked_sub(1).ok_or_else(|| io::Error::other("it has too many entries"))?;
            if entry.is_dir() {
                if name != "." && name != ".." && depth < MAX_DEPTH {
                    self.walk(&entry.to_dir(), &format!(r"{path}\{name}"), depth + 1)?;
                }
                continue;
            }
            let lower = name.to_lowercase();
            if CSV_NAMES.contains(&lower.as_str()) && self.csv.is_none() {
                let mut content = Vec::new();
                entry.to_file().take(MAX_CSV).read_to_end(&mut content)?;
                self.csv = parse_csv(&content, path);
            } else if LOADER_NAMES.contains(&lower.as_str()) {
                self.loaders.push(format!(r"{path}\{name}"));
            }
        }
        Ok(())
    }
}

/// Reads loader and label from a CSV file in `directory`; nothing when it has none.
fn parse_csv(content: &[u8], directory: &str) -> Option<Loader> {
    let (bytes, unit): (_, fn([u8; 2]) -> u16) = match content {
        [0xfe, 0xff, rest @ ..] => (rest, u16::from_be_bytes),
        [0xff, 0xfe, rest @ ..] => (rest, u16::from_le_bytes),
        rest => (rest, u16::from_le_bytes),
    };
    let units: Vec<u16> = bytes.chunks_exact(2).map(|pair| unit([pair[0], pair[1]])).collect();
    let text = String::from_utf16_lossy(&units);
    let mut fields = text.lines().find(|line| !line.trim().is_empty())?.split(',').map(str::trim);
    let (file, label) = (fields.next()?, fields.next()?);
    // The file is one beside the CSV; anything else would leave its directory.
    let is_name = !file.is_empty() && !file.contains(['\\', '/', '\0']);
    (is_name && !label.is_empty())
        .then(|| Loader { path: format!(r"{directory}\{file}"), label: label.to_owned() })
}

#[cfg(test)]
mod tests {
    use super::*;
    use farrier_disk::foreign::volumes;
    use proptest::prelude::*;
    use std::io::{Cursor, Write};

    fn utf16(text: &str) -> Vec<u8> {
        text.encode_utf16().flat_map(u16::to_le_bytes).collect()
    }

    fn volume(files: &[(&str, &[u8])]) -> Cursor<Vec<u8>> {
        let mut volume = Cursor::new(vec![0; 4 << 20]);
        fatfs::format_volume(&mut volume, fatfs::FormatVolumeOptions::new()).unwrap();
        volume.set_position(0);
        {
            let fat = FileSystem::new(&mut volume, FsOptions::new()).unwrap();
            for (path, content) in files {
                let mut directory = fat.root_dir();
                let (parents, name) = path.rsplit_once('/').unwrap_or(("", path));
                for parent in parents.split('/').filter(|parent| !parent.is_empty()) {
                    directory = directory.create_dir(parent).unwrap();
                }
                directory.create_file(name).unwrap().write_all(content).unwrap();
            }
        }
        volume.set_position(0);
        volume
    }

    fn loader(path: &str, label: &str) -> Loader {
        Loader { path: path.to_owned(), label: label.to_owned() }
    }

    #[test]
    fn f15_a_csv_file_decides() {
        let csv = utf16("shimx64.efi,debian,,This is the boot entry for debian\n");
        let found = search(&mut volume(&[
            ("EFI/BOOT/BOOTX64.EFI", b"x"),
            ("EFI/debian/shimx64.efi", b"x"),
            ("EFI/debian/BOOTX64.CSV", &csv),
        ]));
        assert_eq!(found.unwrap(), [loader(r"\EFI\debian\shimx64.efi", "debian")]);
    }

    #[test]
    fn f17_without_a_csv_every_known_loader_counts() {
        let found = search(&mut volume(&[
            ("EFI/BOOT/BOOTAA64.EFI", b"x"),
            ("EFI/BOOT/grubx64.efi", b"x"),
            ("EFI/other/GrubAA64.efi", b"x"),
            ("EFI/BOOT/bootia32.csv", b"x"),
        ]));
        let expected =
            [loader(r"\EFI\BOOT\BOOTAA64.EFI", "ironic1"), loader(r"\EFI\other\GrubAA64.efi", "ironic2")];
        assert_eq!(found.unwrap(), expected);
    }

    #[test]
    fn an_esp_without_loaders_has_none_and_no_esp_is_an_error() {
        assert_eq!(search(&mut volume(&[("readme.txt", b"x")])).unwrap(), []);
        assert!(search(&mut Cursor::new(vec![0; 1 << 20])).is_err());
    }

    #[test]
    fn x08_a_folder_without_an_end_ends_the_search() {
        assert!(search(&mut volumes::endless_root()).unwrap_err().to_string().contains("has no end"));
    }

    #[test]
    fn f15_csv_dialects() {
        let big_endian =
            [&[0xfe, 0xff][..], &"a.efi,l".encode_utf16().flat_map(u16::to_be_bytes).collect::<Vec<_>>()]
                .concat();
        let marked = [&[0xff, 0xfe][..], &utf16("a.efi,l,,text\r\n")].concat();
        for (content, expected) in [
            (utf16("a.efi,l"), Some(loader(r"\d\a.efi", "l"))),
            (utf16("\n a.efi , l ,,x"), Some(loader(r"\d\a.efi", "l"))),
            (marked, Some(loader(r"\d\a.efi", "l"))),
            (big_endian, Some(loader(r"\d\a.efi", "l"))),
            (utf16("a.efi"), None),
            (utf16(",l"), None),
            (utf16(r"..\a.efi,l"), None),
            (Vec::new(), None),
        ] {
            assert_eq!(parse_csv(&content, r"\d"), expected, "{content:?}");
        }
    }

    proptest! {
        #[test]
        fn csv_parsing_never_panics(content in proptest::collection::vec(any::<u8>(), 0..200)) {
            let _ = parse_csv(&content, "");
        }
    }
}
