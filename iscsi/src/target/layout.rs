//! What an export is in configfs, as data, and how it is read and taken away.

use super::terms::{IscsiName, Terms};
use farrier_disk::device::exports::Export;
use farrier_linux::configfs::Change;
use farrier_linux::sysfs;
use sha2::{Digest, Sha256};
use std::fs;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};

/// Where LIO is, below configfs. Paths of changes are below configfs too.
pub const ROOT: &str = "target";
const ADAPTER: &str = "target/core/iblock_0";
/// The disk, and the name of links to it. What bears this name is ours.
const DISK: &str = "farrier";
const TARGETS: &str = "target/iscsi";
/// The only portal group of a target.
const GROUP: &str = "tpgt_1";
/// Number of the logical unit (section 4.4).
const UNIT: &str = "lun_1";
/// Digits of a serial number that come from elsewhere than the disk: those of which LIO makes names.
const DIGITS: usize = 24;

/// All parts of an export.
#[derive(PartialEq, Eq)]
pub struct Layout(Vec<Change>);

impl Layout {
    /// That of the disk with this device node and serial number, for initiators that come to `portal`.
    pub fn new(disk: &Path, serial: &str, portal: SocketAddr, terms: &Terms) -> Self {
        Self([disk_changes(disk, serial, terms), target_changes(portal, terms)].concat())
    }

    /// What makes it, in order.
    pub fn changes(&self) -> &[Change] {
        &self.0
    }

    /// What is different in the configfs mounted at `root`: the first thing that is missing or has another value,
    /// else one that is there beyond this.
    pub fn difference(&self, root: &Path) -> Option<PathBuf> {
        let missing =
            self.0.iter().find(|change| !change.is_done(root)).map(|change| change.path().to_owned());
        missing.or_else(|| {
            let is_ours = |change: &Change| self.0.iter().any(|one| one.path() == change.path());
            removal(root).iter().find(|change| !is_ours(change)).map(|change| change.path().to_owned())
        })
    }
}

/// What a kernel refuses that does not speak iSCSI.
pub fn protocol() -> Change {
    Change::Make(TARGETS.into())
}

/// The serial number of an export, see [`super::serial`].
pub fn serial(target: &IscsiName, own: &str) -> String {
    let digest = Sha256::digest(format!("{target} {own}"));
    let digits: String = digest.iter().take(DIGITS / 2).map(|byte| format!("{byte:02x}")).collect();
    // LIO takes no more than 253 bytes, and what is no text on one line only in part.
    let own: String = own.chars().filter(char::is_ascii_graphic).take(128).collect();
    if own.is_empty() { digits } else { format!("{digits}-{own}") }
}

/// Whether a serial number that an initiator sees is that of an export of a disk. Some targets take only the beginning
/// of it, in which all digits are.
pub fn is_told(target: &IscsiName, own: &str, told: &str) -> bool {
    told.len() >= DIGITS && serial(target, own).starts_with(told)
}

fn disk_changes(disk: &Path, serial: &str, terms: &Terms) -> Vec<Change> {
    let at = Path::new(ADAPTER).join(DISK);
    let node = disk.display();
    let history = if terms.wiped { "wiped" } else { "as found" };
    vec![
        Change::Make(ADAPTER.into()),
        Change::Make(at.clone()),
        Change::Tell(at.join("control"), format!("udev_path={node},readonly={}", u8::from(terms.read_only))),
        Change::Set(at.join("udev_path"), node.to_string()),
        Change::Set(at.join("alias"), history.to_owned()),
        Change::Tell(at.join("wwn/vpd_unit_serial"), serial.to_owned()),
        Change::Set(at.join("enable"), "1".to_owned()),
        // UNMAP, and WRITE SAME with it: initiators that write an image need not send its zeros.
        Change::Wish(at.join("attrib/emulate_tpu"), "1".to_owned()),
        Change::Wish(at.join("attrib/emulate_tpws"), "1".to_owned()),
    ]
}

fn target_changes(portal: SocketAddr, terms: &Terms) -> Vec<Change> {
    let target = Path::new(TARGETS).join(terms.target.to_string());
    let group = target.join(GROUP);
    let (unit, is_open) = (group.join("lun").join(UNIT), terms.initiators.is_empty());
    let attribute =
        |name: &str, is_set: bool| Change::Set(group.join("attrib").join(name), u8::from(is_set).to_string());
    let mut changes = vec![
        protocol(),
        Change::Make(target),
        Change::Make(group.clone()),
        attribute("authentication", terms.chap.is_some()),
        attribute("generate_node_acls", is_open),
        attribute("demo_mode_write_protect", terms.read_only),
        Change::Make(unit.clone()),
        Change::Link(unit.join(DISK), Path::new(ADAPTER).join(DISK)),
    ];
    if is_open {
        changes.extend(secrets(&group, terms));
    }
    for initiator in &terms.initiators {
        changes.extend(admission(&group, initiator, &unit, terms));
    }
    changes.push(Change::Make(group.join("np").join(portal.to_string())));
    changes.push(Change::Set(group.join("enable"), "1".to_owned()));
    changes
}

