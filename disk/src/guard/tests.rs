use super::fake_machine::FakeMachine;
use super::*;
use crate::fake_sysfs::FakeSysfs;
use crate::list::list;
use serde_json::json;

fn machine(disks: &[(&str, u64)]) -> (FakeSysfs, Vec<BlockDevice>) {
    let sysfs = FakeSysfs::new();
    for (name, gib) in disks {
        sysfs.disk(&format!("devices/virtio/block/{name}"), gib << 30, &[("serial", &format!("sn-{name}"))]);
    }
    let devices = list(sysfs.path()).unwrap();
    (sysfs, devices)
}

fn node(properties: Value) -> Node {
    Node { properties: serde_json::from_value(properties).unwrap(), ..Node::default() }
}

#[test]
fn f26_the_default_is_the_smallest_above_4_gib_ties_by_name() {
    for (disks, expected) in [
        (&[("vda", 20), ("vdb", 10), ("vdc", 10)][..], Some("/dev/vdb")),
        (&[("vda", 3), ("vdb", 4)][..], Some("/dev/vdb")),
        (&[("vda", 3)][..], None),
    ] {
        let (_sysfs, devices) = machine(disks);
        let chosen = choose_root_disk(&node(json!({})), &devices).ok();
        assert_eq!(chosen.map(|disk| disk.device().disk.name.clone()).as_deref(), expected);
    }
}

#[test]
fn hints_choose_by_name_serial_and_size() {
    let (_sysfs, devices) = machine(&[("vda", 20), ("vdb", 10), ("vdc", 2)]);
    for (hints, expected) in [
        (json!({"name": "/dev/vda"}), "/dev/vda"),
        (json!({"serial": "SN-vdb"}), "/dev/vdb"),
        (json!({"size": 2}), "/dev/vdc"),
        (json!({"size": ">= 10"}), "/dev/vda"),
        (json!({}), "/dev/vdb"),
    ] {
        let chosen = choose_root_disk(&node(json!({"root_device": hints})), &devices).unwrap();
        assert_eq!(chosen.device().disk.name, expected, "{hints}");
    }
}

#[test]
fn each_disk_is_named_with_the_reason_against_it() {
    let (_sysfs, devices) = machine(&[("vda", 20), ("vdb", 10)]);
    let properties = json!({
        "root_device": {"serial": "sn-vdb", "size": ">= 50"},
        "skip_block_devices": [{"name": "/dev/vda"}],
    });
    let error = choose_root_disk(&node(properties), &devices).unwrap_err();
    assert_eq!(error.kind().name(), "DeviceNotFound");
    let text = error.to_string();
    assert!(text.contains("/dev/vda: on the list of skipped disks"), "{text}");
    assert!(text.contains("/dev/vdb: size is 10 GiB, wanted \">= 50\""), "{text}");
    assert!(matches!(choose_root_disk(&node(json!({})), &[]), Err(Error::NoDisk)));
}

#[test]
fn d01_a_skipped_disk_is_never_chosen() {
    let (_sysfs, devices) = machine(&[("vda", 10), ("vdb", 20)]);
    for (skipped, expected) in [
        (json!({"serial": "sn-vda"}), "/dev/vdb"),
        (json!({"name": "/dev/vda", "size": 10}), "/dev/vdb"),
        // Every hint of an entry has to match.
        (json!({"name": "/dev/vda", "size": 20}), "/dev/vda"),
    ] {
        let mut properties = json!({"skip_block_devices": [skipped]});
        let chosen = choose_root_disk(&node(properties.clone()), &devices).unwrap();
        assert_eq!(chosen.device().disk.name, expected, "{properties}");
        properties["root_device"] = json!({"name": "/dev/vda"});
        let hinted = choose_root_disk(&node(properties.clone()), &devices);
        assert_eq!(hinted.is_ok(), expected == "/dev/vda", "{properties}");
    }
}

