//! The disk of a machine, exported by its agent, and initiators on this machine that read and write it.

use farrier_tests::agent::stub_conductor::NODE;
use farrier_tests::environment;
use farrier_tests::iscsi::exporter::{Exporter, SERIAL};
use farrier_tests::iscsi::initiator::{self, LogicalUnit};
use farrier_tests::ramdisk::{self, Addition};
use serde_json::{Value, json};
use std::time::Duration;
use tempfile::TempDir;

const DISK: u64 = 5 << 30;
/// Longest time of a command on a busy machine.
const PATIENCE: Duration = Duration::from_secs(240);
/// A kernel that has no target, as far as the agent can tell.
const WITHOUT_TARGET: &str = "module_blacklist=target_core_mod";
const START: &str = "iscsi.start_iscsi_target";

fn erase() -> Value {
    let step = json!({"step": "erase_devices_metadata", "interface": "deploy"});
    json!({"step": step, "node": {"uuid": NODE, "properties": {}}, "ports": []})
}

/// Nobody gets in as `unit` says.
fn is_closed(unit: &LogicalUnit) {
    let error = unit.io("read 0 4k").unwrap_err().to_string();
    assert!(error.contains("can't open"), "{error}");
}

#[test]
fn vm_a_disk_is_exported_written_from_elsewhere_and_given_back() {
    let folder = TempDir::new().unwrap();
    let exporter = Exporter::boot(&environment::path("FARRIER_DIST"), folder.path(), DISK).unwrap();
    exports_as_it_is_told(exporter);
}

/// The kernel's target cannot be loaded; the ramdisk carries another one.
#[test]
fn vm_without_a_target_in_the_kernel_tgtd_does_the_same() {
    let folder = TempDir::new().unwrap();
    let programs = ["/usr/sbin/tgtd", "/usr/sbin/tgtadm"].map(Addition::Program);
    let dist = ramdisk::build(folder.path(), &programs).unwrap();
    exports_as_it_is_told(Exporter::boot_with(&dist, folder.path(), DISK, WITHOUT_TARGET).unwrap());
}

#[test]
fn vm_a_sector_that_the_disk_cannot_read_is_told_to_the_initiator_as_scsi_sense() {
    const SECTOR: u64 = 100_000;
    let folder = TempDir::new().unwrap();
    let dist = environment::path("FARRIER_DIST");
    let exporter = Exporter::boot_failing(&dist, folder.path(), DISK, SECTOR).unwrap();
    exporter.start(&json!({})).unwrap();
    let unit = &exporter.unit;
    // It reads from the beginning on, and tells what it is told.
    let error = unit.tool("iscsi-perf", &["--blocks", "2048", "--runtime", "60"]).unwrap_err().to_string();
    assert!(error.contains("SENSE KEY"), "{error}");
    let error = unit.io(&format!("read {} 4k", SECTOR * 512)).unwrap_err().to_string();
    assert!(error.contains("read failed: Input/output error"), "{error}");
    // The export goes on.
    unit.io("write -P 4 1G 1M").unwrap();
    unit.io("read -P 4 1G 1M").unwrap();
    assert_eq!(exporter.stop().unwrap(), json!({"iscsi_target_iqn": unit.target}));
    assert!(exporter.has(1024, 4).unwrap());
}

/// Neither is there: one line says what to pack.
#[test]
fn vm_without_any_target_one_line_tells_what_to_pack() {
    let folder = TempDir::new().unwrap();
    let exporter =
        Exporter::boot_with(&environment::path("FARRIER_DIST"), folder.path(), DISK, WITHOUT_TARGET).unwrap();
    let error = exporter.failure(START, &json!({})).unwrap();
    assert!(error.contains("/usr/sbin/tgtd and /usr/sbin/tgtadm of the package tgt"), "{error}");
    assert_eq!(exporter.stop().unwrap(), Value::Null);
}

fn exports_as_it_is_told(exporter: Exporter) {
    bad_orders_leave_nothing(&exporter);
    f60_one_export_at_a_time_and_none_after_it(&exporter);
    two_write_and_one_vanishes(&exporter);
    only_those_who_are_meant_get_in(&exporter);
    the_boot_loader_step_and_power_off_end_it(exporter);
}

fn bad_orders_leave_nothing(exporter: &Exporter) {
    let refused = exporter.agent.order(START, &json!({"iqn": "disk"})).unwrap_err().to_string();
    assert!(refused.contains("no iSCSI name"), "{refused}");
    // The agent listens there.
    let in_use = exporter.failure(START, &json!({"portal_port": 9999})).unwrap();
    assert!(in_use.contains("port 9999 is in use on this machine"), "{in_use}");
    assert_eq!(exporter.stop().unwrap(), Value::Null);
}