/// Lets in one initiator.
fn admission(group: &Path, initiator: &IscsiName, unit: &Path, terms: &Terms) -> Vec<Change> {
    let admitted = group.join("acls").join(initiator.to_string());
    let mapped = admitted.join(UNIT);
    let mut changes = vec![Change::Make(admitted.clone())];
    changes.extend(secrets(&admitted, terms));
    changes.extend([
        Change::Make(mapped.clone()),
        Change::Link(mapped.join(DISK), unit.to_owned()),
        Change::Set(mapped.join("write_protect"), u8::from(terms.read_only).to_string()),
    ]);
    changes
}

fn secrets(of: &Path, terms: &Terms) -> Vec<Change> {
    let set = |name: &str, text: &str| Change::Set(of.join("auth").join(name), text.to_owned());
    let chap = terms.chap.iter();
    chap.flat_map(|chap| [set("userid", &chap.user), set("password", &chap.secret)]).collect()
}

/// What is exported in the configfs mounted at `root`.
pub fn exported(root: &Path) -> Option<Export> {
    let disk = sysfs::attribute(&root.join(ADAPTER).join(DISK), "udev_path")?;
    Some(Export { disk: disk.into(), target: own_targets(root).into_iter().next() })
}

/// Takes away whatever there is of an export in the configfs mounted at `root`, in order, and nothing of others
/// (F60).
pub fn removal(root: &Path) -> Vec<Change> {
    let mut changes = Vec::new();
    for target in own_targets(root) {
        let target = Path::new(TARGETS).join(target);
        let group = target.join(GROUP);
        if root.join(&group).is_dir() {
            changes.extend(group_removal(root, &group));
        }
        changes.push(Change::Remove(target));
    }
    let disk = Path::new(ADAPTER).join(DISK);
    if root.join(&disk).is_dir() {
        changes.push(Change::Remove(disk));
    }
    let is_attribute = |name: &String| ["hba_info", "hba_mode", DISK].contains(&name.as_str());
    let adapter = root.join(ADAPTER);
    if adapter.is_dir() && sysfs::entries(&adapter).iter().all(is_attribute) {
        changes.push(Change::Remove(ADAPTER.into()));
    }
    changes
}

/// Closing a group that is open ends its sessions.
fn group_removal(root: &Path, group: &Path) -> Vec<Change> {
    let mut changes = Vec::new();
    if sysfs::attribute(&root.join(group), "enable").as_deref() == Some("1") {
        changes.push(Change::Tell(group.join("enable"), "0".to_owned()));
    }
    for admitted in folders(root, &group.join("acls")) {
        changes.extend(units_removal(root, &admitted));
        changes.push(Change::Remove(admitted));
    }
    changes.extend(units_removal(root, &group.join("lun")));
    changes.extend(folders(root, &group.join("np")).into_iter().map(Change::Remove));
    changes.push(Change::Remove(group.to_owned()));
    changes
}

fn units_removal(root: &Path, of: &Path) -> Vec<Change> {
    let units = folders(root, of).into_iter().filter(|unit| is_unit(unit));
    units
        .flat_map(|unit| {
            let links = links(root, &unit).into_iter().map(Change::Unlink);
            links.chain([Change::Remove(unit.clone())]).collect::<Vec<_>>()
        })
        .collect()
}

/// Targets that lead to our disk, or, having been cut off while they were made, nowhere.
fn own_targets(root: &Path) -> Vec<String> {
    let leads_elsewhere = |target: &String| {
        let units = folders(root, &Path::new(TARGETS).join(target).join(GROUP).join("lun"));
        units.iter().flat_map(|unit| links(root, unit)).any(|link| !link.ends_with(DISK))
    };
    let has_other_groups = |target: &String| {
        let groups = sysfs::entries(&root.join(TARGETS).join(target));
        groups.iter().any(|name| name.starts_with("tpgt_") && name != GROUP)
    };
    let targets = sysfs::entries(&root.join(TARGETS)).into_iter();
    // Beside targets there are attributes of the whole.
    let targets = targets.filter(|name| IscsiName::parse("iqn", name).is_ok());
    targets.filter(|target| !leads_elsewhere(target) && !has_other_groups(target)).collect()
}

fn is_unit(path: &Path) -> bool {
    path.file_name().is_some_and(|name| name.to_string_lossy().starts_with("lun_"))
}

/// The folders in a folder, by name.
fn folders(root: &Path, of: &Path) -> Vec<PathBuf> {
    let entries = sysfs::entries(&root.join(of)).into_iter().map(|name| of.join(name));
    entries.filter(|path| fs::symlink_metadata(root.join(path)).is_ok_and(|found| found.is_dir())).collect()
}

/// The links in a folder, by name.
fn links(root: &Path, of: &Path) -> Vec<PathBuf> {
    let entries = sysfs::entries(&root.join(of)).into_iter().map(|name| of.join(name));
    entries.filter(|path| root.join(path).is_symlink()).collect()
}
