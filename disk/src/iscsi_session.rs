//! The disk of an iSCSI session that this host's kernel has. It is found below the session alone, never among the disks
//! of this host, by names that nobody else has.

use crate::device::BlockDevice;
use crate::error::Error;
use crate::io::WritableDisk;
use farrier_linux::sysfs;
use std::path::{Path, PathBuf};

/// Where the kernel shows sessions with targets, in sysfs.
const SESSIONS: &str = "class/iscsi_session";
/// Name of the folder of each connection of a session, before its number.
const CONNECTION: &str = "connection";
/// Name of the folder of each SCSI target of a session, before its address.
const TARGET: &str = "target";

/// What a session is known by, as the record of open-iscsi has it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SessionName {
    /// Name of the target.
    pub target: String,
    /// Address or name of the host, without brackets.
    pub address: String,
    /// Port of the host.
    pub port: u16,
}

/// The only disk of a session. It can be read about; only [`SessionDisk::open`] makes one that can be written to.
#[derive(Debug)]
pub struct SessionDisk {
    device: BlockDevice,
    target: String,
}

impl SessionName {
    /// The disk of the session, in the sysfs mounted at `sysfs`; none while there is no session or it has no disk yet.
    ///
    /// # Errors
    ///
    /// [`Error::Remote`] when there are several, so that the right one is unknown.
    pub fn disk(&self, sysfs: &Path) -> Result<Option<SessionDisk>, Error> {
        let refused = |reason: String| Error::Remote { name: self.target.clone(), reason };
        let sessions = sysfs.join(SESSIONS);
        let folders = sysfs::entries(&sessions).into_iter().map(|name| sessions.join(name));
        let found: Vec<String> =
            folders.filter(|folder| self.is_of(folder)).flat_map(|one| disks(&one)).collect();
        match found.as_slice() {
            [] => Ok(None),
            // A device whose size is not there yet is described later.
            [name] => Ok(BlockDevice::describe(sysfs, name)
                .ok()
                .map(|device| SessionDisk { device, target: self.target.clone() })),
            several => Err(refused(format!("it has the disks {}, and not one", several.join(", ")))),
        }
    }

    /// Whether there is any session with this target.
    pub fn is_there(sysfs: &Path, target: &str) -> bool {
        let sessions = sysfs.join(SESSIONS);
        let is_it =
            |name: &String| sysfs::attribute(&sessions.join(name), "targetname").as_deref() == Some(target);
        sysfs::entries(&sessions).iter().any(is_it)
    }

    fn is_of(&self, session: &Path) -> bool {
        let attribute = |folder: &Path, name| sysfs::attribute(folder, name);
        let is_portal = |folder: PathBuf| {
            attribute(&folder, "persistent_address").as_deref() == Some(&self.address)
                && sysfs::number(&folder, "persistent_port") == Some(self.port)
        };
        let device = session.join("device");
        attribute(session, "targetname").as_deref() == Some(&self.target)
            && sysfs::entries(&device)
                .iter()
                .filter(|name| name.starts_with(CONNECTION))
                .any(|name| is_portal(device.join(name).join("iscsi_connection").join(name)))
    }
}

/// Names of the disks below a session.
fn disks(session: &Path) -> Vec<String> {
    let below = |folder: PathBuf| sysfs::entries(&folder).into_iter().map(move |name| folder.join(name));
    let targets = below(session.join("device"))
        .filter(|folder| folder.file_name().is_some_and(|name| name.to_string_lossy().starts_with(TARGET)));
    targets.flat_map(below).flat_map(|unit| sysfs::entries(&unit.join("block"))).collect()
}

impl SessionDisk {
    /// The serial number of the logical unit (VPD page 80h); none while the kernel has not read it.
    pub fn serial(&self) -> Option<&str> {
        self.device.disk.serial.as_deref()
    }

