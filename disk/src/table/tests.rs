mod crates;

use super::*;
use crate::io::MemoryDisk;
use proptest::prelude::*;

const MIB: u64 = 1 << 20;
const DISK: u64 = 96 * MIB;
const SECTORS: [u32; 2] = [512, 4096];

/// Partitions of a new GPT: number, start and size.
pub fn new_gpt(places: &[(u32, u64, u64)]) -> Vec<NewPartition> {
    let kind = |number: u32| PartitionKind::Gpt {
        type_guid: if number == 1 { types::gpt::ESP } else { types::gpt::BIOS_BOOT },
        guid: Uuid::from_u128(u128::from(number) << 64 | 5),
    };
    new_partitions(places, kind)
}

/// The same for an MBR.
pub fn new_mbr(places: &[(u32, u64, u64)]) -> Vec<NewPartition> {
    let kind = |number: u32| PartitionKind::Mbr { type_id: 0x70 + number as u8, disk_identifier: 0 };
    new_partitions(places, kind)
}

fn new_partitions(places: &[(u32, u64, u64)], kind: impl Fn(u32) -> PartitionKind) -> Vec<NewPartition> {
    let new = |(number, start, size): &(u32, u64, u64)| NewPartition {
        number: *number,
        start: *start,
        size: *size,
        kind: kind(*number),
        is_booted: *number == 2,
        name: format!("part {number}"),
    };
    places.iter().map(new).collect()
}

/// Writes a new GPT to a disk.
pub fn gpt_image(disk: &MemoryDisk, partitions: &[NewPartition]) {
    PartitionTable::create(disk, TableKind::Gpt, partitions).unwrap();
}

fn places(table: &PartitionTable) -> Vec<(u32, u64, u64)> {
    table.partitions().iter().map(|one| (one.number, one.start, one.size)).collect()
}

/// The disk as another reader of tables sees it, which wants both copies to be valid.
fn opinion(disk: &MemoryDisk) -> ::gpt::GptDisk<DiskView<'_>> {
    let sectors = ::gpt::disk::LogicalBlockSize::try_from(u64::from(disk.sector_size())).unwrap();
    let config = ::gpt::GptConfig::new().logical_block_size(sectors).only_valid_headers(true);
    config.open_from_device(DiskView::whole(disk)).unwrap()
}

/// Moves the entry of one partition of a GPT to the place of another number, so that there are gaps.
fn renumber(disk: &MemoryDisk, from: u32, to: u32) {
    let sector = disk.sector_size() as u64;
    let mut entries = disk.content(2 * sector, 128 * 128);
    let (from, to) = ((from as usize - 1) * 128, (to as usize - 1) * 128);
    entries.copy_within(from..from + 128, to);
    entries[from..from + 128].fill(0);
    disk.put(2 * sector, &entries);
    let mut header = disk.content(sector, 92);
    header[88..92].copy_from_slice(&crc32(&entries).to_le_bytes());
    seal(disk, sector, &mut header);
}

fn seal(disk: &MemoryDisk, offset: u64, header: &mut [u8]) {
    header[16..20].fill(0);
    let crc = crc32(&header[..92]);
    header[16..20].copy_from_slice(&crc.to_le_bytes());
    disk.put(offset, header);
}

pub fn crc32(bytes: &[u8]) -> u32 {
    let mut crc = flate2::Crc::new();
    crc.update(bytes);
    crc.sum()
}

#[test]
fn f18_partitions_are_named_after_their_disk() {
    for (disk, expected) in [
        ("/dev/sda", "/dev/sda3"),
        ("/dev/nvme0n1", "/dev/nvme0n1p3"),
        ("/dev/md127", "/dev/md127p3"),
        ("/dev/vdb", "/dev/vdb3"),
    ] {
        assert_eq!(partition_path(Path::new(disk), 3), Path::new(expected));
    }
}

#[test]
fn a_new_gpt_is_one_for_every_reader_on_sectors_of_any_size() {
    for sector_size in SECTORS {
        let disk = MemoryDisk::ones(DISK, sector_size);
        crate::wipe::wipe_ends(&disk).unwrap();
        let wanted = [(1, MIB, 8 * MIB), (2, 9 * MIB, 80 * MIB)];
        let table = PartitionTable::create(&disk, TableKind::Gpt, &new_gpt(&wanted)).unwrap();
        assert_eq!((table.name(), places(&table)), ("gpt", wanted.to_vec()));
        assert_eq!(table.esp().unwrap().number, 1);
        let seen = opinion(&disk);
        assert_eq!(seen.partitions()[&2].name, "part 2");
        let last = DISK / u64::from(sector_size) - 1;
        assert_eq!(seen.backup_header().unwrap().current_lba, last);
        let protective = disk.content(446, 66);
        assert_eq!(protective[..8], [0, 0, 2, 0, 0xee, 0xff, 0xff, 0xff]);
        assert_eq!(protective[8..16], [1_u32.to_le_bytes(), (last as u32).to_le_bytes()].concat());
        assert_eq!(protective[64..], [0x55, 0xaa]);
    }
}

