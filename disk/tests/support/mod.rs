//! A disk of its own for each test: a sparse file on a loop device, opened through the guard.

use farrier_disk::{BlockDevice, WritableDisk, choose_root_disk};
use farrier_linux::loop_device::LoopDevice;
use farrier_protocol::lookup::Node;
use serde_json::json;
use std::path::Path;

/// The disk; the fields are dropped in this order, and the file went away when it was attached.
pub struct TestDisk {
    disk: WritableDisk,
    _device: LoopDevice,
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
        let disk = open(device.kernel_name()).unwrap();
        Self { disk, _device: device }
    }

    pub fn disk(&self) -> &WritableDisk {
        &self.disk
    }
}

/// Opens a device through the choice of the root disk, the only way there is.
fn open(kernel_name: &str) -> Result<WritableDisk, farrier_disk::Error> {
    let device = BlockDevice::describe(Path::new("/sys"), kernel_name)?;
    let hints = json!({"root_device": {"name": device.disk.name}});
    let node = Node { properties: serde_json::from_value(hints).unwrap(), ..Node::default() };
    choose_root_disk(&node, &[device])?.open()
}
