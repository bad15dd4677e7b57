use super::*;
use fatfs::{FileSystem, FormatVolumeOptions, FsOptions};
use proptest::prelude::*;
use std::io::{Cursor, Write};

type Volume = Cursor<Vec<u8>>;
/// Bytes that are put at offsets.
type Changes<'a> = &'a [(usize, &'a [u8])];

/// Clusters of one sector.
const CLUSTER: u32 = 512;

fn volume(bytes: usize, options: FormatVolumeOptions, files: &[(&str, &[u8])]) -> Volume {
    let mut volume = Cursor::new(vec![0; bytes]);
    fatfs::format_volume(&mut volume, options).unwrap();
    volume.set_position(0);
    {
        let fat = FileSystem::new(&mut volume, FsOptions::new()).unwrap();
        for (path, content) in files {
            let mut folder = fat.root_dir();
            let (parents, name) = path.rsplit_once('/').unwrap_or(("", path));
            for parent in parents.split('/').filter(|parent| !parent.is_empty()) {
                folder = folder.create_dir(parent).unwrap();
            }
            folder.create_file(name).unwrap().write_all(content).unwrap();
        }
    }
    volume
}

/// Paths and contents of the files.
fn files(volume: &mut Volume) -> io::Result<Vec<(String, Vec<u8>)>> {
    let mut fat = Fat::open(volume)?;
    let entries = fat.entries(16, &mut |_, error| Err(error))?;
    let files = entries.into_iter().filter(|entry| !entry.is_folder);
    files
        .map(|entry| {
            let mut content = Vec::new();
            fat.read(&entry).read_to_end(&mut content)?;
            Ok((entry.path, content))
        })
        .collect()
}

fn put(volume: &mut Volume, offset: usize, bytes: &[u8]) {
    volume.get_mut()[offset..offset + bytes.len()].copy_from_slice(bytes);
}

/// Where the only entry with this short name is.
fn find(volume: &Volume, name: &[u8; 11]) -> usize {
    volume.get_ref().windows(11).position(|window| window == name).unwrap()
}

#[test]
fn a21_what_the_specification_forbids_and_linux_reads_is_read() {
    let expected = [("EFI/a long name.efi".to_owned(), vec![7; 3000])];
    let fat32 = FormatVolumeOptions::new().fat_type(fatfs::FatType::Fat32).bytes_per_cluster(CLUSTER);
    let original = volume(40 << 20, fat32, &[("EFI/a long name.efi", &[7; 3000])]);
    let sectors = u32::from_le_bytes(original.get_ref()[32..36].try_into().unwrap());
    let few = 32 + 2 * 640 + 5000;
    let changes: &[(&str, Changes<'_>)] = &[
        ("as it was made", &[]),
        (
            "the sectors of a small volume in the field of sixteen bits",
            &[(19, &u16::to_le_bytes(few)), (32, &[0; 4])],
        ),
        ("fewer clusters than FAT32 has", &[(32, &u32::to_le_bytes(few.into()))]),
        ("hints of free clusters that are damaged", &[(512, &[0xff; 512])]),
        ("no mark at the end of the first sector", &[(510, &[0, 0])]),
        ("no jump at its beginning", &[(0, &[0; 3])]),
        ("a version", &[(42, &[1, 1])]),
        ("another medium", &[(21, &[0xf0])]),
        ("more sectors than there are", &[(32, &u32::to_le_bytes(sectors + 9))]),
    ];
    for (what, changes) in changes {
        let mut volume = original.clone();
        changes.iter().for_each(|(offset, bytes)| put(&mut volume, *offset, bytes));
        assert_eq!(files(&mut volume).unwrap(), expected, "{what}");
    }
}

#[test]
fn a21_clusters_and_sectors_of_every_size_are_read() {
    let content: Vec<u8> = (0..300_000_u32).map(|number| (number % 251) as u8).collect();
    for sector_size in [512, 1024, 2048, 4096] {
        for sectors in [1, 2, 8, 16] {
            let cluster = u32::from(sector_size) * sectors;
            let options = FormatVolumeOptions::new().bytes_per_sector(sector_size).bytes_per_cluster(cluster);
            let mut volume = volume(24 << 20, options, &[("b/one", &content), ("B2.BIN", &[])]);
            let expected = [("b/one".to_owned(), content.clone()), ("B2.BIN".to_owned(), Vec::new())];
            assert_eq!(files(&mut volume).unwrap(), expected, "{sector_size} {sectors}");
            assert_eq!(Fat::open(&mut volume).unwrap().sector_size(), u32::from(sector_size));
        }
    }
}

#[test]
fn a21_names_are_those_that_linux_shows() {
    let mut volume = volume(1 << 20, FormatVolumeOptions::new(), &[("ONE.EFI", b"1")]);
    let entry = find(&volume, b"ONE     EFI");
    put(&mut volume, entry - 32, &[DELETED]);
    for (name, flags, expected) in [
        (b"ONE     EFI", 0, "ONE.EFI"),
        (b"ONE     EFI", 0x08, "one.EFI"),
        (b"ONE     EFI", 0x10, "ONE.efi"),
        (b"ONE     EFI", 0x18, "one.efi"),
        (b"\x05NE        ", 0, "σNE"),
        (b"\x80\x81      EFI", 0, "Çü.EFI"),
        (b"\x80\x9a      EFI", 0x08, "çü.EFI"),
        (b"A B     C  ", 0, "A B.C"),
    ] {
        put(&mut volume, entry, name);
        put(&mut volume, entry + 12, &[flags]);
        assert_eq!(files(&mut volume).unwrap(), [(expected.to_owned(), b"1".to_vec())], "{name:?} {flags}");
    }
}

#[test]
fn a21_a_long_name_that_belongs_to_no_short_one_is_left_out() {
    let original = volume(1 << 20, FormatVolumeOptions::new(), &[("a long name of two parts", b"1")]);
    let short = find(&original, b"ALONGN~1   ");
    let long = original.get_ref()[short - 64..short].to_vec();
    assert_eq!(files(&mut original.clone()).unwrap()[0].0, "a long name of two parts");
    let missing = [&[DELETED], &long[1..]].concat();
    let swapped = [&long[32..], &long[..32]].concat();
    let wrong = [&long[..13], &[!long[13]], &long[14..45], &[!long[45]], &long[46..]].concat();
    for parts in [missing, swapped, wrong] {
        let mut volume = original.clone();
        put(&mut volume, short - 64, &parts);
        assert_eq!(files(&mut volume).unwrap()[0].0, "ALONGN~1", "{parts:?}");
    }
}

#[test]
fn a21_labels_and_identifiers_are_read_from_either_place() {
    let options = || FormatVolumeOptions::new().volume_id(0x1234_abcd);
    let seen = |volume: &mut Volume| {
        let mut fat = Fat::open(volume).unwrap();
        (fat.label().unwrap(), fat.identifier())
    };
    let mut labelled = volume(1 << 20, options().volume_label(*b"ESP        "), &[("a", b"1")]);
    assert_eq!(seen(&mut labelled), (Some(*b"ESP        "), 0x1234_abcd));
    put(&mut labelled, 43, b"OTHER      ");
    assert_eq!(seen(&mut labelled).0, Some(*b"ESP        "), "the root folder goes first");
    assert_eq!(files(&mut labelled).unwrap().len(), 1, "a label is no file");
    let mut plain = volume(1 << 20, options(), &[]);
    assert_eq!(seen(&mut plain).0, None);
    put(&mut plain, 43, b"OTHER      ");
    assert_eq!(seen(&mut plain).0, Some(*b"OTHER      "));
    put(&mut plain, 38, &[0x28]);
    assert_eq!(seen(&mut plain), (None, 0x1234_abcd));
    put(&mut plain, 38, &[0]);
    assert_eq!(seen(&mut plain), (None, 0));
}

#[test]
fn a21_one_damaged_folder_takes_no_other_with_it() {
    let content = [("bad/a", &b"1"[..]), ("good/b", b"2"), ("last", b"3")];
    let mut volume = volume(1 << 20, FormatVolumeOptions::new(), &content);
    let entry = find(&volume, b"BAD        ");
    put(&mut volume, entry + 26, &[0xf0, 0x7f]);
    let mut fat = Fat::open(&mut volume).unwrap();
    let mut faults = Vec::new();
    let entries = fat.entries(16, &mut |path, error| {
        faults.push(format!("{path}: {error}"));
        Ok(())
    });
    let paths: Vec<_> = entries.unwrap().into_iter().map(|entry| entry.path).collect();
    assert_eq!(paths, ["bad", "good", "good/b", "last"]);
    assert_eq!(faults, ["bad: a chain of clusters leads out of it"]);
    assert!(fat.entries(16, &mut |_, error| Err(error)).is_err());
}

#[test]
fn a21_a_file_that_is_shorter_than_its_entry_says_is_an_error() {
    let mut volume = volume(1 << 20, FormatVolumeOptions::new(), &[("A", &[1; 600])]);
    let entry = find(&volume, b"A          ");
    put(&mut volume, entry + 28, &9_000_u32.to_le_bytes());
    assert!(files(&mut volume).unwrap_err().to_string().contains("shorter than its entry says"));
    put(&mut volume, entry + 26, &[0, 0]);
    assert!(files(&mut volume).is_err(), "a file without a chain has no bytes");
}

#[test]
fn x08_folders_that_hold_themselves_come_to_an_end() {
    let mut volume = volume(1 << 20, FormatVolumeOptions::new(), &[("in/deep/a", b"1")]);
    let (inner, deep) = (find(&volume, b"IN         "), find(&volume, b"DEEP       "));
    let own = volume.get_ref()[inner + 26..inner + 28].to_vec();
    put(&mut volume, deep + 26, &own);
    let mut fat = Fat::open(&mut volume).unwrap();
    let entries = fat.entries(5, &mut |_, error| Err(error)).unwrap();
    assert_eq!(entries.last().unwrap().path, "in/deep/deep/deep/deep/deep");
}

#[test]
fn what_is_no_volume_is_refused() {
    let original = volume(1 << 20, FormatVolumeOptions::new(), &[]);
    let changes: Changes<'_> = &[
        (11, &[0, 0]),
        (11, &[0, 0x20]),
        (11, &[1, 2]),
        (13, &[0]),
        (13, &[3]),
        (14, &[0, 0]),
        (16, &[0]),
        (21, &[0x55]),
        (19, &[4, 0]),
        (22, &[0xff, 0xff]),
    ];
    for (offset, bytes) in changes {
        let mut volume = original.clone();
        put(&mut volume, *offset, bytes);
        let error = Fat::open(&mut volume).unwrap_err().to_string();
        assert!(error.starts_with("it is no FAT file system that Linux reads"), "{error}");
    }
    assert!(Fat::open(Cursor::new(vec![0; 100])).is_err());
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    /// What another implementation writes is read, whatever it is called and however large it is.
    #[test]
    fn whatever_is_written_is_read(
        contents in proptest::collection::btree_map("[a-zA-Z0-9 äß_.-]{0,40}[a-z]", 0..40_000_usize, 0..12),
        kind in prop_oneof![Just(64 << 10), Just(8 << 20), Just(40 << 20)],
    ) {
        let mut written = std::collections::BTreeMap::new();
        for (name, length) in contents {
            // Names differ in more than their case; a name begins with no blank.
            written.insert(name.trim_start_matches([' ', '.']).to_lowercase(), length.min(kind / 32));
        }
        let contents: Vec<(String, Vec<u8>)> =
            written.into_iter().map(|(name, length)| (format!("f/{name}"), vec![length as u8; length])).collect();
        let given: Vec<_> = contents.iter().map(|(name, content)| (name.as_str(), &content[..])).collect();
        let mut volume = volume(kind, FormatVolumeOptions::new(), &given);
        prop_assert_eq!(files(&mut volume).unwrap(), contents);
    }

    #[test]
    fn no_volume_is_fatal(bytes in proptest::collection::vec((0..4096_usize, any::<u8>()), 0..60)) {
        let mut volume = volume(64 << 10, FormatVolumeOptions::new(), &[("EFI/BOOT/a long name.efi", &[7; 3000])]);
        bytes.into_iter().for_each(|(offset, byte)| put(&mut volume, offset, &[byte]));
        let _ = files(&mut volume);
        let _ = Fat::open(&mut volume).and_then(|mut fat| fat.label());
    }
}