#[test]
fn a_new_mbr_is_one_for_every_reader_on_sectors_of_any_size() {
    for sector_size in SECTORS {
        let disk = MemoryDisk::zeros(DISK, sector_size);
        let wanted = [(1, MIB, 8 * MIB), (2, 9 * MIB, 80 * MIB)];
        let table = PartitionTable::create(&disk, TableKind::Mbr, &new_mbr(&wanted)).unwrap();
        assert_eq!((table.name(), places(&table)), ("msdos", wanted.to_vec()));
        let seen = mbrman::MBR::read_from(&mut DiskView::whole(&disk), sector_size).unwrap();
        assert_eq!(seen[2].boot, mbrman::BOOT_ACTIVE);
        assert_eq!(seen[1].boot, mbrman::BOOT_INACTIVE);
        assert_eq!(u64::from(seen[2].starting_lba) * u64::from(sector_size), 9 * MIB);
        assert_ne!(seen.header.disk_signature, [0; 4]);
        assert_eq!(disk.content(446 + 1, 3), [0xfe, 0xff, 0xff], "only LBA reaches it");
    }
}

#[test]
fn d05_the_backup_moves_to_the_end_of_a_larger_disk_and_numbers_keep_their_gaps() {
    for sector_size in SECTORS {
        let image = MemoryDisk::zeros(16 * MIB, sector_size);
        gpt_image(&image, &new_gpt(&[(1, MIB, 2 * MIB), (2, 3 * MIB, 4 * MIB)]));
        renumber(&image, 1, 15);
        let disk = MemoryDisk::zeros(DISK, sector_size);
        disk.put(0, &image.content(0, 16 << 20));
        let table = finish_image(&disk).unwrap();
        assert_eq!(places(&table), [(2, 3 * MIB, 4 * MIB), (15, MIB, 2 * MIB)]);
        let last = DISK / u64::from(sector_size) - 1;
        let seen = opinion(&disk);
        assert_eq!(seen.primary_header().unwrap().backup_lba, last);
        assert_eq!(seen.backup_header().unwrap().current_lba, last);
        assert_eq!(seen.partitions()[&15].name, "part 1");
    }
}

#[test]
fn d12_d15_one_partition_is_added_and_nothing_else_changes() {
    for (sector_size, kind) in
        SECTORS.into_iter().flat_map(|size| [(size, TableKind::Gpt), (size, TableKind::Mbr)])
    {
        let disk = MemoryDisk::zeros(DISK, sector_size);
        let there = [(1, MIB, 2 * MIB), (2, 3 * MIB, 4 * MIB)];
        let new = if kind == TableKind::Gpt { new_gpt(&there) } else { new_mbr(&there) };
        let table = PartitionTable::create(&disk, kind, &new).unwrap();
        disk.put(0, b"boot code that a BIOS runs");
        if kind == TableKind::Gpt {
            renumber(&disk, 1, 15);
        }
        let table = PartitionTable::read(&disk).unwrap_or(table);
        let (before, first) = (table.partitions().to_vec(), disk.content(0, 512));
        let added = table.add_at_end(&disk, 64 * MIB).unwrap();
        assert_eq!(added.number, if kind == TableKind::Gpt { 1 } else { 3 });
        let after = PartitionTable::read(&disk).unwrap();
        assert!(before.iter().chain([&added]).all(|one| after.partitions().contains(one)));
        let slot = 446 + 16 * (added.number as usize - 1)..446 + 16 * added.number as usize;
        let is_same = |place: &usize| kind == TableKind::Mbr && slot.contains(place);
        let now = disk.content(0, 512);
        let changed: Vec<_> = (0..512).filter(|place| now[*place] != first[*place]).collect();
        assert!(changed.iter().all(is_same), "{changed:?} {sector_size}");
    }
}

