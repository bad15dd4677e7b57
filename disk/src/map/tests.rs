use super::*;
use crate::io::MemoryDisk;
use crate::table::tests::{crc32, gpt_image, new_gpt, new_mbr};
use crate::table::{TableKind, finish_image, first_sector};
use proptest::prelude::*;

const MIB: u64 = 1 << 20;
const DISK: u64 = 96 * MIB;
const SECTORS: [u32; 2] = [512, 4096];

/// Puts an entry of an MBR into the first sector, or another one, and signs it: slot, type, first sector, sectors.
pub fn put_entry(disk: &MemoryDisk, sector: u64, entry: (usize, u8, u32, u32)) {
    let (slot, kind, start, sectors) = entry;
    let mut bytes = [0; 16];
    bytes[4] = kind;
    bytes[8..12].copy_from_slice(&start.to_le_bytes());
    bytes[12..].copy_from_slice(&sectors.to_le_bytes());
    let offset = sector * u64::from(disk.sector_size());
    disk.put(offset + (first_sector::ENTRIES + 16 * slot) as u64, &bytes);
    disk.put(offset + first_sector::SIGNATURE_OFFSET as u64, &first_sector::SIGNATURE);
}

/// A disk with a GPT of two partitions whose first sector has no entries.
fn unannounced(sector_size: u32) -> MemoryDisk {
    let disk = MemoryDisk::zeros(DISK, sector_size);
    gpt_image(&disk, &new_gpt(&[(1, MIB, 2 * MIB), (2, 40 * MIB, 48 * MIB)]));
    disk.put(0, &[0; 512]);
    disk
}

/// Writes the whole header again with a changed field and its checksum.
fn change_header(disk: &MemoryDisk, offset: u64, field: usize, value: &[u8]) {
    let mut header = disk.content(offset, 92);
    header[field..field + value.len()].copy_from_slice(value);
    header[16..20].fill(0);
    let crc = crc32(&header);
    header[16..20].copy_from_slice(&crc.to_le_bytes());
    disk.put(offset, &header);
}

fn places_of(partitions: &[Partition]) -> Vec<(u64, u64)> {
    let mut places: Vec<_> = partitions.iter().map(|one| (one.start, one.size)).collect();
    places.sort_unstable();
    places
}

#[test]
fn a01_a_gpt_is_the_table_only_where_the_first_sector_says_so() {
    for sector_size in SECTORS {
        let sectors = |bytes: u64| (bytes / u64::from(sector_size)) as u32;
        let (first, second) = ((0, 0xee, 1, u32::MAX), (1, 0x83, sectors(40 * MIB), sectors(48 * MIB)));
        let live = (0, 0x83, sectors(MIB), sectors(90 * MIB));
        for (entries, is_gpt_there, expected) in [
            (&[live][..], true, Ok("msdos")),
            (&[live], false, Ok("msdos")),
            (&[first], true, Ok("gpt")),
            (&[first, second], true, Ok("gpt")),
            (&[(3, 0xee, 1, 9), (0, 0x0c, sectors(MIB), sectors(2 * MIB))], true, Ok("gpt")),
            (&[first], false, Err("that is not there")),
            (&[(0, 0xee, 2, 9)], true, Err("does not begin at sector 1")),
            (&[], true, Err("no protective entry")),
            (&[], false, Ok("none")),
        ] {
            let disk =
                if is_gpt_there { unannounced(sector_size) } else { MemoryDisk::zeros(DISK, sector_size) };
            entries.iter().for_each(|entry| put_entry(&disk, 0, *entry));
            let found = PartitionTable::read(&disk);
            match (&found, expected) {
                (Ok(table), Ok(name)) => assert_eq!(table.name(), name, "{entries:?}"),
                (Err(error), Err(named)) => assert!(error.to_string().contains(named), "{error}"),
                _ => panic!("{found:?} of {entries:?} {is_gpt_there}"),
            }
        }
        // A signature makes the difference, too.
        let disk = unannounced(sector_size);
        put_entry(&disk, 0, live);
        disk.put(510, &[0, 0]);
        assert!(PartitionTable::read(&disk).is_err());
    }
}

