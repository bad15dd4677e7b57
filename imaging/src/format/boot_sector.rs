//! The first sector of a disk with a partition table, and when it is safe (section 5.6).

pub(super) use farrier_disk::table::first_sector::is_signed;
use farrier_disk::table::first_sector::{FIRST_SECTOR, SECTORS, TYPE, entries};
use farrier_disk::table::types::mbr::PROTECTIVE;

/// Whether this is a disk with a table, and not a volume with a FAT file system.
pub(super) fn is_table(start: &[u8]) -> bool {
    is_signed(start) && !(start[0x10] == 2 && start[0x15] == 0xf8)
}

/// Refuses tables that could mean different things to different readers; the error is the reason.
pub(super) fn require_safe(start: &[u8]) -> Result<(), String> {
    let entries: Vec<_> = entries(start).collect();
    if let Some(flag) = entries.iter().map(|entry| entry[0]).find(|flag| ![0, 0x80].contains(flag)) {
        return Err(format!("its partition table has the boot flag {flag:#04x}"));
    }
    let used: Vec<_> = (0..4).filter(|number| entries[*number][TYPE] != 0).collect();
    if used.is_empty() {
        return Err("its partition table is empty".to_owned());
    }
    let Some(protective) = used.iter().find(|number| entries[**number][TYPE] == PROTECTIVE) else {
        return Ok(());
    };
    let entry = entries[*protective];
    let is_alone = used == [0];
    let is_at_its_place = entry[1..4] == [0, 2, 0] && entry[FIRST_SECTOR..SECTORS] == [1, 0, 0, 0];
    match is_alone && is_at_its_place {
        true => Ok(()),
        false => Err("its GPT has no proper protective table: a hybrid table is refused".to_owned()),
    }
}

/// Where the partitions of an MBR end, in sectors; nothing for anything else, a GPT included.
pub(super) fn partitions_end(start: &[u8]) -> Option<u64> {
    let number = |entry: &[u8], at: usize| {
        u64::from(u32::from_le_bytes([entry[at], entry[at + 1], entry[at + 2], entry[at + 3]]))
    };
    if !is_table(start) {
        return None;
    }
    let entries = entries(start).filter(|entry| entry[TYPE] != 0);
    let ends = entries.map(|entry| {
        (entry[TYPE] != PROTECTIVE).then(|| number(entry, FIRST_SECTOR) + number(entry, SECTORS))
    });
    ends.collect::<Option<Vec<_>>>()?.into_iter().max()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn s11_ambiguous_tables_are_refused() {
        let mut valid = vec![0; 512];
        valid[446..462].copy_from_slice(&[0, 0, 2, 0, 0xee, 0xff, 0xff, 0xff, 1, 0, 0, 0, 9, 0, 0, 0]);
        valid[510..].copy_from_slice(&[0x55, 0xaa]);
        assert!(is_table(&valid));
        assert_eq!(require_safe(&valid), Ok(()));
        for (at, value, reason) in [
            (446, 1, "boot flag 0x01"),
            (450, 0, "empty"),
            (448, 1, "hybrid"),
            (454, 2, "hybrid"),
            (466, 0x83, "hybrid"),
        ] {
            let mut sector = valid.clone();
            sector[at] = value;
            assert!(require_safe(&sector).unwrap_err().contains(reason), "{at}");
        }
        let mut mbr = valid.clone();
        (mbr[446], mbr[450]) = (0x80, 0x83);
        assert_eq!(require_safe(&mbr), Ok(()));
    }

    #[test]
    fn x23_the_end_of_an_mbr_is_that_of_its_last_partition() {
        let mut sector = vec![0; 512];
        sector[510..].copy_from_slice(&[0x55, 0xaa]);
        assert_eq!(partitions_end(&sector), None);
        for (entry, start, length) in [(0, 2048_u32, 6144_u32), (2, 8192, u32::MAX)] {
            let entry = &mut sector[446 + entry * 16..][..16];
            entry[4] = 0x83;
            entry[8..12].copy_from_slice(&start.to_le_bytes());
            entry[12..].copy_from_slice(&length.to_le_bytes());
            assert_eq!(partitions_end(&sector), Some(u64::from(start) + u64::from(length)));
        }
        sector[450] = PROTECTIVE;
        assert_eq!(partitions_end(&sector), None);
        assert_eq!(partitions_end(&[]), None);
    }

    #[test]
    fn a_fat_volume_is_no_table() {
        let mut volume = vec![0; 512];
        volume[510..].copy_from_slice(&[0x55, 0xaa]);
        (volume[0x10], volume[0x15]) = (2, 0xf8);
        assert!(!is_table(&volume));
        assert!(!is_table(&[0; 512]));
        assert!(!is_table(&[]));
    }
}