#[test]
fn x04_an_entry_that_matches_no_disk_is_told() {
    let sysfs = machine_with_array("md0");
    sysfs.disk("devices/virtual/block/dm-1", 1 << 30, &[]);
    sysfs.stack("devices/pci0/block/sdc", "devices/virtual/block/dm-1");
    let devices = list(sysfs.path()).unwrap();
    for (entry, expected) in [
        (json!({"name": "/dev/sda"}), None),
        // A map is no disk of the list, but keeps the one that it lies on.
        (json!({"name": "/dev/dm-1"}), None),
        (json!({"name": "/dev/sdz"}), Some("name \"/dev/sdz\"")),
        (json!({"name": "/dev/sda", "size": 9}), Some("name \"/dev/sda\", size \"9\"")),
    ] {
        let node = node(json!({"skip_block_devices": [{"name": "/dev/sdb"}, entry]}));
        let survey = survey(&node, &devices).unwrap();
        assert_eq!(plan_erase(&node, &devices).unwrap().warnings, survey.warnings);
        let text = survey.warnings.join("; ");
        assert_eq!(survey.warnings.len(), usize::from(expected.is_some()), "{text}");
        assert!(
            expected.is_none_or(|named| text.contains(named) && text.contains("matches no disk")),
            "{text}"
        );
    }
    // The disks of the array that was meant cannot be read here, so nothing tells that it is not there.
    let volume = node(json!({"skip_block_devices": [{"volume_name": "data"}]}));
    assert_eq!(survey(&volume, &devices).unwrap().warnings, Vec::<String>::new());
}

#[test]
fn d02_what_is_lost_with_a_skipped_device_is_kept_too() {
    let (sysfs, _) = machine(&[("vda", 10), ("vdb", 20), ("vdc", 30), ("vdd", 40)]);
    for disk in ["vda", "vdb"] {
        for partition in ["1", "2"] {
            let path = sysfs.path().join(format!("devices/virtio/block/{disk}/{disk}{partition}"));
            std::fs::create_dir(&path).unwrap();
            std::fs::write(path.join("partition"), partition).unwrap();
        }
    }
    for (array, members) in [("md0", ["vda/vda1", "vdb/vdb1"]), ("md1", ["vda/vda2", "vdb/vdb2"])] {
        let attributes = &[("serial", array), ("md/level", "raid1")];
        sysfs.disk(&format!("devices/virtual/block/{array}"), 5 << 30, attributes);
        for member in members {
            let lower = format!("devices/virtio/block/{member}");
            sysfs.stack(&lower, &format!("devices/virtual/block/{array}"));
        }
    }
    let devices = list(sysfs.path()).unwrap();
    for (skipped, expected) in [
        // A kept array keeps its disks from being written as a whole, not the other array on them.
        ("md0", ["/dev/md1", "/dev/vdc", "/dev/vdd"].as_slice()),
        // A kept disk keeps what lies on it, and what that lies on.
        ("sn-vda", &["/dev/vdc", "/dev/vdd"]),
        // Arrays of nobody go with their disks.
        ("sn-vdc", &["/dev/vda", "/dev/vdb", "/dev/vdd"]),
    ] {
        let plan = plan_erase(&node(json!({"skip_block_devices": [{"serial": skipped}]})), &devices).unwrap();
        let mut targets: Vec<_> =
            plan.targets.iter().map(|target| target.device().disk.name.clone()).collect();
        targets.sort();
        assert_eq!(targets, expected, "{skipped}");
    }
}

#[test]
fn d02_a_disk_that_may_belong_to_a_kept_array_is_kept() {
    let (_sysfs, devices) = machine(&[("no such node", 10)]);
    let skipped = json!({"skip_block_devices": [{"volume_name": "data"}]});
    assert_eq!(plan_erase(&node(skipped), &devices).unwrap().targets.len(), 0);
}

#[test]
fn d03_only_an_explicit_yes_is_consent() {
    for (value, expected) in [
        (json!(true), true),
        (json!("True"), true),
        (json!(false), false),
        (json!("no"), false),
        (json!(null), false),
        (json!(1), false),
    ] {
        let mut node = Node::default();
        node.driver_internal_info.insert("wipe_special_filesystems".to_owned(), value.clone());
        assert_eq!(consents(&node), expected, "{value}");
    }
    assert!(!consents(&Node::default()));
}

