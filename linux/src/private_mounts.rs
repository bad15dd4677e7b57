//! Mounts that one thread alone sees, and the programs it starts.
//!
//! Whatever happens to the thread, the kernel takes them away with it: nothing of them can be left behind.

use nix::errno::Errno;
use nix::mount::{MntFlags, MsFlags, mount, umount2};
use nix::sched::{CloneFlags, unshare};
use nix::sys::stat::{Mode, SFlag, makedev, mknod, stat};
use std::fs;
use std::io;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::thread;
use std::time::Duration;

/// How often, and how far apart, a busy file system is unmounted: a program that ended may hold it for a moment.
const ATTEMPTS: u32 = 20;
const INTERVAL: Duration = Duration::from_millis(250);

/// How large a file system in memory may get: its own limit would be half of the memory (P12).
const IN_MEMORY: &str = "size=16m";

/// Character devices that every program may expect: name, major and minor number (Linux, `devices.txt`).
const CHARACTER_DEVICES: &[(&str, u64, u64)] =
    &[("null", 1, 3), ("zero", 1, 5), ("full", 1, 7), ("random", 1, 8), ("urandom", 1, 9), ("tty", 5, 0)];

/// Links that every program may expect.
const DEVICE_LINKS: &[(&str, &str)] = &[
    ("fd", "/proc/self/fd"),
    ("stdin", "/proc/self/fd/0"),
    ("stdout", "/proc/self/fd/1"),
    ("stderr", "/proc/self/fd/2"),
];

/// What may be done on a file system.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Use {
    /// Its files are read and written. Neither programs nor device files on it can be used.
    Files,
    /// Its programs are run.
    Programs,
}

/// The mounts of a thread, in their order.
#[derive(Debug)]
pub struct PrivateMounts(Vec<PathBuf>);

/// Does `work` on a thread of its own, whose mounts no other process sees. Needs root.
///
/// # Errors
///
/// The kernel refuses such a thread.
pub fn with_private_mounts<T: Send>(work: impl FnOnce(PrivateMounts) -> T + Send) -> io::Result<T> {
    let run = || {
        unshare(CloneFlags::CLONE_NEWNS)?;
        // What is mounted from now on must not show up where the others are.
        mount(None::<&str>, "/", None::<&str>, MsFlags::MS_REC | MsFlags::MS_PRIVATE, None::<&str>)?;
        Ok(work(PrivateMounts(Vec::new())))
    };
    thread::scope(|scope| {
        let ended = thread::Builder::new().name("mounts".to_owned()).spawn_scoped(scope, run)?.join();
        ended.unwrap_or_else(|_| Err(io::Error::other("the thread with its mounts panicked")))
    })
}

impl PrivateMounts {
    /// Mounts the file system of a device.
    ///
    /// # Errors
    ///
    /// `ENODEV` when the kernel does not know the type, `EINVAL` when the device does not have it.
    pub fn device(&mut self, device: &Path, kind: &str, target: &Path, usage: Use) -> io::Result<()> {
        let flags = match usage {
            Use::Files => MsFlags::MS_NOSUID | MsFlags::MS_NODEV | MsFlags::MS_NOEXEC,
            Use::Programs => MsFlags::MS_NODEV,
        };
        self.mount(Some(device), kind, target, flags, "")
    }

    /// Mounts one of the kernel's own file systems, such as `proc`.
    ///
    /// # Errors
    ///
    /// Whatever `mount` reports.
    pub fn kernel(&mut self, kind: &str, target: &Path) -> io::Result<()> {
        self.mount(None, kind, target, MsFlags::MS_NOSUID | MsFlags::MS_NODEV | MsFlags::MS_NOEXEC, "")
    }

    /// Mounts a folder of at most 16 MiB in memory, for what lasts as long as a program.
    ///
    /// # Errors
    ///
    /// Whatever `mount` reports.
    pub fn memory(&mut self, target: &Path) -> io::Result<()> {
        let flags = MsFlags::MS_NOSUID | MsFlags::MS_NODEV | MsFlags::MS_NOEXEC;
        self.mount(None, "tmpfs", target, flags, IN_MEMORY)
    }