#[test]
fn a01_a_stale_gpt_costs_the_live_partition_nothing_and_no_drive_lies_in_it() {
    for sector_size in SECTORS {
        let sectors = |bytes: u64| (bytes / u64::from(sector_size)) as u32;
        for live in [DISK - MIB, 16 * MIB] {
            let disk = unannounced(sector_size);
            put_entry(&disk, 0, (0, 0x83, sectors(MIB), sectors(live)));
            let before = disk.content(0, DISK as usize);
            let table = finish_image(&disk).unwrap();
            assert_eq!((table.name(), places_of(table.partitions())), ("msdos", vec![(MIB, live)]));
            assert!(disk.content(0, DISK as usize) == before, "{sector_size} {live}");
            let added = table.add_at_end(&disk, 64 * MIB);
            let after = disk.content(MIB, live as usize);
            assert!(after == before[MIB as usize..(MIB + live) as usize], "{sector_size} {live}");
            if live > 16 * MIB {
                assert!(matches!(added, Err(Error::NoPlaceForConfigDrive { .. })));
                continue;
            }
            // Systems see it: it is in the table of the first sector.
            assert_eq!(added.unwrap().start, DISK - 64 * MIB);
            let table = PartitionTable::read(&disk).unwrap();
            assert_eq!((table.name(), table.partitions().len()), ("msdos", 2));
        }
    }
}

#[test]
fn a01_a_hybrid_whose_tables_agree_works_and_one_with_two_meanings_is_refused_by_name() {
    let (mib, protective) = (2048, (0, 0xee, 1, 2047));
    for (entry, is_sound) in [
        ((1, 0x83, 40 * mib, 48 * mib), true),
        ((3, 0x0c, mib, 2 * mib), true),
        // The system made the partition larger, and nobody told the MBR.
        ((1, 0x83, 40 * mib, 8 * mib), true),
        ((1, 0x83, 4 * mib, 36 * mib), false),
        ((1, 0x83, 40 * mib, 50 * mib), false),
        ((1, 0x83, 41 * mib, 2 * mib), false),
        ((2, 0x05, 90 * mib, mib), false),
    ] {
        let disk = unannounced(512);
        put_entry(&disk, 0, protective);
        put_entry(&disk, 0, entry);
        let before = disk.content(0, DISK as usize);
        match finish_image(&disk) {
            Ok(table) => assert!(is_sound && table.name() == "gpt", "{entry:?}"),
            Err(error) => {
                assert!(!is_sound && error.to_string().contains("contradict each other"), "{error}");
                assert!(disk.content(0, DISK as usize) == before);
            }
        }
        assert_eq!(disk.content(446, 64), before[446..510], "the MBR of a hybrid stays as it is");
    }
}

#[test]
fn a02_every_copy_names_its_partitions_whatever_became_of_the_others() {
    let expected = vec![(MIB, 2 * MIB), (40 * MIB, 48 * MIB)];
    for sector_size in SECTORS {
        let unit = u64::from(sector_size);
        let (last, all) = (DISK - unit, DISK as usize);
        // What is damaged, and whether a copy is left that has its mark.
        let damages: [(&[(u64, usize)], bool); 9] = [
            (&[], true),
            (&[(0, 512)], true),
            (&[(0, 1 << 20)], true),
            (&[(last, 512)], true),
            (&[(unit, 512), (last, 512)], false),
            (&[(0, 512), (unit, 8), (last, 8)], false),
            (&[(unit + 20, 1), (last, 512)], true),
            (&[(0, 512), (unit, 512), (last - 16384, 16384), (last, 512)], false),
            (&[(0, 1 << 20), (last, 512)], false),
        ];
        for (damage, is_marked) in damages {
            let disk = unannounced(sector_size);
            put_entry(&disk, 0, (0, 0xee, 1, u32::MAX));
            for (offset, length) in damage {
                let content: Vec<_> = disk.content(*offset, *length).iter().map(|_| 0).collect();
                disk.put(*offset, &content);
            }
            if damage.iter().any(|(offset, _)| *offset == unit + 20) {
                disk.put(unit + 20, &[0x5c]);
            }
            let tables = Tables::read(&disk).unwrap();
            let found = places_of(&tables.volumes());
            assert!(expected.iter().all(|place| found.contains(place)), "{sector_size} {damage:?} {found:?}");
            if damage.is_empty() {
                assert_eq!(found, expected, "nothing else is named");
            }
            assert_eq!(!tables.named().is_empty(), is_marked, "{sector_size} {damage:?}");
            assert!(disk.content(0, all).len() == all);
        }
    }
}