#[test]
fn a_skip_list_that_cannot_be_read_stops_the_choice() {
    let (_sysfs, devices) = machine(&[("vda", 10)]);
    for list in [
        json!({}),
        json!("vda"),
        json!([7]),
        json!([{}]),
        json!([{"size": "<in> 3"}]),
        json!([{"volume_name": ""}]),
    ] {
        let error = choose_root_disk(&node(json!({"skip_block_devices": list})), &devices).unwrap_err();
        assert!(matches!(error, Error::InvalidSkipList { .. }), "{error}");
    }
}

#[test]
fn d26_a_disk_that_changed_since_the_choice_is_not_opened() {
    let (sysfs, devices) = machine(&[("vda", 10)]);
    let chosen = choose_root_disk(&node(json!({})), &devices).unwrap();
    std::fs::write(sysfs.path().join("block/vda/serial"), "another").unwrap();
    let error = chosen.open().unwrap_err();
    assert!(error.to_string().contains("its serial was sn-vda and is another"), "{error}");
}

#[test]
fn d01_the_erase_plan_keeps_skipped_and_read_only_disks() {
    let (sysfs, devices) = machine(&[("vda", 10), ("vdb", 1), ("vdc", 20)]);
    std::fs::write(sysfs.path().join("block/vdc/ro"), "1").unwrap();
    let plan = plan_erase(&node(json!({"skip_block_devices": [{"serial": "sn-vda"}]})), &devices).unwrap();
    let targets: Vec<_> = plan.targets.iter().map(|target| target.device().disk.name.as_str()).collect();
    assert_eq!(targets, ["/dev/vdb"]);
    let kept: Vec<_> = plan.kept.iter().map(|kept| (kept.device.kernel_name(), kept.reason)).collect();
    assert_eq!(kept, [("vda", KeepReason::Skipped), ("vdc", KeepReason::ReadOnly)]);
}

#[test]
fn a12_boot_areas_of_emmc_are_erased_and_never_the_root_disk_nor_in_a_volume() {
    let sysfs = FakeSysfs::new();
    for (name, gib, ro) in
        [("mmcblk0", 32, "0"), ("mmcblk0boot0", 5, "1"), ("mmcblk0boot1", 5, "1"), ("mmcblk0gp0", 6, "0")]
    {
        let path = format!("devices/mmc0/mmc0:0001/block/{name}");
        sysfs.disk(&path, gib << 30, &[("ro", ro), ("device/serial", "0xd1f71f0b")]);
    }
    let devices = list(sysfs.path()).unwrap();
    let chosen = |properties| choose_root_disk(&node(properties), &devices);
    let name = |disk: RootDisk| disk.device().kernel_name().to_owned();
    assert_eq!(name(chosen(json!({})).unwrap()), "mmcblk0");
    for hints in [json!({"serial": "0xd1f71f0b"}), json!({"size": ">= 5"})] {
        assert_eq!(name(chosen(json!({"root_device": hints})).unwrap()), "mmcblk0", "{hints}");
    }
    assert_eq!(name(chosen(json!({"root_device": {"name": "/dev/mmcblk0gp0"}})).unwrap()), "mmcblk0gp0");
    let error = chosen(json!({"root_device": {"name": "/dev/mmcblk0boot0"}})).unwrap_err().to_string();
    assert!(error.contains("/dev/mmcblk0boot0: a hardware partition of an eMMC device"), "{error}");

    let plan = plan_erase(&node(json!({})), &devices).unwrap();
    let targets: Vec<_> = plan.targets.iter().map(|target| target.device().kernel_name()).collect();
    assert_eq!(targets, ["mmcblk0", "mmcblk0boot0", "mmcblk0boot1", "mmcblk0gp0"]);
    let plan = plan_raid(&node(json!({})), &devices).unwrap();
    let disks: Vec<_> = plan.disks.iter().map(|disk| disk.device().kernel_name()).collect();
    assert_eq!(disks, ["mmcblk0"]);
}