    /// Hides a file behind an empty one that cannot be executed.
    ///
    /// # Errors
    ///
    /// Whatever `mount` reports.
    pub fn hide(&mut self, file: &Path) -> io::Result<()> {
        mount(Some("/dev/null"), file, None::<&str>, MsFlags::MS_BIND, None::<&str>)?;
        self.0.push(file.to_owned());
        Ok(())
    }

    /// Mounts a folder of devices with nothing in it but what every program expects, the block devices
    /// `blocks`, and `links`, each a path in the folder with the block device it leads to.
    ///
    /// # Errors
    ///
    /// A block device is not there, or whatever `mount` and `mknod` report.
    pub fn devices(
        &mut self,
        target: &Path,
        blocks: &[PathBuf],
        links: &[(String, PathBuf)],
    ) -> io::Result<()> {
        self.mount(None, "tmpfs", target, MsFlags::MS_NOSUID | MsFlags::MS_NOEXEC, IN_MEMORY)?;
        let mode = Mode::from_bits_truncate(0o666);
        for (name, major, minor) in CHARACTER_DEVICES {
            mknod(&target.join(name), SFlag::S_IFCHR, mode, makedev(*major, *minor))?;
        }
        for (name, destination) in DEVICE_LINKS {
            symlink(destination, target.join(name))?;
        }
        for block in blocks {
            let name = block.strip_prefix("/dev").map_err(io::Error::other)?;
            let node = target.join(name);
            fs::create_dir_all(node.parent().unwrap_or(target))?;
            mknod(&node, SFlag::S_IFBLK, mode, stat(block)?.st_rdev)?;
        }
        for (link, block) in links {
            let link = target.join(link);
            fs::create_dir_all(link.parent().unwrap_or(target))?;
            symlink(block, link)?;
        }
        Ok(())
    }

    /// Unmounts what was mounted last.
    ///
    /// # Errors
    ///
    /// What is mounted where, and why it stays; a process may still use it after some seconds.
    pub fn unmount_last(&mut self) -> io::Result<()> {
        let Some(target) = self.0.last() else { return Ok(()) };
        let mut attempts = 1;
        while let Err(error) = umount2(target, MntFlags::empty()) {
            if error != Errno::EBUSY || attempts == ATTEMPTS {
                let text = format!("{} cannot be unmounted: {error}", target.display());
                return Err(io::Error::other(text));
            }
            attempts += 1;
            thread::sleep(INTERVAL);
        }
        self.0.pop();
        Ok(())
    }

    /// Unmounts everything. What they hold is on the disks then.
    ///
    /// # Errors
    ///
    /// As [`PrivateMounts::unmount_last`]; the rest goes with the thread.
    pub fn unmount(mut self) -> io::Result<()> {
        while !self.0.is_empty() {
            self.unmount_last()?;
        }
        Ok(())
    }

    fn mount(
        &mut self,
        source: Option<&Path>,
        kind: &str,
        target: &Path,
        flags: MsFlags,
        options: &str,
    ) -> io::Result<()> {
        fs::create_dir_all(target)?;
        mount(source.or(Some(Path::new(kind))), target, Some(kind), flags, Some(options))?;
        self.0.push(target.to_owned());
        Ok(())
    }
}

