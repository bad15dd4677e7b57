//! Software RAID on an emulated machine, ordered as a conductor orders it, and looked at from outside.

use farrier_tests::agent::commanded::CommandedAgent;
use farrier_tests::agent::stub_conductor::StubConductor;
use farrier_tests::disk::raid_member::{self, RaidArray};
use farrier_tests::environment;
use farrier_tests::images::server::{ImageServer, Reply};
use farrier_tests::machine::{Firmware, Hardware, free_port};
use serde_json::{Value, json};
use std::fs::{self, File};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;
use tempfile::TempDir;

const MIB: u64 = 1 << 20;
/// Size in MiB of disks with room for a Debian system, and little more: arrays are filled with what is not written.
const ROOM: u64 = 1344;
const NODE: &str = "1f4c3c6e-62d4-4c6f-8a0a-3d0f6f0f2f11";
const SERIALS: [&str; 4] = ["ONE", "TWO", "THREE", "FOUR"];
/// How long an emulated machine may take for a step.
const STEP: Duration = Duration::from_secs(300);
/// How long it may take to write an image, or to boot a Debian system whose array lacks a disk.
const SYSTEM: Duration = Duration::from_secs(15 * 60);
/// From the start of a partition to its superblock, and in that the identity and name of its array.
const SUPERBLOCK: u64 = 4096;
/// From there to the number of sectors from the start of the partition to what the array keeps on it.
const DATA_OFFSET: u64 = 128;
/// The first bytes of the cluster file system GFS2, and where in its volume they lie.
const GFS2: [u8; 4] = [0x01, 0x16, 0x19, 0x70];
const GFS2_AT: u64 = 64 << 10;
const MAGIC: [u8; 4] = 0xa92b_4efc_u32.to_le_bytes();

/// A machine with some disks, and its agent.
struct Stable {
    agent: CommandedAgent,
    hardware: Hardware,
    firmware: Firmware,
    _folder: TempDir,
}

impl Stable {
    /// Its disks are empty.
    fn new(disks: usize, mebibytes: u64) -> Self {
        Self::used(disks, mebibytes, |_, _| ())
    }

    /// Its disks are empty, and it starts by BIOS.
    fn with_bios(disks: usize, mebibytes: u64) -> Self {
        Self::under(Firmware::Bios, disks, mebibytes, |_, _| ())
    }

    /// Its disks, by number, hold what `prepare` writes to them.
    fn used(disks: usize, mebibytes: u64, prepare: impl Fn(usize, &File)) -> Self {
        Self::under(Firmware::Uefi, disks, mebibytes, prepare)
    }

    fn under(firmware: Firmware, disks: usize, mebibytes: u64, prepare: impl Fn(usize, &File)) -> Self {
        let folder = TempDir::new().unwrap();
        let disks = SERIALS[..disks].iter().map(|serial| (folder.path().join(serial), *serial));
        let disks: Vec<_> = disks.collect();
        for (number, (file, _)) in disks.iter().enumerate() {
            let file = File::create(file).unwrap();
            file.set_len(mebibytes * MIB).unwrap();
            prepare(number, &file);
        }
        let agent_port = free_port().unwrap();
        let hardware = Hardware {
            mac: "52:54:00:fa:00:07".into(),
            agent_port,
            keyboard_port: free_port().unwrap(),
            disks,
            media: Vec::new(),
            folder: folder.path().to_owned(),
        };
        let conductor = StubConductor::start_with(json!({"enable_bios_bootloader_install": true})).unwrap();
        let (dist, parameters) = (environment::path("FARRIER_DIST"), "ipa-disk-wait-attempts=1");
        let agent =
            CommandedAgent::boot_under(firmware, conductor, &hardware, &[], &dist, parameters).unwrap();
        Self { agent, hardware, firmware, _folder: folder }
    }

    /// Writes an image onto the root volume of a node with this record; what it is besides its file is in
    /// `description`.
    fn write(&self, record: &Value, file: PathBuf, mut description: Value) {
        let server = ImageServer::start(vec![Reply::File(file)]).unwrap();
        description["id"] = json!("debian.raw");
        description["urls"] = json!([server.guest_url()]);
        description["disk_format"] = json!("raw");
        description["os_hash_algo"] = json!("sha256");
        let mut write = order("deploy", "write_image", record);
        write["step"]["args"] = json!({"image_info": description});
        self.succeed("deploy.execute_deploy_step", &write, SYSTEM);
    }