#[test]
fn d20_an_array_of_an_earlier_user_keeps_no_disk_from_being_erased() {
    let sysfs = machine_with_array("md_home");
    sysfs.disk("devices/virtual/block/dm-1", 1 << 30, &[]);
    sysfs.stack("devices/pci0/block/sdc", "devices/virtual/block/dm-1");
    // Its members cannot be read here, so nothing tells that it is the volume of that name.
    let volume =
        json!({"controller": "software", "raid_level": "1", "size_gb": "MAX", "volume_name": "home"});
    let with_volume = Node { raid_config: json!({"logical_disks": [volume]}), ..Node::default() };
    for node in [node(json!({})), with_volume] {
        let plan = plan_erase(&node, &list(sysfs.path()).unwrap()).unwrap();
        let found = plan.targets.iter().map(|target| (target.device().kernel_name(), target.volumes()));
        assert_eq!(found.collect::<Vec<_>>(), [("sda", vec![]), ("sdb", vec![]), ("sdc", vec![])]);
        let kept: Vec<_> = plan.kept.iter().map(|kept| (kept.device.kernel_name(), kept.reason)).collect();
        assert_eq!(kept, [("md_home", KeepReason::ForeignArray)]);
    }
}

#[test]
fn d20_an_array_that_does_not_go_with_its_disks_is_erased_before_them() {
    let sysfs = machine_with_array("md0");
    std::fs::write(sysfs.path().join("block/sda/ro"), "1").unwrap();
    let plan = plan_erase(&node(json!({})), &list(sysfs.path()).unwrap()).unwrap();
    let targets: Vec<_> = plan.targets.iter().map(|target| target.device().kernel_name()).collect();
    assert_eq!(targets, ["md0", "sdc", "sdb"]);
}

/// Three disks; the first two carry an array of 6 GiB, larger than any disk.
fn machine_with_array(array: &str) -> FakeSysfs {
    let sysfs = FakeSysfs::new();
    sysfs.disk("devices/pci0/block/sda", 5 << 30, &[("sda1/partition", "1")]);
    sysfs.disk("devices/pci0/block/sdb", 5 << 30, &[]);
    sysfs.disk("devices/pci0/block/sdc", 7 << 30, &[]);
    let array = format!("devices/virtual/block/{array}");
    sysfs.disk(&array, 6 << 30, &[("md/level", "raid0\n")]);
    sysfs.stack("devices/pci0/block/sda/sda1", &array);
    sysfs.stack("devices/pci0/block/sdb", &array);
    sysfs
}

#[test]
fn x07_an_array_of_an_earlier_user_is_never_the_default_and_its_disks_are() {
    let sysfs = machine_with_array("md0");
    let devices = list(sysfs.path()).unwrap();
    let choose = |properties| choose_root_disk(&node(properties), &devices);
    let name = |disk: RootDisk| disk.device().kernel_name().to_owned();
    assert_eq!(name(choose(json!({})).unwrap()), "sda");
    // Not even when nothing else is left.
    let skipped = json!({"skip_block_devices": [{"name": "/dev/sdc"}, {"name": "/dev/sda"}]});
    assert!(matches!(choose(skipped), Err(Error::NoFittingDisk { .. })));
    assert_eq!(name(choose(json!({"root_device": {"name": "/dev/md0"}})).unwrap()), "md0");
    let survey = survey(&node(json!({})), &devices).unwrap();
    let md0 = survey.disks.iter().find(|disk| disk.disk.name == "/dev/md0").unwrap();
    assert_eq!(md0.obstacles[0], Obstacle::ForeignArray);
    assert!(md0.obstacles[0].to_string().contains("an earlier user"));
}

#[test]
fn x07_d01_the_default_rule_takes_an_array_of_the_node_and_not_a_disk_of_it() {
    let machine = FakeMachine::new();
    for (disk, array) in [("vda", "home"), ("vdb", "home"), ("vdc", "tenant"), ("vdd", "tenant")] {
        machine.add(disk, &[], &[(4096, &fake_machine::superblock(7, array))]);
    }
    for array in ["md0", "md1"] {
        machine.add(array, &[("md/level", "raid0")], &[]);
    }
    for (disk, array) in [("vda", "md0"), ("vdb", "md0"), ("vdc", "md1"), ("vdd", "md1")] {
        machine.stack(disk, array);
    }
    let devices = ["md0", "md1", "vda", "vdb", "vdc", "vdd"].map(|name| machine.device(name));
    let volume =
        json!({"controller": "software", "raid_level": "1", "size_gb": "MAX", "volume_name": "home"});
    let node = Node { raid_config: json!({"logical_disks": [volume]}), ..Node::default() };
    let criteria = Criteria::of(&node).unwrap();
    let open = devices.iter().filter(|device| criteria.exclusion(device).is_none());
    let open: Vec<_> = open.map(|device| machine.shortened(&device.disk.name)).collect();
    assert_eq!(open, ["md0", "vdc", "vdd"]);
    let chosen = choose_root_disk(&node, &devices).unwrap();
    assert_eq!(machine.shortened(&chosen.device().disk.name), "md0");
}

