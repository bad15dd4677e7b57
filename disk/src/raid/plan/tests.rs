use super::*;
use crate::fake_sysfs::FakeSysfs;
use crate::list::list;
use serde_json::{Value, json};

const UEFI: Boot = Boot { is_uefi: true, table: TableKind::Gpt };
const BIOS_GPT: Boot = Boot { is_uefi: false, table: TableKind::Gpt };
const BIOS_MBR: Boot = Boot { is_uefi: false, table: TableKind::Mbr };

fn devices(sizes: &[u64], sector: &str) -> Vec<BlockDevice> {
    let sysfs = FakeSysfs::new();
    for (letter, gib) in ('a'..).zip(sizes) {
        let attributes = [("queue/logical_block_size", sector), ("serial", &format!("sn-{letter}"))];
        sysfs.disk(&format!("devices/virtio/block/vd{letter}"), gib << 30, &attributes);
    }
    list(sysfs.path()).unwrap()
}

fn config(volumes: Value) -> RaidConfig {
    let mut volumes = volumes;
    for volume in volumes.as_array_mut().unwrap() {
        volume["controller"] = json!("software");
    }
    RaidConfig::parse(&json!({"logical_disks": volumes}), &[]).unwrap()
}

fn planned(volumes: Value, sizes: &[u64], boot: Boot) -> Result<Plan, String> {
    let (config, devices) = (config(volumes), devices(sizes, "512"));
    let chosen = choose_disks(&config, &devices).map_err(|error| error.to_string())?;
    let disks: Vec<_> = devices.into_iter().map(|device| Disk { device, kept: Vec::new() }).collect();
    plan(&config, &chosen, &disks, &[], boot, 0..).map_err(|error| error.to_string())
}

/// Number, start and end in MiB.
fn places(partitions: &[NewPartition]) -> Vec<(u32, u64, u64)> {
    let place = |one: &NewPartition| (one.number, one.start / MIB, (one.start + one.size) / MIB);
    partitions.iter().map(place).collect()
}

#[test]
fn the_contracts_places_in_every_boot_mode() {
    let volumes = || json!([{"raid_level": "1", "size_gb": 3}, {"raid_level": "0", "size_gb": "MAX"}]);
    for (boot, expected) in [
        (UEFI, vec![(1, 551, 3072), (2, 3072, 10239), (3, 1, 551)]),
        (BIOS_GPT, vec![(1, 8, 3072), (2, 3072, 10239), (3, 1, 3)]),
        (BIOS_MBR, vec![(1, 1, 3072), (2, 3072, 10239)]),
    ] {
        let plan = planned(volumes(), &[10, 10], boot).unwrap();
        assert_eq!(plan.partitions.len(), 2);
        for partitions in &plan.partitions {
            assert_eq!(places(partitions), expected, "{boot:?}");
        }
        let array = |number, level, partition| PlannedArray {
            number,
            name: format!("md{number}"),
            level,
            members: vec![(0, partition), (1, partition)],
        };
        assert_eq!(plan.arrays, [array(0, Level::Raid1, 1), array(1, Level::Raid0, 2)]);
    }
}

#[test]
fn d24_the_rest_may_come_first_and_disks_may_differ() {
    let volumes = json!([
        {"raid_level": "1", "size_gb": "MAX", "volume_name": "a"},
        {"raid_level": "1+0", "size_gb": 2, "volume_name": "b"},
    ]);
    let plan = planned(volumes, &[4, 5, 6, 6], UEFI).unwrap();
    assert_eq!(places(&plan.partitions[0]), [(1, 551, 2048), (2, 2048, 4095), (3, 1, 551)]);
    assert_eq!(places(&plan.partitions[2]), [(1, 551, 2048), (2, 2048, 6143), (3, 1, 551)]);
    assert_eq!((plan.arrays[0].name.as_str(), plan.arrays[0].number), ("b", 0));
    assert_eq!(plan.arrays[1].members, [(0, 2), (1, 2), (2, 2), (3, 2)]);
}

