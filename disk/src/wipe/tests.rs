use super::*;
use crate::io::MemoryDisk;
use crate::map::tests::put_entry;
use crate::table::PartitionTable;
use crate::table::tests::{gpt_image, new_gpt};

const MIB: u64 = 1 << 20;
const DISK: u64 = 96 * MIB;

/// Where a partition has what makes it something, and what is data.
const MARKS: [(u64, bool); 3] = [(1080, true), (4 * MIB, true), (16 * MIB, false)];

#[test]
fn d20_d21_signatures_inside_partitions_go_before_the_table_on_sectors_of_any_size() {
    for sector_size in [512, 4096] {
        let disk = MemoryDisk::zeros(DISK, sector_size);
        gpt_image(&disk, &new_gpt(&[(1, MIB, 32 * MIB), (2, 40 * MIB, 32 * MIB)]));
        let partitions = PartitionTable::read(&disk).unwrap().partitions().to_vec();
        for partition in &partitions {
            MARKS.iter().for_each(|(offset, _)| disk.put(partition.start + offset, b"signature"));
        }
        erase_metadata(&disk).unwrap();
        assert_eq!(PartitionTable::read(&disk).unwrap().name(), "none");
        for (partition, (offset, is_gone)) in partitions.iter().flat_map(|one| MARKS.map(|mark| (one, mark)))
        {
            let expected = if is_gone { [0; 9] } else { *b"signature" };
            assert_eq!(disk.content(partition.start + offset, 9), expected, "{sector_size} {offset}");
        }
    }
}

#[test]
fn p08_a_table_goes_first_and_a_sector_that_cannot_be_written_is_an_error() {
    let middle = DISK / 2;
    for (broken, is_table_gone, is_wiped) in
        [(0, false, false), (MIB / 2, true, false), (DISK - 4096, true, false), (middle, true, true)]
    {
        let disk = MemoryDisk::ones(DISK, 4096).broken_at(broken);
        assert_eq!(wipe_ends(&disk).is_ok(), is_wiped, "{broken}");
        let is_zero = |offset| disk.content(offset, 4096).iter().all(|byte| *byte == 0);
        assert_eq!(is_zero(0), is_table_gone, "{broken}");
        assert!(!is_zero(MIB) && !is_zero(middle) && !is_zero(DISK - MIB - 4096), "{broken}: too much");
    }
}

#[test]
fn a_damaged_table_and_a_disk_smaller_than_its_signatures_can_be_erased() {
    for sector_size in [512, 4096] {
        let disk = MemoryDisk::ones(MIB / 2, sector_size);
        disk.put(sector_size.into(), b"EFI PART, but not really");
        erase_metadata(&disk).unwrap();
        assert!(disk.content(0, MIB as usize / 2).iter().all(|byte| *byte == 0));
    }
}

const GIB: u64 = 1 << 30;
const LABEL: &[u8] = b"LABELONE\0\0\0\0\0\0\0\0\0\0\0\0 \0\0\0LVM2 001";

/// A swap area, which libblkid recognises wherever a page ends with it.
fn swap() -> Vec<u8> {
    let mut page = vec![0; 4096];
    page[4086..].copy_from_slice(b"SWAPSPACE2");
    (page[1024], page[1028]) = (1, 255);
    page
}

/// What is done to the table of a disk after content came into its partitions.
type Damage = fn(&MemoryDisk);

#[test]
fn a02_signatures_go_behind_every_table_that_is_stale_damaged_or_half_gone() {
    let damages: [Damage; 8] = [
        |_| (),
        |disk| disk.put(0, &[0; MIB as usize]),
        |disk| disk.put(0, &[0; 512]),
        |disk| disk.put(u64::from(disk.sector_size()) + 20, &[0x5c; 4]),
        |disk| disk.put(2 * u64::from(disk.sector_size()) + 56, &[0x5c; 4]),
        |disk| disk.put(DISK - u64::from(disk.sector_size()), &[0; 512]),
        // As wipefs leaves it.
        |disk| {
            let sector = u64::from(disk.sector_size());
            [510, sector, DISK - sector].iter().for_each(|place| disk.put(*place, &[0; 8]));
        },
        // A table of a later life, with a partition that overlaps none of the old ones.
        |disk| {
            let sectors = |bytes: u64| (bytes / u64::from(disk.sector_size())) as u32;
            disk.put(446, &[0; 64]);
            put_entry(disk, 0, (0, 0x83, sectors(80 * MIB), sectors(8 * MIB)));
            disk.put(80 * MIB, &swap());
        },
    ];
    for (sector_size, made_for) in [(512, 512), (4096, 4096), (512, 4096), (4096, 512)] {
        for (number, damage) in damages.iter().enumerate() {
            let old = MemoryDisk::zeros(DISK, made_for);
            gpt_image(&old, &new_gpt(&[(1, MIB, 16 * MIB), (2, 32 * MIB, 32 * MIB)]));
            old.put(32 * MIB + 512, LABEL);
            old.put(17 * MIB - 4096, &swap());
            damage(&old);
            let disk = MemoryDisk::zeros(DISK, sector_size);
            disk.put(0, &old.content(0, DISK as usize));
            disk.put(52 * MIB, b"data of a tenant");
            erase_metadata(&disk).unwrap();
            let left = |offset, length| disk.content(offset, length).iter().any(|byte| *byte != 0);
            let places = [32 * MIB, 17 * MIB - 4096, 80 * MIB];
            assert!(!places.into_iter().any(|place| left(place, 4096)), "{sector_size} {made_for} {number}");
            assert!(left(52 * MIB, 16), "what is no metadata is for erase_devices");
            assert!(Tables::read(&disk).unwrap().volumes().is_empty());
        }
    }
}

