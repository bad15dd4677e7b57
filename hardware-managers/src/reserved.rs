//! Names that no outside manager may give to a step (S07).
//!
//! A step that took the name of a built-in one would run in its place: disks would be reported as erased
//! by a program that did something else. What the contract names is reserved, whether this agent has it
//! yet or not.

/// Steps (section 9.13) and methods of managers (section 9.2).
const NAMES: &[&str] = &[
    "apply_configuration",
    "clean_uefi_nvram",
    "collect_lldp_data",
    "collect_system_logs",
    "container_clean_step",
    "create_configuration",
    "delete_configuration",
    "erase_block_device",
    "erase_pstore",
    "evaluate_hardware_support",
    "execute_bootc_install",
    "filter_device",
    "full_sync",
    "generate_tls_certificate",
    "generic_container_step",
    "get_bmc_address",
    "get_bmc_mac",
    "get_bmc_v6address",
    "get_boot_info",
    "get_clean_steps",
    "get_cpus",
    "get_deploy_steps",
    "get_interface_info",
    "get_ipv4_addr",
    "get_ipv6_addr",
    "get_memory",
    "get_os_install_device",
    "get_service_steps",
    "get_skip_list_from_node_for_disks",
    "get_skip_list_from_node_for_raids",
    "get_system_vendor_info",
    "get_usb_devices",
    "get_version",
    "initialize",
    "inject_files",
    "list_block_devices",
    "list_block_devices_check_skip_list",
    "list_hardware_info",
    "list_network_interfaces",
    "update_nvidia_nic_firmware_image",
    "update_nvidia_nic_firmware_settings",
    "validate_configuration",
    "wait_for_disks",
    "write_image",
];

/// Beginnings that are reserved as a whole, so that a later built-in step cannot be taken either.
const BEGINNINGS: &[&str] = &["burnin_", "erase_devices", "farrier_"];

/// Whether a step of an outside manager must not have this name.
pub fn is_reserved(step: &str) -> bool {
    NAMES.contains(&step) || BEGINNINGS.iter().any(|beginning| step.starts_with(beginning))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::generic::GenericHardwareManager;
    use crate::manager::HardwareManager;

    #[test]
    fn s07_every_built_in_step_is_reserved() {
        for step in GenericHardwareManager::default().steps() {
            assert!(is_reserved(step.step), "{}", step.step);
        }
        for (step, expected) in [
            ("erase_devices_quickly", true),
            ("burnin_gpu", true),
            ("collect_lldp_data", true),
            ("acme_erase_devices", false),
            ("flash_bmc", false),
        ] {
            assert_eq!(is_reserved(step), expected, "{step}");
        }
    }
}
