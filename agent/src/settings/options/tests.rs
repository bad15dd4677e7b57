//! Options from every source.

use super::*;
use farrier_linux::kernel_line;
use std::time::Duration;

fn load(line: &str, flags: &[(&str, &str)]) -> (Options, Vec<OptionError>) {
    let key = |name: &str| OptionSpec::find(DEFAULT_SECTION, name).unwrap().key();
    let flags = flags.iter().map(|(name, value)| (key(name), value.to_string())).collect();
    Options::load(&kernel_line::parse(line), &flags)
}

#[test]
fn defaults_are_those_of_the_contract() {
    let (options, errors) = load("", &[]);
    assert_eq!(errors, []);
    assert_eq!((options.listen_port, options.advertise_port), (9999, 9999));
    assert_eq!(options.lookup_timeout.duration(), Duration::from_secs(600));
    assert_eq!(options.image_download_connection_retries, 9);
    assert_eq!(options.tls_min_version, TlsVersion::V1_2);
}

#[test]
fn flags_win_over_kernel_parameters() {
    let (options, _) = load("ipa-listen-port=1 ipa-debug=yes", &[("listen_port", "2")]);
    assert_eq!(options.listen_port, 2);
    assert!(options.debug);
}

#[test]
fn urls_lose_their_trailing_slashes() {
    let (options, _) = load("ipa-api-url=http://a:6385/,https://b", &[]);
    assert_eq!(options.api_url.0, ["http://a:6385", "https://b"]);
}

#[test]
fn a_bad_value_keeps_the_default_and_is_reported() {
    for (line, named) in [
        ("ipa-listen-port=high", "ipa-listen-port=high"),
        ("ipa-listen-port=70000", "port number"),
        ("ipa-debug=perhaps", "true or false"),
        ("ipa-lookup-timeout=-1", "seconds"),
        ("ipa-lookup-timeout=nan", "seconds"),
        ("ipa-tls-min-version=1.1", "1.2 or 1.3"),
        ("ipa-api-url=ftp://x", "http://"),
        ("ipa-tls-certificate-curve=p521", "p256 or p384"),
        ("ipa-tls-cipher-suites=AES128-SHA", "ECDHE"),
    ] {
        let (options, errors) = load(line, &[]);
        assert_eq!(options.listen_port, 9999);
        assert!(errors[0].to_string().contains(named), "{line}: {}", errors[0]);
    }
}

#[test]
fn places_for_the_doctors_report_are_names_that_exist() {
    for (value, expected) in [
        ("none", Some("none")),
        ("dhcp", Some("dhcp")),
        ("efi,pstore,sel", Some("efi,pstore,sel")),
        ("sel,", None),
        ("syslog", None),
        ("", None),
    ] {
        let (options, errors) = load(&format!("farrier-doctor-report={value}"), &[]);
        let places: Vec<_> = options.doctor_report.0.iter().map(|place| place.name()).collect();
        let shown = if places.is_empty() { "none".to_owned() } else { places.join(",") };
        assert_eq!(
            (shown.as_str(), errors.len()),
            (expected.unwrap_or("sel,efi"), usize::from(expected.is_none()))
        );
    }
}

#[test]
fn a_token_never_shows_in_an_error() {
    let (_, errors) = load("ipa-agent-token=", &[]);
    assert!(!errors.is_empty());
    for name in ["agent_token", "image_server_password"] {
        let spec = OptionSpec::find(DEFAULT_SECTION, name).unwrap();
        assert!(!spec.error(name, "secret").to_string().contains("secret"));
    }
    // Options of the container runner may be credentials.
    for name in ["pull_options", "run_options"] {
        assert!(OptionSpec::find("container", name).unwrap().is_secret(), "{name}");
    }
    let (options, _) = load("ipa-agent-token=secret ipa-listen-port=1", &[]);
    assert_eq!(options.describe(), "listen_port=1 agent_token=…");
}

#[test]
fn every_option_is_declared_once_and_accepts_its_default() {
    let all: Vec<_> = specs().collect();
    for (i, spec) in all.iter().enumerate() {
        let default = (spec.default)();
        assert!(default.is_empty() || (spec.accepts)(&default), "{}: {default}", spec.title());
        for other in &all[..i] {
            assert_ne!(spec.key(), other.key());
            assert!(spec.kernel_parameter.is_none() || spec.kernel_parameter != other.kernel_parameter);
        }
    }
}

#[test]
fn options_without_effect_are_checked_all_the_same() {
    let key = OptionSpec::find("metrics_statsd", "statsd_port").unwrap().key();
    for (text, expected) in [("1", 0), ("x", 1)] {
        let named = [(key, text.to_owned())].into();
        let (_, errors) = Options::load(&Default::default(), &named);
        assert_eq!(errors.len(), expected, "{errors:?}");
    }
}

/// Names, parameters and defaults of section 3.3 of the contract.
#[test]
fn the_table_of_the_contract_is_complete() {
    for (name, parameter, default) in CONTRACT {
        let (section, name) = name.split_once('.').unwrap_or((DEFAULT_SECTION, name));
        let spec = OptionSpec::find(section, name).unwrap_or_else(|| panic!("no [{section}]{name}"));
        assert_eq!(spec.kernel_parameter.unwrap_or_default(), *parameter, "{name}");
        assert_eq!((spec.default)(), *default, "{name}");
    }
}

