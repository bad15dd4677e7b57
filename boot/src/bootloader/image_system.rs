//! The deployed system below a folder, mounted for one thread alone.

use super::site::{Site, Volume};
use crate::error::Error;
use farrier_linux::private_mounts::{PrivateMounts, Use};
use farrier_linux::process::{Program, RunError};
use std::fmt::Display;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Where it is mounted. Nobody else sees it there.
const MOUNT_POINT: &str = "/run/farrier-system";

/// What the programs of the system find in their environment: no prober, which has hung deployments, looks for
/// other systems (F22), and GRUB keeps the entry that was booted last.
const ENVIRONMENT: &[(&str, &str)] = &[
    ("PATH", "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"),
    ("LC_ALL", "C"),
    ("HOME", "/root"),
    ("GRUB_DISABLE_OS_PROBER", "true"),
    ("GRUB_SAVEDEFAULT", "true"),
];

/// The prober itself: a setting of the system overrides the environment.
const PROBER: &str = "etc/grub.d/30_os-prober";

/// Longest time for one of its programs.
const LIMIT: Duration = Duration::from_secs(15 * 60);

/// The mounted system.
pub struct ImageSystem<'a> {
    site: &'a Site,
    root: PathBuf,
    mounts: PrivateMounts,
}

impl<'a> ImageSystem<'a> {
    /// Mounts the root file system.
    ///
    /// # Errors
    ///
    /// [`Error::BootLoader`].
    pub fn mount_root(site: &'a Site, mounts: PrivateMounts, usage: Use) -> Result<Self, Error> {
        let mut system = Self { site, root: PathBuf::from(MOUNT_POINT), mounts };
        system.mount_at(&site.root, &PathBuf::from(MOUNT_POINT), usage)?;
        Ok(system)
    }

    /// Mounts another of its file systems on a folder of it, which is made if need be.
    ///
    /// # Errors
    ///
    /// [`Error::BootLoader`].
    pub fn mount(&mut self, volume: &Volume, folder: &str) -> Result<PathBuf, Error> {
        let target = self.make_folder(folder)?;
        self.mount_at(volume, &target, Use::Files)?;
        Ok(target)
    }

    fn mount_at(&mut self, volume: &Volume, target: &Path, usage: Use) -> Result<(), Error> {
        let mounted = self.mounts.device(&volume.device, &volume.kind, target, usage);
        let (device, kind) = (volume.device.display(), &volume.kind);
        mounted.map_err(|error| self.failed(&format!("mounting {device} as {kind:?}"), error))
    }

    /// Gives programs the kernel's file systems, empty folders for what runs, and devices: those of the
    /// system's own disk and no other.
    ///
    /// # Errors
    ///
    /// [`Error::BootLoader`].
    pub fn provide_for_programs(&mut self) -> Result<(), Error> {
        let folders = ["dev", "proc", "sys", "run", "tmp"].map(|name| self.make_folder(name));
        let [dev, proc, sys, run, tmp] = folders;
        let (links, blocks) = (self.site.links(), &self.site.blocks);
        let prober = self.file(PROBER);
        let provided = self
            .mounts
            .devices(&dev?, blocks, &links)
            .and(self.mounts.kernel("proc", &proc?))
            .and(self.mounts.kernel("sysfs", &sys?))
            .and(self.mounts.memory(&run?))
            .and(self.mounts.memory(&tmp?))
            .and(prober.map_or(Ok(()), |prober| self.mounts.hide(&prober)));
        provided.map_err(|error| self.failed("providing for its programs", error))
    }

    /// Whether the system has this program.
    pub fn has(&self, program: &Program) -> bool {
        program.is_inside(&self.root)
    }

    /// Runs a program of the system inside it.
    ///
    /// # Errors
    ///
    /// As [`Program::run`].
    pub fn run(&self, program: &Program, arguments: &[&str]) -> Result<(), RunError> {
        tracing::info!(program = program.name, ?arguments, "running a program of the deployed system");
        program.run_inside(&self.root, ENVIRONMENT, arguments, LIMIT).map(drop)
    }

    /// A folder of the system, as a path of this ramdisk, if no link is on the way: links of the image lead
    /// anywhere.
    pub fn folder(&self, path: &str) -> Option<PathBuf> {
        self.without_links(path).filter(|path| path.is_dir())
    }

    /// A file of the system, in the same way.
    pub fn file(&self, path: &str) -> Option<PathBuf> {
        self.without_links(path).filter(|path| path.is_file())
    }

    fn without_links(&self, path: &str) -> Option<PathBuf> {
        let mut place = self.root.clone();
        for part in path.split('/') {
            place.push(part);
            if fs::symlink_metadata(&place).ok()?.is_symlink() {
                return None;
            }
        }
        Some(place)
    }

    /// A folder of the system that is made if need be.
    ///
    /// # Errors
    ///
    /// [`Error::BootLoader`].
    pub fn make_folder(&self, path: &str) -> Result<PathBuf, Error> {
        let mut place = self.root.clone();
        for part in path.split('/') {
            place.push(part);
            let made = match fs::symlink_metadata(&place) {
                Ok(found) if found.is_dir() => Ok(()),
                Ok(_) => Err(std::io::Error::other("it is no folder")),
                Err(_) => fs::create_dir(&place),
            };
            made.map_err(|error| self.failed(&format!("making its folder /{path}"), error))?;
        }
        Ok(place)
    }

    /// Unmounts what was mounted last.
    ///
    /// # Errors
    ///
    /// [`Error::BootLoader`].
    pub fn unmount_last(&mut self) -> Result<(), Error> {
        self.mounts.unmount_last().map_err(|error| self.failed("unmounting", error))
    }

    /// Unmounts everything, so that it is on the disk.
    ///
    /// # Errors
    ///
    /// [`Error::BootLoader`].
    pub fn unmount(self) -> Result<(), Error> {
        let Self { site, mounts, .. } = self;
        mounts.unmount().map_err(|error| failed(site, "unmounting the deployed system", error))
    }

    /// The error of something that failed in the system.
    pub fn failed(&self, action: &str, error: impl Display) -> Error {
        failed(self.site, action, error)
    }
}

fn failed(site: &Site, action: &str, error: impl Display) -> Error {
    Error::BootLoader { device: site.disk.clone(), action: action.to_owned(), reason: error.to_string() }
}
