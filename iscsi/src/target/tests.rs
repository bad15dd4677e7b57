use super::*;
use farrier_disk::{BlockDevice, choose_root_disk};
use farrier_protocol::lookup::Node;
use std::fs;

const IQN: &str = "iqn.2008-10.org.openstack:1be26c0b-03f2-4d2e-ae87-c02d7f33c123";
/// A name that no disk of the machine that runs the tests has.
const DISK: &str = "farrier-test";
const OTHER: &str = "iqn.2026-01.org.example:host";

/// A machine with one disk, and configfs as it is with the modules loaded.
struct Machine {
    root: tempfile::TempDir,
}

impl Machine {
    fn new() -> Self {
        let machine = Self { root: tempfile::tempdir().unwrap() };
        let disk = machine.sysfs().join("block").join(DISK);
        fs::create_dir_all(disk.join("queue")).unwrap();
        for (file, text) in
            [("size", "10485760"), ("queue/logical_block_size", "512"), ("serial", "S4EVNX0R")]
        {
            fs::write(disk.join(file), text).unwrap();
        }
        fs::create_dir_all(machine.configfs().join("target/core")).unwrap();
        machine
    }

    fn sysfs(&self) -> PathBuf {
        self.root.path().join("sys")
    }

    fn configfs(&self) -> PathBuf {
        self.root.path().join("sys/kernel/config")
    }

    fn target(&self) -> IscsiTarget {
        IscsiTarget::below(self.root.path())
    }

    fn disk(&self) -> RootDisk {
        choose_root_disk(&Node::default(), &[BlockDevice::describe(&self.sysfs(), DISK).unwrap()]).unwrap()
    }

    fn layout(&self, terms: &Terms) -> Layout {
        let disk = self.disk();
        Layout::new(Path::new(&disk.device().disk.name), &serial(&disk, terms), portal(terms), terms)
    }

    /// Does what the kernel does by itself: a new object comes with its folders.
    fn apply(&self, change: &Change) {
        let folder = self.configfs().join(change.path());
        fs::create_dir_all(folder.parent().unwrap()).unwrap();
        change.apply(&self.configfs()).unwrap();
        for come_along in ["attrib", "auth", "wwn", "lun", "acls", "np"] {
            if matches!(change, Change::Make(_)) && !folder.ends_with("core/iblock_0") {
                fs::create_dir_all(folder.join(come_along)).unwrap();
            }
        }
    }

    fn export(&self, terms: &Terms) {
        self.layout(terms).changes().iter().for_each(|change| self.apply(change));
    }
}

fn terms() -> Terms {
    Terms {
        target: IscsiName::parse("iqn", IQN).unwrap(),
        port: 3260,
        read_only: false,
        wiped: true,
        chap: None,
        initiators: Vec::new(),
    }
}

fn name(text: &str) -> IscsiName {
    IscsiName::parse("initiators", text).unwrap()
}

fn chap(secret: &str) -> Option<Chap> {
    Some(Chap::new("ann", secret).unwrap())
}

/// A change on one line, as an operator would type it.
fn line(change: &Change) -> String {
    let path = change.path().display().to_string().replace("target/iscsi/", "").replace(IQN, "IQN");
    match change {
        Change::Make(_) => format!("mkdir {path}"),
        Change::Set(_, text) | Change::Tell(_, text) => format!("{path} = {text}"),
        Change::Wish(_, text) => format!("{path} = {text} if it can"),
        Change::Link(_, target) => format!("{path} -> {}", target.display().to_string().replace(IQN, "IQN")),
        Change::Unlink(_) => format!("rm {path}"),
        Change::Remove(_) => format!("rmdir {path}"),
    }
}

#[test]
fn without_more_terms_everybody_may_write() {
    let layout = Layout::new(Path::new("/dev/vda"), "0-S4", "[::]:3260".parse().unwrap(), &terms());
    assert_eq!(
        layout.changes().iter().map(line).collect::<Vec<_>>(),
        [
            "mkdir target/core/iblock_0",
            "mkdir target/core/iblock_0/farrier",
            "target/core/iblock_0/farrier/control = udev_path=/dev/vda,readonly=0",
            "target/core/iblock_0/farrier/udev_path = /dev/vda",
            "target/core/iblock_0/farrier/alias = wiped",
            "target/core/iblock_0/farrier/wwn/vpd_unit_serial = 0-S4",
            "target/core/iblock_0/farrier/enable = 1",
            "target/core/iblock_0/farrier/attrib/emulate_tpu = 1 if it can",
            "target/core/iblock_0/farrier/attrib/emulate_tpws = 1 if it can",
            "mkdir target/iscsi",
            "mkdir IQN",
            "mkdir IQN/tpgt_1",
            "IQN/tpgt_1/attrib/authentication = 0",
            "IQN/tpgt_1/attrib/generate_node_acls = 1",
            "IQN/tpgt_1/attrib/demo_mode_write_protect = 0",
            "mkdir IQN/tpgt_1/lun/lun_1",
            "IQN/tpgt_1/lun/lun_1/farrier -> target/core/iblock_0/farrier",
            "mkdir IQN/tpgt_1/np/[::]:3260",
            "IQN/tpgt_1/enable = 1",
        ]
    );
}