#[test]
fn a02_signatures_go_behind_the_logical_partitions_of_a_chain_that_breaks_off() {
    for sector_size in [512, 4096] {
        let disk = MemoryDisk::zeros(DISK, sector_size);
        let mib = (MIB / u64::from(sector_size)) as u32;
        put_entry(&disk, 0, (1, 0x05, 8 * mib, 80 * mib));
        put_entry(&disk, u64::from(8 * mib), (0, 0x83, mib, 8 * mib));
        put_entry(&disk, u64::from(8 * mib), (1, 0x05, 20 * mib, 30 * mib));
        put_entry(&disk, u64::from(28 * mib), (0, 0x83, mib, 16 * mib));
        put_entry(&disk, u64::from(28 * mib), (1, 0x05, 40 * mib, 30 * mib));
        let places = [9 * MIB, 29 * MIB, 45 * MIB - 4096];
        places.iter().for_each(|place| disk.put(*place, &swap()));
        assert!(PartitionTable::read(&disk).is_err(), "it is broken");
        erase_metadata(&disk).unwrap();
        for place in places.into_iter().chain([8 * MIB, 28 * MIB]) {
            assert!(disk.content(place, 4096).iter().all(|byte| *byte == 0), "{sector_size} {place}");
        }
    }
}

#[test]
fn a02_a_table_outlives_whatever_interrupts_the_removal_of_what_it_leads_to() {
    for broken in [MIB, 32 * MIB, 64 * MIB - 512] {
        let disk = MemoryDisk::zeros(DISK, 512);
        gpt_image(&disk, &new_gpt(&[(1, MIB, 16 * MIB), (2, 32 * MIB, 32 * MIB)]));
        let disk = disk.broken_at(broken);
        assert!(matches!(erase_metadata(&disk), Err(Error::Device { .. })), "{broken}");
        let named = PartitionTable::read(&disk).unwrap().partitions().len();
        assert_eq!(named, 2, "the next attempt finds the rest");
    }
}

#[test]
fn a03_labels_in_the_middle_go_from_disks_and_partitions() {
    const LARGE: u64 = 2200 * GIB;
    let label = b"bluestore block device\n70f1a0b4-9b53-4c53-b5f2-9a3b9ba6e8f9\n";
    for partitions in [&[][..], &[(1, MIB, 1050 * GIB), (2, 1060 * GIB, 1100 * GIB)]] {
        let disk = MemoryDisk::zeros(LARGE, 4096);
        if !partitions.is_empty() {
            gpt_image(&disk, &new_gpt(partitions));
        }
        let starts: Vec<_> =
            if partitions.is_empty() { vec![0] } else { partitions.iter().map(|one| one.1).collect() };
        let blue_store = [0, GIB, 10 * GIB, 100 * GIB, 1000 * GIB];
        let btrfs = [64 << 10, 64 * MIB, 256 * GIB];
        for start in &starts {
            blue_store.iter().for_each(|offset| disk.put(start + offset, label));
            btrfs.iter().for_each(|offset| disk.put(start + offset + 64, b"_BHRfS_M"));
            disk.put(start + 50 * GIB, label);
        }
        erase_metadata(&disk).unwrap();
        for start in starts {
            for offset in blue_store.into_iter().chain(btrfs.map(|offset| offset + 64)) {
                assert_eq!(disk.content(start + offset, 8), [0; 8], "{start} {offset}");
            }
            assert_eq!(disk.content(start + 50 * GIB, 9), *b"bluestore", "data that looks like a label");
        }
    }
}

