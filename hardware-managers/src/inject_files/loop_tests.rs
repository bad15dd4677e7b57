//! Injecting into a deployed disk on a loop device.

use super::*;
use crate::fake_host::FakeHost;
use farrier_disk::BlockDevice;
use farrier_linux::loop_device::LoopDevice;
use farrier_linux::mount::ReadOnlyMount;
use farrier_protocol::lookup::Node;
use farrier_protocol::step::Phase;
use serde_json::Map;
use std::fs::{self, File};
use std::os::unix::fs::{FileExt, MetadataExt, PermissionsExt, symlink};
use std::process::Command;
use std::sync::LazyLock;
use tempfile::TempDir;

const MIB: u64 = 1 << 20;
/// Number, kind and first MiB of each partition; each takes 16 MiB.
const PARTITIONS: [(u32, &str, u64); 3] = [(1, "ext2", 1), (2, "swap", 17), (3, "ext4", 33)];

/// What the only file to fetch holds.
fn fetch(url: &str, verifies: bool) -> Result<Vec<u8>, CommandError> {
    match (url, verifies) {
        ("https://keys.example/u-1", false) => Ok(b"fetched".to_vec()),
        _ => Err(CommandError::new(ErrorKind::CommandExecutionError, format!("{url}: 404"))),
    }
}

fn call<'a>(
    record: &'a Value,
    ports: &'a Value,
    arguments: &'a Map<String, Value>,
    host: &'a FakeHost,
) -> StepCall<'a> {
    static NODE: LazyLock<Node> = LazyLock::new(Node::default);
    StepCall {
        phase: Phase::Deploy,
        step: "inject_files",
        nonce: None,
        node: &NODE,
        record,
        ports,
        arguments,
        host,
    }
}

/// A disk with an empty partition, swap, and a root whose links lead everywhere.
struct Disk {
    device: LoopDevice,
    folder: TempDir,
}

impl Disk {
    fn new() -> Self {
        let folder = TempDir::new().unwrap();
        let image = folder.path().join("disk");
        File::create(&image).unwrap().set_len(50 * MIB).unwrap();
        let content = folder.path().join("content");
        for name in ["etc", "run", "var"] {
            fs::create_dir_all(content.join(name)).unwrap();
        }
        symlink("/run", content.join("var/run")).unwrap();
        symlink("/etc/outside", content.join("etc/link")).unwrap();
        fs::write(content.join("etc/motd"), "old").unwrap();
        let mut table = Command::new("sgdisk");
        for (number, kind, start) in PARTITIONS {
            let part = folder.path().join(kind);
            File::create(&part).unwrap().set_len(16 * MIB).unwrap();
            let mut format = Command::new(if kind == "swap" { "mkswap" } else { "mke2fs" });
            if kind != "swap" {
                format.args(["-q", "-t", kind]);
            }
            if kind == "ext4" {
                format.arg("-d").arg(&content);
            }
            assert!(format.arg(&part).output().unwrap().status.success(), "{kind}");
            let disk = File::options().write(true).open(&image).unwrap();
            disk.write_all_at(&fs::read(&part).unwrap(), start * MIB).unwrap();
            table.arg(format!("--new={number}:{}M:+16M", start));
        }
        assert!(table.arg(&image).output().unwrap().status.success());
        let device = LoopDevice::attach(&image, 512).expect("loop devices need root");
        // For kernels that do not look for partitions on loop devices.
        assert!(Command::new("partx").arg("--update").arg(device.path()).output().unwrap().status.success());
        Self { device, folder }
    }

    fn root(&self) -> RootDisk {
        let hints = json!({"root_device": {"name": self.device.path()}});
        let node = Node { properties: serde_json::from_value(hints).unwrap(), ..Node::default() };
        let device = BlockDevice::describe(Path::new("/sys"), self.device.kernel_name()).unwrap();
        guard::choose_root_disk(&node, &[device]).unwrap()
    }

    fn node(&self, number: u32) -> String {
        format!("{}p{number}", self.device.path().display())
    }

    /// Does what the list asks for, and tells on which device each file is.
    fn inject(&self, files: Value) -> Result<Vec<String>, String> {
        let (root, mount_point) = (self.root(), self.folder.path().join("mounted"));
        let target = Target { root: &root, folder: &mount_point, verifies: false };
        let (record, ports, arguments) = (json!({"uuid": "u-1"}), json!([]), Map::new());
        let host = FakeHost { download: fetch, ..FakeHost::default() };
        let call = call(&record, &ports, &arguments, &host);
        let fields = Fields { node: &record, ports: &ports };
        let items = list::parse(None, Some(&files), fields).map_err(|error| error.to_string())?;
        let done = items.iter().map(|item| inject(&call, item, &target));
        let done = done.map(|one| one.map(|one| one["device"].as_str().unwrap().to_owned()));
        let done = done.collect::<Result<_, _>>().map_err(|error| error.to_string());
        assert!(!mount_point.exists(), "something is still mounted");
        done
    }

    /// Looks at a partition.
    fn look<T>(&self, number: u32, kind: &str, look: impl FnOnce(&Path) -> T) -> T {
        let folder = self.folder.path().join("looked-at");
        let mounted = ReadOnlyMount::new(Path::new(&self.node(number)), kind, &folder).unwrap();
        look(mounted.path())
    }
}