#[test]
fn terms_say_who_may_do_what() {
    let group = "target/iscsi/IQN/tpgt_1";
    let open = terms();
    for (terms, expected) in [
        (Terms { read_only: true, ..open.clone() }, vec!["control = udev_path=/dev/vda,readonly=1"]),
        (Terms { read_only: true, ..open.clone() }, vec!["tpgt_1/attrib/demo_mode_write_protect = 1"]),
        (Terms { wiped: false, ..open.clone() }, vec!["farrier/alias = as found"]),
        (
            Terms { chap: chap("correct-horse"), ..open.clone() },
            vec![
                "tpgt_1/attrib/authentication = 1",
                "tpgt_1/attrib/generate_node_acls = 1",
                "IQN/tpgt_1/auth/userid = ann",
                "IQN/tpgt_1/auth/password = correct-horse",
            ],
        ),
        (
            Terms {
                initiators: vec![name(OTHER)],
                chap: chap("correct-horse"),
                read_only: true,
                ..open.clone()
            },
            vec![
                "tpgt_1/attrib/generate_node_acls = 0",
                "mkdir IQN/tpgt_1/acls/iqn.2026-01.org.example:host",
                "tpgt_1/acls/iqn.2026-01.org.example:host/auth/userid = ann",
                "tpgt_1/acls/iqn.2026-01.org.example:host/auth/password = correct-horse",
                "mkdir IQN/tpgt_1/acls/iqn.2026-01.org.example:host/lun_1",
                "host/lun_1/farrier -> target/iscsi/IQN/tpgt_1/lun/lun_1",
                "host/lun_1/write_protect = 1",
            ],
        ),
    ] {
        let layout = Layout::new(Path::new("/dev/vda"), "0", "[::]:3260".parse().unwrap(), &terms);
        let lines: Vec<_> = layout.changes().iter().map(line).collect();
        for part in expected {
            assert!(lines.iter().any(|line| line.ends_with(part)), "{part}: {lines:#?}");
        }
        // Initiators on the list bring their own secrets, and nobody else gets in by that of the group.
        let of_group = lines.iter().any(|line| {
            line.starts_with(&group.replace("target/iscsi/", "")) && line.contains("tpgt_1/auth/")
        });
        assert_eq!(of_group, terms.chap.is_some() && terms.initiators.is_empty(), "{lines:#?}");
        assert_eq!(lines.last().unwrap(), "IQN/tpgt_1/enable = 1");
    }
}

#[test]
fn f60_an_export_cut_off_anywhere_is_taken_away_and_nothing_else() {
    let terms = Terms { initiators: vec![name(OTHER)], chap: chap("correct-horse"), ..terms() };
    let whole = Machine::new().layout(&terms).changes().len();
    for cut in 0..=whole {
        let machine = Machine::new();
        // Somebody else's disk and targets, which look like ours.
        for folder in [
            "core/iblock_1/farrier",
            "iscsi/discovery_auth",
            "iscsi/iqn.2026-01.org.example:other/tpgt_1/lun/lun_1",
        ] {
            fs::create_dir_all(machine.configfs().join("target").join(folder)).unwrap();
        }
        let link =
            machine.configfs().join("target/iscsi/iqn.2026-01.org.example:other/tpgt_1/lun/lun_1/theirs");
        std::os::unix::fs::symlink("/", link).unwrap();
        let layout = machine.layout(&terms);
        layout.changes()[..cut].iter().for_each(|change| machine.apply(change));
        let removal = layout::removal(&machine.configfs());
        let mut made: Vec<_> = layout.changes()[..cut]
            .iter()
            .filter(|change| matches!(change, Change::Make(_) | Change::Link(..)))
            .map(|change| change.path().to_owned())
            .filter(|path| path != Path::new("target/iscsi"))
            .collect();
        let mut taken: Vec<_> = removal
            .iter()
            .filter(|change| matches!(change, Change::Unlink(_) | Change::Remove(_)))
            .map(|change| change.path().to_owned())
            .collect();
        // What lies in something goes before it, and a link before what it leads to.
        for (at, path) in taken.iter().enumerate() {
            assert!(taken[..at].iter().all(|earlier| !path.starts_with(earlier)), "{path:?}: {taken:#?}");
        }
        made.sort();
        taken.sort();
        assert_eq!(taken, made, "cut after {cut}");
        let closes = removal.iter().any(|change| line(change) == "IQN/tpgt_1/enable = 0");
        assert_eq!(closes, cut == whole, "cut after {cut}");
    }
}

