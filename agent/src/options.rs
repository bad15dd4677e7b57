//! Every option of the agent, declared once (section 3.3).
//!
//! The table [`TABLE`] feeds the kernel command line, config files, the command-line flags and the
//! help. Kernel parameters act as defaults; config files win over them, and flags over both. A value
//! that cannot be read leaves the default in place and a warning behind, because a typing error must
//! not keep a machine from answering.

mod values;

pub use values::{Curve, NameList, Seconds, SuiteList, TlsVersion, UrlList};

use std::collections::BTreeMap;
use values::OptionValue;

/// An option as tables, help and documentation need it.
#[derive(Debug, Clone, Copy)]
pub struct OptionSpec {
    /// Name, also that of the flag.
    pub name: &'static str,
    /// Kernel parameter, where there is one.
    pub kernel_parameter: Option<&'static str>,
    /// Name of the flag that turns it off; only switches have one.
    pub off_flag: Option<&'static str>,
    /// What it does.
    pub help: &'static str,
}

/// A value that could not be used; the default stays.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
#[error("{parameter}={value} ignored: expected {expected}; correct it or leave it out")]
pub struct OptionError {
    parameter: String,
    value: String,
    expected: &'static str,
}

macro_rules! options {
    ($($(#[doc = $help:literal])+ $name:ident: $type:ty = $default:expr $(, $kernel:literal)?;)*) => {
        /// Settings of the agent.
        #[derive(Clone)]
        pub struct Options {
            $($(#[doc = $help])+ pub $name: $type,)*
        }

        /// Every option.
        pub const TABLE: &[OptionSpec] = &[$(OptionSpec {
            name: stringify!($name),
            kernel_parameter: [$($kernel,)?].as_slice().first().copied(),
            off_flag: if <$type as OptionValue>::IS_SWITCH {
                Some(concat!("no", stringify!($name)))
            } else {
                None
            },
            help: concat!($($help),+),
        }),*];

        impl Default for Options {
            fn default() -> Self {
                Self { $($name: $default,)* }
            }
        }

        impl Options {
            /// Sets an option by its name.
            fn set(&mut self, spec: &OptionSpec, given: &str, text: &str) -> Result<(), OptionError> {
                match spec.name {
                    $(stringify!($name) => self.$name = read(given, text)?,)*
                    _ => {}
                }
                Ok(())
            }
        }
    };
}

options! {
    /// URLs of the conductor's API, separated by commas.
    api_url: UrlList = UrlList::default(), "ipa-api-url";
    /// Port to listen on.
    listen_port: u16 = 9999, "ipa-listen-port";
    /// Address to listen on; all of them when absent.
    listen_host: Option<String> = None, "ipa-listen-host";
    /// Host of the callback URL; found out by the route to the API when absent.
    advertise_host: Option<String> = None, "ipa-advertise-host";
    /// Port of the callback URL.
    advertise_port: u16 = 9999, "ipa-advertise-port";
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
    /// API version `X.Y` to use without asking the server.
    ironic_api_version: Option<String> = None, "ipa-ironic-api-version";
    /// Request id to send with every request to the API.
    global_request_id: Option<String> = None, "ipa-global-request-id";
    /// Lowest TLS version of the listener, 1.2 or 1.3.
    tls_min_version: TlsVersion = TlsVersion::V1_2, "ipa-tls-min-version";
    /// Seconds before now at which the own certificate becomes valid.
    auto_tls_allowed_clock_skew: Seconds = Seconds(3600.0), "ipa-auto-tls-allowed-clock-skew";
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
    /// Seconds a download may take in all; 0 means no limit.
    image_download_max_duration: Seconds = Seconds(0.0), "ipa-image-download-max-duration";
    /// Make every config drive anew as FAT, not only those that the disk's sectors would make unreadable.
    config_drive_rebuild: bool = false;
    /// Go on when no boot entry or boot loader can be written.
    ignore_bootloader_failure: bool = false, "ipa-ignore-bootloader-failure";
    /// Do not erase disks with a cluster file system.
    guard_special_filesystems: bool = true, "ipa-guard-special-filesystems";
    /// URLs to post the inspection data to, separated by commas.
    inspection_callback_url: UrlList = UrlList::default(), "ipa-inspection-callback-url";
    /// Names of the collectors to run, separated by commas.
    inspection_collectors: Option<NameList> = None, "ipa-inspection-collectors";
    /// Seconds to wait for IPv4 addresses before an inspection; 0 means no waiting.
    inspection_dhcp_wait_timeout: Seconds = Seconds(60.0), "ipa-inspection-dhcp-wait-timeout";
    /// Wait for an address on every interface, not only on the one the machine was booted from.
    inspection_dhcp_all_interfaces: bool = false, "ipa-inspection-dhcp-all-interfaces";
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
    /// TLS 1.2 cipher suites of listener and client, separated by colons; all forward-secret ones when
    /// absent.
    tls_cipher_suites: Option<SuiteList> = None, "ipa-tls-cipher-suites";
    /// Curve of the own certificate, p256 or p384.
    tls_certificate_curve: Curve = Curve::P384, "ipa-tls-certificate-curve";
    /// Log more.
    debug: bool = false, "ipa-debug";
}

impl Options {
    /// Settings from kernel parameters and from texts by option name, with what could not be used.
    pub fn load(
        kernel: &BTreeMap<String, String>,
        named: &BTreeMap<String, String>,
    ) -> (Self, Vec<OptionError>) {
        let mut options = Self::default();
        let mut errors = Vec::new();
        let parameters = TABLE.iter().filter_map(|spec| {
            let parameter = spec.kernel_parameter?;
            Some((spec, parameter, kernel.get(parameter)))
        });
        let named = TABLE.iter().map(|spec| (spec, spec.name, named.get(spec.name)));
        for (spec, given, text) in parameters.chain(named) {
            if let Some(text) = text {
                errors.extend(options.set(spec, given, text).err());
            }
        }
        (options, errors)
    }
}

fn read<T: OptionValue>(given: &str, text: &str) -> Result<T, OptionError> {
    T::read(text.trim()).ok_or_else(|| OptionError {
        parameter: given.to_owned(),
        // A token is a secret even when it cannot be used.
        value: if given.contains("token") { "…".to_owned() } else { text.to_owned() },
        expected: T::EXPECTED,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use farrier_linux::kernel_line;
    use std::time::Duration;

    fn load(line: &str, flags: &[(&str, &str)]) -> (Options, Vec<OptionError>) {
        let flags = flags.iter().map(|(name, value)| (name.to_string(), value.to_string())).collect();
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
    fn a_token_never_shows_in_an_error() {
        let (_, errors) = load("ipa-agent-token=", &[]);
        assert!(!errors.is_empty());
        let error = read::<u16>("ipa-agent-token", "secret").unwrap_err();
        assert!(!error.to_string().contains("secret"));
    }

    #[test]
    fn every_option_is_declared_once() {
        for (i, spec) in TABLE.iter().enumerate() {
            for other in &TABLE[..i] {
                assert_ne!(spec.name, other.name);
                assert!(spec.kernel_parameter.is_none() || spec.kernel_parameter != other.kernel_parameter);
            }
        }
    }
}
