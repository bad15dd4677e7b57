//! Erasing the disks of an emulated machine, one on each bus, as automated cleaning orders it.

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use farrier_tests::agent::commanded::CommandedAgent;
use farrier_tests::environment;
use farrier_tests::machine::{self, Hardware, free_port};
use serde_json::{Value, json};
use std::fs::{self, File};
use std::io::{BufWriter, Write};
use std::path::PathBuf;
use std::time::Duration;
use tempfile::TempDir;

const DISK_SECTORS: u64 = 64 << 11;
const MARKER: [u8; 16] = *b"farrier was here";
const ERASE: Duration = Duration::from_secs(400);
const NODE: &str = "1f4c3c6e-62d4-4c6f-8a0a-3d0f6f0f2f11";

/// As long as ATA allows. Inquiry data show the first 16 letters.
const MODEL: &str = "FARRIER SSD WITH FORTY LETTERS IN ITS NA";

/// A machine with a disk on each of four buses, a marker in every sector of each, and a SATA disk that is to be
/// kept.
struct Stable {
    agent: CommandedAgent,
    /// File, and the serial number in the certificate.
    disks: Vec<(PathBuf, &'static str)>,
    kept: PathBuf,
    _folder: TempDir,
}

impl Stable {
    fn new() -> Self {
        let folder = TempDir::new().unwrap();
        let disks: Vec<_> = ["VIRTIO1", "SATA1", "NVME1", "SCSI1"]
            .map(|serial| (folder.path().join(format!("{serial}.img")), serial))
            .to_vec();
        let kept = folder.path().join("kept.img");
        disks.iter().map(|(file, _)| file).chain([&kept]).for_each(mark);
        let agent_port = free_port().unwrap();
        let hardware = Hardware {
            mac: "52:54:00:fa:00:05".into(),
            agent_port,
            keyboard_port: free_port().unwrap(),
            disks: disks[..1].to_vec(),
            media: Vec::new(),
            folder: folder.path().to_owned(),
        };
        let mut devices = vec!["-device".to_owned(), "virtio-scsi-pci,id=scsi".to_owned()];
        for ((file, serial), device) in
            disks[1..].iter().zip(["ide-hd,bus=ide.0", "nvme", "scsi-hd,bus=scsi.0"])
        {
            let drive = machine::drive(serial, file);
            devices.extend(["-drive".to_owned(), drive]);
            devices.extend(["-device".to_owned(), format!("{device},drive={serial},serial={serial}")]);
        }
        devices.extend(["-drive".to_owned(), machine::drive("kept", &kept)]);
        let device = format!("ide-hd,bus=ide.1,drive=kept,serial=KEEPME,model={MODEL}");
        devices.extend(["-device".to_owned(), device]);
        let parameters = "ipa-disk-wait-attempts=1";
        let agent = CommandedAgent::boot(&hardware, &devices, &environment::path("FARRIER_DIST"), parameters)
            .unwrap();
        Self { agent, disks, kept, _folder: folder }
    }

    /// Runs a clean step with the settings that a conductor puts into the node's record, and with these entries
    /// in the list of disks to keep.
    fn clean(&self, step: &str, settings: Value, kept: Value) -> Value {
        let properties = json!({"skip_block_devices": kept});
        let params = json!({
            "step": {"step": step, "interface": "deploy"},
            "node": {"uuid": NODE, "driver_internal_info": settings, "properties": properties},
            "ports": [],
        });
        self.agent.succeed("clean.execute_clean_step", &params, ERASE).unwrap()["clean_result"].take()
    }

    /// The part of a result that is about the disk with this serial number.
    fn entry<'a>(&self, result: &'a Value, serial: &str) -> &'a Value {
        let entries = result.as_object().unwrap();
        entries
            .values()
            .find(|entry| entry["serial"] == serial)
            .unwrap_or_else(|| panic!("{serial}: {result}"))
    }
}

fn mark(file: &PathBuf) {
    let mut file = BufWriter::new(File::create(file).unwrap());
    for number in 0..DISK_SECTORS {
        let mut sector = [0x5a; 512];
        sector[..8].copy_from_slice(&number.to_le_bytes());
        sector[496..].copy_from_slice(&MARKER);
        file.write_all(&sector).unwrap();
    }
    file.flush().unwrap();
}

fn decoded(part: &str) -> Value {
    serde_json::from_slice(&URL_SAFE_NO_PAD.decode(part).unwrap()).unwrap()
}

/// Both names that tools have for a SATA disk keep it; an entry that no disk has is told.
fn keep_by_full_model(stable: &Stable) {
    let before = fs::read(&stable.kept).unwrap();
    let long_serial = format!("{}_KEEPME", MODEL.replace(' ', "_"));
    for (entry, warnings) in [
        (json!({"model": MODEL}), 0),
        (json!({"model": MODEL.replace(' ', "_")}), 0),
        (json!({"serial": long_serial}), 0),
        (json!({"serial": "KEEPME", "tran": "sata"}), 0),
        (json!({"by_path": "<in> -ata-2.0"}), 0),
        (json!({"by_path": "<in> -ata-2"}), 1),
    ] {
        let unknown = json!({"model": "SAMSUNG MZ7LH960HAJR-00005"});
        let list: Vec<_> = std::iter::once(entry.clone()).chain((warnings > 0).then_some(unknown)).collect();
        let result = stable.clean("erase_devices_metadata", json!({}), list.into());
        let told = result["warnings"].as_array().map_or(0, Vec::len);
        assert_eq!(told, warnings, "{entry} {result}");
    }
    assert!(fs::read(&stable.kept).unwrap() == before, "the disk that is to be kept was written");
}