/// For whoever leaves early.
impl Drop for PrivateMounts {
    fn drop(&mut self) {
        for target in self.0.iter().rev() {
            if let Err(error) = umount2(target, MntFlags::MNT_DETACH) {
                tracing::warn!(target = %target.display(), %error, "cannot be unmounted");
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::loop_device::LoopDevice;
    use std::fs::File;
    use std::os::unix::fs::FileTypeExt;
    use std::process::Command;

    fn formatted(image: &Path) -> LoopDevice {
        let mut format = Command::new("mke2fs");
        assert!(format.args(["-q", "-t", "ext4"]).arg(image).arg("4M").status().unwrap().success());
        LoopDevice::attach(image, 512).unwrap()
    }

    #[test]
    fn loop_nobody_else_sees_the_mounts_and_none_is_left() {
        let directory = tempfile::tempdir().unwrap();
        let target = directory.path().join("target");
        let device = formatted(&directory.path().join("image"));
        let mounts = || fs::read_to_string("/proc/self/mountinfo").unwrap();
        let seen = with_private_mounts(|mut private| {
            private.device(device.path(), "ext4", &target, Use::Files).unwrap();
            fs::write(target.join("file"), "content").unwrap();
            let own = fs::read_to_string("/proc/thread-self/mountinfo").unwrap();
            assert!(own.contains(target.to_str().unwrap()), "{own}");
            let others = mounts();
            private.unmount().unwrap();
            others
        });
        assert!(!seen.unwrap().contains(target.to_str().unwrap()));
        assert_eq!(fs::read_dir(&target).unwrap().count(), 0);
        // Exclusively: the file system is gone.
        let mut options = File::options();
        std::os::unix::fs::OpenOptionsExt::custom_flags(options.read(true), libc::O_EXCL);
        options.open(device.path()).unwrap();
    }

    #[test]
    fn loop_a_thread_that_gives_up_leaves_no_mount_behind() {
        let directory = tempfile::tempdir().unwrap();
        let target = directory.path().join("target");
        let device = formatted(&directory.path().join("image"));
        let outcome: io::Result<io::Result<()>> = with_private_mounts(|mut private| {
            private.device(device.path(), "ext4", &target, Use::Files)?;
            private.device(device.path(), "nosuchfs", &directory.path().join("other"), Use::Files)
        });
        assert_eq!(outcome.unwrap().unwrap_err().raw_os_error(), Some(libc::ENODEV));
        assert_eq!(fs::read_dir(&target).unwrap().count(), 0);
    }

    #[test]
    fn loop_a_folder_of_devices_has_what_was_named_and_no_disk_besides() {
        let directory = tempfile::tempdir().unwrap();
        let target = directory.path().join("dev");
        let device = formatted(&directory.path().join("image"));
        let block = device.path().to_owned();
        with_private_mounts(|mut private| {
            let links = [("disk/by-uuid/abc".to_owned(), block.clone())];
            private.devices(&target, std::slice::from_ref(&block), &links).unwrap();
            let kinds = fs::read_dir(&target).unwrap().map(|entry| entry.unwrap().file_type().unwrap());
            assert_eq!(kinds.filter(FileTypeExt::is_block_device).count(), 1);
            fs::write(target.join("null"), "x").unwrap();
            assert_eq!(fs::read_link(target.join("disk/by-uuid/abc")).unwrap(), block);
            private.unmount().unwrap();
        })
        .unwrap();
    }

    #[test]
    fn loop_p12_a_private_file_system_in_memory_has_a_limit() {
        let directory = tempfile::tempdir().unwrap();
        let [plain, devices] = ["plain", "devices"].map(|name| directory.path().join(name));
        with_private_mounts(|mut private| {
            private.memory(&plain).unwrap();
            private.devices(&devices, &[], &[]).unwrap();
            let mounts = fs::read_to_string("/proc/thread-self/mountinfo").unwrap();
            for folder in [&plain, &devices] {
                let line = mounts.lines().find(|line| line.contains(&*folder.to_string_lossy())).unwrap();
                assert!(line.contains(" tmpfs ") && line.contains("size=16384k"), "{line}");
            }
            private.unmount().unwrap();
        })
        .unwrap();
    }

    #[test]
    fn loop_what_is_still_used_is_named_when_it_cannot_be_unmounted() {
        let directory = tempfile::tempdir().unwrap();
        let target = directory.path().join("target");
        with_private_mounts(|mut private| {
            private.memory(&target).unwrap();
            let held = File::create(target.join("file")).unwrap();
            let text = private.unmount_last().unwrap_err().to_string();
            assert!(text.starts_with(&format!("{} cannot be unmounted: EBUSY", target.display())), "{text}");
            drop(held);
            private.unmount().unwrap();
        })
        .unwrap();
    }
}
