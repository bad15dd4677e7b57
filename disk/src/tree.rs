//! The files in a volume, whichever file system they came in, and the same files in a FAT volume.

use crate::fat::{self, Fat};
use crate::filesystem;
use crate::foreign::{Budget, Foreign, larger_together};
use crate::io::view::DiskView;
use hadris_iso::directory::DirectoryRef;
use hadris_iso::file::EntryType;
use hadris_iso::read::{DirEntry, IsoImage};
use std::collections::HashMap;
use std::io::{self, Cursor, Read, Seek, SeekFrom};

/// Bounds for a file system that somebody else made.
const MAX_DEPTH: usize = 16;
const MAX_ENTRIES: usize = 20_000;

/// Bytes of a file that are compared at once.
const PART: u64 = 64 << 10;

/// Something in the tree. Folders come before what they hold.
pub enum Node<'a> {
    Folder,
    File(&'a mut dyn Read),
}

/// What is done with each path and what lies there; parts are joined by slashes.
pub type Visitor<'a> = dyn FnMut(&str, Node<'_>) -> io::Result<()> + 'a;

/// Shows every file and folder of an ISO 9660 image, whose files have at most `limit` bytes together: there,
/// several may lie in the same place.
///
/// Names are those of Rock Ridge, else of Joliet, else plain ones in lower case.
///
/// # Errors
///
/// The image is damaged, holds links or absurd names, has no end, or `visit` failed.
pub fn visit_iso(content: &[u8], limit: u64, visit: &mut Visitor<'_>) -> io::Result<()> {
    let (mut content, budget) = (Cursor::new(content), Budget::of(limit));
    let image = IsoImage::open(Foreign::new(&mut content, &budget)?).map_err(io::Error::other)?;
    let is_joliet = |kind: EntryType| matches!(kind, EntryType::Joliet { .. });
    let joliet = image.root_dirs().iter().find(|root| is_joliet(root.entry_type()));
    let root = if image.supports_rrip() { image.root_dirs().iter().next() } else { None };
    let root = root.or(joliet).copied().unwrap_or(image.root_dir());
    let names = if is_joliet(root.entry_type()) { joliet_name } else { plain_name };
    let mut walk = IsoWalk { image: &image, names, entries: MAX_ENTRIES, budget: &budget };
    walk.folder(root.dir_ref(), "", 0, visit)
}

/// Shows every file and folder of a FAT volume.
///
/// # Errors
///
/// As [`visit_iso`]; the files together are no larger than the volume.
pub fn visit_fat(volume: &mut (impl Read + Seek), visit: &mut Visitor<'_>) -> io::Result<()> {
    let mut left = volume.seek(SeekFrom::End(0))?;
    let mut fat = Fat::open(volume)?;
    for entry in fat.entries(MAX_DEPTH, &mut |_, error| Err(error))? {
        if entry.path.matches('/').count() >= MAX_DEPTH {
            return Err(nested_too_deeply());
        }
        if !entry.has_plain_path {
            return Err(no_name(&entry.path));
        }
        if entry.is_folder {
            visit(&entry.path, Node::Folder)?;
            continue;
        }
        left = left.checked_sub(entry.size).ok_or_else(larger_together)?;
        visit(&entry.path, Node::File(&mut fat.read(&entry)))?;
    }
    Ok(())
}

/// What shows every file and folder of some tree to a visitor.
pub type Source<'a> = dyn FnMut(&mut Visitor<'_>) -> io::Result<()> + 'a;

/// Writes all of a tree into the new FAT file system in `volume`.
///
/// # Errors
///
/// The tree cannot be read, or not be written.
pub fn copy_to_fat(volume: &mut DiskView<'_>, source: &mut Source<'_>) -> io::Result<()> {
    filesystem::fill_vfat(volume, |target| {
        source(&mut |path, node| {
            match node {
                Node::Folder => {
                    target.root_dir().create_dir(path)?;
                }
                Node::File(content) => {
                    io::copy(content, &mut target.root_dir().create_file(path)?)?;
                }
            }
            Ok(())
        })
    })
}

