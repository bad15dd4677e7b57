//! Erasing loop devices that hold a marker in every sector.

#![allow(clippy::unwrap_used)]

use farrier_disk::BlockDevice;
use farrier_disk::guard::{self, ErasePlan};
use farrier_hardware::container::bootc::Order;
use farrier_hardware::erase::{Depth, erase_plan};
use farrier_hardware::error::StepError;
use farrier_hardware::manager::{StepCall, StepHost};
use farrier_linux::loop_device::LoopDevice;
use farrier_protocol::error::CommandError;
use farrier_protocol::lookup::Node;
use farrier_protocol::step::Phase;
use serde_json::{Map, Value, json};
use std::fs::{self, File};
use std::io::Write;
use std::os::unix::fs::{FileExt, MetadataExt};
use std::path::Path;
use std::sync::Mutex;

const MIB: usize = 1 << 20;
/// Not a multiple of what is written at once.
const DISK: usize = 9 * MIB + 8192;

/// A disk full of old data.
struct Disk {
    file: File,
    device: LoopDevice,
}

impl Disk {
    fn new(sector_size: u32) -> Self {
        let mut file = tempfile::NamedTempFile::new().unwrap();
        for sector in 0..DISK / 512 {
            let mut content = [0xa5; 512];
            content[..8].copy_from_slice(&(sector as u64).to_le_bytes());
            file.write_all(&content).unwrap();
        }
        let device = LoopDevice::attach(file.path(), sector_size).expect("loop devices need root");
        Self { file: file.into_file(), device }
    }

    fn name(&self) -> String {
        self.device.path().display().to_string()
    }

    fn describe(&self) -> BlockDevice {
        BlockDevice::describe(Path::new("/sys"), self.device.kernel_name()).unwrap()
    }

    /// What the backing file holds.
    fn content(&self) -> Vec<u8> {
        let mut content = vec![0; DISK];
        self.file.read_exact_at(&mut content, 0).unwrap();
        content
    }
}

/// An agent that keeps the statements.
#[derive(Default)]
struct Host(Mutex<Vec<Value>>);

impl StepHost for Host {
    fn prepare_image(&self, _: &Value, _: Option<&str>) -> Result<Value, CommandError> {
        unreachable!("no image is written")
    }

    fn install_bootc(&self, _: &Order<'_>) -> Result<Value, CommandError> {
        unreachable!("no image is installed")
    }

    fn download(&self, _: &str, _: usize, _: bool) -> Result<Vec<u8>, CommandError> {
        unreachable!("nothing is fetched")
    }

    fn missing_devices(&self) -> Vec<String> {
        Vec::new()
    }

    fn guards_special_filesystems(&self) -> bool {
        true
    }

    fn erases_emmc_boot_areas(&self) -> bool {
        false
    }

    fn certify(&self, statement: &Value) -> Result<String, CommandError> {
        self.0.lock().unwrap().push(statement.clone());
        Ok("signed".to_owned())
    }

    fn is_ending(&self) -> bool {
        false
    }

    fn post_json(&self, _: &str, _: &Value) -> Result<Value, CommandError> {
        unreachable!("nobody is asked")
    }
}

fn plan(disks: &[&Disk], node: &Node) -> ErasePlan {
    let devices: Vec<_> = disks.iter().map(|disk| disk.describe()).collect();
    guard::plan_erase(node, &devices).unwrap()
}

fn node(internal: Value) -> Node {
    Node { driver_internal_info: serde_json::from_value(internal).unwrap(), ..Node::default() }
}

fn erase(host: &Host, node: &Node, plan: &ErasePlan, depth: Depth) -> Result<Value, StepError> {
    let call = StepCall {
        phase: Phase::Clean,
        step: "erase_devices",
        nonce: None,
        node,
        record: &Value::Null,
        ports: &Value::Null,
        arguments: &Map::new(),
        host,
    };
    erase_plan(&call, depth, plan)
}

#[test]
fn loop_p09_no_sector_keeps_its_marker() {
    for (sector_size, internal, is_zero) in [
        (512, json!({"disk_erasure_concurrency": 2}), true),
        (4096, json!({"agent_erase_devices_iterations": 2}), true),
        (512, json!({"agent_erase_devices_zeroize": false}), false),
    ] {
        let (one, other) = (Disk::new(sector_size), Disk::new(sector_size));
        let (host, node) = (Host::default(), node(internal.clone()));
        let result = erase(&host, &node, &plan(&[&one, &other], &node), Depth::Data).unwrap();
        for disk in [&one, &other] {
            let entry = &result[&disk.name()];
            assert_eq!((&entry["verdict"], &entry["method"]), (&json!("erased"), &json!("overwrite")));
            assert_eq!((&entry["certificate"], &entry["size_bytes"]), (&json!("signed"), &json!(DISK)));
            for (number, sector) in disk.content().chunks(512).enumerate() {
                assert!(!sector.ends_with(&[0xa5; 16]), "{internal}: sector {number} survives");
                assert_eq!(sector.iter().all(|byte| *byte == 0), is_zero, "{internal}: sector {number}");
            }
        }
        assert_eq!(host.0.lock().unwrap().len(), 2);
    }
}

#[test]
fn loop_p16_discarding_is_never_counted_as_erasing() {
    let disk = Disk::new(512);
    let sysfs = Path::new("/sys/block").join(disk.device.kernel_name());
    for limit in ["queue/discard_max_bytes", "queue/write_zeroes_max_bytes"] {
        let bytes = fs::read_to_string(sysfs.join(limit)).unwrap();
        assert_ne!(bytes.trim(), "0", "a disk that cannot give up blocks proves nothing");
    }
    let result =
        erase(&Host::default(), &Node::default(), &plan(&[&disk], &Node::default()), Depth::Data).unwrap();
    assert_eq!(result[&disk.name()]["method"], "overwrite");
    assert!(disk.content().iter().all(|byte| *byte == 0));
    let kept = disk.file.metadata().unwrap().blocks() * 512;
    assert!(kept >= DISK as u64, "{kept} bytes were written, and the other blocks only given up");
}

