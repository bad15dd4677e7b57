//! Disks and firmware in memory, for targets that write.

use farrier_disk::WritableDisk;
use farrier_linux::efivars::{EfiVariables, PERSISTENT};
use nix::sys::memfd::{MFdFlags, memfd_create};
use std::fs::{self, File};
use std::os::unix::fs::FileExt;
use std::path::PathBuf;
use std::sync::LazyLock;

/// What a byte of the input chooses from.
pub const SECTOR_SIZES: [u32; 2] = [512, 4096];

/// Vendor of the variables that UEFI itself defines.
const GLOBAL: &str = "8be4df61-93ca-11d2-aa0d-00e098032b8c";

/// A disk of so many bytes with content in some places, cut at its end. It is the same memory each time.
pub fn memory_disk(content: &[(u64, &[u8])], size: u64, sector_size: u32) -> WritableDisk {
    static MEMORY: LazyLock<File> = LazyLock::new(|| {
        memfd_create(c"disk", MFdFlags::MFD_CLOEXEC).map(File::from).expect("memory as a file")
    });
    // Cutting it to nothing gives the memory back, and what it held.
    MEMORY.set_len(0).expect("memory is cut");
    MEMORY.set_len(size).expect("memory grows");
    for (offset, bytes) in content {
        let length = bytes.len().min(size.saturating_sub(*offset) as usize);
        MEMORY.write_all_at(&bytes[..length], *offset).expect("memory is written");
    }
    let file = MEMORY.try_clone().expect("a descriptor more");
    WritableDisk::over_file(file, sector_size).expect("memory is a regular file")
}

/// The variables of a firmware, in a folder of memory.
pub struct Firmware(PathBuf);

impl Firmware {
    /// A firmware with one entry, or none, in its boot menu.
    pub fn with_entry(entry: Option<&[u8]>) -> Self {
        static FOLDER: LazyLock<PathBuf> = LazyLock::new(|| {
            let folder = PathBuf::from(format!("/dev/shm/farrier-fuzz-{}", std::process::id()));
            fs::create_dir_all(&folder).expect("a folder in memory");
            folder
        });
        let firmware = Self(FOLDER.clone());
        if let Some(entry) = entry {
            firmware.put("Boot0000", entry);
            firmware.put("BootOrder", &[0, 0, 1, 0]);
        }
        firmware
    }

    /// Its variables.
    pub fn variables(&self) -> EfiVariables {
        EfiVariables::at(&self.0)
    }

    fn put(&self, name: &str, value: &[u8]) {
        let content = [&PERSISTENT.to_le_bytes()[..], value].concat();
        fs::write(self.0.join(format!("{name}-{GLOBAL}")), content).expect("a variable in memory");
    }
}

/// Nothing is left for the next input.
impl Drop for Firmware {
    fn drop(&mut self) {
        for entry in fs::read_dir(&self.0).into_iter().flatten().flatten() {
            fs::remove_file(entry.path()).ok();
        }
    }
}
