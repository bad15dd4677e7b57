//! Waits that end by facts, and those that do not.

use super::watch::QUIET;
use super::*;
use std::fs;
use tempfile::TempDir;

const SECOND: Duration = Duration::from_secs(1);

/// A machine with these files below its sysfs.
fn machine(files: &[(&str, &str)]) -> TempDir {
    let root = tempfile::tempdir().unwrap();
    fs::create_dir(root.path().join("sys")).unwrap();
    files.iter().for_each(|(path, text)| write(&root, path, text));
    root
}

fn write(root: &TempDir, path: &str, text: &str) {
    let file = root.path().join("sys").join(path);
    fs::create_dir_all(file.parent().unwrap()).unwrap();
    fs::write(file, text).unwrap();
}

#[test]
fn f25_a_late_disk_is_waited_for() {
    let root = machine(&[]);
    let start = Instant::now();
    let mut watch = Watch::begin(root.path(), start);
    assert_eq!(watch.look(start + 2 * SECOND), Look::Restless(vec![]));
    write(&root, "block/sda/size", "1");
    let sda = Look::Restless(vec!["block/sda".to_owned()]);
    assert_eq!(watch.look(start + QUIET), sda, "a disk has just appeared");
    assert_eq!(watch.look(start + 2 * QUIET - SECOND), sda);
    assert_eq!(watch.look(start + 2 * QUIET), Look::Over);
}

#[test]
fn x02_disks_on_usb_are_waited_for_as_long_as_their_driver_leaves_them_alone() {
    for (delay, seconds) in [("0", 3), ("1", 3), ("5", 7)] {
        let root = machine(&[("module/usb_storage/parameters/delay_use", delay)]);
        let start = Instant::now();
        let mut watch = Watch::begin(root.path(), start);
        assert_eq!(watch.look(start + (seconds - 1) * SECOND), Look::Restless(vec![]), "{delay}");
        assert_eq!(watch.look(start + seconds * SECOND), Look::Over, "{delay}");
    }
}

#[test]
fn x02_a_driver_that_loads_is_waited_for_however_quiet_it_is() {
    let root = machine(&[("module/mpt3sas/initstate", "coming")]);
    let start = Instant::now();
    let mut watch = Watch::begin(root.path(), start);
    for seconds in [1, 10, 60] {
        let look = watch.look(start + seconds * SECOND);
        assert_eq!(look, Look::Awaiting(vec![Awaited::Driver("mpt3sas".into(), vec![])]), "{seconds} s");
    }
    write(&root, "module/mpt3sas/initstate", "live");
    assert_eq!(watch.look(start + 61 * SECOND), Look::Restless(vec![]));
    assert_eq!(watch.look(start + 60 * SECOND + QUIET), Look::Over);
}

#[test]
fn x02_fibre_channel_targets_are_asked_for_their_disks() {
    let root = machine(&[
        ("class/fc_host/host5/port_state", "Online"),
        ("class/fc_host/host6/port_state", "Linkdown"),
        ("class/scsi_host/host5/scan", ""),
        ("class/scsi_host/host6/scan", ""),
    ]);
    let scans = fabric::Scans::begin(&root.path().join("sys"));
    let deadline = Instant::now() + 10 * SECOND;
    while !scans.awaited().is_empty() {
        assert!(Instant::now() < deadline);
        thread::yield_now();
    }
    let written =
        |host: &str| fs::read_to_string(root.path().join(format!("sys/class/scsi_host/{host}/scan")));
    assert_eq!((written("host5").unwrap(), written("host6").unwrap()), ("- - -".into(), String::new()));
}

#[test]
fn x02_a_wait_that_came_to_its_end_names_what_is_missing_and_may_succeed_later() {
    let root = machine(&[("module/mpt3sas/initstate", "coming")]);
    let (devices, status) = (DeviceWait::new(root.path()), Status::default());
    let awaited = devices.wait(Duration::from_millis(1), &status);
    assert_eq!(text(&awaited), "the driver mpt3sas is being loaded");
    assert_eq!(devices.missed(), awaited);
    write(&root, "module/mpt3sas/initstate", "live");
    assert_eq!(devices.wait(QUIET * 10, &status), []);
    assert_eq!(devices.missed(), []);
}

#[test]
fn g10_what_pid_1_loads_is_waited_for_until_it_can_be_read() {
    let root = machine(&[]);
    let file = root.path().join("run/farrier/loading.json");
    fs::create_dir_all(file.parent().unwrap()).unwrap();
    for damaged in ["", "{", r#"{"waiting":0}"#] {
        fs::write(&file, damaged).unwrap();
        let devices = DeviceWait::new(root.path());
        let awaited = devices.wait(Duration::from_millis(1), &Status::default());
        assert!(text(&awaited).contains("not known which drivers"), "{damaged}: {}", text(&awaited));
        assert_eq!(devices.missed(), awaited);
    }
    fs::write(&file, r#"{"waiting":0,"modules":[]}"#).unwrap();
    assert_eq!(DeviceWait::new(root.path()).wait(QUIET * 10, &Status::default()), []);
}

#[test]
fn x02_a_machine_whose_devices_come_and_go_was_never_complete() {
    let root = machine(&[]);
    let (devices, status) = (DeviceWait::new(root.path()), Status::default());
    let is_over = std::sync::atomic::AtomicBool::new(false);
    let started = Instant::now();
    let awaited = thread::scope(|scope| {
        scope.spawn(|| {
            // A card whose link flaps; the disk behind it is there from time to time.
            for number in 0.. {
                if is_over.load(std::sync::atomic::Ordering::Relaxed) {
                    break;
                }
                match number % 2 {
                    0 => write(&root, "block/sdb/size", "1"),
                    _ => fs::remove_dir_all(root.path().join("sys/block/sdb")).unwrap(),
                }
                thread::sleep(SECOND / 2);
            }
        });
        let awaited = devices.wait(Duration::ZERO, &status);
        is_over.store(true, std::sync::atomic::Ordering::Relaxed);
        awaited
    });
    assert!(started.elapsed() < 2 * QUIET, "the wait has a bound");
    assert_eq!(text(&awaited), "devices still come and go: block/sdb");
    assert_eq!(devices.missed(), awaited, "what would be wrong without it fails");
    assert_eq!(devices.wait(Duration::ZERO, &status), [], "once it is quiet all is there");
}