    /// Switches the machine off, and boots the system on its disks without each of these disks in turn.
    fn boots_without(mut self, disks: &[usize]) {
        self.agent.order("standby.power_off", &json!({})).unwrap();
        self.agent.wait_until_off(STEP).unwrap();
        for &missing in disks {
            let serial = self.hardware.disks[missing].1;
            let start = self.hardware.console().length();
            let _machine = self.hardware.boot_without(missing, self.firmware).unwrap();
            let prompt = self.hardware.console().wait_for(" login:", start, SYSTEM);
            prompt.unwrap_or_else(|error| panic!("without {serial}: {error:#}"));
        }
    }

    fn files(&self) -> impl Iterator<Item = &Path> {
        self.hardware.disks.iter().map(|(file, _)| file.as_path())
    }

    fn succeed(&self, name: &str, params: &Value, limit: Duration) -> Value {
        self.agent.succeed(name, params, limit).unwrap()
    }

    /// Runs a clean step of the RAID interface for a node with this record.
    fn clean(&self, step: &str, record: &Value) -> Value {
        let result = self.succeed("clean.execute_clean_step", &order("raid", step, record), STEP);
        result["clean_result"].clone()
    }

    /// The text with which a clean step of the RAID interface fails.
    fn refusal(&self, step: &str, record: &Value) -> String {
        let error = self.failure(&order("raid", step, record));
        assert_eq!(error["type"], "SoftwareRAIDError", "{error}");
        error["details"].as_str().unwrap().to_owned()
    }

    /// The error with which an order fails.
    fn failure(&self, order: &Value) -> Value {
        self.agent.order("clean.execute_clean_step", order).unwrap();
        self.agent.wait_for_failure(STEP).unwrap()
    }

    /// Name and identity of the array whose member begins at `mebibyte`, on every disk the same.
    fn array_at(&self, mebibyte: u64) -> Option<(String, Vec<u8>)> {
        let mut found: Vec<_> = self.files().map(|file| array_at(file, mebibyte)).collect();
        found.dedup();
        assert_eq!(found.len(), 1, "the disks differ at {mebibyte} MiB: {found:?}");
        found.remove(0)
    }
}

fn order(interface: &str, step: &str, record: &Value) -> Value {
    let mut node = record.clone();
    node["uuid"] = json!(NODE);
    json!({"step": {"step": step, "interface": interface}, "node": node, "ports": []})
}

fn read(file: &Path, offset: u64, length: usize) -> Vec<u8> {
    let mut bytes = vec![0; length];
    File::open(file).unwrap().read_exact_at(&mut bytes, offset).unwrap();
    bytes
}

fn array_at(file: &Path, mebibyte: u64) -> Option<(String, Vec<u8>)> {
    let superblock = read(file, mebibyte * MIB + SUPERBLOCK, 64);
    let name = String::from_utf8_lossy(&superblock[32..]);
    superblock
        .starts_with(&MAGIC)
        .then(|| (name.trim_end_matches('\0').to_owned(), superblock[16..32].to_vec()))
}

/// What `wipefs` finds on a disk; it only looks.
fn signatures(file: &Path) -> String {
    let output = Command::new("wipefs").arg("--noheadings").arg(file).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8_lossy(&output.stdout).into_owned()
}

fn volume(level: &str, size: Value, name: &str) -> Value {
    json!({"controller": "software", "raid_level": level, "size_gb": size, "volume_name": name})
}

fn wanted(volumes: &[Value]) -> Value {
    json!({"target_raid_config": {"logical_disks": volumes}})
}

/// First MiB of the two volumes that are made below: behind the EFI system partition, and at 1 GiB.
const OS: u64 = 551;
const DATA: u64 = 1024;