#[test]
fn loop_a_disk_in_use_fails_by_name_and_the_other_is_erased() {
    let (held, free) = (Disk::new(512), Disk::new(512));
    let node = Node::default();
    let plan = plan(&[&held, &free], &node);
    let claim = guard::plan_erase(&node, &[held.describe()]).unwrap().targets[0].open(true).unwrap();
    let host = Host::default();
    let text = erase(&host, &node, &plan, Depth::Data).unwrap_err().to_string();
    drop(claim);
    assert!(text.contains(&format!("{} is in use", held.name())), "{text}");
    assert!(text.contains(&format!("{} was erased (overwrite)", free.name())), "{text}");
    assert!(free.content().iter().all(|byte| *byte == 0));
    assert!(held.content().ends_with(&[0xa5; 16]));
    let statements = host.0.lock().unwrap();
    let verdicts: Vec<_> =
        statements.iter().map(|statement| statement["verdict"].as_str().unwrap()).collect();
    assert_eq!(verdicts.len(), 2);
    assert!(verdicts.contains(&"failed") && verdicts.contains(&"erased"), "{verdicts:?}");
}

#[test]
fn loop_d03_a_cluster_file_system_is_kept_from_every_erase_step_without_consent() {
    for depth in [Depth::Data, Depth::Express, Depth::Metadata] {
        let disk = Disk::new(512);
        // GFS2 keeps its superblock at 64 KiB.
        disk.file.write_all_at(&[0x01, 0x16, 0x19, 0x70], 64 * 1024).unwrap();
        let before = disk.content();
        let refused = Node::default();
        let text =
            erase(&Host::default(), &refused, &plan(&[&disk], &refused), depth).unwrap_err().to_string();
        assert!(text.contains("GFS2") && text.contains(&disk.name()), "{text}");
        assert!(disk.content() == before, "{depth:?} wrote to a protected disk");
        let consent = node(json!({"wipe_special_filesystems": true}));
        erase(&Host::default(), &consent, &plan(&[&disk], &consent), depth).unwrap();
        assert!(disk.content()[..MIB].iter().all(|byte| *byte == 0), "{depth:?}");
    }
}

#[test]
fn loop_d01_a_skipped_disk_is_kept_and_reported() {
    let (kept, erased) = (Disk::new(512), Disk::new(512));
    let node = Node {
        properties: serde_json::from_value(json!({"skip_block_devices": [{"name": kept.name()}]})).unwrap(),
        ..Node::default()
    };
    let result = erase(&Host::default(), &node, &plan(&[&kept, &erased], &node), Depth::Data).unwrap();
    assert_eq!(result[&kept.name()]["verdict"], "kept");
    assert_eq!(result[&kept.name()]["reason"], "on the list of skipped disks");
    assert_eq!(result[&erased.name()]["verdict"], "erased");
    assert!(kept.content().ends_with(&[0xa5; 16]));
}

#[test]
fn loop_x04_an_entry_that_protects_no_disk_is_in_the_result() {
    let disk = Disk::new(512);
    let skipped = json!({"skip_block_devices": [{"model": "SAMSUNG MZ7LH960HAJR-00005"}]});
    let node = Node { properties: serde_json::from_value(skipped).unwrap(), ..Node::default() };
    let result = erase(&Host::default(), &node, &plan(&[&disk], &node), Depth::Metadata).unwrap();
    assert_eq!(result[&disk.name()]["verdict"], "metadata_removed");
    let [warning] = &result["warnings"].as_array().unwrap()[..] else { panic!("{result}") };
    let warning = warning.as_str().unwrap();
    assert!(warning.contains("MZ7LH960HAJR-00005") && warning.contains("matches no disk"), "{warning}");
}

/// The first bytes of a swap area with the label of the medium with the agent's parameters, as it may be written.
fn labelled() -> [Vec<u8>; 2] {
    [b"ir-vfd-dev", b"IR-VFD-DEV"].map(|label| {
        let mut swap = vec![0; 4096];
        swap[4086..].copy_from_slice(b"SWAPSPACE2");
        swap[1024] = 1;
        swap[1028..1032].copy_from_slice(&255_u32.to_le_bytes());
        swap[1036..1052].copy_from_slice(&[0x11; 16]);
        swap[1052..1062].copy_from_slice(label);
        swap
    })
}

#[test]
fn loop_g02_a_label_that_anybody_can_write_keeps_nothing() {
    for depth in [Depth::Data, Depth::Express, Depth::Metadata] {
        for content in labelled() {
            let disk = Disk::new(512);
            disk.file.write_all_at(&content, 0).unwrap();
            let found =
                farrier_linux::blkid::signatures(&File::open(disk.device.path()).unwrap(), 0, DISK as u64);
            let label = found.unwrap().into_iter().find_map(|signature| signature.label);
            assert!(
                label.is_some_and(|label| label.eq_ignore_ascii_case("ir-vfd-dev")),
                "the input is another"
            );
            let node = Node::default();
            let result = erase(&Host::default(), &node, &plan(&[&disk], &node), depth).unwrap();
            let verdict = if depth == Depth::Data { "erased" } else { "metadata_removed" };
            assert_eq!(result[&disk.name()]["verdict"], verdict, "{depth:?}");
            assert!(disk.content()[..MIB].iter().all(|byte| *byte == 0), "{depth:?}");
        }
    }
}
