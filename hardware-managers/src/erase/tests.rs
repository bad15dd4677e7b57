//! The course of honest and of other disks.

mod fake_disk;
mod zoned;

use super::command_set::{Cause, Hidden, Reach};
use super::disk_erase::erase_data;
use super::error::EraseError;
use super::method::Method::{self, NvmeFormatUserData, NvmeSanitizeBlock, Overwrite};
use super::settings::{Passes, Settings};
use super::*;
use fake_disk::{FakeDisk, Nature};
use farrier_protocol::lookup::Node;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

const MIB: usize = 1 << 20;
const PATIENCE: Patience<'static> =
    Patience { poll: Duration::from_millis(1), limit: Duration::from_millis(20), is_ending: &|| false };

fn settings(continue_if_failed: bool) -> Settings {
    Settings { continue_if_failed, ..Settings::of(&Node::default(), true).unwrap() }
}

/// A described disk to put on record.
fn device() -> BlockDevice {
    device_called("sdx", "S1")
}

fn device_called(name: &str, serial: &str) -> BlockDevice {
    let sysfs = tempfile::tempdir().unwrap();
    let disk = sysfs.path().join("block").join(name);
    std::fs::create_dir_all(disk.join("device")).unwrap();
    for (attribute, content) in [("size", "4096"), ("serial", serial), ("device/model", "Disk")] {
        std::fs::write(disk.join(attribute), content).unwrap();
    }
    BlockDevice::describe(sysfs.path(), name).unwrap()
}

fn erase(disk: &FakeDisk, settings: &Settings) -> (Result<Method, EraseError>, Value) {
    let mut record = Record::begin(&device());
    let outcome = erase_data(disk, Some(disk), Reach::default(), settings, &PATIENCE, &mut record);
    (outcome, record.statement("n", "erase_devices"))
}

#[test]
fn d22_a_disk_that_fails_or_lies_fails_and_says_how() {
    for (nature, expected) in [
        (Nature::Honest, Ok(NvmeSanitizeBlock)),
        (Nature::Liar, Err("old data is still at byte 0")),
        (Nature::HalfLiar, Err("old data is still at byte")),
        (Nature::Refuses, Err("refused")),
        (Nature::Hangs, Err("did not finish within 0 s")),
        (Nature::Forgets, Err("does not read back as it was written")),
        (Nature::Unreadable, Err("/dev/fake")),
    ] {
        let disk = FakeDisk::new(nature, &[NvmeSanitizeBlock, NvmeFormatUserData], MIB);
        let (outcome, statement) = erase(&disk, &settings(false));
        match (outcome, expected) {
            (Ok(method), Ok(expected)) => assert_eq!(method, expected),
            (Err(error), Err(text)) => {
                let error = error.to_string();
                assert!(error.contains(text) && error.contains("nvme-sanitize-block"), "{nature:?}: {error}");
            }
            other => panic!("{nature:?}: {other:?}"),
        }
        // Never a second method without consent (P08).
        assert_eq!(statement["attempts"].as_array().unwrap().len(), 1, "{nature:?}");
        assert_eq!(statement["capabilities"], serde_json::json!({"bits": 7}));
    }
}

#[test]
fn p08_with_consent_each_weaker_method_follows_and_is_on_record() {
    for (nature, methods) in [
        (Nature::Honest, &["nvme-sanitize-block"][..]),
        (Nature::Liar, &["nvme-sanitize-block", "nvme-format-user-data", "overwrite"]),
        (Nature::Refuses, &["nvme-sanitize-block", "nvme-format-user-data", "overwrite"]),
    ] {
        let disk = FakeDisk::new(nature, &[NvmeSanitizeBlock, NvmeFormatUserData], MIB);
        let (outcome, statement) = erase(&disk, &settings(true));
        assert_eq!(outcome.unwrap().name(), *methods.last().unwrap());
        let attempts = statement["attempts"].as_array().unwrap();
        let tried: Vec<_> = attempts.iter().map(|attempt| attempt["method"].as_str().unwrap()).collect();
        assert_eq!(tried, methods);
        let failed = attempts.iter().filter(|attempt| attempt["error"].is_string()).count();
        assert_eq!(failed, methods.len() - 1, "{nature:?}");
    }
}