#[test]
fn a02_tables_for_other_sectors_and_copies_in_the_middle_are_found() {
    for (made_for, sector_size) in [(512, 4096), (4096, 512), (1024, 512), (2048, 4096)] {
        let other = MemoryDisk::zeros(DISK, 512);
        if made_for == 512 || made_for == 4096 {
            let other = unannounced(made_for);
            let disk = MemoryDisk::zeros(DISK, sector_size);
            disk.put(0, &other.content(0, DISK as usize));
            let named = Tables::read(&disk).unwrap();
            let places = places_of(named.named());
            assert_eq!(places, [(MIB, 2 * MIB), (40 * MIB, 48 * MIB)], "{made_for}");
            continue;
        }
        // No crate makes them: the header of one for 512 with the places of another sector size.
        gpt_image(&other, &new_gpt(&[(1, MIB, 2 * MIB)]));
        let (unit, entries) = (u64::from(made_for), other.content(1024, 128 * 128));
        let mut moved = entries.clone();
        for field in [32, 40] {
            let lba = u64::from_le_bytes(entries[field..field + 8].try_into().unwrap());
            let bytes = (lba + u64::from(field == 40)) * 512 / unit - u64::from(field == 40);
            moved[field..field + 8].copy_from_slice(&bytes.to_le_bytes());
        }
        let disk = MemoryDisk::zeros(DISK, sector_size);
        disk.put(unit, &other.content(512, 92));
        disk.put(2 * unit, &moved);
        change_header(&disk, unit, 88, &crc32(&moved).to_le_bytes());
        let places = places_of(Tables::read(&disk).unwrap().named());
        assert_eq!(places, [(MIB, 2 * MIB)], "{made_for}");
    }
    // An image whose disk is larger: its backup lies where its header says.
    let image = MemoryDisk::zeros(16 * MIB, 512);
    gpt_image(&image, &new_gpt(&[(1, MIB, 2 * MIB)]));
    let disk = MemoryDisk::zeros(DISK, 512);
    disk.put(0, &image.content(0, 16 << 20));
    disk.put(1024, &[0; 1024]);
    let tables = Tables::read(&disk).unwrap();
    let backup = tables.copies().iter().find(|copy| copy.kind == CopyKind::BackupGpt).unwrap();
    assert_eq!((backup.start, places_of(&backup.partitions)), (16 * MIB - 512, vec![(MIB, 2 * MIB)]));
    assert!(tables.areas().overlap(&(16 * MIB - 512..16 * MIB)));
}

