//! Signatures of file systems, arrays and volumes, told by libblkid.
//!
//! The `blkid` crate makes the calls. What it leaves to its callers is done here: the descriptor stays open for as
//! long as it is read, numbers fit, and a value that is missing or no text is none.

use blkid::prober::{ProbeState, Prober};
use blkid::{BlkIdError, SuperblocksFlags};
use std::fs::File;
use std::io;
use std::os::fd::AsRawFd;

/// A signature that was found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Signature {
    /// libblkid's name of the kind, such as `ext4`, `vfat` or `linux_raid_member`.
    pub kind: String,
    /// Label of the file system. A label that is no UTF-8 is none: no system looks for it.
    pub label: Option<String>,
    /// Its identity, in the form `/etc/fstab` knows.
    pub uuid: Option<String>,
    /// Where the bytes lie by which it is known, counted from the beginning of the range that was examined.
    pub mark: u64,
}

/// Signatures looked at in one volume; more are junk.
const MAX_SIGNATURES: usize = 32;

/// Every signature in `size` bytes from `offset` of `file`, a block device or a regular file that was
/// not opened for direct access.
///
/// # Errors
///
/// A range that is not in the file, or whatever reading brings.
pub fn signatures(file: &File, offset: u64, size: u64) -> io::Result<Vec<Signature>> {
    let number = |value: u64| i64::try_from(value).map_err(io::Error::other);
    let (offset, size) = (number(offset)?, number(size)?);
    let wanted =
        SuperblocksFlags::LABEL | SuperblocksFlags::UUID | SuperblocksFlags::TYPE | SuperblocksFlags::MAGIC;
    let mut prober = Prober::new().map_err(into_io)?;
    // The errors of these say nothing: some are none of the system's.
    prober
        .set_device(file.as_raw_fd(), offset, Some(size))
        .and_then(|()| prober.enable_superblocks(true))
        .and_then(|()| prober.set_superblocks_flags(wanted))
        .map_err(|_| io::Error::other("libblkid cannot look at this device or range"))?;
    let mut found = Vec::new();
    while found.len() < MAX_SIGNATURES && prober.do_probe().map_err(into_io)? == ProbeState::Success {
        let value = |name| prober.lookup_value(name).ok().filter(|value| !value.is_empty());
        // Some signatures have no kind: they are hints at others.
        if let Some(kind) = value("TYPE") {
            let mark = value("SBMAGIC_OFFSET").and_then(|mark| mark.parse().ok()).unwrap_or_default();
            found.push(Signature { kind, label: value("LABEL"), uuid: value("UUID"), mark });
        }
    }
    Ok(found)
}

fn into_io(error: BlkIdError) -> io::Error {
    match error {
        BlkIdError::Io(error) => error,
        other => io::Error::other(other),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::FileExt;

    const START: u64 = 1 << 20;
    const SIZE: u64 = 1 << 20;

    /// A file of four MiB with a swap area of this label in the second one.
    fn with_swap(label: &[u8]) -> File {
        let file = tempfile::tempfile().unwrap();
        file.set_len(4 * SIZE).unwrap();
        let mut page = [0; 4096];
        page[4086..].copy_from_slice(b"SWAPSPACE2");
        page[1024] = 1;
        page[1028..1032].copy_from_slice(&255_u32.to_le_bytes());
        page[1036..1052].copy_from_slice(&[0x11; 16]);
        page[1052..1052 + label.len()].copy_from_slice(label);
        file.write_all_at(&page, START).unwrap();
        file
    }

    #[test]
    fn a_swap_area_is_told_within_its_range_and_nothing_elsewhere() {
        let file = with_swap(b"swap1");
        let expected = Signature {
            kind: "swap".to_owned(),
            label: Some("swap1".to_owned()),
            uuid: Some("11111111-1111-1111-1111-111111111111".to_owned()),
            mark: 4086,
        };
        assert_eq!(signatures(&file, START, SIZE).unwrap(), [expected]);
        assert_eq!(signatures(&file, 0, 4 * SIZE).unwrap(), []);
        assert!(signatures(&file, 8 * SIZE, SIZE).is_err());
        assert!(signatures(&file, u64::MAX, SIZE).is_err());
        assert!(signatures(&file, 0, u64::MAX).is_err());
    }

    #[test]
    fn a_label_that_is_no_text_hides_nothing_else() {
        let file = with_swap(b"caf\xe9");
        let mut prober = Prober::new().unwrap();
        prober.set_device(file.as_raw_fd(), START as i64, Some(SIZE as i64)).unwrap();
        assert_eq!(prober.do_probe().unwrap(), ProbeState::Success);
        assert!(prober.get_values_map().is_err(), "the crate gives no value at all then");
        let found = signatures(&file, START, SIZE).unwrap();
        assert_eq!((found[0].kind.as_str(), &found[0].label), ("swap", &None));
        assert!(found[0].uuid.is_some());
    }
}
