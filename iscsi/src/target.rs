//! Exporting a disk by iSCSI (section 4.4), by the target of the kernel, LIO, or, where the kernel has none and the
//! ramdisk carries it, by [`tgtd`].
//!
//! LIO is set up in configfs. What is made there, below `target/`:
//!
//! | path | what it is |
//! |---|---|
//! | `core/iblock_0/farrier` | the disk: `control` and `udev_path` name it, `wwn/vpd_unit_serial` is what initiators know it by, `alias` tells whether it was wiped; `enable` has the kernel claim it |
//! | `iscsi/IQN/tpgt_1` | the target: `attrib` says who may log in, `auth` with which CHAP secret; `enable` opens it |
//! | `…/lun/lun_1/farrier` | a link to the disk: logical unit 1 |
//! | `…/acls/INITIATOR` | an initiator that may log in, with its own `auth` and, in `lun_1`, a link to the logical unit; none of them lets in everybody |
//! | `…/np/[::]:PORT` | the portal, a socket for all addresses, of IPv6 and IPv4; `0.0.0.0:PORT` where there is no IPv6 |
//!
//! [`layout`] says all this as data, so that it can be compared with what is there. Nothing else is remembered: an
//! agent that was started again finds the export of the one before it, and whoever looks for a disk's users finds it
//! too. The kernel claims the disk as an exclusive open does, so nothing in the ramdisk can write to it meanwhile.
//!
//! Several initiators may log in at once, as everywhere in iSCSI. Reservations keep them apart, and an allow-list
//! keeps strangers out.

pub mod layout;
mod terms;
mod tgtd;

pub use terms::{Chap, IscsiName, Terms};

use crate::error::Error;
use farrier_disk::device::exports::{self, Export};
use farrier_disk::{RootDisk, Sectors, WritableDisk};
use farrier_linux::block;
use farrier_linux::configfs::Change;
use farrier_linux::modules::ModuleIndex;
use farrier_linux::mount::CONFIGFS;
use farrier_linux::process::{TGTADM, TGTD};
use layout::Layout;
use std::fs::{self, File};
use std::io;
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr, TcpListener};
use std::path::{Path, PathBuf};

/// The modules that LIO is made of; what they need comes by itself.
const MODULES: &[&str] = &["configfs", "target_core_mod", "target_core_iblock", "iscsi_target_mod"];

/// Where LIO keeps what initiators have reserved, if the folder is there when its module is loaded. An initiator that
/// asks for a reservation that outlives a loss of power is refused without.
const RESERVATIONS: &str = "etc/target/pr";

/// A disk that the guard has let go of.
#[derive(Debug)]
pub enum Medium {
    /// Initiators may write to it.
    Writable(WritableDisk),
    /// They may only read it.
    ReadOnly(PathBuf),
}

impl Medium {
    /// Its device node, for the kernel, which claims it itself.
    fn let_go(self) -> PathBuf {
        match self {
            Self::Writable(disk) => disk.path().to_owned(),
            Self::ReadOnly(path) => path,
        }
    }
}

/// The iSCSI target of a kernel.
#[derive(Debug)]
pub struct IscsiTarget {
    root: PathBuf,
    configfs: PathBuf,
}

impl IscsiTarget {
    /// That of the machine whose files lie below `root`.
    pub fn below(root: &Path) -> Self {
        Self { root: root.to_owned(), configfs: root.join(CONFIGFS.target.trim_start_matches('/')) }
    }

    /// What is exported.
    pub fn exported(&self) -> Option<Export> {
        layout::exported(&self.configfs).or_else(exports::served)
    }

    /// Whether `disk` is exported under these terms already.
    ///
    /// # Errors
    ///
    /// [`Error::Target`] when another disk is, or under other terms.
    pub fn has(&self, disk: &RootDisk, terms: &Terms) -> Result<bool, Error> {
        let Some(exported) = self.exported() else { return Ok(false) };
        let path = Path::new(&disk.device().disk.name);
        if tgtd::has(path, terms) {
            return Ok(true);
        }
        let layout = Layout::new(path, &serial(disk, terms), portal(terms), terms);
        match layout.difference(&self.configfs) {
            None => Ok(true),
            Some(path) => Err(terms.failed(format!(
                "{exported} already, and not as it is asked for now ({}); order iscsi.stop_iscsi_target first",
                path.display()
            ))),
        }
    }

    /// Exports `medium`, which is `disk`, under these terms; the medium has the last word on whether it is written to.
    ///
    /// # Errors
    ///
    /// [`Error::Target`]: there is no target, the port is in use, the disk is claimed by something else;
    /// [`Error::Disk`]. Nothing is exported then.
    pub fn start(&self, disk: &RootDisk, medium: Medium, terms: &Terms) -> Result<(), Error> {
        let serial = serial(disk, terms);
        let read_only = matches!(medium, Medium::ReadOnly(_));
        let terms = &Terms { read_only, ..terms.clone() };
        match self.make_ready(terms) {
            Ok(()) => self.start_in_kernel(&medium.let_go(), &serial, terms),
            Err(error) if tgtd::is_packed() => {
                tracing::info!("exporting by tgtd: {error}");
                tgtd::start(medium, &serial, terms)
            }
            Err(error) => Err(error),
        }
    }