#[test]
fn a02_an_mbr_names_what_is_primary_logical_and_without_a_type_signed_or_not() {
    for sector_size in SECTORS {
        for is_signed in [true, false] {
            let disk = MemoryDisk::zeros(DISK, sector_size);
            let mib = (MIB / u64::from(sector_size)) as u32;
            put_entry(&disk, 0, (0, 0x83, mib, mib));
            put_entry(&disk, 0, (1, 0, 3 * mib, mib));
            put_entry(&disk, 0, (2, 0x0f, 8 * mib, 40 * mib));
            put_entry(&disk, u64::from(8 * mib), (0, 0x83, mib, 2 * mib));
            put_entry(&disk, u64::from(8 * mib), (1, 0x05, 20 * mib, 8 * mib));
            put_entry(&disk, u64::from(28 * mib), (0, 0x83, mib, 3 * mib));
            // A ring of sectors has an end here.
            put_entry(&disk, u64::from(28 * mib), (1, 0x05, 0, 8 * mib));
            if !is_signed {
                disk.put(510, &[0, 0]);
            }
            let tables = Tables::read(&disk).unwrap();
            let own = [(MIB, MIB), (3 * MIB, MIB), (9 * MIB, 2 * MIB), (29 * MIB, 3 * MIB)];
            let volumes = places_of(&tables.volumes());
            assert!(own.iter().all(|place| volumes.contains(place)), "{volumes:?}");
            assert_eq!(places_of(tables.named()), if is_signed { own.to_vec() } else { vec![] });
            assert!(!volumes.contains(&(8 * MIB, 40 * MIB)), "the container is no partition");
            assert!(tables.areas().overlap(&(28 * MIB..28 * MIB + 512)));
        }
    }
}

#[test]
fn a02_what_an_array_holds_is_found_on_its_member() {
    let disk = MemoryDisk::zeros(DISK, 512);
    gpt_image(&disk, &new_gpt(&[(1, MIB, 80 * MIB)]));
    let mut superblock = crate::guard::fake_machine::superblock(7, "data");
    superblock[128..136].copy_from_slice(&(8 * MIB / 512).to_le_bytes());
    disk.put(MIB + 4096, &superblock);
    let inside = MemoryDisk::zeros(64 * MIB, 512);
    gpt_image(&inside, &new_gpt(&[(1, 2 * MIB, 4 * MIB)]));
    disk.put(9 * MIB, &inside.content(0, 64 << 20));
    let volumes = places_of(&Tables::read(&disk).unwrap().volumes());
    assert_eq!(volumes, [(MIB, 80 * MIB), (9 * MIB, 72 * MIB), (11 * MIB, 4 * MIB)]);
}

#[test]
fn d13_tables_that_name_too_much_or_lead_around_in_a_ring_end() {
    let disk = MemoryDisk::zeros(DISK, 512);
    gpt_image(&disk, &new_gpt(&[(1, MIB, MIB)]));
    let entry = disk.content(1024, 128);
    // Each header leads to the next one, and its array is as long as may be.
    for number in 0..40_u64 {
        let (place, array) = (if number == 0 { 1 } else { 2048 * number + 8 }, 2048 * number + 16);
        for index in 0..1024 {
            let mut entry = entry.clone();
            entry[32..40].copy_from_slice(&(4096 + 1024 * number + index).to_le_bytes());
            entry[40..48].copy_from_slice(&(DISK / 512 - 64).to_le_bytes());
            disk.put(array * 512 + 128 * index, &entry);
        }
        disk.put(place * 512, &disk.content(512, 92));
        for (field, value) in [(24, place), (32, 2048 * (number + 1) + 8), (72, array)] {
            change_header(&disk, place * 512, field, &value.to_le_bytes());
        }
        change_header(&disk, place * 512, 80, &1024_u32.to_le_bytes());
    }
    let tables = Tables::read(&disk).unwrap();
    assert!(tables.copies().len() < 40);
    let error = tables.require_all_volumes(Path::new("/dev/memory")).unwrap_err().to_string();
    assert!(error.contains("erase_devices"), "{error}");
}