/// Whether the FAT file system in `volume` has every file of a tree, with the same content.
///
/// # Errors
///
/// The tree or the volume cannot be read.
pub fn is_in_fat(volume: &mut DiskView<'_>, source: &mut Source<'_>) -> io::Result<bool> {
    let mut fat = Fat::open(volume)?;
    let entries = fat.entries(MAX_DEPTH, &mut |_, error| Err(error))?;
    let written: HashMap<_, _> = entries.iter().map(|entry| (entry.path.as_str(), entry)).collect();
    let mut is_equal = true;
    source(&mut |path, node| {
        if let Node::File(content) = node {
            let entry = written.get(path).ok_or(io::ErrorKind::NotFound)?;
            is_equal &= is_same(content, &mut fat.read(entry))?;
        }
        Ok(())
    })?;
    Ok(is_equal)
}

/// Whether two files have the same content. Neither is kept in memory.
fn is_same(one: &mut dyn Read, other: &mut impl Read) -> io::Result<bool> {
    let (mut ours, mut theirs) = (Vec::new(), Vec::new());
    loop {
        ours.clear();
        theirs.clear();
        one.take(PART).read_to_end(&mut ours)?;
        other.take(PART).read_to_end(&mut theirs)?;
        if ours != theirs || ours.is_empty() {
            return Ok(ours == theirs);
        }
    }
}

struct IsoWalk<'a, 'b> {
    image: &'a IsoImage<Foreign<'b, Cursor<&'b [u8]>>>,
    names: fn(&[u8]) -> String,
    /// How many more entries are shown.
    entries: usize,
    budget: &'a Budget,
}

impl IsoWalk<'_, '_> {
    fn folder(
        &mut self,
        folder: DirectoryRef,
        path: &str,
        depth: usize,
        visit: &mut Visitor<'_>,
    ) -> io::Result<()> {
        for entry in self.image.open_dir(folder).entries() {
            let entry = entry.map_err(io::Error::other)?;
            if entry.is_special() {
                continue;
            }
            let path = child(path, &self.name(&entry)?, depth, &mut self.entries)?;
            if entry.is_directory() {
                visit(&path, Node::Folder)?;
                let folder = entry.as_dir_ref(self.image).map_err(io::Error::other)?;
                self.folder(folder, &path, depth + 1, visit)?;
            } else {
                self.budget.grant(entry.total_size())?;
                let content = self.image.read_file(&entry).map_err(io::Error::other)?;
                visit(&path, Node::File(&mut content.as_slice()))?;
            }
        }
        Ok(())
    }

    fn name(&self, entry: &DirEntry) -> io::Result<String> {
        let Some(rock_ridge) = &entry.rrip else { return Ok((self.names)(entry.name())) };
        if rock_ridge.symlink_target.is_some() {
            return Err(io::Error::other("it holds a symbolic link"));
        }
        Ok(rock_ridge.alternate_name.clone().unwrap_or_else(|| (self.names)(entry.name())))
    }
}

/// The path of `name` in `folder`, when both are as they should be (S47).
fn child(folder: &str, name: &str, depth: usize, entries: &mut usize) -> io::Result<String> {
    *entries = entries.checked_sub(1).ok_or_else(|| io::Error::other("it holds too many files"))?;
    if depth >= MAX_DEPTH {
        return Err(nested_too_deeply());
    }
    if !fat::is_plain(name) {
        return Err(no_name(name));
    }
    Ok(if folder.is_empty() { name.to_owned() } else { format!("{folder}/{name}") })
}

fn nested_too_deeply() -> io::Error {
    io::Error::other("its folders are nested too deeply")
}

fn no_name(name: &str) -> io::Error {
    io::Error::other(format!("{name:?} in it is no file name"))
}

fn joliet_name(bytes: &[u8]) -> String {
    let units: Vec<u16> = bytes.chunks_exact(2).map(|pair| u16::from_be_bytes([pair[0], pair[1]])).collect();
    without_version(&String::from_utf16_lossy(&units)).to_owned()
}

fn plain_name(bytes: &[u8]) -> String {
    without_version(&String::from_utf8_lossy(bytes)).trim_end_matches('.').to_lowercase()
}

