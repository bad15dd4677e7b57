//! Disks that are divided between volumes and what lies beside them.

use super::*;
use crate::guard::fake_machine::{FakeMachine, superblock};
use crate::guard::{KeepReason, plan_erase};
use crate::io::MemoryDisk;
use crate::table::{NewPartition, PartitionKind, TableKind, types};
use farrier_protocol::lookup::Node;
use serde_json::json;
use uuid::Uuid;

const MIB: u64 = 1 << 20;
const DISK: u64 = 64 * MIB;

/// A disk of ones with partitions at these places.
fn disk(kind: TableKind, sector_size: u32, places: &[Range<u64>]) -> MemoryDisk {
    let disk = MemoryDisk::ones(DISK, sector_size);
    let partition = |(number, place): (u32, &Range<u64>)| NewPartition {
        number,
        start: place.start,
        size: place.end - place.start,
        kind: match kind {
            TableKind::Gpt => PartitionKind::Gpt { type_guid: types::gpt::RAID, guid: Uuid::new_v4() },
            TableKind::Mbr => PartitionKind::Mbr { type_id: types::mbr::RAID, disk_identifier: 7 },
        },
        is_booted: false,
        name: format!("part {number}"),
    };
    let partitions: Vec<_> = (1..).zip(places).map(partition).collect();
    PartitionTable::create(&disk, kind, &partitions).unwrap();
    disk
}

/// A member in this place, with a superblock at 4 KiB, and data from 1 MiB on of this length.
fn member(place: Range<u64>, data: u64) -> (String, CoveredMember) {
    let start = place.start;
    let metadata = std::iter::once(start + 4096..start + 8192).collect();
    let data = start + MIB..start + MIB + data;
    ("/dev/md0".to_owned(), CoveredMember { disk: PathBuf::new(), place, data, metadata })
}

#[test]
fn g01_every_byte_of_a_disk_is_erased_with_a_volume_beside_it_or_is_table_or_superblock() {
    let (os, other) = (8 * MIB..24 * MIB, 32 * MIB..56 * MIB);
    for (kind, sector_size, table) in [
        (TableKind::Gpt, 512, vec![0..17_408, DISK - 16_896..DISK]),
        (TableKind::Gpt, 4096, vec![0..24_576, DISK - 20_480..DISK]),
        (TableKind::Mbr, 512, std::iter::once(0..512).collect()),
    ] {
        let disk = disk(kind, sector_size, &[os.clone(), other.clone()]);
        // Ten bytes that no whole sector has are not covered.
        let found = divide(&disk, &[member(os.clone(), 10 * MIB + 10)]).unwrap();
        assert_eq!(found.covered, [("/dev/md0".to_owned(), os.start + MIB..os.start + 11 * MIB)]);
        let superblock = os.start + 4096..os.start + 8192;
        let kept: Ranges = table.iter().cloned().chain([superblock.clone()]).collect();
        assert_eq!(found.kept, kept);
        let everything: Ranges = std::iter::once(0..DISK).collect();
        let covered: Ranges = found.covered.iter().map(|(_, range)| range.clone()).collect();
        assert_eq!(everything.without(&found.doomed).without(&covered), kept);
        for byte in [MIB, os.start, superblock.end, os.start + 11 * MIB, 30 * MIB, other.start, other.end - 1]
        {
            assert!(found.doomed.overlap(&(byte..byte + 1)), "{byte} stays");
        }
        for part in covered.iter().chain(kept.iter()) {
            assert!(!found.doomed.overlap(&part), "{part:?} goes twice or should stay");
        }
    }
}

#[test]
fn g01_a_disk_is_not_divided_by_a_table_that_is_not_there_or_lies_elsewhere() {
    let (os, other) = (8 * MIB..24 * MIB, 32 * MIB..56 * MIB);
    let gone = MemoryDisk::ones(DISK, 512);
    gone.put(0, &[0; 4096]);
    assert!(matches!(divide(&gone, &[member(os.clone(), MIB)]), Err(Error::InvalidTable { .. })));
    let moved = disk(TableKind::Gpt, 512, std::slice::from_ref(&other));
    assert!(matches!(divide(&moved, &[member(os, MIB)]), Err(Error::InvalidTable { .. })));
    // A volume on the disk itself has no table around it, and all of it is divided.
    let whole = divide(&gone, &[member(0..DISK, MIB)]).unwrap();
    assert_eq!(whole.kept, std::iter::once(4096..8192).collect());
    assert!(whole.doomed.overlap(&(0..1)) && whole.doomed.overlap(&(DISK - 1..DISK)));
}