#[test]
fn rearranging_keeps_what_is_to_stay_in_its_place() {
    for (sector_size, kind) in
        SECTORS.into_iter().flat_map(|size| [(size, TableKind::Gpt), (size, TableKind::Mbr)])
    {
        let new: fn(&[(u32, u64, u64)]) -> _ = if kind == TableKind::Gpt { new_gpt } else { new_mbr };
        let disk = MemoryDisk::zeros(DISK, sector_size);
        let all = [(1, MIB, 2 * MIB), (2, 3 * MIB, 4 * MIB), (3, 8 * MIB, MIB)];
        let table = PartitionTable::create(&disk, kind, &new(&all)).unwrap();
        let kept = [table.partitions()[2].clone()];
        let table = table.rearrange(&disk, &kept, &new(&[(1, 16 * MIB, MIB)])).unwrap();
        assert_eq!(places(&table), [(1, 16 * MIB, MIB), (3, 8 * MIB, MIB)]);
        assert!(table.partitions().contains(&kept[0]), "{:?}", table.partitions());
    }
}

#[test]
fn a_table_that_cannot_be_written_is_an_error_and_the_other_copy_stays() {
    for broken in [0, 512, 1024, DISK - 512] {
        let disk = MemoryDisk::zeros(DISK, 512).broken_at(broken);
        let new = new_gpt(&[(1, MIB, 2 * MIB)]);
        assert!(matches!(PartitionTable::create(&disk, TableKind::Gpt, &new), Err(Error::Device { .. })));
    }
}

#[test]
fn damaged_and_foreign_tables_are_refused_by_name() {
    for sector_size in SECTORS {
        let sector = u64::from(sector_size);
        let entries_end = 2 + 128 * 128 / sector;
        for (field, value, named) in [
            (12, 91_u64, "claims a size"),
            (12, sector + 1, "claims a size"),
            (84, 64, "entries of 64 bytes"),
            (84, 256, "entries of 256 bytes"),
            (80, 0, "claims 0 entries"),
            (80, 1025, "claims 1025 entries"),
            (80, u64::from(u32::MAX), "claims 4294967295 entries"),
            (72, 1, "ranges that overlap"),
            (72, u64::MAX, "ranges that overlap"),
            (40, entries_end - 1, "ranges that overlap"),
            (48, u64::MAX, "ranges that overlap"),
            (48, 4, "ranges that overlap"),
            (24, 2, "ranges that overlap"),
        ] {
            let disk = MemoryDisk::zeros(DISK, sector_size);
            gpt_image(&disk, &new_gpt(&[(1, MIB, 2 * MIB)]));
            let mut header = disk.content(sector, sector_size as usize);
            let length = if [24, 40, 48, 72].contains(&field) { 8 } else { 4 };
            header[field..field + length].copy_from_slice(&value.to_le_bytes()[..length]);
            seal(&disk, sector, &mut header);
            let error = PartitionTable::read(&disk).unwrap_err().to_string();
            assert!(error.contains(named), "{field} {value}: {error}");
        }
        for (offset, named) in
            [(sector + 16, "checksum of the GPT header"), (2 * sector, "checksum of the GPT entries")]
        {
            let disk = MemoryDisk::zeros(DISK, sector_size);
            gpt_image(&disk, &new_gpt(&[(1, MIB, 2 * MIB)]));
            disk.put(offset, &[0x5c]);
            let error = PartitionTable::read(&disk).unwrap_err().to_string();
            assert!(error.contains(named), "{error}");
        }
        let other = MemoryDisk::zeros(DISK, 4608 - sector_size);
        gpt_image(&other, &new_gpt(&[(1, MIB, 2 * MIB)]));
        let disk = MemoryDisk::zeros(DISK, sector_size);
        disk.put(0, &other.content(0, MIB as usize));
        let error = PartitionTable::read(&disk).unwrap_err().to_string();
        assert!(error.contains("was made for sectors of"), "{error}");
    }
}

proptest! {
    #[test]
    fn d13_what_reads_as_a_table_is_in_the_disk(
        change in proptest::collection::vec((0_usize..4096, any::<u8>()), 0..6),
        is_large in any::<bool>(),
    ) {
        let sector_size = SECTORS[usize::from(is_large)];
        let disk = MemoryDisk::zeros(DISK, sector_size);
        gpt_image(&disk, &new_gpt(&[(1, MIB, 2 * MIB), (2, 3 * MIB, 4 * MIB)]));
        let sector = u64::from(sector_size);
        change.iter().for_each(|(place, byte)| disk.put(2 * sector + *place as u64, &[*byte]));
        let mut header = disk.content(sector, 92);
        header[88..92].copy_from_slice(&crc32(&disk.content(2 * sector, 128 * 128)).to_le_bytes());
        seal(&disk, sector, &mut header);
        if let Ok(table) = PartitionTable::read(&disk) {
            prop_assert!(table.partitions().iter().all(|one| one.start + one.size <= DISK && one.size > 0));
        }
    }
}