#[test]
fn a_disk_without_a_method_is_overwritten_unless_it_is_flash() {
    let mut disk = FakeDisk::new(Nature::Honest, &[], MIB + 512);
    let (outcome, statement) = erase(&disk, &settings(false));
    assert_eq!(outcome.unwrap(), Overwrite);
    assert!(disk.content().iter().all(|byte| *byte == 0));
    assert_eq!(statement["samples"], 128);
    disk.is_indispensable = true;
    let (outcome, _) = erase(&disk, &settings(false));
    assert!(matches!(outcome, Err(EraseError::NoSecureErase(_))), "{outcome:?}");
    assert_eq!(erase(&disk, &settings(true)).0.unwrap(), Overwrite);
}

#[test]
fn without_zeros_at_the_end_the_disk_is_full_of_random_data() {
    let disk = FakeDisk::new(Nature::Honest, &[], 3 * MIB);
    let passes = Passes { random: 2, zero: false };
    let (outcome, _) = erase(&disk, &Settings { passes, ..settings(false) });
    assert_eq!(outcome.unwrap(), Overwrite);
    for sector in disk.content().chunks(512) {
        assert!(sector.iter().any(|byte| *byte != 0xaa) && sector.iter().any(|byte| *byte != 0));
    }
}

#[test]
fn disks_of_any_size_are_proven() {
    for size in [512, 4096, 4608, 10 * 4096, 63 * 4096 + 512, MIB] {
        let disk = FakeDisk::new(Nature::Honest, &[], size);
        assert_eq!(erase(&disk, &settings(false)).0.unwrap(), Overwrite, "{size}");
        assert!(disk.content().iter().all(|byte| *byte == 0), "{size}");
        let liar = FakeDisk::new(Nature::Liar, &[NvmeSanitizeBlock], size);
        assert!(erase(&liar, &settings(false)).0.is_err(), "{size}");
    }
}

#[test]
fn a_statement_names_disk_method_times_and_verdict() {
    let mut record = Record::begin(&device());
    record.tried(Overwrite, None);
    let record = record.finish(Ok(certificate::Verdict::Erased(Overwrite)));
    let statement = record.statement("1f4c", "erase_devices");
    for (key, value) in [
        ("version", serde_json::json!(2)),
        ("node", "1f4c".into()),
        ("step", "erase_devices".into()),
        ("device", "/dev/sdx".into()),
        ("model", "Disk".into()),
        ("serial", "S1".into()),
        ("size_bytes", 2_097_152.into()),
        ("verdict", "erased".into()),
        ("method", "overwrite".into()),
        ("reason", Value::Null),
    ] {
        assert_eq!(statement[key], value, "{key}");
    }
    let started = statement["started_at"].as_str().unwrap();
    assert!(started.ends_with('Z') && started.len() == 20, "{started}");
}

#[test]
fn d30_a_read_only_disk_fails_a_full_erase_unless_it_is_to_be_skipped() {
    let kept = KeptDisk { device: device(), reason: KeepReason::ReadOnly };
    let skip = Settings { skip_read_only: true, ..settings(false) };
    for (settings, depth, fails) in [
        (settings(false), Depth::Data, true),
        (skip, Depth::Data, false),
        (settings(false), Depth::Metadata, false),
        (settings(false), Depth::Express, false),
    ] {
        let failure = keep(&kept, &settings, depth).failure();
        assert_eq!(failure.is_some(), fails, "{depth:?}");
        assert!(failure.is_none_or(|text| text.starts_with("/dev/sdx: it is read-only")));
    }
}

#[test]
fn a06_the_medium_of_the_ramdisk_is_kept_and_one_of_several_that_look_like_it_fails() {
    for depth in [Depth::Data, Depth::Express, Depth::Metadata] {
        for (medium, told) in [
            (BootMedium::Ramdisk, "kept (the medium that this ramdisk was booted from)"),
            (BootMedium::Parameters, "kept (the medium with the agent's parameters)"),
            (BootMedium::Doubtful, "one of several disks that look like the medium"),
        ] {
            let kept = KeptDisk { device: device(), reason: KeepReason::BootMedium(medium) };
            let record = keep(&kept, &settings(false), depth);
            let text = record.failure().unwrap_or_else(|| record.summary());
            assert!(text.contains(told), "{text}");
            assert_eq!(record.failure().is_some(), medium == BootMedium::Doubtful, "{text}");
        }
    }
}

