//! The rows: options with their types, defaults and help.

use super::values::{
    Curve, NameList, OptionValue, Protocol, ReportList, Seconds, SuiteList, TlsVersion, UrlList,
};
use super::{DEFAULT_SECTION, OptionSpec};
use farrier_hardware::container::{RunnerKind, Words};
use farrier_imaging::readback::Verify;

macro_rules! options {
    ($(
        $(#[doc = $help:literal])+
        $field:ident $(@ $section:literal $name:literal)?: $type:ty = $default:expr $(, $kernel:literal)?;
    )*) => {
        /// Settings of the agent.
        #[derive(Clone)]
        pub struct Options {
            $($(#[doc = $help])+ pub $field: $type,)*
        }

        /// Options with an effect, in the order of the fields.
        const EFFECTIVE: &[OptionSpec] = &[$(OptionSpec {
            section: last(&[DEFAULT_SECTION, $($section)?]),
            name: last(&[stringify!($field), $($name)?]),
            kernel_parameter: [$($kernel,)?].as_slice().first().copied(),
            off_flag: if <$type as OptionValue>::IS_SWITCH && [$($section,)? ""].len() == 1 {
                Some(concat!("no", stringify!($field)))
            } else {
                None
            },
            kind: <$type as OptionValue>::EXPECTED,
            default: || OptionValue::show(&Options::default().$field),
            help: concat!($($help),+),
            accepts: |text| <$type as OptionValue>::read(text).is_some(),
        }),*];

        impl Default for Options {
            fn default() -> Self {
                Self { $($field: $default,)* }
            }
        }

        impl Options {
            /// Sets an option; false when the text is no value of it, and nothing changes.
            pub(super) fn set(&mut self, spec: &OptionSpec, text: &str) -> bool {
                match spec.key() {
                    $((section, name) if section == last(&[DEFAULT_SECTION, $($section)?])
                        && name == last(&[stringify!($field), $($name)?]) =>
                    {
                        OptionValue::read(text).map(|value| self.$field = value).is_some()
                    })*
                    _ => {
                        tracing::info!("option {} has no effect in this agent", spec.title());
                        (spec.accepts)(text)
                    }
                }
            }

            /// Every option with its value as text.
            pub(super) fn values(&self) -> Vec<(&'static OptionSpec, String)> {
                EFFECTIVE.iter().zip([$(OptionValue::show(&self.$field)),*]).collect()
            }
        }
    };
}

/// The last of one or two texts: a name of its own goes before that of the field.
const fn last(texts: &[&'static str]) -> &'static str {
    texts[texts.len() - 1]
}

/// Every option.
pub fn specs() -> impl Iterator<Item = &'static OptionSpec> {
    EFFECTIVE.iter().chain(WITHOUT_EFFECT)
}

options! {
    /// URLs of the conductor's API, separated by commas, or mdns.
    api_url: UrlList = UrlList::default(), "ipa-api-url";
    /// Port to listen on.
    listen_port: u16 = 9999, "ipa-listen-port";
    /// Address to listen on; all of them when absent.
    listen_host: Option<String> = None, "ipa-listen-host";
    /// Host of the callback URL; found out by the route to the API when absent.
    advertise_host: Option<String> = None, "ipa-advertise-host";
    /// Port of the callback URL.
    advertise_port: u16 = 9999, "ipa-advertise-port";
    /// Protocol of the callback URL when the agent itself listens without TLS: a proxy may add it.
    advertise_protocol: Protocol = Protocol::Http, "ipa-advertise-protocol";
    /// Interface whose IPv4 address goes into the callback URL.
    network_interface: Option<String> = None, "ipa-network-interface";
    /// Rounds of looking for the address to advertise.
    ip_lookup_attempts: u32 = 6, "ipa-ip-lookup-attempts";
    /// Seconds between these rounds.
    ip_lookup_sleep: Seconds = Seconds(10.0), "ipa-ip-lookup-timeout";
    /// Seconds a lookup may take in all.
    lookup_timeout: Seconds = Seconds(600.0), "ipa-lookup-timeout";
    /// Least seconds between two lookups.
    lookup_interval: Seconds = Seconds(1.0), "ipa-lookup-interval";
    /// Seconds a request to the API may take.
    http_request_timeout: Seconds = Seconds(30.0), "ipa-http-request-timeout";
    /// Token shared with the conductor before the first lookup.
    agent_token: Option<String> = None, "ipa-agent-token";
    /// List the results of commands for whoever asks, without the arguments of steps: conductors need that which do
    /// not send the token with this question.
    list_without_token: bool = false, "farrier-list-without-token";
    /// API version `X.Y` to use without asking the server.
    ironic_api_version: Option<String> = None, "ipa-ironic-api-version";
    /// Request id to send with every request to the API.
    global_request_id: Option<String> = None, "ipa-global-request-id";
    /// Listen with the certificate of tls_cert_file instead of one made at the start.
    listen_tls: bool = false;
    /// File with the certificate of the listener, and those between it and its authority.
    tls_cert_file: Option<String> = None;
    /// File with the key of that certificate.
    tls_key_file: Option<String> = None;
    /// Make a certificate at the start and tell it to the conductor.
    enable_auto_tls: bool = true;
    /// Lowest TLS version of listener and clients.
    tls_min_version: TlsVersion = TlsVersion::V1_2, "ipa-tls-min-version";
    /// Seconds before now at which the own certificate becomes valid.
    auto_tls_allowed_clock_skew: Seconds = Seconds(3600.0);
    /// Seconds to wait for devices before disks are listed: for drivers, and for the first scans of storage
    /// controllers.
    device_wait_timeout: Seconds = Seconds(180.0), "farrier-device-wait-timeout";
    /// Times to look for the root disk before giving up.
    disk_wait_attempts: u32 = 10, "ipa-disk-wait-attempts";
    /// Seconds between these times.
    disk_wait_delay: Seconds = Seconds(3.0), "ipa-disk-wait-delay";
    /// Seconds to connect to an image server, and to wait for each part of the body.
    image_download_connection_timeout: Seconds = Seconds(60.0), "ipa-image-download-connection-timeout";
    /// Further attempts of a failed download.
    image_download_connection_retries: u32 = 9, "ipa-image-download-connection-retries";
    /// Seconds between these attempts.
    image_download_connection_retry_interval: Seconds = Seconds(10.0),
        "ipa-image-download-connection-retry-interval";
    /// Seconds a download may take in all; 0 means no limit for images, and half an hour for small files.
    image_download_max_duration: Seconds = Seconds(0.0), "ipa-image-download-max-duration";
    /// Minimum average rate of a download in KiB/s, over five minutes; a slower download is interrupted and
    /// resumed. 0 means no limit.
    image_download_least_rate: u32 = 64, "farrier-image-download-least-rate";
    /// User at image servers, for images that bring no credentials of their own.
    image_server_user: Option<String> = None;
    /// Password of that user.
    image_server_password: Option<String> = None;
    /// How image servers are told who asks, noauth or http_basic.
    image_server_auth_strategy: String = "noauth".to_owned();
    /// Take MD5 checksums of images. The lookup may say otherwise.
    md5_enabled: bool = true;
    /// Image formats that may be written, separated by commas. The lookup may say otherwise.
    permitted_image_formats: NameList = NameList::of(&["raw", "gpt", "qcow2"]);
    /// Do not look into images before they are written. The lookup may say otherwise.
    disable_deep_image_inspection: bool = false;
    /// Refuse container images that install themselves.
    disable_bootc_deploy: bool = false;
    /// How much of a written image is read back and compared: on for all of it, sample, or off.
    verify: Verify = Verify::Sample, "farrier-verify";
    /// Make every config drive anew as FAT, not only those that the disk's sectors would make unreadable.
    config_drive_rebuild: bool = false;
    /// Go on when no boot entry or boot loader can be written.
    ignore_bootloader_failure: bool = false, "ipa-ignore-bootloader-failure";
    /// Run programs of the deployed image, as root, where it needs a boot loader that only they can install.
    enable_bios_bootloader_install: bool = false;
    /// Do not erase disks with a cluster file system.
    guard_special_filesystems: bool = true, "ipa-guard-special-filesystems";
    /// Erase the boot areas of eMMC devices with the disks; the firmware of some boards is there.
    erase_emmc_boot_areas: bool = false, "farrier-erase-emmc-boot-areas";
    /// Place of the step inject_files in an automatic deploy or service; 0 runs it only when asked for.
    inject_files_priority: u32 = 0, "ipa-inject-files-priority";
    /// URLs to post the inspection data to, separated by commas, or mdns.
    inspection_callback_url: UrlList = UrlList::default(), "ipa-inspection-callback-url";
    /// Names of the collectors to run, separated by commas.
    inspection_collectors: Option<NameList> = None, "ipa-inspection-collectors";
    /// Seconds to wait for IPv4 addresses before an inspection; 0 means no waiting.
    inspection_dhcp_wait_timeout: Seconds = Seconds(60.0), "ipa-inspection-dhcp-wait-timeout";
    /// Wait for an address on every interface, not only on the one the machine was booted from.
    inspection_dhcp_all_interfaces: bool = false, "ipa-inspection-dhcp-all-interfaces";
    /// Listen for LLDP frames also outside of inspections: enable_vlan_interfaces needs them.
    collect_lldp: bool = false, "ipa-collect-lldp";
    /// What the collector extra-hardware measures, separated by commas: cpu, mem and disk.
    inspection_benchmarks: Option<NameList> = None, "ipa-inspection-benchmarks";
    /// VLAN interfaces to make: interface.vlan, hardware-address.vlan, or interface or all for those
    /// that the switches announce; separated by commas.
    enable_vlan_interfaces: Option<NameList> = None, "ipa-enable-vlan-interfaces";
    /// Seconds to wait for slow hardware at the start.
    hardware_initialization_delay: Seconds = Seconds(0.0), "ipa-hardware-initialization-delay";
    /// Seconds without any LLDP frame after which nobody is expected to send one.
    lldp_timeout: Seconds = Seconds(30.0), "ipa-lldp-timeout";
    /// Hardware address of the interface the machine was booted from.
    bootif: Option<String> = None, "BOOTIF";
    /// Server to set the clock from at the start, over SNTP.
    ntp_server: Option<String> = None, "ipa-ntp-server";
    /// Do not start with a clock that could not be set.
    fail_if_clock_not_set: bool = false;
    /// Do not verify the certificates of servers.
    insecure: bool = false, "ipa-insecure";
    /// File with the certificates of the authorities that servers are verified with.
    cafile: Option<String> = None;
    /// File with the certificate to show to servers.
    certfile: Option<String> = None;
    /// File with the key of that certificate.
    keyfile: Option<String> = None;
    /// TLS 1.2 cipher suites of listener and client, as a list of OpenSSL; all forward-secret ones when
    /// absent.
    tls_cipher_suites: Option<SuiteList> = None, "ipa-tls-cipher-suites";
    /// Curve of the own certificate.
    tls_certificate_curve: Curve = Curve::P384, "ipa-tls-certificate-curve";
    /// Seconds without an answer of the conductor after which the agent looks for the reason; 0 means never.
    doctor_after: Seconds = Seconds(45.0), "farrier-doctor-after";
    /// Where the reason is left for a conductor, separated by commas: sel (the BMC's event log), efi (a
    /// UEFI variable), pstore (the kernel's message store), dhcp (the host name in a request), or none.
    doctor_report: ReportList = ReportList::default(), "farrier-doctor-report";
    /// A bond of network cards, with its options and the size of its packets where they matter:
    /// bond0:eth0,eth1:mode=802.3ad,miimon=100:9000. Of use to PID 1 of the ramdisk alone.
    net_bond: Option<String> = None, "farrier-net-bond";
    /// VLANs to make before any DHCP: interface.number, separated by commas. Of use to PID 1 of the
    /// ramdisk alone.
    net_vlans: Option<NameList> = None, "farrier-net-vlans";
    /// Addresses of name servers, before those of DHCP, separated by commas. Of use to PID 1 of the
    /// ramdisk alone.
    net_dns: Option<NameList> = None, "farrier-net-dns";
    /// Routes beside the default one: network/length@gateway, separated by commas. Of use to PID 1 of the
    /// ramdisk alone.
    net_routes: Option<NameList> = None, "farrier-net-routes";
    /// Log more.
    debug: bool = false, "ipa-debug";
    /// MiB of the EFI system partition of partition images.
    efi_system_partition_size @ "disk_utils" "efi_system_partition_size": u32 = 550;
    /// MiB of the BIOS boot partition of partition images.
    bios_boot_partition_size @ "disk_utils" "bios_boot_partition_size": u32 = 1;
    /// Let whoever orders a container step choose any image and any options.
    allow_arbitrary_containers @ "container" "allow_arbitrary_containers": bool = false;
    /// Images that container steps may run beside those of the steps file, separated by commas.
    allowed_containers @ "container" "allowed_containers": NameList = NameList::default();
    /// YAML file with steps that are containers.
    container_steps_file @ "container" "container_steps_file": String =
        "/etc/ironic-python-agent.d/mysteps.yaml".to_owned();
    /// Program that runs containers, podman or docker. It has to be packed into the ramdisk.
    container_runner @ "container" "runner": RunnerKind = RunnerKind::Podman;
    /// Options of the program when it fetches an image.
    container_pull_options @ "container" "pull_options": Words = Words::default();
    /// Options of the program when it runs a container.
    container_run_options @ "container" "run_options": Words = Words::parse("--rm --network=host");
    /// Look for API and inspection service by multicast DNS when no URL is given.
    use_mdns @ "mdns" "use_mdns": bool = false, "ipa-use-mdns";
    /// Times to ask by multicast DNS.
    mdns_lookup_attempts @ "mdns" "lookup_attempts": u32 = 3;
    /// Options that an answer to multicast DNS may set, separated by commas.
    mdns_allowed_overrides @ "mdns" "allowed_overrides": NameList =
        NameList::of(&["inspection_callback_url", "ntp_server"]);
    /// Interfaces, or their addresses, to ask by multicast DNS, separated by commas; all when absent.
    mdns_interfaces @ "mdns" "interfaces": Option<NameList> = None;
}

macro_rules! without_effect {
    ($([$section:literal] $name:ident: $type:ty = $default:literal $(by $kernel:literal)?, $help:expr;)*) => {
        /// Options that are understood and change nothing, with the reason: a configuration made for
        /// another agent must not look wrong.
        const WITHOUT_EFFECT: &[OptionSpec] = &[$(OptionSpec {
            section: $section,
            name: stringify!($name),
            kernel_parameter: [$($kernel,)?].as_slice().first().copied(),
            off_flag: None,
            kind: <$type as OptionValue>::EXPECTED,
            default: || $default.to_owned(),
            help: $help,
            accepts: |text| <$type as OptionValue>::read(text).is_some(),
        }),*];
    };
}

const WRITER: &str = "No effect: the agent writes images itself, without dd and qemu-img.";
const PARTITIONS: &str = "No effect: the kernel tells when a partition or a disk is ready.";
const METRICS: &str = "No effect: this agent keeps no metrics.";
const INSPECTOR: &str = "No effect: the agent itself inspects, once per boot.";

without_effect! {
    ["DEFAULT"] introspection_daemon: bool = "false", INSPECTOR;
    ["DEFAULT"] introspection_daemon_post_interval: Seconds = "300", INSPECTOR;
    ["disk_utils"] dd_block_size: String = "1M", WRITER;
    ["disk_utils"] image_convert_memory_limit: u32 = "2048", WRITER;
    ["disk_utils"] image_convert_attempts: u32 = "3", WRITER;
    ["disk_utils"] partition_detection_attempts: u32 = "3", PARTITIONS;
    ["disk_utils"] partprobe_attempts: u32 = "10", PARTITIONS;
    ["disk_partitioner"] check_device_interval: Seconds = "1", PARTITIONS;
    ["disk_partitioner"] check_device_max_retries: u32 = "20", PARTITIONS;
    ["mdns"] params: String = "", "No effect: an answer is believed for the options allowed only.";
    ["metrics"] backend: String = "noop", METRICS;
    ["metrics"] prepend_host: bool = "false", METRICS;
    ["metrics"] prepend_host_reverse: bool = "true", METRICS;
    ["metrics"] global_prefix: String = "", METRICS;
    ["metrics_statsd"] statsd_host: String = "localhost", METRICS;
    ["metrics_statsd"] statsd_port: u16 = "8125", METRICS;
}
