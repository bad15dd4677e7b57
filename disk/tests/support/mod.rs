//! A disk of its own for each test: a sparse file on a loop device, opened through the guard.

mod root_disk;

use farrier_disk::WritableDisk;
use farrier_linux::loop_device::LoopDevice;
use root_disk::root_disk;
use std::fs::File;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

/// The disk; the fields are dropped in this order, and the file went away when it was attached.
pub struct TestDisk {
    disk: WritableDisk,
    _device: LoopDevice,
    file: File,
}

impl TestDisk {
    /// A disk of zeros. Fails without root, as every loop test has to.
    pub fn new(size: u64, sector_size: u32) -> Self {
        Self::in_folder(&std::env::temp_dir(), size, sector_size)
    }

    /// The same, with the file in a folder.
    pub fn in_folder(folder: &Path, size: u64, sector_size: u32) -> Self {
        let file = tempfile::NamedTempFile::new_in(folder).unwrap();
        file.as_file().set_len(size).unwrap();
        let device = LoopDevice::attach(file.path(), sector_size).expect("loop devices need root");
        let disk = root_disk(device.kernel_name()).unwrap().open().unwrap();
        Self { disk, _device: device, file: file.into_file() }
    }

    /// Bytes that its file takes.
    #[allow(dead_code)]
    pub fn allocated(&self) -> u64 {
        self.file.metadata().unwrap().blocks() * 512
    }

    pub fn disk(&self) -> &WritableDisk {
        &self.disk
    }
}