    fn start_in_kernel(&self, path: &Path, serial: &str, terms: &Terms) -> Result<(), Error> {
        for change in Layout::new(path, serial, portal(terms), terms).changes() {
            if let Err(source) = change.apply(&self.configfs) {
                let error = terms.failed(refusal(change, path, terms, &source));
                if let Err(also) = self.stop() {
                    tracing::error!("{also}");
                }
                return Err(error);
            }
        }
        tracing::info!(disk = %path.display(), target = %terms.target, port = terms.port,
            read_only = terms.read_only, "disk exported by iSCSI");
        Ok(())
    }

    /// Ends the export, and with it what is left of one that was cut off: sessions are closed, what was written is
    /// on the disk, which is free again. Returns what was exported. Everything is tried, whatever fails.
    ///
    /// # Errors
    ///
    /// [`Error::Target`] or [`Error::Disk`], the first of all.
    pub fn stop(&self) -> Result<Option<Export>, Error> {
        let exported = tgtd::stop().or_else(|| self.exported());
        let mut outcome = Ok(());
        for change in layout::removal(&self.configfs) {
            let done = change.apply(&self.configfs).map_err(|source| Error::Target {
                target: exported.as_ref().and_then(|one| one.target.clone()).unwrap_or_default(),
                reason: format!(
                    "the kernel keeps {} ({source}); log the initiators out, or restart the machine",
                    change.path().display()
                ),
            });
            outcome = outcome.and(done);
        }
        if let Some(exported) = &exported {
            outcome = outcome.and(settle(&exported.disk));
            tracing::info!(disk = %exported.disk.display(), "iSCSI export ended");
        }
        outcome.map(|()| exported)
    }

    /// Loads what the running kernel needs. Nobody else asks for these modules.
    fn make_ready(&self, terms: &Terms) -> Result<(), Error> {
        fs::create_dir_all(self.root.join(RESERVATIONS))
            .map_err(|error| terms.failed(format!("/{RESERVATIONS} cannot be made: {error}")))?;
        if !self.configfs.join(layout::ROOT).is_dir() && self.configfs == Path::new(CONFIGFS.target) {
            MODULES.iter().for_each(|module| ModuleIndex::load_unasked(module));
            CONFIGFS.mount().map_err(|error| terms.failed(error.to_string()))?;
        }
        layout::protocol().apply(&self.configfs).map_err(|source| {
            let modules = MODULES.join(", ");
            terms.failed(format!(
                "the kernel has no iSCSI target ({source}); build the ramdisk with its modules {modules}, or with {} and {} \
                 of the package {}",
                TGTD.path, TGTADM.path, TGTD.package
            ))
        })
    }
}

/// All addresses of the machine. The kernel has this list where it has IPv6.
fn portal(terms: &Terms) -> SocketAddr {
    let has_ipv6 = Path::new("/proc/net/if_inet6").exists();
    let (all, all_ipv6) = (Ipv4Addr::UNSPECIFIED.into(), Ipv6Addr::UNSPECIFIED.into());
    SocketAddr::new(if has_ipv6 { all_ipv6 } else { all }, terms.port)
}

/// Whether somebody listens there. LIO says of every portal that it cannot have that it is invalid.
fn is_taken(portal: SocketAddr) -> bool {
    TcpListener::bind(portal).is_err_and(|error| error.kind() == io::ErrorKind::AddrInUse)
}

fn port_in_use(terms: &Terms) -> String {
    format!("port {} is in use on this machine; name another portal_port", terms.port)
}

/// What the kernel's refusal means.
fn refusal(change: &Change, disk: &Path, terms: &Terms, source: &io::Error) -> String {
    let path = change.path();
    match source.raw_os_error() {
        Some(libc::EINVAL) if is_taken(portal(terms)) => port_in_use(terms),
        Some(libc::EBUSY) => format!("{} is in use; release the disk and try again", disk.display()),
        _ => format!("the kernel refused {} ({source}); look into the kernel log", path.display()),
    }
}

/// What initiators wrote past the kernel's caches is on the disk after this, and the kernel knows its partitions.
fn settle(disk: &Path) -> Result<(), Error> {
    let failed = |action: &str| {
        let (device, action) = (disk.to_owned(), action.to_owned());
        move |source| Error::from(farrier_disk::Error::Device { device, action, source })
    };
    let file = File::open(disk).map_err(failed("opening it after its export"))?;
    block::flush_buffers(&file).map_err(failed("flushing it after its export"))?;
    if let Err(error) = block::reread_partitions(&file) {
        tracing::warn!(disk = %disk.display(), %error, "the kernel reads its partitions when it is opened next");
    }
    Ok(())
}

/// Serial number of the logical unit: 24 digits that no other export has, then the disk's own, as inventories show it.
/// LIO makes the World Wide Name of the logical unit from the digits, and initiators take disks of one name for one
/// disk.
fn serial(disk: &RootDisk, terms: &Terms) -> String {
    let own = disk.device().disk.serial.as_deref().unwrap_or_default();
    layout::serial(&terms.target, own)
}

#[cfg(test)]
mod tests;