#[test]
fn vm_p09_x04_no_sector_of_four_disks_keeps_its_marker_and_the_fifth_keeps_all() {
    let stable = Stable::new();
    keep_by_full_model(&stable);
    let settings = json!({"disk_erasure_concurrency": 2});
    let result = stable.clean("erase_devices", settings, json!([{"model": MODEL}]));
    for (file, serial) in &stable.disks {
        let content = fs::read(file).unwrap();
        assert_eq!(content.len() as u64, DISK_SECTORS * 512);
        let survivors = content.chunks(512).filter(|sector| sector.ends_with(&MARKER)).count();
        assert_eq!(survivors, 0, "{serial} keeps {survivors} sectors");
        assert!(content.iter().all(|byte| *byte == 0), "{serial} is not all zeros");

        let entry = stable.entry(&result, serial);
        assert_eq!((&entry["verdict"], &entry["node"]), (&json!("erased"), &json!(NODE)), "{entry}");
        let parts: Vec<_> = entry["certificate"].as_str().unwrap().split('.').collect();
        let (header, statement) = (decoded(parts[0]), decoded(parts[1]));
        assert_eq!(header["alg"], "ES384");
        assert!(header["x5c"][0].as_str().unwrap().starts_with("MII"), "{header}");
        assert_eq!(statement["serial"], *serial);
        assert_eq!(statement["size_bytes"], DISK_SECTORS * 512);
        assert!(statement["samples"].as_u64().unwrap() >= 64, "{statement}");
    }
    // What the emulated disks say they can do, and what was therefore done.
    for (serial, method, capabilities) in [
        ("VIRTIO1", "overwrite", json!({})),
        ("NVME1", "nvme-format-user-data", json!({"sanicap": 0, "namespaces": 1})),
        (
            "SCSI1",
            "overwrite",
            json!({"sanitize_crypto": 0, "sanitize_block": 0, "sanitize_overwrite": 0, "format": 0}),
        ),
        // Sectors per command and nothing of Sanitize; no security.
        ("SATA1", "overwrite", json!({"word59": 0x110, "word128": 0})),
    ] {
        let entry = stable.entry(&result, serial);
        assert_eq!(entry["method"], method, "{entry}");
        for (name, value) in capabilities.as_object().unwrap() {
            assert_eq!(&entry["capabilities"][name], value, "{serial} {name}: {entry}");
        }
    }
}

/// The step refuses, and where the operator leaves the namespace alone it goes on.
#[test]
fn vm_g03_a_namespace_that_is_not_attached_keeps_a_machine_from_being_called_clean() {
    let folder = TempDir::new().unwrap();
    let files = ["one", "two"].map(|name| (name, folder.path().join(name)));
    let mut devices = vec!["-device".to_owned(), "nvme-subsys,id=subsystem".to_owned()];
    devices.extend(["-device".to_owned(), "nvme,id=controller,serial=NVME1,subsys=subsystem".to_owned()]);
    for (number, (name, file)) in files.iter().enumerate() {
        mark(file);
        let detached = if number == 1 { ",detached=on" } else { "" };
        devices.extend(["-drive".to_owned(), machine::drive(name, file)]);
        let namespace = format!("nvme-ns,bus=controller,drive={name},nsid={}{detached}", number + 1);
        devices.extend(["-device".to_owned(), namespace]);
    }
    let hardware = Hardware {
        mac: "52:54:00:fa:00:06".into(),
        agent_port: free_port().unwrap(),
        keyboard_port: free_port().unwrap(),
        disks: Vec::new(),
        media: Vec::new(),
        folder: folder.path().to_owned(),
    };
    let dist = environment::path("FARRIER_DIST");
    let agent = CommandedAgent::boot(&hardware, &devices, &dist, "ipa-disk-wait-attempts=1").unwrap();
    let order = |properties: Value| {
        let step = json!({"step": "erase_devices", "interface": "deploy"});
        let params = json!({"step": step, "node": {"uuid": NODE, "properties": properties}, "ports": []});
        agent.order("clean.execute_clean_step", &params).unwrap();
    };
    order(json!({}));
    let failed = agent.wait_for_failure(ERASE).unwrap().to_string();
    assert!(failed.contains("the namespace 2 of the NVMe controller nvme0"), "{failed}");
    assert!(
        failed.contains("allocated and not attached") && failed.contains("nothing is erased"),
        "{failed}"
    );
    for (name, file) in &files {
        let content = fs::read(file).unwrap();
        assert!(content.chunks(512).all(|sector| sector.ends_with(&MARKER)), "{name} was written");
    }
    // QEMU's controller: 1b36:0010.
    order(json!({"farrier_skip_controllers": ["1b36:0010"]}));
    agent.wait_for_success(ERASE).unwrap();
    let survivors = |file: &PathBuf| {
        fs::read(file).unwrap().chunks(512).filter(|sector| sector.ends_with(&MARKER)).count() as u64
    };
    assert_eq!((survivors(&files[0].1), survivors(&files[1].1)), (0, DISK_SECTORS));
}
