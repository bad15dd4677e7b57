//! Mounting the kernel's own file systems, media to be read, and volumes to be changed.

use nix::errno::Errno;
use nix::mount::{MntFlags, MsFlags, mount, umount2};
use nix::unistd::syncfs;
use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};
use std::thread;
use std::time::{Duration, Instant};

/// A file system that a running system expects.
#[derive(Debug, Clone, Copy)]
pub struct KernelMount {
    /// File system type.
    pub kind: &'static str,
    /// Where it goes.
    pub target: &'static str,
    /// Mount options as text.
    pub options: &'static str,
}

/// What PID 1 mounts before anything else, in order. `efivarfs` comes later: it is a module.
pub const EARLY: &[KernelMount] = &[
    KernelMount { kind: "proc", target: "/proc", options: "" },
    KernelMount { kind: "sysfs", target: "/sys", options: "" },
    KernelMount { kind: "devtmpfs", target: "/dev", options: "mode=0755" },
    KernelMount { kind: "devpts", target: "/dev/pts", options: "mode=0620,ptmxmode=0666" },
    KernelMount { kind: "tmpfs", target: "/run", options: "mode=0755,size=16m" },
    KernelMount { kind: "tmpfs", target: "/tmp", options: "mode=1777,size=16m" },
];

/// The UEFI variables.
pub const EFIVARFS: KernelMount =
    KernelMount { kind: "efivarfs", target: "/sys/firmware/efi/efivars", options: "" };

/// What containers need beyond [`EARLY`].
pub const FOR_CONTAINERS: &[KernelMount] = &[
    KernelMount { kind: "cgroup2", target: "/sys/fs/cgroup", options: "" },
    KernelMount { kind: "tmpfs", target: "/dev/shm", options: "mode=1777,size=16m" },
];

/// Where drivers let people look at, and order, what is no interface.
pub const DEBUGFS: KernelMount = KernelMount { kind: "debugfs", target: "/sys/kernel/debug", options: "" };

/// Where objects of the kernel are made, such as targets of iSCSI. It is a module.
pub const CONFIGFS: KernelMount = KernelMount { kind: "configfs", target: "/sys/kernel/config", options: "" };

/// What a crashed kernel left behind.
pub const PSTORE: KernelMount = KernelMount { kind: "pstore", target: "/sys/fs/pstore", options: "" };

/// A file system could not be mounted.
#[derive(Debug, thiserror::Error)]
#[error("{kind} cannot be mounted on {target}: is it built into the kernel or packed as a module?")]
pub struct MountError {
    kind: &'static str,
    target: &'static str,
    #[source]
    source: io::Error,
}

impl KernelMount {
    /// Mounts it, creating the directory. Something already mounted there counts as success.
    ///
    /// # Errors
    ///
    /// [`MountError`] naming type and target.
    pub fn mount(&self) -> Result<(), MountError> {
        self.try_mount().map_err(|source| MountError { kind: self.kind, target: self.target, source })
    }

    /// Takes it away again.
    ///
    /// # Errors
    ///
    /// `EBUSY` while a file on it is open.
    pub fn unmount(&self) -> io::Result<()> {
        Ok(umount2(self.target, MntFlags::empty())?)
    }

    fn try_mount(&self) -> io::Result<()> {
        let target = Path::new(self.target);
        if !target.is_dir() {
            fs::create_dir_all(target)?;
        }
        let flags = MsFlags::MS_NOSUID | MsFlags::MS_NOEXEC;
        match mount(Some(self.kind), target, Some(self.kind), flags, Some(self.options)) {
            Ok(()) | Err(Errno::EBUSY) => Ok(()),
            Err(error) => Err(error.into()),
        }
    }
}

/// The file system of a device, mounted for reading until this value is dropped.
#[derive(Debug)]
pub struct ReadOnlyMount(Mounted);

impl ReadOnlyMount {
    /// Mounts a device on a new folder. Neither programs nor device files on it can be used.
    ///
    /// # Errors
    ///
    /// `ENODEV` when the kernel does not know the type, `EINVAL` when the device does not have it.
    pub fn new(device: &Path, kind: &str, target: &Path) -> io::Result<Self> {
        Mounted::new(device, kind, target, MsFlags::MS_RDONLY).map(Self)
    }

    /// Where its files are.
    pub fn path(&self) -> &Path {
        &self.0.target
    }
}

/// The file system of a device, mounted to be changed.
#[derive(Debug)]
pub struct WritableMount(Mounted);

impl WritableMount {
    /// Mounts a device on a new folder. Neither programs nor device files on it can be used.
    ///
    /// # Errors
    ///
    /// As [`ReadOnlyMount::new`], or `EROFS` when the device or its file system refuses writes.
    pub fn new(device: &Path, kind: &str, target: &Path) -> io::Result<Self> {
        Mounted::new(device, kind, target, MsFlags::empty()).map(Self)
    }

    /// Where its files are.
    pub fn path(&self) -> &Path {
        &self.0.target
    }

