//! The config drive of the machine's user, which says what the network of a rescued machine is to be.
//!
//! Before a machine is rescued nobody reads it: what lies on the machine's disks is no configuration of the
//! agent (S14).

use crate::virtual_media::{self, NETWORK_DATA_ON_MEDIUM};
use farrier_linux::drive::{self, Drive};
use farrier_linux::mount::ReadOnlyMount;
use farrier_linux::sysfs;
use farrier_media::volume::Volume;
use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};

/// Label of a config drive, in lower case.
const LABEL: &str = "config-2";
/// Where it is mounted while it is read.
const MOUNT_POINT: &str = "/run/farrier/config-drive";

/// What the only config drive says of the network; nothing when there is none, or more than one.
pub fn network_data() -> Option<String> {
    let media = drive::list(Path::new("/sys")).into_iter().filter(Drive::may_be_virtual);
    let media: Vec<PathBuf> = media.map(|drive| drive.device).collect();
    let mut found = block_devices(Path::new("/sys"), Path::new("/dev"))
        .into_iter()
        .filter(|device| !media.contains(device))
        .filter_map(|device| Some((Volume::read(&mut File::open(&device).ok()?).ok()??, device)))
        .filter(|(volume, _)| volume.label == LABEL);
    let (volume, device) = found.next()?;
    if let Some((_, other)) = found.next() {
        let (one, other) = (device.display(), other.display());
        tracing::error!("{one} and {other} are both config drives: the network stays as it is");
        return None;
    }
    match read(&device, volume.file_system) {
        Ok(text) => text,
        Err(error) => {
            let device = device.display();
            tracing::error!("the config drive {device} cannot be read: {error}; the network stays as it is");
            None
        }
    }
}

fn read(device: &Path, file_system: &str) -> io::Result<Option<String>> {
    let mounted = ReadOnlyMount::new(device, file_system, Path::new(MOUNT_POINT))?;
    let file = mounted.path().join(NETWORK_DATA_ON_MEDIUM);
    if !file.is_file() {
        return Ok(None);
    }
    let bytes = virtual_media::read_small(&file)?;
    Ok(Some(String::from_utf8_lossy(&bytes).into_owned()))
}

/// Device files of all disks and partitions that are there.
fn block_devices(sysfs: &Path, devices: &Path) -> Vec<PathBuf> {
    let class = sysfs.join("class/block");
    let names = sysfs::entries(&class).into_iter();
    let is_filled =
        |name: &String| sysfs::number::<u64>(&class.join(name), "size").is_some_and(|size| size > 0);
    // sysfs writes the slash of names such as cciss/c0d0 as an exclamation mark.
    names.filter(is_filled).map(|name| devices.join(name.replace('!', "/"))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    #[test]
    fn disks_and_partitions_with_content_are_looked_at() {
        let sysfs = tempfile::tempdir().unwrap();
        for (name, size) in [("sda", "1000\n"), ("sda1", "100\n"), ("cciss!c0d0p1", "8\n"), ("loop0", "0\n")]
        {
            let directory = sysfs.path().join("class/block").join(name);
            fs::create_dir_all(&directory).unwrap();
            fs::write(directory.join("size"), size).unwrap();
        }
        let found = block_devices(sysfs.path(), Path::new("/dev"));
        let expected = ["/dev/cciss/c0d0p1", "/dev/sda", "/dev/sda1"].map(PathBuf::from);
        assert_eq!(found, expected);
    }
}