#[test]
fn d24_volumes_on_disks_of_their_own_count_for_themselves() {
    let hints = |serials: [&str; 2]| serials.map(|serial| json!({"serial": serial})).to_vec();
    let volumes = json!([
        {"raid_level": "1", "size_gb": 2, "physical_disks": hints(["sn-c", "sn-d"])},
        {"raid_level": "1", "size_gb": 3, "physical_disks": hints(["sn-b", "sn-a"])},
    ]);
    let plan = planned(volumes, &[5, 5, 5, 5], BIOS_MBR).unwrap();
    assert_eq!(plan.arrays[0].members, [(2, 1), (3, 1)]);
    assert_eq!(plan.arrays[1].members, [(1, 1), (0, 1)]);
    assert_eq!(places(&plan.partitions[0]), [(1, 1, 3072)]);
    assert_eq!(places(&plan.partitions[2]), [(1, 1, 2048)]);
}

#[test]
fn equal_hints_take_different_disks() {
    let hints = json!([{"size": ">= 5"}, {"size": ">= 5"}]);
    let volumes = || json!([{"raid_level": "1", "size_gb": 2, "physical_disks": hints}]);
    let plan = planned(volumes(), &[4, 5, 6], BIOS_MBR).unwrap();
    assert_eq!(plan.arrays[0].members, [(1, 1), (2, 1)]);
    assert!(plan.partitions[0].is_empty());
    let error = planned(volumes(), &[4, 5], BIOS_MBR).unwrap_err();
    assert!(error.contains("satisfies size") && error.contains("/dev/vdb"), "{error}");
}

#[test]
fn what_does_not_fit_is_told_with_its_disk() {
    let one = |level: &str, size: u64| json!([{"raid_level": "1", "size_gb": 2}, {"raid_level": level, "size_gb": size}]);
    for (volumes, sizes, boot, told) in [
        (one("0", 9), &[20, 10][..], UEFI, "/dev/vdb: its volumes need 11264 MiB and 10239 MiB"),
        (json!([{"raid_level": "1", "size_gb": 10}]), &[10, 11], UEFI, "/dev/vda"),
        (json!([{"raid_level": "1", "size_gb": "MAX"}]), &[1, 0], UEFI, "needs 2 disks, and there are 1"),
        (one("5", 1), &[9, 9], UEFI, "RAID level 5 needs 3 disks, and there are 2"),
        (one("6", 1), &[9, 9, 9], UEFI, "RAID level 6 needs 4 disks, and there are 3"),
        (json!([{"raid_level": "1", "size_gb": 3000}]), &[4000, 4000], BIOS_MBR, "/dev/vda"),
        (json!([{"raid_level": "1", "size_gb": u64::MAX >> 31}]), &[9, 9], UEFI, "/dev/vda"),
    ] {
        let error = planned(volumes, sizes, boot).unwrap_err();
        assert!(error.contains(told), "{told}: {error}");
    }
}

#[test]
fn d02_kept_volumes_stay_and_new_ones_take_the_gaps() {
    for (size, expected) in
        [(json!(2), (1, 551, 2048)), (json!(3), (1, 5120, 8192)), (json!("MAX"), (1, 5120, 10239))]
    {
        let plan = plan_beside_kept(&size);
        assert_eq!(places(&plan.partitions[0]), [expected], "{size}");
        assert_eq!(plan.arrays.len(), 1);
        assert_eq!((plan.arrays[0].name.as_str(), plan.arrays[0].number), ("os", 1));
    }
}

/// The volume `os` of this size on disks with a kept volume from the second to the fifth GiB.
fn plan_beside_kept(size: &Value) -> Plan {
    let volumes = json!([
        {"raid_level": "1", "size_gb": size, "volume_name": "os"},
        {"raid_level": "1", "size_gb": 3, "volume_name": "data"},
    ]);
    let (config, devices) = (config(volumes), devices(&[10, 10], "4096"));
    let kept = |number, start: u64, size: u64| Partition {
        number,
        start: start * MIB,
        size: size * MIB,
        kind: PartitionKind::Gpt { type_guid: types::gpt::RAID, guid: Uuid::nil() },
    };
    let disks: Vec<_> = devices
        .iter()
        .map(|device| Disk { device: device.clone(), kept: vec![kept(2, 2048, 3072), kept(3, 1, 550)] })
        .collect();
    let chosen = choose_disks(&config, &devices).unwrap();
    plan(&config, &chosen, &disks, &["data".to_owned()], UEFI, 1..).unwrap()
}