    /// Has everything written to the device. When this value is merely dropped, no caller learns whether that
    /// succeeded.
    ///
    /// # Errors
    ///
    /// What the device says.
    pub fn flush(&self) -> io::Result<()> {
        Ok(syncfs(File::open(self.path())?)?)
    }
}

/// How long a device may be busy with a file system that was unmounted: the kernel ends one when its last user has
/// gone, which it learns of after the mount has disappeared.
const LEAVING: Duration = Duration::from_secs(3);
/// How often it is tried again meanwhile.
const POLL: Duration = Duration::from_millis(20);

/// A device mounted on a folder that is made for it, until this value is dropped.
#[derive(Debug)]
struct Mounted {
    target: PathBuf,
}

impl Mounted {
    fn new(device: &Path, kind: &str, target: &Path, flags: MsFlags) -> io::Result<Self> {
        fs::create_dir_all(target)?;
        let flags = flags | MsFlags::MS_NOSUID | MsFlags::MS_NODEV | MsFlags::MS_NOEXEC;
        let end = Instant::now() + LEAVING;
        loop {
            match mount(Some(device), target, Some(kind), flags, None::<&str>) {
                Ok(()) => return Ok(Self { target: target.to_owned() }),
                Err(Errno::EBUSY) if Instant::now() < end => thread::sleep(POLL),
                Err(error) => return Err(error.into()),
            }
        }
    }
}

impl Drop for Mounted {
    fn drop(&mut self) {
        // Detached even while somebody holds a file open.
        if let Err(error) = umount2(&self.target, MntFlags::MNT_DETACH) {
            tracing::warn!(target = %self.target.display(), %error, "cannot be unmounted");
            return;
        }
        fs::remove_dir(&self.target).ok();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::loop_device::LoopDevice;
    use std::process::Command;

    #[test]
    fn p12_every_file_system_in_memory_has_a_limit() {
        let in_memory = EARLY.iter().chain(FOR_CONTAINERS).filter(|one| one.kind == "tmpfs");
        let in_memory: Vec<_> = in_memory.collect();
        assert_eq!(in_memory.len(), 3);
        for one in in_memory {
            assert!(one.options.split(',').any(|option| option.starts_with("size=")), "{}", one.target);
        }
    }

    /// A device with a file system that has one file, and a folder to mount it on.
    fn device_with_parameters(directory: &Path) -> (LoopDevice, PathBuf) {
        let [image, target, content] = ["image", "target", "content"].map(|name| directory.join(name));
        fs::create_dir(&content).unwrap();
        fs::write(content.join("parameters.txt"), "a=1").unwrap();
        let mut format = Command::new("mke2fs");
        format.args(["-q", "-t", "ext4", "-d"]).args([&content, &image]).arg("4M");
        assert!(format.status().unwrap().success());
        (LoopDevice::attach(&image, 512).unwrap(), target)
    }

    #[test]
    fn loop_a_file_system_that_is_on_its_way_out_is_waited_for() {
        let directory = tempfile::tempdir().unwrap();
        let (device, target) = device_with_parameters(directory.path());
        let mounted = WritableMount::new(device.path(), "ext4", &target).unwrap();
        let last_user = File::open(mounted.path().join("parameters.txt")).unwrap();
        drop(mounted);
        let flags = MsFlags::MS_RDONLY;
        fs::create_dir(&target).unwrap();
        let refused = mount(Some(device.path()), &target, Some("ext4"), flags, None::<&str>);
        assert_eq!(refused, Err(Errno::EBUSY), "the kernel does not mind");
        let leaves = thread::spawn(move || {
            thread::sleep(10 * POLL);
            drop(last_user);
        });
        let mounted = ReadOnlyMount::new(device.path(), "ext4", &target).unwrap();
        assert_eq!(fs::read_to_string(mounted.path().join("parameters.txt")).unwrap(), "a=1");
        leaves.join().unwrap();
    }

    #[test]
    fn loop_a_device_is_read_and_released() {
        let directory = tempfile::tempdir().unwrap();
        let (device, target) = device_with_parameters(directory.path());
        {
            let mounted = ReadOnlyMount::new(device.path(), "ext4", &target).unwrap();
            let file = mounted.path().join("parameters.txt");
            assert_eq!(fs::read_to_string(&file).unwrap(), "a=1");
            let error = fs::write(&file, "a=2").unwrap_err();
            assert_eq!(error.kind(), io::ErrorKind::ReadOnlyFilesystem);
        }
        assert!(!target.exists());
        {
            let mounted = WritableMount::new(device.path(), "ext4", &target).unwrap();
            fs::write(mounted.path().join("parameters.txt"), "a=2").unwrap();
            mounted.flush().unwrap();
        }
        let mounted = ReadOnlyMount::new(device.path(), "ext4", &target).unwrap();
        assert_eq!(fs::read_to_string(mounted.path().join("parameters.txt")).unwrap(), "a=2");
        drop(mounted);
        assert!(ReadOnlyMount::new(device.path(), "nosuchfs", &target).is_err());
        assert_eq!(fs::read_dir(&target).unwrap().count(), 0);
    }
}