#[test]
fn g01_metadata_beside_a_volume_go_and_the_volume_stays() {
    let (os, other) = (8 * MIB..24 * MIB, 32 * MIB..56 * MIB);
    let disk = disk(TableKind::Gpt, 512, &[os.clone(), other.clone()]);
    let beside = divide(&disk, &[member(os.clone(), 10 * MIB)]).unwrap();
    let before = disk.content(os.start, 16 * MIB as usize);
    beside.erase_metadata(&disk).unwrap();
    assert!(disk.content(os.start, 16 * MIB as usize) == before, "the volume changed");
    for place in [other.start, other.end - 4096] {
        assert!(disk.content(place, 4096).iter().all(|byte| *byte == 0), "{place}");
    }
    assert_eq!(PartitionTable::read(&disk).unwrap().partitions().len(), 2);
}

/// Two disks with a mirror `os` on their first partitions and a tenant's mirror on the second ones.
fn machine() -> FakeMachine {
    let machine = FakeMachine::new();
    for disk in ["vda", "vdb"] {
        machine.add(disk, &[], &[]);
        for (number, array) in [(1, "any:os"), (2, "tenant")] {
            let start = u64::from(number) * 1024 * MIB;
            let content = superblock(number as u8, array);
            machine.partition(disk, number, start..start + 512 * MIB, &[(4096, &content)]);
        }
    }
    machine.mirror("md0", 256 * MIB, [("vda", 1), ("vdb", 1)]);
    machine.mirror("md1", 256 * MIB, [("vda", 2), ("vdb", 2)]);
    machine
}

fn node() -> Node {
    let volume = json!({"controller": "software", "raid_level": "1", "size_gb": 1, "volume_name": "os"});
    Node { raid_config: json!({"logical_disks": [volume]}), ..Node::default() }
}

/// The targets, each with the volumes on it, and what is kept.
fn planned(machine: &FakeMachine) -> (Vec<(String, usize)>, Vec<String>) {
    let devices = ["md0", "md1", "vda", "vdb"].map(|name| machine.device(name));
    let plan = plan_erase(&node(), &devices).unwrap();
    let name = |device: &BlockDevice| machine.shortened(&device.disk.name);
    let targets = plan.targets.iter().map(|target| (name(target.device()), target.volumes().len()));
    let kept = plan.kept.iter().map(|kept| {
        assert_eq!(kept.reason, KeepReason::ForeignArray);
        name(&kept.device)
    });
    (targets.collect(), kept.collect())
}

#[test]
fn g01_disks_of_a_volume_are_targets_beside_it_and_an_array_of_others_goes_with_them() {
    let machine = machine();
    let beside = |volumes| [("vda".to_owned(), volumes), ("vdb".to_owned(), volumes)];
    let os = [("md0".to_owned(), 0)];
    assert_eq!(planned(&machine), ([&os[..], &beside(1)].concat(), vec!["md1".to_owned()]));
    // What a volume covers is not known of a layout that nobody makes here: it goes with its disks too.
    for (attribute, value) in
        [("level", "raid10"), ("metadata_version", "external:/md127/0"), ("component_size", "77")]
    {
        let before = std::fs::read_to_string(machine.device("md0").directory().join("md").join(attribute));
        machine.set("md0", attribute, value);
        let (targets, kept) = planned(&machine);
        assert_eq!((&targets[..], kept.len()), (&beside(0)[..], 2), "{attribute}");
        machine.set("md0", attribute, &before.unwrap());
    }
    assert_eq!(planned(&machine).1.len(), 1);
}

#[test]
fn g01_members_cover_what_the_kernel_says_and_a_spare_covers_nothing() {
    let machine = machine();
    let directory = machine.device("md0").directory().canonicalize().unwrap();
    let members = coverage::members(&directory).unwrap();
    assert_eq!(members.len(), 2);
    let start = 1024 * MIB;
    assert_eq!(members[0].place, start..start + 512 * MIB);
    assert_eq!(members[0].data, start + MIB..start + 257 * MIB);
    assert_eq!(members[0].metadata, std::iter::once(start + 4096..start + 8192).collect());
    assert_eq!(members[0].disk, machine.device("vda").directory().canonicalize().unwrap());
}

#[test]
fn g01_a_volume_that_lost_a_member_or_cannot_write_all_of_it_is_no_proof() {
    let machine = machine();
    let md0 = machine.device("md0");
    require_whole(&md0).unwrap();
    let entries = farrier_linux::sysfs::entries(&md0.directory().join("md"));
    let member = entries.into_iter().find(|name| name.starts_with("dev-")).unwrap();
    for (attribute, bad, good, told) in [
        ("degraded".to_owned(), "1", "0", "of 2 members are in step"),
        (format!("{member}/state"), "spare", "in_sync", "1 of 2 members"),
        (format!("{member}/state"), "faulty,in_sync", "in_sync", "is faulty"),
        (format!("{member}/bad_blocks"), "2048 8", "", "cannot be written"),
    ] {
        machine.set("md0", &attribute, bad);
        let error = require_whole(&md0).unwrap_err().to_string();
        assert!(error.contains(told) && error.contains("replace the disk"), "{error}");
        machine.set("md0", &attribute, good);
    }
    require_whole(&md0).unwrap();
}