#[test]
fn g05_a_disk_is_empty_only_where_no_table_is_damaged_and_nothing_is_recognised() {
    let occupant = |change: &dyn Fn(&MemoryDisk)| {
        let disk = MemoryDisk::zeros(DISK, 512);
        change(&disk);
        DiskMap::read(&disk).unwrap().occupant()
    };
    let gpt = |disk: &MemoryDisk| gpt_image(disk, &new_gpt(&[(1, 8 * MIB, 80 * MIB)]));
    let mut swap = [0; 4096];
    swap[4086..].copy_from_slice(b"SWAPSPACE2");
    (swap[1024], swap[1028]) = (1, 255);
    assert_eq!(occupant(&|_| ()), None);
    assert_eq!(occupant(&|disk| gpt_image(disk, &[])), None, "a table without partitions");
    for (change, named) in [
        (
            &(|disk: &MemoryDisk| disk.put(0, &swap)) as &dyn Fn(&MemoryDisk),
            "swap with its mark at byte 4086",
        ),
        (&|disk| disk.put(64 << 20, &[&[0; 64][..], b"_BHRfS_M"].concat()), "btrfs with its mark"),
        (&gpt, "a partition of 80 MiB at 8 MiB"),
        (&|disk| (gpt(disk), disk.put(520, &[0x5c])).1, "checksum of the GPT header"),
        (&|disk| (gpt(disk), disk.put(1024, &[0x5c])).1, "checksum of the GPT entries"),
        (&|disk| (gpt(disk), disk.put(0, &[0; 1 << 20])).1, "only the backup GPT"),
        (&|disk| (gpt(disk), disk.put(0, &[0; 512])).1, "no protective entry"),
        (&|disk| disk.put(DISK - 512, b"EFI PART"), "the damaged backup GPT"),
        // As wipefs leaves it: the partition alone is nobody's.
        (
            &|disk| {
                (gpt(disk), [510, 512, DISK - 512].map(|at| disk.put(at, &[0; 8])), disk.put(8 << 20, &swap))
                    .2
            },
            "swap",
        ),
        (&|disk| (gpt(disk), [510, 512, DISK - 512].map(|at| disk.put(at, &[0; 8]))).0, "x"),
        (&|disk| put_entry(disk, 0, (0, 0x83, 2048, u32::MAX)), "lies outside the disk"),
        (&|disk| put_entry(disk, 0, (0, 0x05, 2048, 4096)), "x"),
    ] {
        match occupant(change) {
            Some(found) => assert!(found.contains(named), "{found} {named}"),
            None => assert_eq!(named, "x", "partitions that nobody sees, with nothing in them, are empty"),
        }
    }
}

#[test]
fn g05_what_cannot_be_read_is_not_empty() {
    for broken in [0, 512, 1024, DISK - 512, 64 << 20] {
        let disk = MemoryDisk::zeros(DISK, 512).broken_at(broken);
        assert!(matches!(DiskMap::read(&disk), Err(Error::Device { .. })), "{broken}");
    }
}

#[test]
fn every_place_lies_in_its_volume() {
    for (start, size) in [(0, 1), (7, 4096), (MIB, 5 * MIB), (MIB, 12 << 40), (0, 2 << 50), (u64::MAX - 9, 9)]
    {
        let found: Vec<_> = places(start, size).collect();
        assert!(found.iter().all(|one| one.start >= start && one.end <= start + size), "{start} {size}");
        assert_eq!((found[0].start, found[1].end), (start, start + size));
    }
}

proptest! {
    #[test]
    fn d13_whatever_looks_like_a_table_names_places_on_the_disk(
        pieces in proptest::collection::vec((0_usize..7, 0_u64..2048, proptest::collection::vec(any::<u8>(), 1..24)), 0..12),
        is_large in any::<bool>(),
    ) {
        let sector_size = SECTORS[usize::from(is_large)];
        let disk = unannounced(sector_size);
        let table = PartitionTable::create(&disk, TableKind::Mbr, &new_mbr(&[(1, MIB, MIB)]));
        prop_assert!(table.is_ok());
        let starts = [0, 440, 512, 4096, DISK - 4096, DISK - 512, DISK - 17408];
        for (start, offset, bytes) in &pieces {
            disk.put(starts[*start] + offset, bytes);
        }
        let tables = Tables::read(&disk).unwrap();
        for volume in tables.volumes() {
            prop_assert!(volume.size > 0 && volume.start.checked_add(volume.size).is_some_and(|end| end <= DISK));
        }
        prop_assert!(tables.areas().iter().all(|area| area.end <= DISK));
    }
}