#[test]
fn vm_d20_d24_d34_volumes_are_made_kept_by_name_and_removed_without_a_trace() {
    let stable = Stable::new(4, 2048);
    for (bad, told) in [
        (vec![volume("5", json!("MAX"), "os")], "the first volume must have raid_level 1"),
        (vec![volume("1", json!(100), "os")], "/dev/vda: its volumes need"),
        (vec![volume("1", json!("MAX"), "os"), volume("7", json!(1), "os")], "volume 2: raid_level must be"),
    ] {
        let text = stable.refusal("create_configuration", &wanted(&bad));
        assert!(text.contains(told) && !text.contains('\n'), "{text}");
        assert!(stable.files().all(|file| signatures(file).is_empty()), "something was written: {text}");
    }
    assert_eq!(stable.clean("create_configuration", &json!({})), json!({}), "nothing is wanted");

    let both = wanted(&[volume("1", json!(1), "os"), volume("1+0", json!("MAX"), "data")]);
    assert_eq!(stable.clean("create_configuration", &both), both["target_raid_config"]);
    let (os, data) = (stable.array_at(OS).unwrap(), stable.array_at(DATA).unwrap());
    assert_eq!((os.0.as_str(), data.0.as_str()), ("any:os", "any:data"));
    let text = stable.refusal("create_configuration", &both);
    assert!(text.contains("an array already") && text.contains("delete_configuration"), "{text}");

    let mut keeping = both.clone();
    keeping["properties"] = json!({"skip_block_devices": [{"volume_name": "data"}]});
    assert_eq!(stable.clean("delete_configuration", &keeping), Value::Null);
    assert_eq!((stable.array_at(OS), stable.array_at(DATA)), (None, Some(data.clone())));
    stable.clean("create_configuration", &keeping);
    assert_eq!(stable.array_at(DATA), Some(data), "the kept volume was made anew");
    assert_ne!(stable.array_at(OS).unwrap(), os, "the other one was not");

    assert_eq!(stable.clean("delete_configuration", &both), Value::Null);
    for file in stable.files() {
        assert_eq!(signatures(file), "", "{}", file.display());
    }
    assert_eq!((stable.array_at(OS), stable.array_at(DATA)), (None, None));
}

/// A table of one partition and, in that, a swap area, as an array has them where its data begin.
fn old_content() -> Vec<u8> {
    let mut content = vec![0; 2 * MIB as usize + 4096];
    content[446..462].copy_from_slice(&[0, 0, 2, 0, 0x83, 0, 0, 0, 0, 16, 0, 0, 0, 64, 0, 0]);
    content[510..512].copy_from_slice(&[0x55, 0xaa]);
    let swap = &mut content[2 * MIB as usize..];
    swap[1024] = 1;
    swap[1028..1032].copy_from_slice(&1000_u32.to_le_bytes());
    swap[4086..].copy_from_slice(b"SWAPSPACE2");
    content
}

#[test]
fn vm_d20_a_new_volume_shows_nothing_of_what_lay_where_its_data_begin() {
    let stable = Stable::new(2, 2048);
    let volumes = wanted(&[volume("1", json!(1), "os"), volume("0", json!("MAX"), "data")]);
    stable.clean("create_configuration", &volumes);
    let data = |mebibyte: u64| {
        let file = &stable.hardware.disks[0].0;
        let sectors = read(file, mebibyte * MIB + SUPERBLOCK + DATA_OFFSET, 8);
        mebibyte * MIB + u64::from_le_bytes(sectors.try_into().unwrap()) * 512
    };
    let places = [data(OS), data(DATA)];
    stable.clean("delete_configuration", &volumes);
    for file in stable.files() {
        let file = File::options().write(true).open(file).unwrap();
        places.iter().for_each(|place| file.write_all_at(&old_content(), *place).unwrap());
    }
    // No table leads there, so the disks are free.
    stable.clean("create_configuration", &volumes);
    assert_eq!([data(OS), data(DATA)], places, "the data begin elsewhere now");
    let is_zero =
        |place: u64| stable.files().all(|file| read(file, place, 4096).iter().all(|byte| *byte == 0));
    for place in [places[0], places[0] + 2 * MIB, places[1]] {
        assert!(is_zero(place), "old content is at byte {place}");
    }
}

#[test]
fn vm_d20_an_array_of_an_earlier_user_is_erased_with_its_disks() {
    const MARK: &[u8] = b"what an earlier user has written";
    const AT: u64 = 700 * MIB;
    let stable = Stable::new(2, 768);
    let mut record = wanted(&[volume("1", json!("MAX"), "os")]);
    record["raid_config"] = stable.clean("create_configuration", &record);
    for file in stable.files() {
        File::options().write(true).open(file).unwrap().write_all_at(MARK, AT).unwrap();
    }
    let erase = |step: &str, record: &Value| {
        stable.succeed("clean.execute_clean_step", &order("deploy", step, record), STEP);
    };
    erase("erase_devices_metadata", &record);
    assert!(stable.array_at(OS).is_some(), "a volume of the node is gone");
    // The node's next user knows nothing of it.
    erase("erase_devices", &json!({}));
    assert!(stable.array_at(OS).is_none(), "the array is still there");
    for file in stable.files() {
        assert_eq!(signatures(file), "", "{}", file.display());
        assert_ne!(read(file, AT, MARK.len()), MARK, "{}", file.display());
    }
}