#[test]
fn work_is_done_by_as_many_threads_as_wanted_and_keeps_its_order() {
    for width in [1, 3, 64] {
        let (now, most) = (AtomicUsize::new(0), AtomicUsize::new(0));
        let items: Vec<_> = (0..20).collect();
        let doubled = in_parallel(&items, width, |item| {
            most.fetch_max(now.fetch_add(1, Ordering::SeqCst) + 1, Ordering::SeqCst);
            std::thread::yield_now();
            now.fetch_sub(1, Ordering::SeqCst);
            item * 2
        });
        assert_eq!(doubled, items.iter().map(|item| item * 2).collect::<Vec<_>>());
        assert!(most.load(Ordering::SeqCst) <= width, "{width}");
    }
}

#[test]
fn f25_a_disk_that_appears_while_others_are_erased_fails_the_step() {
    let seen = [device_called("sda", "A"), device_called("sdb", "B")];
    let swapped = device_called("sdb", "C");
    let late = device_called("sdc", "D");
    let properties =
        serde_json::from_value(serde_json::json!({"skip_block_devices": [{"name": "/dev/sdc"}]}));
    let skipping = Node { properties: properties.unwrap(), ..Node::default() };
    for (node, now, expected) in [
        (Node::default(), vec![seen[0].clone()], vec![]),
        (Node::default(), vec![seen[0].clone(), swapped.clone(), late.clone()], vec!["/dev/sdb", "/dev/sdc"]),
        (skipping, vec![seen[0].clone(), late], vec![]),
    ] {
        let later = guard::plan_erase(&node, &now).unwrap();
        let records = appeared(&seen, &later);
        let failures: Vec<_> = records.iter().filter_map(Record::failure).collect();
        assert_eq!(failures.len(), expected.len(), "{failures:?}");
        for (failure, disk) in failures.iter().zip(expected) {
            assert!(failure.contains(disk) && failure.contains("appeared"), "{failure}");
        }
    }
}

#[test]
fn g08_a_method_that_is_not_there_is_followed_by_the_next_one_without_consent() {
    for (indispensable, expected) in [(false, Some(Overwrite)), (true, None)] {
        let mut disk = FakeDisk::new(Nature::Lacks, &[NvmeSanitizeBlock, NvmeFormatUserData], MIB);
        disk.is_indispensable = indispensable;
        let (outcome, statement) = erase(&disk, &settings(false));
        match expected {
            Some(method) => assert_eq!(outcome.unwrap(), method),
            None => assert!(matches!(outcome, Err(EraseError::NoSecureErase(_))), "{outcome:?}"),
        }
        let attempts = statement["attempts"].as_array().unwrap();
        let refused = attempts
            .iter()
            .filter(|attempt| attempt["error"].as_str().is_some_and(|text| text.contains("not there")));
        assert_eq!(refused.count(), 2, "{attempts:?}");
    }
}

#[test]
fn a16_g04_what_is_out_of_reach_is_erased_by_sanitize_alone() {
    let hidden = Hidden { cause: Cause::HostProtectedArea, bytes: 4096 };
    for (nature, methods, expected) in [
        (Nature::Honest, &[NvmeSanitizeBlock, NvmeFormatUserData][..], Ok(NvmeSanitizeBlock)),
        (Nature::Honest, &[NvmeFormatUserData], Err("host protected area")),
        (Nature::Honest, &[], Err("4096 bytes are out of reach")),
        // A weaker method would not reach it either, whatever the operator says.
        (Nature::Refuses, &[NvmeSanitizeBlock, NvmeFormatUserData], Err("nvme-sanitize-block")),
        (Nature::Lacks, &[NvmeSanitizeBlock], Err("power-cycle the machine")),
    ] {
        for (consent, is_indispensable) in [(false, false), (true, false), (true, true)] {
            let disk = FakeDisk { is_indispensable, ..FakeDisk::new(nature, methods, MIB) };
            let counts = [("sectors", 8), ("sectors_native", 16)].into();
            let reach =
                Reach { counts, hidden: vec![hidden.clone()], unanswered: vec!["an overlay".to_owned()] };
            let mut record = Record::begin(&device());
            let outcome = erase_data(&disk, Some(&disk), reach, &settings(consent), &PATIENCE, &mut record);
            match (outcome, expected) {
                (Ok(method), Ok(expected)) => assert_eq!(method, expected),
                (Err(error), Err(text)) => assert!(error.to_string().contains(text), "{nature:?}: {error}"),
                other => panic!("{nature:?} {methods:?}: {other:?}"),
            }
            let statement = record.statement("n", "erase_devices");
            assert_eq!(statement["capabilities"]["sectors_native"], 16);
            assert_eq!(statement["unanswered"], serde_json::json!(["an overlay"]));
        }
    }
}

