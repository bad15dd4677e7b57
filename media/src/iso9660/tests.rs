use super::*;

fn u32_at(image: &[u8], at: usize) -> usize {
    let both: [u8; 8] = image[at..at + 8].try_into().unwrap();
    let number = u32::from_le_bytes(both[..4].try_into().unwrap());
    assert_eq!(number.to_be_bytes(), both[4..], "both byte orders at {at}");
    number as usize
}

/// Reads the files below a directory's record by the standard's description.
fn read_tree(image: &[u8], record: usize, path: &str, found: &mut BTreeMap<String, Vec<u8>>) {
    let (start, length) = (u32_at(image, record + 2) * SECTOR, u32_at(image, record + 10));
    let mut at = start;
    let mut last = Vec::new();
    while at < start + length {
        let size = usize::from(image[at]);
        if size == 0 {
            at = (at + 1).next_multiple_of(SECTOR);
            continue;
        }
        let identifier = image[at + 33..at + 33 + usize::from(image[at + 32])].to_vec();
        if identifier.len() > 1 {
            assert!(last < identifier, "{identifier:?} after {last:?}");
            let name = String::from_utf8(identifier.clone()).unwrap();
            if image[at + 25] & 2 != 0 {
                read_tree(image, at, &format!("{path}{name}/"), found);
            } else {
                let data = u32_at(image, at + 2) * SECTOR;
                let content = image[data..data + u32_at(image, at + 10)].to_vec();
                found.insert(format!("{path}{name}"), content);
            }
            last = identifier;
        }
        at += size;
    }
}

/// All files of an image, by their names in the directories.
fn read(image: &[u8]) -> BTreeMap<String, Vec<u8>> {
    let mut found = BTreeMap::new();
    assert_eq!(&image[16 * SECTOR..][..7], b"\x01CD001\x01");
    read_tree(image, 16 * SECTOR + 156, "", &mut found);
    found
}

fn bytes(content: &Content) -> Vec<u8> {
    match content {
        Content::Here(bytes) => bytes.to_vec(),
        Content::Elsewhere(bytes) => vec![0; *bytes as usize],
    }
}

fn volume() -> Volume {
    let mut files = BTreeMap::from([
        (".disk/info".to_owned(), b"medium".to_vec().into()),
        ("boot/grub/grub.cfg".to_owned(), vec![b'g'; 5000].into()),
        ("efi.img".to_owned(), vec![b'e'; 4 * SECTOR].into()),
        ("isolinux/isolinux.bin".to_owned(), vec![b'i'; 3000].into()),
        ("empty".to_owned(), Vec::<u8>::new().into()),
    ]);
    // More than one sector of records.
    files.extend((0..60).map(|number| (format!("many/file-{number:02}.bin"), vec![number; 10].into())));
    Volume {
        label: "FARRIER",
        files,
        boot: vec![
            BootEntry { platform: Platform::Bios, path: "isolinux/isolinux.bin" },
            BootEntry { platform: Platform::Efi, path: "efi.img" },
        ],
    }
}

#[test]
fn files_are_read_back() {
    let volume = volume();
    let image = volume.write().to_vec();
    assert_eq!(image.len() % (1 << 20), 0);
    assert_eq!(&image[16 * SECTOR + 40..][..10], b"FARRIER   ");
    let expected: BTreeMap<_, _> = volume
        .files
        .iter()
        .map(|(path, content)| (format!("{};1", path.to_ascii_uppercase()), bytes(content)))
        .collect();
    assert_eq!(read(&image), expected);
}

#[test]
fn firmware_finds_what_to_start() {
    let volume = volume();
    let image = volume.write().to_vec();
    let record = &image[17 * SECTOR..];
    assert!(record.starts_with(b"\0CD001\x01EL TORITO SPECIFICATION\0"));
    let catalog = u32::from_le_bytes(record[0x47..0x4b].try_into().unwrap()) as usize * SECTOR;
    let entries: Vec<_> = image[catalog..catalog + 128].chunks(32).collect();
    let words = entries[0].chunks(2).map(|word| u16::from_le_bytes([word[0], word[1]]));
    assert_eq!(words.fold(0, u16::wrapping_add), 0);
    assert_eq!((entries[0][1], &entries[2][..3]), (0, &[0x91, 0xef, 1][..]));
    for (entry, path, count) in [(entries[1], "isolinux/isolinux.bin", 4), (entries[3], "efi.img", 16)] {
        let sector = u32::from_le_bytes(entry[8..12].try_into().unwrap());
        assert_eq!((entry[0], u16::from_le_bytes([entry[6], entry[7]])), (0x88, count), "{path}");
        assert_eq!(Some(sector), volume.sector_of(path));
        assert!(image[sector as usize * SECTOR..].starts_with(&bytes(&volume.files[path])), "{path}");
    }
}

#[test]
fn path_tables_name_every_directory_and_its_parent() {
    let image = volume().write().to_vec();
    let length = u32_at(&image, 16 * SECTOR + 132);
    let mut at = 19 * SECTOR;
    let mut names = Vec::new();
    while at < 19 * SECTOR + length {
        let size = usize::from(image[at]);
        let sector = u32::from_le_bytes(image[at + 2..at + 6].try_into().unwrap()) as usize;
        assert_eq!(u32_at(&image, sector * SECTOR + 2), sector, "a directory names itself first");
        let parent = u16::from_le_bytes([image[at + 6], image[at + 7]]);
        names.push((String::from_utf8(image[at + 8..at + 8 + size].to_vec()).unwrap(), parent));
        at += (8 + size).next_multiple_of(2);
    }
    let expected = [("\0", 1), (".DISK", 1), ("BOOT", 1), ("ISOLINUX", 1), ("MANY", 1), ("GRUB", 3)];
    assert_eq!(names, expected.map(|(name, parent)| (name.to_owned(), parent)));
}

#[test]
fn what_is_elsewhere_has_its_place() {
    let mut volume = volume();
    let whole = volume.write().to_vec();
    let kernel = volume.files.insert("boot/grub/grub.cfg".to_owned(), Content::Elsewhere(5000)).unwrap();
    let mut image = volume.write().to_vec();
    let place = volume.place_of("boot/grub/grub.cfg").unwrap() as usize;
    assert!(image[place..place + 5000].iter().all(|byte| *byte == 0));
    image[place..place + 5000].copy_from_slice(&bytes(&kernel));
    assert!(image == whole);
}
