//! The root disk of a node that a test names.

use farrier_disk::{BlockDevice, Error, RootDisk, choose_root_disk};
use farrier_protocol::lookup::Node;
use serde_json::json;
use std::path::Path;

/// The device as a root disk, by the choice of root disks: there is no other way.
pub fn root_disk(kernel_name: &str) -> Result<RootDisk, Error> {
    let device = BlockDevice::describe(Path::new("/sys"), kernel_name)?;
    let hints = json!({"root_device": {"name": device.disk.name}});
    let node = Node { properties: serde_json::from_value(hints).unwrap(), ..Node::default() };
    choose_root_disk(&node, &[device])
}
