//! Folders in place of drives.

use super::*;
use std::cell::Cell;

/// A medium in the drive of that name, with files by path.
struct Medium {
    name: &'static str,
    model: &'static str,
    volume: (&'static str, &'static str, &'static str),
    files: &'static [(&'static str, &'static str)],
}

const FLOPPY: Medium = Medium {
    name: "sda",
    model: "Floppy",
    volume: ("vfat", "ir-vfd-dev", ""),
    files: &[("parameters.txt", "ipa-api-url=http://floppy ipa-debug=1\nipa-agent-token=secret\n")],
};
const BOOT: Medium = Medium {
    name: "sr0",
    model: "CD-ROM",
    volume: ("iso9660", "vmedia_boot_iso", "ab-12"),
    files: &[
        ("etc/ironic-python-agent/ironic.crt", "certificate"),
        ("etc/ironic-python-agent.d/ironic-tls.conf", "cafile = /etc/ironic-python-agent/ironic.crt"),
        ("etc/ironic-python-agent.d/deeper/x.conf", "not copied"),
        ("etc/passwd", "not copied"),
        ("openstack/latest/network_data.json", "of the boot medium"),
    ],
};
const LEFTOVER: Medium = Medium {
    name: "sr1",
    model: "CD-ROM",
    volume: ("iso9660", "config-2", "other"),
    files: &[
        ("etc/ironic-python-agent.d/old.conf", "insecure = true"),
        ("openstack/latest/network_data.json", "of a leftover"),
    ],
};

/// Drives whose media are there from the given look on.
struct Folders {
    media: &'static [&'static Medium],
    appear_at: u32,
    looks: Cell<u32>,
    visits: Cell<u32>,
}

impl Folders {
    fn new(media: &'static [&'static Medium], appear_at: u32) -> Self {
        Self { media, appear_at, looks: Cell::new(0), visits: Cell::new(0) }
    }

    fn medium(&self, drive: &Drive) -> &'static Medium {
        self.media.iter().find(|medium| drive.device == Path::new(medium.name)).unwrap()
    }
}

impl Drives for Folders {
    fn list(&self) -> Vec<Drive> {
        self.looks.set(self.looks.get() + 1);
        if self.looks.get() < self.appear_at {
            return Vec::new();
        }
        let drive = |medium: &&Medium| Drive {
            device: medium.name.into(),
            kernel_name: medium.name.into(),
            model: medium.model.into(),
            is_optical: medium.name.starts_with("sr"),
            size: 1 << 20,
        };
        self.media.iter().map(drive).collect()
    }

    fn volume(&self, drive: &Drive) -> Option<Volume> {
        let (file_system, label, publisher) = self.medium(drive).volume;
        let (publisher, application) = (publisher.into(), String::new());
        Some(Volume { file_system, label: label.into(), publisher, application })
    }

    fn visit(
        &self,
        drive: &Drive,
        _: &'static str,
        mount_point: &Path,
        read: &mut dyn FnMut(&Path) -> io::Result<()>,
    ) -> io::Result<()> {
        self.visits.set(self.visits.get() + 1);
        for (path, text) in self.medium(drive).files {
            let path = mount_point.join(path);
            fs::create_dir_all(path.parent().unwrap())?;
            fs::write(path, text)?;
        }
        read(mount_point)?;
        if mount_point.exists() { fs::remove_dir_all(mount_point) } else { Ok(()) }
    }
}

fn merge(line: &str, root: &Path, drives: &Folders) -> Result<Parameters, VirtualMediaError> {
    let kernel = kernel_line::parse(line);
    Bay { kernel, root, drives, patience: [Duration::from_millis(500), Duration::ZERO] }.merge()
}

#[test]
fn s13_media_are_read_only_after_a_boot_from_virtual_media() {
    for line in ["ipa-api-url=http://line", "boot_method=pxe ipa-api-url=http://line"] {
        let root = tempfile::tempdir().unwrap();
        let drives = Folders::new(&[&FLOPPY, &BOOT], 1);
        assert_eq!(merge(line, root.path(), &drives).unwrap(), kernel_line::parse(line));
        assert_eq!((drives.looks.get(), drives.visits.get()), (0, 0));
        assert!(!root.path().join("etc").exists());
    }
}

#[test]
fn parameters_of_the_floppy_win_and_configuration_is_copied() {
    let root = tempfile::tempdir().unwrap();
    let line = "boot_method=vmedia ipa-api-url=http://line a=1";
    let found = merge(line, root.path(), &Folders::new(&[&FLOPPY, &BOOT], 1)).unwrap();
    for (name, expected) in [("ipa-api-url", "http://floppy"), ("ipa-debug", "1"), ("a", "1")] {
        assert_eq!(found[name], expected);
    }
    for (path, expected) in [
        ("etc/ironic-python-agent/ironic.crt", true),
        ("etc/ironic-python-agent.d/ironic-tls.conf", true),
        ("etc/ironic-python-agent.d/deeper/x.conf", false),
        ("etc/passwd", false),
    ] {
        assert_eq!(root.path().join(path).exists(), expected, "{path}");
    }
}