const CONTRACT: &[(&str, &str, &str)] = &[
    ("api_url", "ipa-api-url", ""),
    ("global_request_id", "ipa-global-request-id", ""),
    ("listen_host", "ipa-listen-host", ""),
    ("listen_port", "ipa-listen-port", "9999"),
    ("listen_tls", "", "false"),
    ("tls_cert_file", "", ""),
    ("tls_key_file", "", ""),
    ("enable_auto_tls", "", "true"),
    ("auto_tls_allowed_clock_skew", "", "3600"),
    ("tls_min_version", "ipa-tls-min-version", "1.2"),
    ("tls_cipher_suites", "ipa-tls-cipher-suites", ""),
    ("tls_certificate_curve", "ipa-tls-certificate-curve", "p384"),
    ("advertise_host", "ipa-advertise-host", ""),
    ("advertise_port", "ipa-advertise-port", "9999"),
    ("advertise_protocol", "ipa-advertise-protocol", "http"),
    ("ip_lookup_attempts", "ipa-ip-lookup-attempts", "6"),
    ("ip_lookup_sleep", "ipa-ip-lookup-timeout", "10"),
    ("network_interface", "ipa-network-interface", ""),
    ("lookup_timeout", "ipa-lookup-timeout", "600"),
    ("lookup_interval", "ipa-lookup-interval", "1"),
    ("lldp_timeout", "ipa-lldp-timeout", "30"),
    ("collect_lldp", "ipa-collect-lldp", "false"),
    ("inspection_callback_url", "ipa-inspection-callback-url", ""),
    ("inspection_collectors", "ipa-inspection-collectors", ""),
    ("inspection_dhcp_wait_timeout", "ipa-inspection-dhcp-wait-timeout", "60"),
    ("inspection_dhcp_all_interfaces", "ipa-inspection-dhcp-all-interfaces", "false"),
    ("hardware_initialization_delay", "ipa-hardware-initialization-delay", "0"),
    ("disk_wait_attempts", "ipa-disk-wait-attempts", "10"),
    ("disk_wait_delay", "ipa-disk-wait-delay", "3"),
    ("insecure", "ipa-insecure", "false"),
    ("cafile", "", ""),
    ("certfile", "", ""),
    ("keyfile", "", ""),
    ("introspection_daemon", "", "false"),
    ("introspection_daemon_post_interval", "", "300"),
    ("ntp_server", "ipa-ntp-server", ""),
    ("fail_if_clock_not_set", "", "false"),
    ("agent_token", "ipa-agent-token", ""),
    ("image_server_user", "", ""),
    ("image_server_password", "", ""),
    ("image_server_auth_strategy", "", "noauth"),
    ("image_download_connection_timeout", "ipa-image-download-connection-timeout", "60"),
    ("image_download_connection_retries", "ipa-image-download-connection-retries", "9"),
    ("image_download_connection_retry_interval", "ipa-image-download-connection-retry-interval", "10"),
    ("image_download_max_duration", "ipa-image-download-max-duration", "0"),
    ("ironic_api_version", "ipa-ironic-api-version", ""),
    ("enable_vlan_interfaces", "ipa-enable-vlan-interfaces", ""),
    ("ignore_bootloader_failure", "ipa-ignore-bootloader-failure", "false"),
    ("inject_files_priority", "ipa-inject-files-priority", "0"),
    ("guard_special_filesystems", "ipa-guard-special-filesystems", "true"),
    ("md5_enabled", "", "true"),
    ("http_request_timeout", "ipa-http-request-timeout", "30"),
    ("config_drive_rebuild", "", "false"),
    ("disable_deep_image_inspection", "", "false"),
    ("permitted_image_formats", "", "raw,gpt,qcow2"),
    ("disable_bootc_deploy", "", "false"),
    ("enable_bios_bootloader_install", "", "false"),
    ("disk_utils.efi_system_partition_size", "", "550"),
    ("disk_utils.bios_boot_partition_size", "", "1"),
    ("disk_utils.dd_block_size", "", "1M"),
    ("disk_utils.partition_detection_attempts", "", "3"),
    ("disk_utils.partprobe_attempts", "", "10"),
    ("disk_utils.image_convert_memory_limit", "", "2048"),
    ("disk_utils.image_convert_attempts", "", "3"),
    ("disk_partitioner.check_device_interval", "", "1"),
    ("disk_partitioner.check_device_max_retries", "", "20"),
    ("container.allow_arbitrary_containers", "", "false"),
    ("container.allowed_containers", "", ""),
    ("container.container_steps_file", "", "/etc/ironic-python-agent.d/mysteps.yaml"),
    ("container.runner", "", "podman"),
    ("container.pull_options", "", ""),
    ("container.run_options", "", "--rm --network=host"),
    ("mdns.use_mdns", "ipa-use-mdns", "false"),
    ("mdns.allowed_overrides", "", "inspection_callback_url,ntp_server"),
    ("mdns.lookup_attempts", "", "3"),
    ("mdns.params", "", ""),
    ("mdns.interfaces", "", ""),
    ("metrics.backend", "", "noop"),
    ("metrics.prepend_host", "", "false"),
    ("metrics.prepend_host_reverse", "", "true"),
    ("metrics.global_prefix", "", ""),
    ("metrics_statsd.statsd_host", "", "localhost"),
    ("metrics_statsd.statsd_port", "", "8125"),
];