#[test]
fn what_is_still_recognised_goes_by_its_mark() {
    let disk = MemoryDisk::zeros(DISK, 4096);
    disk.put(8 * MIB, &swap());
    disk.put(40 * MIB + 512, LABEL);
    let volumes = [Partition::at(8 * MIB, 8 * MIB), Partition::at(40 * MIB, 8 * MIB)];
    assert!(!map::contents(&disk, &volumes).unwrap().is_empty());
    require_unrecognised(&disk, &volumes).unwrap();
    assert_eq!(map::contents(&disk, &volumes).unwrap(), []);
}

#[test]
fn g06_no_byte_of_what_is_kept_is_changed_whatever_overlaps_it() {
    let disk = MemoryDisk::ones(DISK, 512);
    let at = |start: u64, size: u64| Partition::at(start * MIB, size * MIB);
    let kept = [at(20, 10)];
    // Before, around, in, over the end of, and behind it.
    let volumes = [at(8, 12), at(10, 40), at(22, 2), at(28, 12), at(30, 20)];
    erase_volumes(&disk, &volumes, &kept).unwrap();
    let is_zero = |mib: u64| disk.content(mib * MIB, MIB as usize).iter().all(|byte| *byte == 0);
    let zeroed: Vec<_> = (0..DISK / MIB).filter(|mib| is_zero(*mib)).collect();
    let expected: Vec<_> = (8..13).chain(15..20).chain(30..35).chain(45..50).collect();
    assert_eq!(zeroed, expected);
}

#[test]
fn a20_what_old_partitions_were_known_by_goes_before_an_image_is_written() {
    for (number, damage) in [(|_| ()) as Damage, |disk| disk.put(0, &[0; 512])].into_iter().enumerate() {
        let disk = MemoryDisk::zeros(DISK, 512);
        gpt_image(&disk, &new_gpt(&[(1, MIB, 16 * MIB), (2, 32 * MIB, 32 * MIB)]));
        disk.put(32 * MIB, b"LUKS\xba\xbe");
        disk.put(64 * MIB - 4096, &swap());
        damage(&disk);
        wipe_for_image(&disk).unwrap();
        for place in [0, 32 * MIB, 64 * MIB - 4096, DISK - MIB] {
            assert!(disk.content(place, 4096).iter().all(|byte| *byte == 0), "{number} {place}");
        }
    }
    // The table goes first, and what is not needed stops nothing.
    let disk = MemoryDisk::zeros(DISK, 512);
    gpt_image(&disk, &new_gpt(&[(1, 32 * MIB, 32 * MIB)]));
    let disk = disk.broken_at(33 * MIB);
    wipe_for_image(&disk).unwrap();
    assert_eq!(PartitionTable::read(&disk).unwrap().name(), "none");
}

/// A superblock of XFS with this many groups, each of these many blocks of 4 KiB.
fn xfs(groups: u32, blocks: u32) -> Vec<u8> {
    let mut superblock = vec![0; 512];
    superblock[..4].copy_from_slice(b"XFSB");
    for (at, number) in [(4, 4096_u32), (84, blocks), (88, groups)] {
        superblock[at..at + 4].copy_from_slice(&number.to_be_bytes());
    }
    superblock
}

#[test]
fn a03_copies_of_a_superblock_of_xfs_go_with_the_first_one() {
    let groups = [24 * MIB, 48 * MIB, 72 * MIB];
    let disk = |volume: u64, blocks| {
        let disk = MemoryDisk::zeros(4 * DISK, 512);
        put_entry(&disk, 0, (0, 0x83, (4 * MIB / 512) as u32, (300 * MIB / 512) as u32));
        for place in [0].into_iter().chain(groups) {
            disk.put(volume + place, &xfs(4, blocks));
        }
        disk
    };
    let blocks = (24 * MIB / 4096) as u32;
    let is_gone = |disk: &MemoryDisk, at| disk.content(at, 4) == [0; 4];
    for (volume, step) in [
        (0, erase_metadata as fn(&dyn Sectors) -> Result<(), Error>),
        (4 * MIB, erase_metadata),
        (4 * MIB, wipe_for_image),
    ] {
        let disk = disk(volume, blocks);
        if volume == 0 {
            disk.put(446, &[0; 66]);
        }
        step(&disk).unwrap();
        assert!(groups.iter().all(|place| is_gone(&disk, volume + place)), "{volume}");
    }
    // A superblock that cannot be true costs no more than its place.
    for blocks in [0, 1, u32::MAX] {
        let disk = disk(4 * MIB, blocks);
        erase_metadata(&disk).unwrap();
        assert!(!is_gone(&disk, 76 * MIB), "{blocks}");
    }
}
