use super::*;
use crate::io::MemoryDisk;
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