#[test]
fn vm_g01_what_lies_beside_a_volume_is_erased_with_it_and_the_volume_stays() {
    const MARK: &[u8] = b"what an earlier user has written";
    let stable = Stable::new(2, 2048);
    let mut record = wanted(&[volume("1", json!(1), "os")]);
    record["raid_config"] = stable.clean("create_configuration", &record);
    record["driver_internal_info"] = json!({"agent_erase_devices_iterations": 0});
    let os = stable.array_at(OS).unwrap();
    // In the EFI system partition, behind the superblock, in the volume, behind it, and before the backup of the table.
    let marks = [2 * MIB, OS * MIB + 256 * 1024, 700 * MIB, 1500 * MIB, 2047 * MIB];
    for file in stable.files() {
        let file = File::options().write(true).open(file).unwrap();
        marks.iter().for_each(|at| file.write_all_at(MARK, *at).unwrap());
    }
    let tables: Vec<_> = stable.files().map(|file| read(file, 0, 17 * 1024)).collect();
    let erase = order("deploy", "erase_devices", &record);
    let result = stable.succeed("clean.execute_clean_step", &erase, STEP)["clean_result"].clone();
    for file in stable.files() {
        for at in marks {
            assert!(read(file, at, MARK.len()).iter().all(|byte| *byte == 0), "{} {at}", file.display());
        }
    }
    assert!(stable.files().map(|file| read(file, 0, 17 * 1024)).eq(tables), "a table changed");
    assert_eq!(stable.array_at(OS), Some(os), "the volume is another");
    for disk in ["/dev/vda", "/dev/vdb"] {
        let entry = &result[disk];
        assert_eq!(
            (&entry["verdict"], &entry["method"]),
            (&json!("erased"), &json!("overwrite")),
            "{result}"
        );
        let ranges = entry["ranges"].as_array().unwrap();
        let end = ranges.iter().fold(0, |end, range| {
            assert_eq!(range["start"], end, "{entry}");
            end + range["bytes"].as_u64().unwrap()
        });
        assert_eq!(end, 2048 * MIB, "{entry}");
        assert!(
            ranges.iter().any(|range| range["erased_by"].as_str().unwrap_or_default().starts_with("/dev/md"))
        );
    }
    // It works as before.
    let text = stable.refusal("create_configuration", &record);
    assert!(text.contains("an array already"), "{text}");
}

#[test]
fn vm_d03_d20_an_array_with_a_file_system_of_several_machines_goes_with_consent_only() {
    let stable = Stable::new(2, 2048);
    stable.clean(
        "create_configuration",
        &wanted(&[volume("1", json!(1), "os"), volume("0", json!("MAX"), "data")]),
    );
    // A stripe begins on the first disk: the second one shows nothing of it.
    let file = &stable.hardware.disks[0].0;
    let sectors = read(file, DATA * MIB + SUPERBLOCK + DATA_OFFSET, 8);
    let mark = DATA * MIB + u64::from_le_bytes(sectors.try_into().unwrap()) * 512 + GFS2_AT;
    File::options().write(true).open(file).unwrap().write_all_at(&GFS2, mark).unwrap();
    let (os, data) = (stable.array_at(OS), stable.array_at(DATA));
    assert!(os.is_some() && data.is_some());

    for step in ["erase_devices", "erase_devices_express", "erase_devices_metadata"] {
        let error = stable.failure(&order("deploy", step, &json!({})));
        assert_eq!(error["type"], "BlockDeviceEraseError", "{error}");
        let text = error["details"].as_str().unwrap();
        for told in ["/dev/vda carries GFS2", "/dev/vdb carries GFS2 in the array /dev/md", "was not touched"]
        {
            assert!(text.contains(told), "{step}: {text}");
        }
        assert_eq!((stable.array_at(OS), stable.array_at(DATA)), (os.clone(), data.clone()), "{step}");
    }
    let text = stable.refusal("delete_configuration", &json!({}));
    assert!(text.contains("carries GFS2"), "{text}");
    assert_eq!(stable.array_at(DATA), data);
    assert_eq!(read(file, mark, GFS2.len()), GFS2);

    let consent = json!({"driver_info": {"wipe_special_filesystems": true}});
    stable.succeed("clean.execute_clean_step", &order("deploy", "erase_devices_metadata", &consent), STEP);
    assert_eq!(stable.array_at(DATA), None);
    for file in stable.files() {
        assert_eq!(signatures(file), "", "{}", file.display());
    }

    // No volume is made over such a file system either.
    File::options().write(true).open(file).unwrap().write_all_at(&GFS2, GFS2_AT).unwrap();
    let volumes = wanted(&[volume("1", json!("MAX"), "os")]);
    let error = stable.failure(&order("raid", "create_configuration", &volumes));
    assert!(error["details"].as_str().unwrap().starts_with("/dev/vda carries GFS2, which"), "{error}");
    assert_eq!(read(file, GFS2_AT, GFS2.len()), GFS2);
}