#[test]
fn d01_a_hinted_disk_may_carry_arrays_of_others() {
    let sysfs = machine_with_array("md0");
    let devices = list(sysfs.path()).unwrap();
    let hinted = node(json!({"root_device": {"name": "/dev/sda"}}));
    assert_eq!(choose_root_disk(&hinted, &devices).unwrap().device().kernel_name(), "sda");
    let skipped = node(json!({"skip_block_devices": [{"name": "/dev/sdc"}, {"name": "/dev/md0"}]}));
    let error = choose_root_disk(&skipped, &devices).unwrap_err().to_string();
    assert!(error.contains("/dev/sda: on the list of skipped disks"), "{error}");
}

#[test]
fn d02_software_raid_gets_no_skipped_disk_and_no_array_of_one() {
    let sysfs = machine_with_array("md0");
    let devices = list(sysfs.path()).unwrap();
    for (skip_list, arrays, disks) in [
        (json!([]), vec!["md0"], vec!["sda", "sdb", "sdc"]),
        (json!([{"name": "/dev/sdc"}]), vec!["md0"], vec!["sda", "sdb"]),
        (json!([{"name": "/dev/sda"}]), vec![], vec!["sdc"]),
        (json!([{"name": "/dev/md0"}]), vec![], vec!["sdc"]),
    ] {
        let plan = plan_raid(&node(json!({"skip_block_devices": skip_list})), &devices).unwrap();
        let names = |found: &[&BlockDevice]| -> Vec<String> {
            found.iter().map(|device| device.kernel_name().to_owned()).collect()
        };
        assert_eq!(
            names(&plan.arrays.iter().map(RaidArray::device).collect::<Vec<_>>()),
            arrays,
            "{skip_list}"
        );
        assert_eq!(
            names(&plan.disks.iter().map(RaidTarget::device).collect::<Vec<_>>()),
            disks,
            "{skip_list}"
        );
    }
}

#[test]
fn d23_partitions_of_a_disk_with_several_paths_are_refused_with_its_name_and_what_to_do() {
    let sysfs = FakeSysfs::new();
    sysfs.disk("devices/virtual/dm-0", 5 << 30, &[("dm/uuid", "mpath-3600508b1001c0123")]);
    let chosen = choose_root_disk(&node(json!({})), &list(sysfs.path()).unwrap()).unwrap();
    let error = chosen.partitions().unwrap_err();
    assert!(matches!(error, Error::NoPartitionNodes { .. }), "{error}");
    let text = error.to_string();
    assert!(text.starts_with("/dev/dm-0 is a disk with several paths") && text.contains("; put "), "{text}");
    let (_sysfs, devices) = machine(&[("no such node", 10)]);
    assert_eq!(choose_root_disk(&node(json!({})), &devices).unwrap().partitions().unwrap().len(), 0);
}

#[test]
fn nothing_is_erased_under_a_skip_list_that_cannot_be_read() {
    let (_sysfs, devices) = machine(&[("vda", 10)]);
    let error = plan_erase(&node(json!({"skip_block_devices": [{}]})), &devices).unwrap_err();
    assert!(matches!(error, Error::InvalidSkipList { .. }), "{error}");
}

#[test]
fn d26_a_disk_that_changed_since_the_plan_is_not_erased() {
    let (sysfs, devices) = machine(&[("vda", 10)]);
    let plan = plan_erase(&node(json!({})), &devices).unwrap();
    std::fs::write(sysfs.path().join("block/vda/serial"), "another").unwrap();
    let error = plan.targets[0].open(true).unwrap_err();
    assert!(matches!(error, Error::ChangedSinceChosen { .. }), "{error}");
}
