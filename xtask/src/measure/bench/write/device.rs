//! The disk that is written to: a file of this machine through a loop device with direct I/O, so that no
//! page cache stands between, as fast as it is or held at a fixed speed.

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};

use crate::host::command::{command, run, run_quietly};

const MIB: u64 = 1 << 20;
const CONTROL_GROUPS: &str = "/sys/fs/cgroup";

/// The disk that is written to, detached in the end.
#[derive(Debug)]
pub struct LoopDevice(PathBuf);

impl LoopDevice {
    /// Attaches a new file of this size in the folder.
    pub fn create(folder: &Path, size_mib: u64) -> Result<Self> {
        let file = folder.join("disk");
        run(command("fallocate").args(["-l", &format!("{size_mib}MiB")]).arg(&file))?;
        let path = run_quietly(command("losetup").args(["--direct-io=on", "-f", "--show"]).arg(&file))?;
        Ok(Self(PathBuf::from(path.trim())))
    }

    /// Its path.
    pub fn path(&self) -> &Path {
        &self.0
    }

    /// As `dd` wants it.
    pub fn output(&self) -> String {
        format!("of={}", self.0.display())
    }

    /// Bytes written as the kernel counted them so far.
    pub fn bytes_written(&self) -> Result<u64> {
        let name = self.0.file_name().context("the device has no name")?;
        let file = Path::new("/sys/class/block").join(name).join("stat");
        let text = fs::read_to_string(&file).with_context(|| format!("cannot read {}", file.display()))?;
        let sectors = text.split_whitespace().nth(6).and_then(|sectors| sectors.parse::<u64>().ok());
        Ok(sectors.with_context(|| format!("{} has no number of sectors", file.display()))? * 512)
    }
}

impl Drop for LoopDevice {
    fn drop(&mut self) {
        if let Err(error) = run(command("losetup").arg("-d").arg(&self.0)) {
            eprintln!("{} stays: {error:#}", self.0.display());
        }
    }
}

/// Holds what this process and its children write to a disk at a fixed speed, by a control group of its
/// own. What the disk is told to make zero does not count. Lifted in the end.
#[derive(Debug)]
pub struct SpeedLimit {
    group: PathBuf,
    /// Major and minor number of the disk.
    disk: String,
}

/// Where this process was and is again when the group goes.
fn home(group: &Path) -> PathBuf {
    group.with_file_name("cgroup.procs")
}

impl SpeedLimit {
    /// Moves this process into a new group, without a limit yet, for the disk with this folder.
    pub fn prepare(folder: &Path) -> Result<Self> {
        let name = format!("farrier-bench-{}", std::process::id());
        let (v1, v2) = (Path::new(CONTROL_GROUPS).join("blkio"), Path::new(CONTROL_GROUPS));
        let parent = if v1.is_dir() { v1.as_path() } else { v2 };
        if !v1.is_dir() {
            // Fails where it is on already.
            fs::write(v2.join("cgroup.subtree_control"), "+io").ok();
        }
        let group = parent.join(name);
        fs::create_dir(&group).with_context(|| format!("cannot make {}", group.display()))?;
        let limit = Self { group, disk: disk_below(folder)? };
        fs::write(limit.group.join("cgroup.procs"), std::process::id().to_string())?;
        Ok(limit)
    }

    /// Sets the limit in MiB per second, or lifts it.
    pub fn set(&self, mib_per_second: Option<u64>) -> Result<()> {
        let bytes = mib_per_second.map(|speed| speed * MIB);
        let old = self.group.join("blkio.throttle.write_bps_device");
        let (file, value) = match (old.exists(), bytes) {
            (true, bytes) => (old, bytes.unwrap_or(0).to_string()),
            (false, Some(bytes)) => (self.group.join("io.max"), format!("wbps={bytes}")),
            (false, None) => (self.group.join("io.max"), "wbps=max".to_owned()),
        };
        let line = format!("{} {value}", self.disk);
        fs::write(&file, &line).with_context(|| format!("cannot write {line:?} to {}", file.display()))
    }
}

impl Drop for SpeedLimit {
    fn drop(&mut self) {
        let left = fs::write(home(&self.group), std::process::id().to_string());
        if let Err(error) = left.and_then(|()| fs::remove_dir(&self.group)) {
            eprintln!("{} stays: {error}", self.group.display());
        }
    }
}

/// The number of the disk that a folder is on; limits are those of whole disks.
fn disk_below(folder: &Path) -> Result<String> {
    let number = fs::metadata(folder)?.dev();
    let (major, minor) = ((number >> 8) & 0xfff, (number & 0xff) | ((number >> 12) & 0xfff00));
    let device = Path::new("/sys/dev/block").join(format!("{major}:{minor}"));
    let Ok(device) = fs::canonicalize(&device) else {
        bail!("{} is on no disk of its own, whose speed could be held: give --class fast", folder.display());
    };
    let disk = if device.join("partition").exists() { device.join("..") } else { device };
    Ok(fs::read_to_string(disk.join("dev"))?.trim().to_owned())
}