#[test]
fn loop_files_are_written_where_their_folder_is_or_as_told() {
    let disk = Disk::new();
    let done = disk.inject(json!([
        {"path": "/etc/app/keys/a.key", "content": "c2VjcmV0", "mode": 0o600, "dirmode": 0o710, "owner": 7},
        {"path": "/etc/fetched", "content": "https://keys.example/{node[uuid]}"},
        {"path": "/etc/motd", "deleted": true},
        {"path": "/etc/absent", "deleted": true},
        {"path": "/startup.nsh", "content": "ZXhpdA==", "partition": 1},
        {"path": "/EFI/BOOT/a.cfg", "content": "", "partition": disk.node(1)},
        {"path": "/var/run/state", "content": "eA=="},
    ]));
    let (esp, root) = (disk.node(1), disk.node(3));
    assert_eq!(done.unwrap(), [&root, &root, &root, &root, &esp, &esp, &root].map(String::clone));
    disk.look(3, "ext4", |folder| {
        let key = fs::metadata(folder.join("etc/app/keys/a.key")).unwrap();
        assert_eq!((key.permissions().mode() & 0o7777, key.uid(), key.gid(), key.size()), (0o600, 7, 0, 6));
        let mode = |path: &str| fs::metadata(folder.join(path)).unwrap().permissions().mode() & 0o7777;
        assert_eq!([mode("etc/app"), mode("etc/app/keys")], [0o755, 0o710]);
        assert_eq!(fs::read_to_string(folder.join("etc/fetched")).unwrap(), "fetched");
        assert!(!folder.join("etc/motd").exists());
        assert_eq!(fs::read_to_string(folder.join("run/state")).unwrap(), "x", "the link leads within");
    });
    disk.look(1, "ext2", |folder| {
        assert_eq!(fs::read_to_string(folder.join("startup.nsh")).unwrap(), "exit");
        assert!(folder.join("EFI/BOOT/a.cfg").exists());
    });
}

#[test]
fn loop_a_list_that_cannot_be_done_as_a_whole_is_not_begun() {
    let disk = Disk::new();
    for (content, told) in
        [("https://keys.example/{node[rack]}", "{node[rack]}"), ("ftp://x/y", "http or https")]
    {
        let list =
            json!([{"path": "/etc/first", "content": ""}, {"path": "/etc/second", "content": content}]);
        let text = disk.inject(list).unwrap_err();
        assert!(text.contains("files[1]: content") && text.contains(told), "{text}");
    }
    disk.look(3, "ext4", |folder| assert!(!folder.join("etc/first").exists()));
}

#[test]
fn an_argument_of_another_type_is_refused_before_any_disk_is_looked_at() {
    let (record, ports, host) = (json!({}), json!([]), FakeHost::default());
    for (verify_ca, expected) in [
        (json!(null), None),
        (json!(true), None),
        (json!(false), None),
        (json!("false"), Some("verify_ca is \"false\", expected true or false; correct the arguments")),
        (json!(0), Some("verify_ca is 0, expected true or false; correct the arguments")),
    ] {
        let arguments = Map::from_iter([("verify_ca".to_owned(), verify_ca)]);
        let outcome = inject_files(&call(&record, &ports, &arguments, &host)).map_err(CommandError::from);
        match expected {
            None => assert_eq!(outcome.unwrap(), json!([])),
            Some(told) => {
                let error = outcome.unwrap_err();
                assert!(error.details.starts_with(told), "{}", error.details);
                assert_eq!(error.kind, "InvalidCommandParamsError");
            }
        }
    }
}

#[test]
fn loop_s04_nothing_but_the_root_disk_is_touched() {
    let disk = Disk::new();
    let other = Disk::new();
    for (file, expected) in [
        (
            json!({"path": "/etc/x", "content": "", "partition": other.node(3)}),
            "is no partition of the root disk",
        ),
        (
            json!({"path": "/etc/x", "content": "", "partition": "/dev/null"}),
            "is no partition of the root disk",
        ),
        (json!({"path": "/etc/x", "content": "", "partition": 9}), "number 9 is no partition"),
        (json!({"path": "/etc/x", "content": "", "partition": 2}), "no file system that can be mounted"),
        (json!({"path": "/srv/x", "content": ""}), "no partition of"),
        (json!({"path": "/etc/motd/x", "content": ""}), "Not a directory"),
        (
            json!({"path": "/etc/x", "content": "https://keys.example/other"}),
            "cannot be fetched: https://keys",
        ),
    ] {
        let text = disk.inject(json!([file])).unwrap_err();
        assert!(text.contains(expected), "{text}");
    }
    // Links of the image lead within it, even where they name something outside.
    let outside = Path::new("/etc/outside");
    assert!(!outside.exists());
    disk.inject(json!([{"path": "/etc/link", "content": "eA=="}])).unwrap();
    assert!(!outside.exists());
    disk.look(3, "ext4", |folder| {
        assert_eq!(fs::read_to_string(folder.join("etc/outside")).unwrap(), "x");
    });
    let held =
        ReadOnlyMount::new(Path::new(&disk.node(3)), "ext4", &disk.folder.path().join("held")).unwrap();
    let text = disk.inject(json!([{"path": "/etc/x", "content": ""}])).unwrap_err();
    assert!(text.contains("is in use") && text.contains("is mounted on"), "{text}");
    drop(held);
}
