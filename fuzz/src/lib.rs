//! Disks and firmware in memory, for targets that write.

use farrier_disk::io::MemoryDisk;
use farrier_linux::efivars::{EfiVariables, PERSISTENT};
use std::fs;
use std::path::PathBuf;
use std::sync::LazyLock;

/// What a byte of the input chooses from.
pub const SECTOR_SIZES: [u32; 2] = [512, 4096];

/// Vendor of the variables that UEFI itself defines.
const GLOBAL: &str = "8be4df61-93ca-11d2-aa0d-00e098032b8c";

/// A disk of so many bytes with content in some places, cut at its end.
pub fn memory_disk(content: &[(u64, &[u8])], size: u64, sector_size: u32) -> MemoryDisk {
    let disk = MemoryDisk::zeros(size, sector_size);
    content.iter().for_each(|(offset, bytes)| disk.put(*offset, bytes));
    disk
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