#[test]
fn g07_a_worn_disk_is_erased_and_one_that_takes_nothing_is_not() {
    for (worn, method, expected) in [
        // The first sectors, which every place of a label is in.
        (vec![0], NvmeSanitizeBlock, Ok(63)),
        ((0..16).map(|place| place * 4096).collect(), NvmeSanitizeBlock, Ok(48)),
        ((0..40).map(|place| place * 4096).collect(), NvmeSanitizeBlock, Err("40 of 64 places")),
    ] {
        let disk = FakeDisk { worn, ..FakeDisk::new(Nature::Honest, &[method], 64 * 4096) };
        let (outcome, statement) = erase(&disk, &settings(false));
        match expected {
            Ok(samples) => {
                assert_eq!(outcome.unwrap(), method);
                assert_eq!(statement["samples"], samples);
            }
            Err(text) => assert!(outcome.unwrap_err().to_string().contains(text)),
        }
    }
}

#[test]
fn g14_overwriting_stops_when_the_agent_ends_and_nothing_else_is_tried() {
    let asked = AtomicUsize::new(0);
    let is_ending = || asked.fetch_add(1, Ordering::SeqCst) >= 2;
    let patience = Patience { is_ending: &is_ending, ..PATIENCE };
    let disk = FakeDisk::new(Nature::Honest, &[], 8 * MIB);
    let mut record = Record::begin(&device());
    let outcome = erase_data(&disk, None, Reach::default(), &settings(true), &patience, &mut record);
    assert!(matches!(outcome, Err(EraseError::Ending(_))), "{outcome:?}");
    let record = record.finish(outcome.map(certificate::Verdict::Erased));
    let statement = record.statement("n", "erase_devices");
    assert_eq!(statement["verdict"], "failed");
    assert!(statement["reason"].as_str().unwrap().contains("the agent is ending"), "{statement}");
    assert_eq!(statement["attempts"][0]["method"], "overwrite");
    assert!(disk.content()[4 * MIB..].iter().filter(|byte| **byte == 0xaa).count() > 3 * MIB);

    // A disk that erases itself is left, and no weaker method follows, whatever the operator says.
    let disk = FakeDisk::new(Nature::Hangs, &[NvmeSanitizeBlock, NvmeFormatUserData], MIB);
    let patience = Patience { is_ending: &|| true, ..PATIENCE };
    let mut record = Record::begin(&device());
    let outcome = erase_data(&disk, Some(&disk), Reach::default(), &settings(true), &patience, &mut record);
    assert!(matches!(outcome, Err(EraseError::Ending(_))), "{outcome:?}");
    let statement = record.statement("n", "erase_devices");
    assert_eq!(statement["attempts"].as_array().unwrap().len(), 1, "{statement}");
}

#[test]
fn a12_g14_boot_areas_are_kept_by_default_and_no_disk_is_begun_when_the_agent_ends() {
    for (name, is_ending, boot_areas, depth, verdict, text) in [
        ("mmcblk0boot0", false, false, Depth::Data, "kept", "boot area of an eMMC device"),
        ("mmcblk0boot0", false, false, Depth::Metadata, "kept", "farrier-erase-emmc-boot-areas"),
        ("mmcblk0boot1", false, true, Depth::Metadata, "kept", "boot area of an eMMC device"),
        ("mmcblk0boot1", false, true, Depth::Express, "kept", "boot area of an eMMC device"),
        // There is no such area here.
        ("mmcblk77boot0", false, true, Depth::Data, "failed", "write protection cannot be lifted"),
        ("mmcblk0gp0", true, false, Depth::Data, "failed", "it was not begun"),
        ("sdx", true, false, Depth::Data, "failed", "it was not begun"),
    ] {
        let plan = guard::plan_erase(&Node::default(), &[device_called(name, "S")]).unwrap();
        let settings = Settings { boot_areas, ..settings(false) };
        let is_ending = move || is_ending;
        let patience = Patience { is_ending: &is_ending, ..PATIENCE };
        let record = disk_erase::erase(&plan.targets[0], &settings, depth, &patience);
        let statement = record.statement("n", "erase_devices");
        assert_eq!(statement["verdict"], verdict, "{name}: {statement}");
        assert!(statement["reason"].as_str().unwrap().contains(text), "{statement}");
    }
}