#[test]
fn the_same_export_is_there_and_another_one_is_in_the_way() {
    let listed = Terms { initiators: vec![name(OTHER)], chap: chap("correct-horse"), ..terms() };
    for (there, asked, differs) in [
        (terms(), terms(), None),
        (listed.clone(), listed.clone(), None),
        (terms(), Terms { port: 3261, ..terms() }, Some(":3261")),
        (terms(), Terms { read_only: true, ..terms() }, Some("attrib/demo_mode_write_protect")),
        (terms(), Terms { wiped: false, ..terms() }, Some("alias")),
        (terms(), Terms { target: name(OTHER), ..terms() }, Some(OTHER)),
        (terms(), listed.clone(), Some("attrib/authentication")),
        (listed.clone(), Terms { chap: chap("another-secret"), ..listed.clone() }, Some("auth/password")),
        (listed.clone(), Terms { initiators: vec![name(IQN)], ..listed.clone() }, Some(IQN)),
        (
            Terms { initiators: vec![name(OTHER), name(IQN)], ..listed.clone() },
            listed.clone(),
            Some("acls/iqn.2008-10.org.openstack"),
        ),
    ] {
        let machine = Machine::new();
        assert!(!machine.target().has(&machine.disk(), &asked).unwrap(), "nothing is exported yet");
        machine.export(&there);
        match (machine.target().has(&machine.disk(), &asked), differs) {
            (Ok(is_there), None) => assert!(is_there),
            (Err(error), Some(part)) => {
                let error = error.to_string();
                for part in [part, "exported by iSCSI as", IQN, "order iscsi.stop_iscsi_target first"] {
                    assert!(error.contains(part), "{part}: {error}");
                }
                assert!(!error.contains("secret"), "{error}");
            }
            (outcome, differs) => panic!("{differs:?}: {outcome:?}"),
        }
    }
}

#[test]
fn what_is_exported_is_told_by_the_kernel_alone() {
    let machine = Machine::new();
    assert_eq!(machine.target().exported(), None);
    let layout = machine.layout(&terms());
    for change in layout.changes() {
        machine.apply(change);
        let is_known = machine
            .target()
            .exported()
            .is_some_and(|found| found.to_string().contains("farrier-test is exported"));
        let is_named = machine.configfs().join("target/core/iblock_0/farrier/udev_path").exists();
        assert_eq!(is_known, is_named, "{}", change.path().display());
    }
    let exported = machine.target().exported().unwrap();
    assert_eq!(exported.target.as_deref(), Some(IQN));
}

#[test]
fn refusals_say_what_to_do() {
    let listener = TcpListener::bind("0.0.0.0:0").unwrap();
    let taken = Terms { port: listener.local_addr().unwrap().port(), ..terms() };
    let free = Terms { port: 0, ..terms() };
    let change = Change::Make("target/iscsi/x/tpgt_1/np/[::]:0".into());
    for (code, terms, told) in [
        (libc::EINVAL, &taken, "is in use on this machine; name another portal_port"),
        (libc::EINVAL, &free, "the kernel refused target/iscsi/x/tpgt_1/np/[::]:0 (Invalid argument"),
        (libc::EBUSY, &taken, "/dev/vda is in use; release the disk"),
    ] {
        let text = refusal(&change, Path::new("/dev/vda"), terms, &io::Error::from_raw_os_error(code));
        assert!(text.contains(told), "{text}");
    }
    let machine = Machine::new();
    fs::remove_dir_all(machine.configfs()).unwrap();
    let error = machine.target().make_ready(&terms()).unwrap_err().to_string();
    assert!(error.contains("no iSCSI target (") && error.contains("with its modules configfs, "), "{error}");
}

#[test]
fn a_target_that_cannot_be_made_leaves_nothing_and_the_disk_is_free() {
    let machine = Machine::new();
    let (disk, adapters) = (machine.disk(), machine.configfs().join("target/core"));
    // Nothing can be made in it.
    fs::write(adapters.join("iblock_0"), "").unwrap();
    let medium = Medium::ReadOnly(disk.free_to_read().unwrap());
    let error = machine.target().start(&disk, medium, &Terms { read_only: true, ..terms() }).unwrap_err();
    assert!(error.to_string().contains("the kernel refused target/core/iblock_0/farrier"), "{error}");
    assert_eq!(machine.target().exported(), None);
    assert!(machine.target().stop().unwrap().is_none());
    assert_eq!(fs::read_dir(adapters).unwrap().count(), 1);
}

#[test]
fn serial_numbers_end_with_the_disk_and_begin_like_no_other() {
    let (one, other) = (name(IQN), name(OTHER));
    let serial = |target, own| layout::serial(target, own);
    assert!(serial(&one, "S4EVNX0R").ends_with("-S4EVNX0R"));
    let mut starts = Vec::new();
    for (target, own) in
        [(&one, "S4EVNX0R"), (&one, "S4EVNX0S"), (&other, "S4EVNX0R"), (&one, ""), (&one, "a\nb")]
    {
        let serial = serial(target, own);
        let start = serial.split('-').next().unwrap().to_owned();
        assert!(start.len() == 24 && start.bytes().all(|one| one.is_ascii_hexdigit()), "{serial}");
        assert!(serial.bytes().all(|one| one.is_ascii_graphic()), "{serial}");
        starts.push(start);
    }
    starts.sort();
    starts.dedup();
    assert_eq!(starts.len(), 5);
    assert!(serial(&one, &"x".repeat(1000)).len() < 254);
}