/// A name without the `;1` that ISO 9660 puts behind files.
fn without_version(name: &str) -> &str {
    match name.rsplit_once(';') {
        Some((name, version)) if version.bytes().all(|byte| byte.is_ascii_digit()) => name,
        _ => name,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fat::volumes as foreign;
    use crate::io::MemoryDisk;
    use fatfs::{FileSystem, FsOptions};
    use std::io::Write;

    #[test]
    fn s47_names_that_leave_the_volume_are_refused() {
        for name in ["", ".", "..", "../passwd", "/etc/passwd", "a/b", "a\\b", "a\0b"] {
            assert!(child("openstack", name, 1, &mut 10).is_err(), "{name:?}");
        }
        assert_eq!(child("openstack", "latest", 1, &mut 10).unwrap(), "openstack/latest");
        assert_eq!(child("", "openstack", 0, &mut 1).unwrap(), "openstack");
        assert!(child("", "openstack", 0, &mut 0).is_err());
        assert!(child("a", "b", MAX_DEPTH, &mut 10).is_err());
    }

    #[test]
    fn a_tree_is_copied_into_a_part_of_a_disk_on_sectors_of_any_size() {
        const START: u64 = 1 << 20;
        const SIZE: u64 = 8 << 20;
        let tree = |visit: &mut Visitor<'_>| {
            visit("EFI", Node::Folder)?;
            visit("EFI/a long name.efi", Node::File(&mut &vec![7; 200_000][..]))?;
            visit("empty", Node::File(&mut &b""[..]))
        };
        for sector_size in [512, 4096] {
            let disk = MemoryDisk::ones(16 << 20, sector_size);
            let mut volume = DiskView::range(&disk, START, SIZE);
            filesystem::make_vfat(&mut volume, "TREE", sector_size).unwrap();
            copy_to_fat(&mut volume, &mut { tree }).unwrap();
            assert!(is_in_fat(&mut DiskView::range(&disk, START, SIZE), &mut { tree }).unwrap());
            let around = [disk.content(0, START as usize), disk.content(START + SIZE, 7 << 20)].concat();
            assert!(around.iter().all(|byte| *byte == 0xff), "something beside the volume was written");
            let spoiled = disk.content(START, SIZE as usize).iter().position(|byte| *byte == 7).unwrap();
            disk.put(START + spoiled as u64 + 70_000, &[8]);
            assert!(!is_in_fat(&mut DiskView::range(&disk, START, SIZE), &mut { tree }).unwrap());
            let disk = disk.broken_at(START);
            let mut volume = DiskView::range(&disk, START, SIZE);
            assert!(filesystem::make_vfat(&mut volume, "TREE", sector_size).is_err());
        }
    }

    #[test]
    fn a_volume_that_is_filled_in_memory_is_the_same_and_takes_a_tenth_of_the_requests() {
        const SIZE: u64 = 64 << 20;
        let content: Vec<_> = (0..4 << 20).map(|number: u32| (number % 249) as u8).collect();
        let tree = |visit: &mut Visitor<'_>| {
            visit("EFI", Node::Folder)?;
            visit("EFI/grubx64.efi", Node::File(&mut &content[..]))?;
            visit("EFI/shimx64.efi", Node::File(&mut &content[9..1 << 20]))
        };
        for sector_size in [512, 4096] {
            let disks = [MemoryDisk::ones(SIZE, sector_size), MemoryDisk::ones(SIZE, sector_size)];
            let volumes = [DiskView::whole(&disks[0]), DiskView::whole(&disks[1]).with_memory()];
            for mut volume in volumes {
                filesystem::make_vfat_as(&mut volume, *b"ESP        ", 7, sector_size).unwrap();
                copy_to_fat(&mut volume, &mut { tree }).unwrap();
            }
            let [plain, remembered] = disks;
            assert!(is_in_fat(&mut DiskView::whole(&remembered).with_memory(), &mut { tree }).unwrap());
            let requests = [&plain, &remembered].map(MemoryDisk::requests);
            assert!(requests[1] * 10 < requests[0], "{requests:?} on sectors of {sector_size}");
            assert!(plain.begins_like(&remembered, SIZE), "the volumes differ on sectors of {sector_size}");
        }
    }

    #[test]
    fn x08_a_volume_without_an_end_is_refused_whatever_leads_back_to_itself() {
        for mut volume in [foreign::endless_root(), foreign::endless_folder()] {
            let error = visit_fat(&mut volume, &mut |_, _| Ok(())).unwrap_err();
            assert!(error.to_string().contains("has no end"), "{error}");
        }
    }

    /// A volume that counts what is read of it.
    struct Counted<T> {
        volume: T,
        bytes: u64,
    }

    impl<T: Read> Read for Counted<T> {
        fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
            let count = self.volume.read(buffer)?;
            self.bytes += count as u64;
            Ok(count)
        }
    }

    impl<T: Seek> Seek for Counted<T> {
        fn seek(&mut self, target: SeekFrom) -> io::Result<u64> {
            self.volume.seek(target)
        }
    }

    #[test]
    fn x32_of_a_small_volume_without_an_end_no_more_is_read_than_a_small_volume_can_hold() {
        let volume = foreign::endless_folder();
        let size = volume.get_ref().len() as u64;
        let mut counted = Counted { volume, bytes: 0 };
        let error = visit_fat(&mut counted, &mut |_, _| Ok(())).unwrap_err();
        assert!(error.to_string().contains("has no end"), "{error}");
        assert!(counted.bytes < 2 * size + 512, "{} bytes of {size} were read", counted.bytes);
    }

    #[test]
    fn x32_a_volume_full_of_folders_is_read_to_its_end() {
        for bytes in [32 << 10, 64 << 10] {
            let mut volume = foreign::formatted(bytes, fatfs::FatType::Fat12);
            let mut made = 0;
            {
                let fat = FileSystem::new(&mut volume, FsOptions::new()).unwrap();
                let folder = fat.root_dir().create_dir("in").unwrap();
                // Files without content take entries only, so that all the rest is one folder.
                let long = "a name of which every letter takes room, as in a hostile volume ".repeat(3);
                while folder.create_file(&format!("{long}{made}")).is_ok() {
                    made += 1;
                }
            }
            let mut seen = 0;
            visit_fat(&mut volume, &mut |_, _| {
                seen += 1;
                Ok(())
            })
            .unwrap();
            assert_eq!(seen, made + 1, "{bytes} bytes");
        }
    }

    #[test]
    fn x32_a_folder_that_begins_before_the_first_cluster_is_no_defect() {
        let mut volume = foreign::formatted(1 << 20, fatfs::FatType::Fat12);
        {
            let fat = FileSystem::new(&mut volume, FsOptions::new()).unwrap();
            fat.root_dir().create_dir("in").unwrap();
        }
        let bytes = volume.get_mut();
        let entry = bytes.windows(11).position(|name| name == b"IN         ").unwrap();
        // Clusters are counted from two.
        bytes[entry + 26..][..2].copy_from_slice(&1_u16.to_le_bytes());
        let mut seen = Vec::new();
        visit_fat(&mut volume, &mut |path, _| {
            seen.push(path.to_owned());
            Ok(())
        })
        .unwrap();
        assert_eq!(seen, ["in"]);
    }

    #[test]
    fn x08_files_in_the_same_place_are_copied_no_further_than_the_volume_is_large() {
        let mut volume = foreign::same_place(40);
        let mut copied = 0;
        let error = visit_fat(&mut volume, &mut |_, node| {
            if let Node::File(content) = node {
                copied += io::copy(content, &mut io::sink())?;
            }
            Ok(())
        });
        assert!(error.unwrap_err().to_string().contains("larger together"));
        assert_eq!(copied, 20 * 200_000, "as many as a volume of 4 MiB can hold");
    }

    #[test]
    fn d18_a_fat_volume_shows_all_its_files_as_often_as_it_is_asked() {
        let mut volume = Cursor::new(vec![0; 1 << 20]);
        fatfs::format_volume(&mut volume, fatfs::FormatVolumeOptions::new()).unwrap();
        volume.rewind().unwrap();
        {
            let fat = FileSystem::new(&mut volume, FsOptions::new()).unwrap();
            let folder = fat.root_dir().create_dir("EFI").unwrap();
            folder.create_file("a long name.cfg").unwrap().write_all(b"content").unwrap();
        }
        for _ in 0..2 {
            let mut seen = Vec::new();
            let visit = &mut |path: &str, node: Node<'_>| {
                let mut content = String::new();
                if let Node::File(file) = node {
                    file.read_to_string(&mut content)?;
                }
                seen.push((path.to_owned(), content));
                Ok(())
            };
            visit_fat(&mut volume, visit).unwrap();
            let expected = [("EFI", ""), ("EFI/a long name.cfg", "content")];
            assert_eq!(seen, expected.map(|(path, content)| (path.to_owned(), content.to_owned())));
        }
    }
}
