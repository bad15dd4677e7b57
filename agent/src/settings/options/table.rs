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
    /// Address to listen on; all addresses if unset.
    listen_host: Option<String> = None, "ipa-listen-host";
    /// Host in the callback URL; determined from the route to the API if unset.
    advertise_host: Option<String> = None, "ipa-advertise-host";
    /// Port in the callback URL.
    advertise_port: u16 = 9999, "ipa-advertise-port";
    /// Protocol in the callback URL if the agent listens without TLS, for a TLS proxy in front of it.
    advertise_protocol: Protocol = Protocol::Http, "ipa-advertise-protocol";
    /// Interface whose IPv4 address is used in the callback URL.
    network_interface: Option<String> = None, "ipa-network-interface";
    /// Attempts to determine the address to advertise.
    ip_lookup_attempts: u32 = 6, "ipa-ip-lookup-attempts";
    /// Pause between these attempts, in seconds.
    ip_lookup_sleep: Seconds = Seconds(10.0), "ipa-ip-lookup-timeout";
    /// Timeout for the whole lookup, in seconds.
    lookup_timeout: Seconds = Seconds(600.0), "ipa-lookup-timeout";
    /// Minimum pause between two lookups, in seconds.
    lookup_interval: Seconds = Seconds(1.0), "ipa-lookup-interval";
    /// Timeout for a request to the API, in seconds.
    http_request_timeout: Seconds = Seconds(30.0), "ipa-http-request-timeout";
    /// Agent token from the conductor, if it is known before the first lookup.
    agent_token: Option<String> = None, "ipa-agent-token";
    /// List command results without the agent token, and without the arguments of steps. Conductors need it that
    /// send this request without the token.
    list_without_token: bool = false, "farrier-list-without-token";
    /// API version `X.Y` to use without asking the API.
    ironic_api_version: Option<String> = None, "ipa-ironic-api-version";
    /// Request ID for all requests to the API.
    global_request_id: Option<String> = None, "ipa-global-request-id";
    /// Use the certificate in tls_cert_file instead of a generated one.
    listen_tls: bool = false;
    /// File with the certificate of the listener and its chain.
    tls_cert_file: Option<String> = None;
    /// File with the key of that certificate.
    tls_key_file: Option<String> = None;
    /// Generate a TLS certificate at the start, and send it to the conductor.
    enable_auto_tls: bool = true;
    /// Minimum TLS version of listener and clients.
    tls_min_version: TlsVersion = TlsVersion::V1_2, "ipa-tls-min-version";
    /// Seconds by which the start of the validity of the generated certificate is backdated.
    auto_tls_allowed_clock_skew: Seconds = Seconds(3600.0);
    /// Seconds to wait for drivers and the first scans of storage controllers before disks are listed.
    device_wait_timeout: Seconds = Seconds(180.0), "farrier-device-wait-timeout";
    /// Attempts to find the root disk.
    disk_wait_attempts: u32 = 10, "ipa-disk-wait-attempts";
    /// Pause between these attempts, in seconds.
    disk_wait_delay: Seconds = Seconds(3.0), "ipa-disk-wait-delay";
    /// Timeout for the connection to an image server, and for each part of the body, in seconds.
    image_download_connection_timeout: Seconds = Seconds(60.0), "ipa-image-download-connection-timeout";
    /// Retries of a failed download.
    image_download_connection_retries: u32 = 9, "ipa-image-download-connection-retries";
    /// Pause between these retries, in seconds.
    image_download_connection_retry_interval: Seconds = Seconds(10.0),
        "ipa-image-download-connection-retry-interval";
    /// Timeout for a whole download, in seconds; 0 means no limit for images, and half an hour for small files.
    image_download_max_duration: Seconds = Seconds(0.0), "ipa-image-download-max-duration";
    /// Minimum average rate of a download in KiB/s, over five minutes; a slower download is interrupted and
    /// resumed. 0 means no limit.
    image_download_least_rate: u32 = 64, "farrier-image-download-least-rate";
    /// User name for image servers, if an image has no credentials of its own.
    image_server_user: Option<String> = None;
    /// Password of that user.
    image_server_password: Option<String> = None;
    /// Authentication at image servers: noauth or http_basic.
    image_server_auth_strategy: String = "noauth".to_owned();
    /// Accept MD5 checksums of images. The lookup overrides it.
    md5_enabled: bool = true;
    /// Permitted image formats, separated by commas. The lookup overrides it.
    permitted_image_formats: NameList = NameList::of(&["raw", "gpt", "qcow2"]);
    /// Disable the inspection of images before they are written. The lookup overrides it.
    disable_deep_image_inspection: bool = false;
    /// Refuse bootc images.
    disable_bootc_deploy: bool = false;
    /// Share of a written image that is read back and compared: on (all of it), sample, or off.
    verify: Verify = Verify::Sample, "farrier-verify";
    /// Rebuild every config drive as FAT, not only those that are unreadable on the sector size of the disk.
    config_drive_rebuild: bool = false;
    /// Ignore a boot entry or boot loader that cannot be written.
    ignore_bootloader_failure: bool = false, "ipa-ignore-bootloader-failure";
    /// Run programs of the deployed image, as root, if only they can install its boot loader.
    enable_bios_bootloader_install: bool = false;
    /// Do not erase disks with a cluster file system.
    guard_special_filesystems: bool = true, "ipa-guard-special-filesystems";
    /// Erase the boot areas of eMMC devices with the disks. Some boards keep their firmware there.
    erase_emmc_boot_areas: bool = false, "farrier-erase-emmc-boot-areas";
    /// Priority of the step inject_files in a deploy or service; 0 runs it only on request.
    inject_files_priority: u32 = 0, "ipa-inject-files-priority";
    /// URLs to post the inspection data to, separated by commas, or mdns.
    inspection_callback_url: UrlList = UrlList::default(), "ipa-inspection-callback-url";
    /// Names of the collectors to run, separated by commas.
    inspection_collectors: Option<NameList> = None, "ipa-inspection-collectors";
    /// Seconds to wait for IPv4 addresses before an inspection; 0 disables the wait.
    inspection_dhcp_wait_timeout: Seconds = Seconds(60.0), "ipa-inspection-dhcp-wait-timeout";
    /// Wait for an address on every interface, not only on the boot interface.
    inspection_dhcp_all_interfaces: bool = false, "ipa-inspection-dhcp-all-interfaces";
    /// Listen for LLDP frames outside of inspections too; enable_vlan_interfaces needs it.
    collect_lldp: bool = false, "ipa-collect-lldp";
    /// Benchmarks of the collector extra-hardware, separated by commas: cpu, mem and disk.
    inspection_benchmarks: Option<NameList> = None, "ipa-inspection-benchmarks";
    /// VLAN interfaces to create, separated by commas: interface.vlan, hardware-address.vlan, or interface or all
    /// for the VLANs in LLDP frames.
    enable_vlan_interfaces: Option<NameList> = None, "ipa-enable-vlan-interfaces";
    /// Seconds to wait for slow hardware at the start.
    hardware_initialization_delay: Seconds = Seconds(0.0), "ipa-hardware-initialization-delay";
    /// Seconds to wait for LLDP frames.
    lldp_timeout: Seconds = Seconds(30.0), "ipa-lldp-timeout";
    /// MAC address of the boot interface.
    bootif: Option<String> = None, "BOOTIF";
    /// NTP server that sets the clock at the start.
    ntp_server: Option<String> = None, "ipa-ntp-server";
    /// Fail the start if the clock cannot be set.
    fail_if_clock_not_set: bool = false;
    /// Disable the verification of server certificates.
    insecure: bool = false, "ipa-insecure";
    /// File with the CA certificates that verify servers.
    cafile: Option<String> = None;
    /// File with the client certificate.
    certfile: Option<String> = None;
    /// File with the key of that certificate.
    keyfile: Option<String> = None;
    /// TLS 1.2 cipher suites of listener and clients, in OpenSSL syntax; all forward-secret ones if unset.
    tls_cipher_suites: Option<SuiteList> = None, "ipa-tls-cipher-suites";
    /// Curve of the generated certificate.
    tls_certificate_curve: Curve = Curve::P384, "ipa-tls-certificate-curve";
    /// Seconds without an answer of the conductor after which the doctor runs; 0 disables it.
    doctor_after: Seconds = Seconds(45.0), "farrier-doctor-after";
    /// Places for the report of the doctor, separated by commas: sel (BMC event log), efi (UEFI variable), pstore,
    /// dhcp (host name in the request), or none.
    doctor_report: ReportList = ReportList::default(), "farrier-doctor-report";
    /// Bond of network cards with its options and MTU, such as bond0:eth0,eth1:mode=802.3ad,miimon=100:9000. Used
    /// by PID 1 of the ramdisk only.
    net_bond: Option<String> = None, "farrier-net-bond";
    /// VLANs to create before DHCP, separated by commas: interface.number. Used by PID 1 of the ramdisk only.
    net_vlans: Option<NameList> = None, "farrier-net-vlans";
    /// Name servers in front of those from DHCP, separated by commas. Used by PID 1 of the ramdisk only.
    net_dns: Option<NameList> = None, "farrier-net-dns";
    /// Static routes, separated by commas: network/length@gateway. Used by PID 1 of the ramdisk only.
    net_routes: Option<NameList> = None, "farrier-net-routes";
    /// Log at debug level.
    debug: bool = false, "ipa-debug";
    /// Size of the EFI system partition of partition images, in MiB.
    efi_system_partition_size @ "disk_utils" "efi_system_partition_size": u32 = 550;
    /// Size of the BIOS boot partition of partition images, in MiB.
    bios_boot_partition_size @ "disk_utils" "bios_boot_partition_size": u32 = 1;
    /// Allow any image and any options in container steps.
    allow_arbitrary_containers @ "container" "allow_arbitrary_containers": bool = false;
    /// Images allowed in container steps, beside those of the steps file, separated by commas.
    allowed_containers @ "container" "allowed_containers": NameList = NameList::default();
    /// YAML file with container steps.
    container_steps_file @ "container" "container_steps_file": String =
        "/etc/ironic-python-agent.d/mysteps.yaml".to_owned();
    /// Container runner: podman or docker. It must be packed into the ramdisk.
    container_runner @ "container" "runner": RunnerKind = RunnerKind::Podman;
    /// Options of the runner for pulling an image.
    container_pull_options @ "container" "pull_options": Words = Words::default();
    /// Options of the runner for running a container.
    container_run_options @ "container" "run_options": Words = Words::parse("--rm --network=host");
    /// Find API and inspection service by multicast DNS if no URL is set.
    use_mdns @ "mdns" "use_mdns": bool = false, "ipa-use-mdns";
    /// Attempts by multicast DNS.
    mdns_lookup_attempts @ "mdns" "lookup_attempts": u32 = 3;
    /// Options that a multicast DNS reply may set, separated by commas.
    mdns_allowed_overrides @ "mdns" "allowed_overrides": NameList =
        NameList::of(&["inspection_callback_url", "ntp_server"]);
    /// Interfaces for multicast DNS by name or address, separated by commas; all if unset.
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
const PARTITIONS: &str = "No effect: the agent waits for events of the kernel.";
const METRICS: &str = "No effect: this agent keeps no metrics.";
const INSPECTOR: &str = "No effect: the agent inspects once per boot.";

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
    ["mdns"] params: String = "", "No effect: a reply sets only the allowed options.";
    ["metrics"] backend: String = "noop", METRICS;
    ["metrics"] prepend_host: bool = "false", METRICS;
    ["metrics"] prepend_host_reverse: bool = "true", METRICS;
    ["metrics"] global_prefix: String = "", METRICS;
    ["metrics_statsd"] statsd_host: String = "localhost", METRICS;
    ["metrics_statsd"] statsd_port: u16 = "8125", METRICS;
}