#[test]
fn vm_d03_d20_arrays_on_arrays_are_looked_into_and_taken_apart_from_the_top() {
    let mirror = |name| RaidArray { name, level: 1, member_size: 64 * MIB };
    let mirrors = [mirror(b'a'), mirror(b'b')];
    let stripe = RaidArray { name: b'c', level: 0, member_size: 63 * MIB };
    let stable = Stable::used(4, 64, |number, file| {
        let (side, role) = (number / 2, (number % 2) as u8);
        file.write_all_at(&mirrors[side].member(role), 0).unwrap();
        file.write_all_at(&stripe.member(side as u8), raid_member::DATA).unwrap();
        if side == 0 {
            file.write_all_at(&GFS2, 2 * raid_member::DATA + GFS2_AT).unwrap();
        }
    });
    let start = |file| read(file, 0, 4 * MIB as usize);
    let before: Vec<_> = stable.files().map(start).collect();
    let error = stable.failure(&order("deploy", "erase_devices_metadata", &json!({})));
    let text = error["details"].as_str().unwrap();
    // The file system shows on the first disks themselves, and on the others only in what they are members of.
    for (disk, place) in
        [("vda", ""), ("vdb", ""), ("vdc", " in the array /dev/md"), ("vdd", " in the array /dev/md")]
    {
        assert!(text.contains(&format!("/dev/{disk} carries GFS2{place}")), "{text}");
    }
    assert!(stable.files().map(start).eq(before), "something was written");

    let consent = json!({"driver_info": {"wipe_special_filesystems": true}});
    stable.succeed("clean.execute_clean_step", &order("deploy", "erase_devices_metadata", &consent), STEP);
    for file in stable.files() {
        assert!(start(file).iter().all(|byte| *byte == 0), "{}", file.display());
    }
}

fn root(mut volume: Value) -> Value {
    volume["is_root_volume"] = json!(true);
    volume
}

/// RAID 1+0 has two mirrors: without a disk of the first, and without a disk of the second. The tier `lifecycle` takes
/// each disk of a mirror in turn.
#[test]
fn vm_d18_d19_debian_on_striped_mirrors_boots_without_any_one_disk() {
    let stable = Stable::new(4, ROOM);
    let mut record = wanted(&[volume("1", json!(1), "data"), root(volume("1+0", json!("MAX"), "os"))]);
    record["raid_config"] = stable.clean("create_configuration", &record);
    let digest = environment::text("FARRIER_IMAGE_SHA256");
    stable.write(&record, environment::path("FARRIER_IMAGE"), json!({"os_hash_value": digest}));
    let params = json!({"root_uuid": null, "efi_system_part_uuid": null, "target_boot_mode": "uefi"});
    stable.succeed("image.install_bootloader", &params, STEP);
    stable.boots_without(&[0, 3]);
}

#[test]
fn vm_d18_d19_a_partition_image_on_a_mirror_boots_by_bios_without_either_disk() {
    let stable = Stable::with_bios(2, ROOM);
    let mut record = wanted(&[root(volume("1", json!("MAX"), "os"))]);
    record["properties"] = json!({"capabilities": "boot_mode:bios,disk_label:gpt"});
    record["raid_config"] = stable.clean("create_configuration", &record);
    let file = environment::path("FARRIER_PARTITION_IMAGE");
    let description = json!({
        "image_type": "partition",
        "root_mb": fs::metadata(&file).unwrap().len() / MIB,
        "deploy_boot_mode": "bios",
        "os_hash_value": environment::text("FARRIER_PARTITION_IMAGE_SHA256"),
    });
    stable.write(&record, file, description);
    let found = stable.agent.order("standby.get_partition_uuids", &json!({})).unwrap();
    let params = json!({"root_uuid": found["command_result"]["root uuid"], "target_boot_mode": "bios"});
    stable.succeed("image.install_bootloader", &params, SYSTEM);
    stable.boots_without(&[0, 1]);
}