/// As a conductor of section 4.4 orders it. Asked again it is the same export; under other terms it is in the way, and
/// so it is for steps.
fn f60_one_export_at_a_time_and_none_after_it(exporter: &Exporter) {
    let unit = &exporter.unit;
    let params = json!({"iqn": unit.target, "portal_port": 3260, "wipe_disk_metadata": true});
    exporter.start(&params).unwrap();
    assert!(unit.discover().unwrap().contains(&unit.target));
    let serial = unit.tool("iscsi-inq", &["--evpd=1", "--pagecode=128"]).unwrap();
    assert!(serial.contains(&format!("-{SERIAL}]")), "{serial}");
    let size = unit.tool("iscsi-readcapacity16", &["--size"]).unwrap();
    assert_eq!(size.trim(), DISK.to_string());
    unit.io("write -P 7 1M 1M").unwrap();
    exporter.start(&params).unwrap();
    unit.io("read -P 7 1M 1M").unwrap();
    let other = exporter.failure(START, &json!({"portal_port": 3261})).unwrap();
    assert!(other.contains("order iscsi.stop_iscsi_target first"), "{other}");
    let wanted = exporter.failure("clean.execute_clean_step", &erase()).unwrap();
    assert!(wanted.contains(&format!("is exported by iSCSI as {}", unit.target)), "{wanted}");
    assert!(exporter.has(1, 7).unwrap(), "no step touched it");
    assert_eq!(exporter.stop().unwrap(), json!({"iscsi_target_iqn": unit.target}));
    is_closed(unit);
}

/// The disk has what was written by whoever stayed, and is free again.
fn two_write_and_one_vanishes(exporter: &Exporter) {
    let unit = &exporter.unit;
    exporter.start(&json!({})).unwrap();
    let mut vanishing = unit.begin_io("write -P 9 1G 512M").unwrap();
    let second = LogicalUnit { initiator: "iqn.2026-01.org.example:second".into(), ..unit.clone() };
    second.io("write -P 8 2M 1M").unwrap();
    vanishing.kill().unwrap();
    vanishing.wait().unwrap();
    unit.io("read -P 8 2M 1M").unwrap();
    exporter.stop().unwrap();
    is_closed(unit);
    assert!(exporter.has(1, 7).unwrap() && exporter.has(2, 8).unwrap());
    exporter.agent.succeed("clean.execute_clean_step", &erase(), PATIENCE).unwrap();
    assert!(exporter.has(1, 0).unwrap());
}

/// One initiator that proves itself, and may only read.
fn only_those_who_are_meant_get_in(exporter: &Exporter) {
    let unit = &exporter.unit;
    let terms = json!({
        "read_only": true, "initiators": [initiator::NAME],
        "chap_user": "ann", "chap_password": "correct-horse-battery",
    });
    exporter.start(&terms).unwrap();
    let login = |secret: &str| Some(("ann".to_owned(), secret.to_owned()));
    let meant = LogicalUnit { chap: login("correct-horse-battery"), ..unit.clone() };
    for stranger in [
        unit.clone(),
        LogicalUnit { chap: login("another-horse-battery"), ..unit.clone() },
        LogicalUnit { initiator: "iqn.2026-01.org.example:stranger".into(), ..meant.clone() },
        LogicalUnit { target: "iqn.2026-01.org.example:other".into(), ..meant.clone() },
    ] {
        is_closed(&stranger);
    }
    meant.io("read -P 0 1M 1M").unwrap();
    let error = meant.io("write -P 6 1M 1M").unwrap_err().to_string();
    assert!(exporter.has(1, 0).unwrap(), "{error}");
}

fn the_boot_loader_step_and_power_off_end_it(mut exporter: Exporter) {
    let params = json!({"root_uuid": "0x00000000", "target_boot_mode": "bios"});
    exporter.agent.succeed("image.install_bootloader", &params, PATIENCE).unwrap();
    is_closed(&exporter.unit);
    exporter.start(&json!({})).unwrap();
    exporter.unit.io("write -P 5 3M 1M").unwrap();
    exporter.agent.order("standby.power_off", &json!({})).unwrap();
    exporter.agent.wait_until_off(PATIENCE).unwrap();
    assert!(exporter.has(3, 5).unwrap());
}
