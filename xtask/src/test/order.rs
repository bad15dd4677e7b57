//! In which order tests that run alone are begun, and which of them may be begun beside others.

/// Those that keep a processor busy for more than a minute, the longest first: begun last, one of them would run alone
/// in the end. The order is that of the processor's seconds in the report of `cargo xtask test --json`.
const LONGEST: &[&str] = &[
    "vm_d18_d19_debian_on_striped_mirrors_boots_without_any_one_disk",
    "vm_f16_a_partition_image_boots_by_uefi_from_sectors_of_4096_bytes",
    "vm_x41_x42_x44_crowds_neither_end_the_agent_nor_slow_its_heartbeats_nor_spoil_the_image",
    "vm_d18_d19_a_partition_image_on_a_mirror_boots_by_bios_without_either_disk",
    "vm_s12_a_qcow2_of_four_gib_fits_through_256_mib_of_memory",
    "vm_debian_is_deployed_and_boots_under_uefi",
    "vm_f22_a_partition_image_boots_by_bios_from_an_mbr",
    "vm_p09_a_machine_is_burnt_in_and_its_bad_disk_is_named",
    "vm_debian_is_deployed_and_boots_under_bios",
];

/// Those that wait for most of their time, so that a processor has room for one of them beside others.
const WAITING: &[&str] = &[
    "loop_an_address_goes_with_its_lease_and_stays_with_whoever_comes_after",
    "vm_a_machine_without_dhcp_or_without_a_cable_ends_in_deploy_failed",
    "vm_the_cause_of_each_of_three_silent_machines_is_explained",
    "vm_x01_a_step_in_whose_middle_the_agent_was_killed_has_failed_and_can_be_ordered_again",
    "vm_x02_x10_x30_what_comes_40_s_late_is_inspected_cleaned_and_deployed_on_the_first_try",
    "vm_a_lease_that_comes_late_is_taken_and_silence_is_told_once",
    "vm_d23_a_path_that_failed_is_used_again_when_it_answers",
    "vm_s06_s09_containers_run_as_the_operator_allows_and_install_without_seeing_credentials",
    "vm_a_missing_cable_is_told_from_a_missing_dhcp_server",
    "vm_p13_an_agent_that_gives_up_is_started_again",
    "vm_x02_a_disk_that_takes_long_is_named_until_it_is_there",
    "vm_a_certificate_of_a_stranger_is_told_from_a_wrong_clock",
    "vm_network_data_that_cannot_be_used_leaves_the_machine_to_dhcp",
    "vm_forty_network_cards_are_found_and_one_without_a_driver_is_named",
    "vm_a_card_without_its_firmware_is_one_line_that_names_the_file",
    "vm_a_refused_connection_is_named_and_left_for_the_conductor",
    "vm_s13_without_boot_method_no_medium_is_read",
    "vm_dhcp_over_ipv6_gives_the_address_when_the_router_says_so",
];

/// Where a test stands among the others: the smallest is begun first, equals as they are.
pub fn rank(test: &str) -> usize {
    LONGEST.iter().position(|long| *long == test).unwrap_or(LONGEST.len())
}

/// Whether a test mostly waits.
pub fn is_waiting(test: &str) -> bool {
    WAITING.contains(&test)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::path::Path;

    #[test]
    fn every_test_with_a_place_of_its_own_is_there() {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
        let sources = ["tests/tests/vm", "init/src/network"]
            .into_iter()
            .flat_map(|folder| std::fs::read_dir(root.join(folder)).unwrap())
            .filter_map(|entry| std::fs::read_to_string(entry.ok()?.path()).ok());
        let sources = sources.collect::<String>();
        for test in LONGEST.iter().chain(WAITING) {
            assert!(sources.contains(&format!("fn {test}()")), "there is no {test}");
        }
    }

    #[test]
    fn the_longest_are_first_and_the_others_stay_as_they_are() {
        let mut tests = ["vm_a", LONGEST[1], "vm_b", LONGEST[0], "vm_c"];
        tests.sort_by_key(|test| rank(test));
        assert_eq!(tests, [LONGEST[0], LONGEST[1], "vm_a", "vm_b", "vm_c"]);
        assert!(is_waiting(WAITING[0]) && !is_waiting(LONGEST[0]));
    }
}
