use super::*;
use serde_json::json;

fn volume(level: &str, size: Value) -> Value {
    json!({"controller": "software", "raid_level": level, "size_gb": size})
}

fn with(mut volume: Value, key: &str, value: Value) -> Value {
    volume[key] = value;
    volume
}

fn parse(volumes: &[Value]) -> Result<RaidConfig, String> {
    RaidConfig::parse(&json!({"logical_disks": volumes}), &[]).map_err(|error| error.to_string())
}

#[test]
fn the_contracts_example_is_read_with_the_rest_last() {
    let hints = json!([{"size": "> 500"}, {"size": "> 500"}]);
    let root =
        with(with(volume("1", json!("MAX")), "volume_name", json!("root")), "is_root_volume", json!(true));
    let config = parse(&[with(root, "physical_disks", hints), volume("1+0", json!(100))]).unwrap();
    let [sized, rest] = &config.volumes[..] else { panic!("two volumes") };
    assert_eq!((sized.level, sized.size, sized.disks.len()), (Level::Raid10, Size::Bytes(100 << 30), 0));
    assert_eq!((rest.level, rest.size, rest.disks.len()), (Level::Raid1, Size::Rest, 2));
    assert_eq!((rest.name_or(1).as_str(), sized.name_or(0).as_str()), ("root", "md0"));
    assert_eq!((rest.is_root, sized.is_root), (Some(true), None));
}

#[test]
fn nothing_wanted_is_no_error() {
    let hardware = json!({"logical_disks": [{"controller": "RAID.1", "raid_level": "5", "size_gb": 7}]});
    for value in [Value::Null, json!({}), json!({"logical_disks": []}), hardware] {
        assert!(RaidConfig::parse(&value, &[]).unwrap().volumes.is_empty(), "{value}");
    }
}

#[test]
fn each_fault_is_told() {
    let one = || volume("1", json!(10));
    let named = |name: Value| with(one(), "volume_name", name);
    let root = || with(one(), "is_root_volume", json!(true));
    for (volumes, told) in [
        (vec![volume("0", json!(10))], "the first volume must have raid_level 1"),
        (vec![one(), one(), one()], "at most two"),
        (vec![volume("2", json!(10))], "volume 1: raid_level must be one of"),
        (vec![one(), volume("1", json!(0))], "volume 2: size_gb"),
        (vec![volume("1", json!("10 GB"))], "volume 1: size_gb"),
        (vec![volume("1", json!("MAX")), volume("0", json!("MAX"))], "only one volume can have the size MAX"),
        (vec![root(), root()], "only one volume can be the root volume"),
        (vec![with(one(), "is_root_volume", json!("yes"))], "is_root_volume"),
        (vec![named(json!("a")), named(json!("a"))], "names must differ"),
        (vec![named(json!("a:b"))], "no slash or colon"),
        (vec![named(json!("x".repeat(28)))], "1 to 27"),
        (vec![named(json!("esp"))], "EFI system partitions"),
        (vec![named(json!(7))], "must be a text"),
        (vec![with(one(), "physical_disks", json!([{"size": 5}]))], "at least two"),
        (vec![with(one(), "physical_disks", json!([{"colour": "red"}, {}]))], "colour"),
        (
            vec![one(), with(volume("5", json!(10)), "physical_disks", json!([{}, {}]))],
            "raid_level 5 needs 3",
        ),
        (
            vec![one(), with(volume("6", json!(10)), "physical_disks", json!([{}, {}, {}]))],
            "raid_level 6 needs 4",
        ),
        (vec![one(), with(one(), "controller", json!("RAID.1"))], "volume 2: its controller"),
        (vec![json!("text")], "must be an object"),
    ] {
        let text = parse(&volumes).unwrap_err();
        assert!(text.contains(told) && !text.contains('\n'), "{told}: {text}");
    }
}

#[test]
fn all_faults_come_in_one_error_of_the_contracts_class() {
    let error =
        RaidConfig::parse(&json!({"logical_disks": [volume("9", json!(-1)), volume("1", json!(""))]}), &[]);
    let error = error.unwrap_err();
    assert_eq!(error.kind().name(), "SoftwareRAIDError");
    for told in ["volume 1: raid_level", "volume 1: size_gb", "volume 2: size_gb"] {
        assert!(error.to_string().contains(told), "{error}");
    }
}

#[test]
fn d02_names_are_needed_where_the_skip_list_has_some() {
    let kept = ["data".to_owned()];
    let unnamed = json!({"logical_disks": [volume("1", json!(10))]});
    assert!(RaidConfig::parse(&unnamed, &kept).unwrap_err().to_string().contains("volume_name"));
    let named = json!({"logical_disks": [with(volume("1", json!(10)), "volume_name", json!("data"))]});
    assert!(RaidConfig::parse(&named, &kept).is_ok());
}

#[test]
fn purposes_are_told_by_name() {
    let root =
        with(with(volume("1", json!("MAX")), "volume_name", json!("os")), "is_root_volume", json!(true));
    let other = with(volume("0", json!(5)), "is_root_volume", json!(false));
    let config = json!({"logical_disks": [root, other]});
    let expected = [("os".to_owned(), Some(true)), ("md0".to_owned(), Some(false))];
    let mut names = RaidConfig::names(&config);
    names.sort_by_key(|(_, is_root)| *is_root != Some(true));
    assert_eq!(names, expected);
    assert_eq!(RaidConfig::names(&Value::Null), []);
}