#[test]
fn s13_media_are_read_once_per_boot() {
    let root = tempfile::tempdir().unwrap();
    let drives = Folders::new(&[&FLOPPY], 1);
    let first = merge("boot_method=vmedia", root.path(), &drives).unwrap();
    let ejected = Folders::new(&[], 1);
    assert_eq!(merge("boot_method=vmedia", root.path(), &ejected).unwrap(), first);
    assert_eq!(ejected.looks.get(), 0);
}

#[test]
fn a_floppy_that_appears_late_is_waited_for() {
    let root = tempfile::tempdir().unwrap();
    let found = merge("boot_method=vmedia", root.path(), &Folders::new(&[&FLOPPY], 3)).unwrap();
    assert_eq!(found["ipa-api-url"], "http://floppy");
}

#[test]
fn without_media_nothing_is_kept_so_that_the_next_process_looks_again() {
    let root = tempfile::tempdir().unwrap();
    let found = merge("boot_method=vmedia", root.path(), &Folders::new(&[], 1)).unwrap();
    assert_eq!(found.len(), 1);
    let found = merge("boot_method=vmedia", root.path(), &Folders::new(&[&FLOPPY], 1)).unwrap();
    assert_eq!(found["ipa-api-url"], "http://floppy");
}

#[test]
fn an_unlabelled_floppy_is_known_by_its_model() {
    const NAMELESS: Medium = Medium { model: "Virtual Media ", volume: ("vfat", "no name", ""), ..FLOPPY };
    const STICK: Medium = Medium { model: "Stick", ..NAMELESS };
    for (media, expected) in [(&[&NAMELESS] as &[_], true), (&[&STICK], false)] {
        let root = tempfile::tempdir().unwrap();
        let found = merge("boot_method=vmedia", root.path(), &Folders::new(media, 1)).unwrap();
        assert_eq!(found.contains_key("ipa-api-url"), expected);
    }
}

#[test]
fn s14_a_medium_of_another_publisher_is_no_configuration() {
    for (publisher, expected) in [("ir_pub_id=AB-12", (true, false)), ("", (true, true))] {
        let root = tempfile::tempdir().unwrap();
        let line = format!("boot_method=vmedia ipa-api-url=http://line {publisher}");
        merge(&line, root.path(), &Folders::new(&[&LEFTOVER, &BOOT], 1)).unwrap();
        let exists = |name: &str| root.path().join("etc/ironic-python-agent.d").join(name).exists();
        assert_eq!((exists("ironic-tls.conf"), exists("old.conf")), expected, "{publisher}");
    }
}

#[test]
fn s13_s14_the_network_is_described_by_the_boot_medium_alone() {
    for (line, expected) in [
        ("boot_method=vmedia ir_pub_id=ab-12 ipa-api-url=http://line", Some("of the boot medium")),
        ("boot_method=vmedia ir_pub_id=cd-34 ipa-api-url=http://line", None),
        ("ir_pub_id=ab-12 ipa-api-url=http://line", None),
    ] {
        let root = tempfile::tempdir().unwrap();
        merge(line, root.path(), &Folders::new(&[&BOOT, &LEFTOVER], 1)).unwrap();
        assert_eq!(network_data(root.path()).as_deref(), expected, "{line}");
    }
}

#[test]
fn s14_a_boot_medium_without_configuration_is_normal() {
    const EMPTY: Medium = Medium { files: &[], ..BOOT };
    let root = tempfile::tempdir().unwrap();
    merge("boot_method=vmedia ipa-api-url=http://line", root.path(), &Folders::new(&[&EMPTY], 1)).unwrap();
    assert!(!root.path().join("etc").exists());
}

#[test]
fn a_medium_that_cannot_be_read_is_named() {
    const BROKEN: Medium = Medium { files: &[("parameters.txt/directory", "")], ..FLOPPY };
    let root = tempfile::tempdir().unwrap();
    fs::create_dir_all(root.path().join("run")).unwrap();
    fs::write(root.path().join("run/farrier"), "in the way").unwrap();
    let error = merge("boot_method=vmedia", root.path(), &Folders::new(&[&BROKEN], 1)).unwrap_err();
    assert!(error.to_string().contains("sda") && error.to_string().contains("BMC"), "{error}");
}
