//! What managers show of the machine's devices, and how those they hide are left alone (section 9.2).

use crate::dispatch::HardwareManagers;
use crate::manager::Device;
use farrier_disk::BlockDevice;
use farrier_protocol::inventory::Inventory;
use serde_json::{Map, Value, json};

impl HardwareManagers {
    /// Leaves in an inventory what the managers show.
    pub fn show(&self, inventory: &mut Inventory) {
        inventory.interfaces.retain_mut(|nic| self.filter_device(Device::Interface(nic)));
        inventory.disks.retain_mut(|disk| self.filter_device(Device::Disk(disk)));
    }

    /// Whether a device is shown, after each manager in turn, the best first, could change or hide it.
    pub fn filter_device(&self, mut device: Device<'_>) -> bool {
        self.device_filters().all(|filter| filter.filter(&mut device))
    }

    /// Whether any manager changes or hides devices.
    pub fn filters_devices(&self) -> bool {
        self.device_filters().next().is_some()
    }

    /// Adds the hidden ones of `devices` to the disks that the properties of a node want left alone: so they are
    /// neither chosen as root disk nor erased, and no array on them is touched.
    pub fn shield(&self, properties: &mut Map<String, Value>, devices: &[BlockDevice]) {
        let is_hidden = |device: &&BlockDevice| !self.filter_device(Device::Disk(&mut device.disk.clone()));
        let hidden = devices.iter().filter(is_hidden).map(|device| json!({"name": device.disk.name}));
        let mut hidden = hidden.collect::<Vec<_>>();
        let skipped = properties.entry("skip_block_devices").or_insert(Value::Null);
        match skipped {
            Value::Array(skipped) => skipped.append(&mut hidden),
            Value::Null => *skipped = hidden.into(),
            // Whoever reads such a list refuses it, and touches no disk.
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::generic::GenericHardwareManager;
    use crate::inventory::fake_root::FakeRoot;
    use crate::inventory::usb::UsbDevice;
    use crate::manager::{DeviceFilter, HardwareManager, StepDeclaration, Support};
    use farrier_disk::{Error, choose_root_disk, guard, list};
    use farrier_protocol::inventory::{Disk, NetworkInterface};
    use farrier_protocol::lookup::Node;

    /// Hides what belongs to the management of a blade, and names a vendor.
    struct Blade;

    impl HardwareManager for Blade {
        fn class_name(&self) -> &'static str {
            "Blade"
        }

        fn name(&self) -> &'static str {
            "blade"
        }

        fn version(&self) -> &'static str {
            "1"
        }

        fn evaluate(&self) -> Support {
            Support::Mainline
        }

        fn steps(&self) -> &'static [StepDeclaration] {
            &[]
        }

        fn device_filter(&self) -> Option<&dyn DeviceFilter> {
            Some(self)
        }
    }

    impl DeviceFilter for Blade {
        fn filter(&self, device: &mut Device<'_>) -> bool {
            match device {
                Device::Interface(nic) => nic.name != "mgmt0",
                Device::Disk(disk) => {
                    disk.vendor = Some("Acme".to_owned());
                    disk.name != "/dev/sda"
                }
                Device::Usb(usb) => usb.product != "virtual keyboard",
            }
        }
    }

    fn managers() -> HardwareManagers {
        HardwareManagers::load(vec![Box::new(GenericHardwareManager::default()), Box::new(Blade)])
    }

    #[test]
    fn what_a_manager_hides_is_not_shown_and_what_it_changes_is() {
        let nic = |name: &str| NetworkInterface { name: name.into(), ..NetworkInterface::default() };
        let disk = |name: &str| Disk { name: name.into(), ..Disk::default() };
        let mut inventory = Inventory {
            interfaces: vec![nic("eno1"), nic("mgmt0")],
            disks: vec![disk("/dev/sda"), disk("/dev/sdb")],
            ..Inventory::default()
        };
        managers().show(&mut inventory);
        assert_eq!(inventory.interfaces, [nic("eno1")]);
        assert_eq!(inventory.disks, [Disk { vendor: Some("Acme".into()), ..disk("/dev/sdb") }]);
        for (product, is_shown) in [("virtual keyboard", false), ("flash drive", true)] {
            let mut usb = UsbDevice { product: product.into(), vendor: "x".into(), handle: "y".into() };
            assert_eq!(managers().filter_device(Device::Usb(&mut usb)), is_shown, "{product}");
        }
    }

    #[test]
    fn a_hidden_disk_is_neither_chosen_nor_erased_nor_taken_for_raid() {
        // 8 GiB and 16 GiB: by default the smaller one is chosen.
        let root = FakeRoot::new(&[("block/sda/size", "16777216"), ("block/sdb/size", "33554432")]);
        let devices = list::list(root.path()).unwrap();
        let name = |device: &BlockDevice| device.disk.name.clone();
        for skipped in [json!(null), json!([]), json!([{"serial": "x"}])] {
            let mut node = Node::default();
            node.properties.insert("skip_block_devices".to_owned(), skipped.clone());
            assert_eq!(name(choose_root_disk(&node, &devices).unwrap().device()), "/dev/sda");
            managers().shield(&mut node.properties, &devices);
            assert_eq!(name(choose_root_disk(&node, &devices).unwrap().device()), "/dev/sdb", "{skipped}");
            let plan = guard::plan_erase(&node, &devices).unwrap();
            assert_eq!(plan.targets.iter().map(|one| name(one.device())).collect::<Vec<_>>(), ["/dev/sdb"]);
            let plan = guard::plan_raid(&node, &devices).unwrap();
            assert_eq!(plan.disks.iter().map(|one| name(one.device())).collect::<Vec<_>>(), ["/dev/sdb"]);
            node.properties.insert("root_device".to_owned(), json!({"name": "/dev/sda"}));
            assert!(matches!(choose_root_disk(&node, &devices), Err(Error::NoFittingDisk { .. })));
        }
    }

    #[test]
    fn a_list_of_skipped_disks_that_is_none_is_still_refused() {
        let root = FakeRoot::new(&[("block/sda/size", "16777216")]);
        let devices = list::list(root.path()).unwrap();
        let mut node = Node::default();
        node.properties.insert("skip_block_devices".to_owned(), json!("sda"));
        managers().shield(&mut node.properties, &devices);
        assert!(guard::plan_erase(&node, &devices).is_err());
    }
}
