//! What is on the disks of a machine, seen from outside.

use std::fs::{self, File};
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::process::Command;

/// Signs of an earlier use: a partition in a table, swap space and a file system.
const MARKS: &[(u64, &[u8])] = &[
    (446, &[0, 0, 2, 0, 0x83, 0, 0, 0, 0, 8, 0, 0, 0, 8, 0, 0]),
    (510, &[0x55, 0xaa]),
    (1024, &[1, 0, 0, 0, 0xff, 1, 0, 0]),
    (4086, b"SWAPSPACE2"),
    (32768, b"\x01CD001\x01"),
];
/// What is in every sector of a disk that was in use.
const SECRET: &[u8; 32] = b"what an earlier user has written";

/// Writes the signs of an earlier use.
pub fn mark(disk: &Path) {
    for (offset, bytes) in MARKS {
        write(disk, *offset, bytes);
    }
    let found = signatures(disk);
    // A table in the same sectors as a file system does not count for them.
    assert!(["swap", "iso9660"].iter().all(|kind| found.contains(kind)), "{found}");
}

/// Fails if any sign of an earlier use is left.
pub fn assert_no_marks(disk: &Path) {
    for (offset, bytes) in MARKS {
        assert_ne!(read(disk, *offset, bytes.len()), *bytes, "{} at {offset}", disk.display());
    }
    let found = signatures(disk);
    assert!(found.is_empty(), "{}: {found}", disk.display());
}

/// What `wipefs` and `blkid` find.
fn signatures(disk: &Path) -> String {
    let said = |program: &str, option: &str| {
        let output = Command::new(program).arg(option).arg(disk).output().unwrap();
        String::from_utf8_lossy(&output.stdout).into_owned()
    };
    said("wipefs", "--noheadings") + &said("blkid", "--probe")
}

/// Makes a disk with something in every sector.
pub fn fill(disk: &Path, bytes: usize) {
    fs::write(disk, SECRET.repeat(bytes / SECRET.len())).unwrap();
}

/// Fails if anything of it is left in any sector.
pub fn assert_nothing_left(disk: &Path) {
    let content = fs::read(disk).unwrap();
    // Even a part of it is too much.
    let left = content.chunks(512).position(|sector| sector.windows(8).any(|part| part == &SECRET[..8]));
    assert_eq!(left, None, "{}: the first such sector", disk.display());
}

/// Fails unless the disk holds the image and, in its second partition, a config drive for `name`.
pub fn assert_deployed(disk: &Path, image: &[u8], name: &str) {
    // The first sector holds the table, to which the config drive's partition was added.
    assert!(read(disk, 512, image.len() - 512) == image[512..], "not the image");
    assert_eq!(read(disk, 440, 6 + 16), image[440..462], "not the image's table");
    let entry = read(disk, 462, 16);
    let number = |at: usize| u32::from_le_bytes(entry[at..at + 4].try_into().unwrap());
    let drive = read(disk, u64::from(number(8)) * 512, number(12) as usize * 512);
    assert_eq!(&drive[32769..32774], b"CD001", "the config drive is no ISO image");
    assert_eq!(&drive[32808..32816], b"config-2", "label of the config drive");
    // Python puts a space behind a colon.
    let is_there = |text: String| drive.windows(text.len()).any(|window| window == text.as_bytes());
    let texts = [format!(r#""name": "{name}""#), format!(r#""name":"{name}""#)];
    assert!(texts.into_iter().any(is_there), "no meta data of {name}");
}

/// Bytes of a disk.
pub fn read(disk: &Path, offset: u64, length: usize) -> Vec<u8> {
    let mut bytes = vec![0; length];
    File::open(disk).unwrap().read_exact_at(&mut bytes, offset).unwrap();
    bytes
}

/// Changes bytes of a disk.
pub fn write(disk: &Path, offset: u64, bytes: &[u8]) {
    File::options().write(true).open(disk).unwrap().write_all_at(bytes, offset).unwrap();
}
