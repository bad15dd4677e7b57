use super::*;
use crate::fake_sysfs::FakeSysfs;
use proptest::prelude::*;
use serde_json::json;

fn device() -> BlockDevice {
    let sysfs = FakeSysfs::new();
    sysfs.disk(
        "devices/pci0/ata1/host0/0:0:0:0/block/sda",
        100 << 30,
        &[
            ("queue/rotational", "1"),
            ("device/model", "Fancy Disk 20A"),
            ("device/vendor", "ATA"),
            ("device/vpd_pg80", "\0\u{80}\0\u{4}SN-1"),
            ("device/wwid", "naa.5000c500a1b2c3d4"),
            ("device/scsi_device/0:0:0:0/uevent", ""),
            ("../../../scsi_host/host0/proc_name", "ahci"),
        ],
    );
    BlockDevice::describe(sysfs.path(), "sda").unwrap()
}

#[track_caller]
fn check(device: &BlockDevice, hints: Value, expected: bool) {
    let parsed = Hints::parse(&hints).unwrap_or_else(|error| panic!("{hints}: {error}"));
    assert_eq!(parsed.mismatch(device).is_none(), expected, "{hints}");
}

#[test]
fn every_operator_of_the_contract() {
    let device = device();
    for (hint, value, expected) in [
        ("size", json!(100), true),
        ("size", json!("100"), true),
        ("size", json!("99"), false),
        ("size", json!("= 99"), true),
        ("size", json!("=101"), false),
        ("size", json!("== 100"), true),
        ("size", json!("!= 100"), false),
        ("size", json!("< 101"), true),
        ("size", json!("<= 100"), true),
        ("size", json!("> 100"), false),
        ("size", json!(">=100"), true),
        ("model", json!("fancy disk 20a"), true),
        ("model", json!("  Fancy Disk 20A "), true),
        ("model", json!("fancy"), false),
        ("model", json!("s== Fancy Disk 20A"), true),
        ("model", json!("s!= Fancy Disk 20A"), false),
        ("model", json!("s< g"), true),
        ("model", json!("s<= fancy disk 20a"), true),
        ("model", json!("s> g"), false),
        ("model", json!("s>= fancy"), true),
        ("model", json!("<in> disk 20"), true),
        ("model", json!("<in> floppy"), false),
        ("model", json!("<in>disk == 20"), false),
        ("model", json!("<or> other <or> fancy disk 20a"), true),
        ("model", json!("<or>a<or>b"), false),
        ("name", json!("/dev/sda"), true),
        ("name", json!("<or> /dev/sdb <or> /dev/sda"), true),
        ("tran", json!("sata"), true),
        ("hctl", json!("0:0:0:0"), true),
        ("rotational", json!(true), true),
        ("rotational", json!(1), true),
        ("rotational", json!("Yes"), true),
        ("rotational", json!("off"), false),
    ] {
        check(&device, json!({ hint: value }), expected);
    }
}

#[test]
fn all_hints_must_hold_and_the_first_failing_one_is_named() {
    let device = device();
    check(&device, json!({"size": ">= 50", "vendor": "ata"}), true);
    let hints = Hints::parse(&json!({"size": ">= 200", "vendor": "ata"})).unwrap();
    assert_eq!(hints.mismatch(&device).unwrap().to_string(), "size is 100 GiB, wanted \">= 200\"");
    check(&device, json!({}), true);
}

#[test]
fn d01_lists_match_by_any_value() {
    let device = device();
    for (hint, value, expected) in [
        ("serial", "SN-1", true),
        ("serial", "Fancy_Disk_20A_SN-1", true),
        ("serial", "35000c500a1b2c3d4", true),
        ("serial", "sn-2", false),
        ("serial", "s!= sn-1", true),
        ("wwn", "0x5000C500A1B2C3D4", true),
        ("wwn", "naa.5000c500a1b2c3d4", true),
        ("wwn_with_extension", "0x5000c500a1b2c3d4", true),
    ] {
        check(&device, json!({ hint: value }), expected);
    }
}

#[test]
fn a_missing_attribute_is_the_text_none_and_an_empty_one_fails() {
    let mut device = device();
    device.disk.vendor = None;
    device.models = vec![String::new()];
    device.serials.clear();
    check(&device, json!({"vendor": "none"}), true);
    check(&device, json!({"vendor": "s!= ata"}), true);
    check(&device, json!({"by_path": "None"}), true);
    check(&device, json!({"serial": "none"}), true);
    check(&device, json!({"model": "s!= x"}), false);
}

#[test]
fn malformed_hints_are_refused_with_a_reason() {
    for (hints, named) in [
        (json!([]), "must be an object"),
        (json!("size"), "must be an object"),
        (json!({"colour": "red"}), "unknown hint"),
        (json!({"size": 0}), "above 0"),
        (json!({"size": -1}), "above 0"),
        (json!({"size": "1.5"}), "above 0"),
        (json!({"size": "big"}), "above 0"),
        (json!({"size": "<in> 10"}), "size is a number"),
        (json!({"size": "<or> 10 <or> 20"}), "size is a number"),
        (json!({"size": "s== 10"}), "size is a number"),
        (json!({"size": true}), "must be a string"),
        (json!({"model": 7}), "must be a string"),
        (json!({"model": null}), "must be a string"),
        (json!({"model": ""}), "empty"),
        (json!({"model": "s=="}), "empty"),
        (json!({"model": "<or> a <or>"}), "empty"),
        (json!({"model": ">= 5"}), "is text"),
        (json!({"model": "<all-in> a b"}), "do not apply"),
        (json!({"model": "<range-in> [ 1 2 ]"}), "do not apply"),
        (json!({"rotational": "maybe"}), "true or false"),
        (json!({"rotational": 2}), "true or false"),
    ] {
        let error = Hints::parse(&hints).unwrap_err();
        assert_eq!(error.kind().name(), "DeviceNotFound");
        assert!(error.to_string().contains(named), "{hints}: {error}");
    }
}

proptest! {
    #[test]
    fn parsing_never_panics(name in "[a-z_]{0,12}|size|serial|rotational|model", value in ".{0,40}|[<>=!s]{0,4} ?.{0,10}") {
        if let Ok(hints) = Hints::parse(&json!({ name: value })) {
            hints.mismatch(&device());
        }
    }

    #[test]
    fn a_plain_value_matches_itself(value in "[a-z0-9][a-z0-9 :._-]{0,30}[a-z0-9]") {
        let mut device = device();
        device.serials = vec![value.to_uppercase()];
        let hints = Hints::parse(&json!({"serial": value})).unwrap();
        prop_assert!(hints.mismatch(&device).is_none());
    }
}

#[test]
fn every_hint_of_the_contract_looks_at_something() {
    assert!(hints::names().eq(ATTRIBUTES.iter().map(|(name, _)| *name)));
}