    /// Opens it for writing, for this process alone, when it has one of these sizes, in bytes and of a logical sector.
    ///
    /// # Errors
    ///
    /// [`Error::Remote`]: it has another; [`Error::InUse`], [`Error::ReadOnly`], or [`Error::Device`] when it cannot be
    /// opened.
    pub fn open(&self, sizes: &[(u64, u32)]) -> Result<WritableDisk, Error> {
        let found = (self.device.disk.size, self.device.disk.logical_sectors);
        if !sizes.contains(&found) {
            let (size, sector) = found;
            let reason = format!(
                "it has {size} bytes in sectors of {sector}, as no disk of the machine's inventory has"
            );
            return Err(Error::Remote { name: self.target.clone(), reason });
        }
        WritableDisk::open(&self.device)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fake_sysfs::FakeSysfs;
    use std::fs;
    use std::os::unix::fs::symlink;

    const SIZE: u64 = 1 << 20;

    fn name(target: &str) -> SessionName {
        SessionName { target: target.to_owned(), address: "2001:db8::7".to_owned(), port: 3260 }
    }

    fn write(folder: &Path, attributes: &[(&str, &str)]) {
        fs::create_dir_all(folder).unwrap();
        for (name, text) in attributes {
            fs::write(folder.join(name), format!("{text}\n")).unwrap();
        }
    }

    /// A session as the kernel shows it, without disks.
    fn session(sysfs: &FakeSysfs, number: u32, target: &str, port: &str) {
        let device = sysfs.path().join(format!("devices/platform/host{number}/session{number}"));
        let connection = format!("connection{number}:0");
        write(
            &device.join(&connection).join("iscsi_connection").join(&connection),
            &[("persistent_address", "2001:db8::7"), ("persistent_port", port)],
        );
        let class = sysfs.path().join(format!("class/iscsi_session/session{number}"));
        write(&class, &[("targetname", target)]);
        symlink(device, class.join("device")).unwrap();
    }

    fn disk(sysfs: &FakeSysfs, number: u32, unit: u32, name: &str) {
        let path = format!(
            "devices/platform/host{number}/session{number}/target{number}:0:0/{number}:0:0:{unit}/block/{name}"
        );
        sysfs.disk(&path, SIZE, &[("device/vpd_pg80", "\0\u{80}\0\u{4}SN-1")]);
    }

    #[test]
    fn a_disk_comes_from_its_session_alone_however_late_it_appears() {
        let sysfs = FakeSysfs::new();
        sysfs.disk("devices/pci0/block/sda", SIZE, &[("device/vpd_pg80", "\0\u{80}\0\u{4}SN-1")]);
        assert!(name("iqn.a").disk(sysfs.path()).unwrap().is_none(), "no session");
        // Sessions of others, and one with this target at another portal.
        for (number, target, port) in [(1, "iqn.b", "3260"), (2, "iqn.a2", "3260"), (3, "iqn.a", "3261")] {
            session(&sysfs, number, target, port);
            disk(&sysfs, number, 1, &format!("sdb{number}"));
        }
        session(&sysfs, 4, "iqn.a", "3260");
        assert!(SessionName::is_there(sysfs.path(), "iqn.a2") && !SessionName::is_there(sysfs.path(), "iqn"));
        assert!(name("iqn.a").disk(sysfs.path()).unwrap().is_none(), "no disk yet");
        disk(&sysfs, 4, 1, "sdx");
        let found = name("iqn.a").disk(sysfs.path()).unwrap().unwrap();
        assert_eq!((found.device.kernel_name(), found.serial()), ("sdx", Some("SN-1")));
    }

    #[test]
    fn several_disks_and_other_sizes_are_refused() {
        let sysfs = FakeSysfs::new();
        session(&sysfs, 4, "iqn.a", "3260");
        disk(&sysfs, 4, 1, "sdx");
        let found = name("iqn.a").disk(sysfs.path()).unwrap().unwrap();
        for sizes in [vec![], vec![(SIZE, 4096), (2 * SIZE, 512)]] {
            let error = found.open(&sizes).unwrap_err().to_string();
            assert!(error.contains("1048576 bytes in sectors of 512"), "{error}");
        }
        disk(&sysfs, 4, 2, "sdy");
        let error = name("iqn.a").disk(sysfs.path()).unwrap_err().to_string();
        assert!(
            error.contains("sdx") && error.contains("sdy") && error.contains("nothing was written"),
            "{error}"
        );
    }
}
