//! Intel's converged network adapters, driven by i40e (section 9.3).
//!
//! Their firmware speaks LLDP with the switch itself and lets no frame through to the host until it is told
//! to stop.

use crate::inventory::nics;
use crate::manager::{HardwareManager, StepDeclaration, Support};
use farrier_linux::{mount, sysfs};
use std::fs;
use std::path::{Path, PathBuf};

const DRIVER: &str = "i40e";
/// Where the driver takes orders, below the root.
const ORDERS: &str = "sys/kernel/debug/i40e";
const STOP: &str = "lldp stop";

/// Shows conductors that the machine has such an adapter. It has no steps.
pub struct IntelCnaHardwareManager {
    root: PathBuf,
}

impl IntelCnaHardwareManager {
    /// A manager for the machine whose files lie below `root`.
    pub fn new(root: &Path) -> Self {
        Self { root: root.to_owned() }
    }
}

impl HardwareManager for IntelCnaHardwareManager {
    fn class_name(&self) -> &'static str {
        "IntelCnaHardwareManager"
    }

    fn name(&self) -> &'static str {
        "IntelCnaHardwareManager"
    }

    fn version(&self) -> &'static str {
        "1.0"
    }

    fn evaluate(&self) -> Support {
        if is_present(&self.root) { Support::Mainline } else { Support::None }
    }

    fn steps(&self) -> &'static [StepDeclaration] {
        &[]
    }
}

fn is_present(root: &Path) -> bool {
    let mut devices = nics::devices(&root.join("sys")).into_iter();
    devices.any(|device| sysfs::link_name(&device, "driver").as_deref() == Some(DRIVER))
}

/// Has every such adapter pass LLDP frames on to the host. One that does not obey is a line in the log
/// (F42).
pub fn release_lldp(root: &Path) {
    if !is_present(root) {
        return;
    }
    let orders = root.join(ORDERS);
    if !orders.exists()
        && root == Path::new("/")
        && let Err(error) = mount::DEBUGFS.mount()
    {
        tracing::warn!("Intel adapters may keep LLDP frames to themselves: {error}");
    }
    for adapter in sysfs::entries(&orders) {
        match fs::write(orders.join(&adapter).join("command"), STOP) {
            Ok(()) => tracing::info!(adapter, "the adapter passes LLDP frames on"),
            Err(error) => tracing::warn!(adapter, %error, "the adapter may keep LLDP frames to itself"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::inventory::fake_root::FakeRoot;
    use std::os::unix::fs::symlink;

    fn machine(driver: &str) -> FakeRoot {
        let root = FakeRoot::new(&[
            ("sys/class/net/eno1/device/vendor", "0x8086\n"),
            ("sys/kernel/debug/i40e/0000:01:00.0/command", ""),
            ("sys/kernel/debug/i40e/0000:01:00.1/command", ""),
        ]);
        let link = root.path().join("sys/class/net/eno1/device/driver");
        symlink(format!("../../../bus/pci/drivers/{driver}"), link).unwrap();
        root
    }

    #[test]
    fn only_an_adapter_of_this_driver_counts() {
        for (driver, expected) in
            [("i40e", Support::Mainline), ("i40evf", Support::None), ("ice", Support::None)]
        {
            let root = machine(driver);
            assert_eq!(IntelCnaHardwareManager::new(root.path()).evaluate(), expected, "{driver}");
        }
    }

    #[test]
    fn f42_every_adapter_is_told_and_one_that_refuses_stops_nobody() {
        let root = machine("i40e");
        let orders = root.path().join(ORDERS);
        // No file can be written in place of a folder.
        fs::create_dir_all(orders.join("0000:00:00.0/command")).unwrap();
        release_lldp(root.path());
        for adapter in ["0000:01:00.0", "0000:01:00.1"] {
            assert_eq!(fs::read_to_string(orders.join(adapter).join("command")).unwrap(), STOP);
        }
        let other = machine("ice");
        release_lldp(other.path());
        let command = other.path().join(ORDERS).join("0000:01:00.0/command");
        assert_eq!(fs::read_to_string(command).unwrap(), "", "nobody is told without need");
    }
}
