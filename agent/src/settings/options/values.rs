//! The types that options have, each read from one text.

use crate::settings::cipher_suites;
use farrier_hardware::container::{RunnerKind, Words};
use farrier_imaging::readback::Verify;
use std::time::Duration;

/// A type an option can have.
pub trait OptionValue: Sized {
    /// Whether it is on or off.
    const IS_SWITCH: bool = false;
    /// What the text should have been.
    const EXPECTED: &'static str;

    /// Reads it; nothing when the text does not fit.
    fn read(text: &str) -> Option<Self>;

    /// The text it is read from.
    fn show(&self) -> String;
}

/// A time span given in seconds, with or without a fraction.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Seconds(pub(super) f64);

impl Seconds {
    /// The span.
    pub fn duration(self) -> Duration {
        Duration::from_secs_f64(self.0)
    }
}

/// The value for URLs from multicast DNS.
const MDNS: &str = "mdns";
/// What stands for no place at all.
const NOWHERE: &str = "none";

/// URLs without trailing slashes.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct UrlList(pub Vec<String>);

/// Names without blanks around them.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct NameList(pub Vec<String>);

/// Names of cipher suites, as OpenSSL writes them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SuiteList(pub Vec<String>);

/// Where the doctor leaves what it found.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Destination {
    /// The BMC's system event log.
    Sel,
    /// A UEFI variable.
    Efi,
    /// The kernel's store of messages that outlives a restart.
    Pstore,
    /// The host name in a DHCP request.
    Dhcp,
}

/// Some of these places.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ReportList(pub Vec<Destination>);

/// An elliptic curve.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Curve {
    /// NIST P-256
    P256,
    /// NIST P-384
    P384,
}

/// The protocol of a callback URL.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Protocol {
    /// Plain HTTP.
    Http,
    /// HTTP over TLS.
    Https,
}

/// A TLS version.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TlsVersion {
    /// TLS 1.2
    V1_2,
    /// TLS 1.3
    V1_3,
}

impl OptionValue for String {
    const EXPECTED: &'static str = "some text";

    fn read(text: &str) -> Option<Self> {
        (!text.is_empty()).then(|| text.to_owned())
    }

    fn show(&self) -> String {
        self.clone()
    }
}

impl<T: OptionValue> OptionValue for Option<T> {
    const EXPECTED: &'static str = T::EXPECTED;

    fn read(text: &str) -> Option<Self> {
        T::read(text).map(Some)
    }

    fn show(&self) -> String {
        self.as_ref().map(T::show).unwrap_or_default()
    }
}

impl OptionValue for u16 {
    const EXPECTED: &'static str = "a port number";

    fn read(text: &str) -> Option<Self> {
        text.parse().ok()
    }

    fn show(&self) -> String {
        self.to_string()
    }
}

impl OptionValue for u32 {
    const EXPECTED: &'static str = "a whole number";

    fn read(text: &str) -> Option<Self> {
        text.parse().ok()
    }

    fn show(&self) -> String {
        self.to_string()
    }
}

impl OptionValue for Seconds {
    const EXPECTED: &'static str = "a number of seconds up to one year";

    fn read(text: &str) -> Option<Self> {
        text.parse().ok().filter(|seconds| (0.0..=31_536_000.0).contains(seconds)).map(Self)
    }

    fn show(&self) -> String {
        self.0.to_string()
    }
}

impl OptionValue for bool {
    const IS_SWITCH: bool = true;
    const EXPECTED: &'static str = "true or false";

    fn read(text: &str) -> Option<Self> {
        match text.to_ascii_lowercase().as_str() {
            "1" | "true" | "on" | "yes" | "t" | "y" => Some(true),
            "0" | "false" | "off" | "no" | "f" | "n" => Some(false),
            _ => None,
        }
    }

    fn show(&self) -> String {
        self.to_string()
    }
}

impl OptionValue for TlsVersion {
    const EXPECTED: &'static str = "1.2 or 1.3";

    fn read(text: &str) -> Option<Self> {
        match text {
            "1.2" => Some(Self::V1_2),
            "1.3" => Some(Self::V1_3),
            _ => None,
        }
    }

    fn show(&self) -> String {
        match self {
            Self::V1_2 => "1.2",
            Self::V1_3 => "1.3",
        }
        .to_owned()
    }
}

impl OptionValue for SuiteList {
    const EXPECTED: &'static str =
        "a list of cipher suites as OpenSSL reads it, with one of ECDHE and AES-GCM at least";

    fn read(text: &str) -> Option<Self> {
        let cipher_suites::Selection { names, unknown } = cipher_suites::read(text);
        if !names.is_empty() && !unknown.is_empty() {
            let unknown = unknown.join(", ");
            tracing::warn!(
                "TLS 1.2 cipher suites that are not offered here are left out of a list: {unknown}"
            );
        }
        (!names.is_empty()).then(|| Self(names.into_iter().map(str::to_owned).collect()))
    }

    fn show(&self) -> String {
        self.0.join(":")
    }
}

impl OptionValue for Curve {
    const EXPECTED: &'static str = "p256 or p384";

    fn read(text: &str) -> Option<Self> {
        match text.to_ascii_lowercase().as_str() {
            "p256" => Some(Self::P256),
            "p384" => Some(Self::P384),
            _ => None,
        }
    }

    fn show(&self) -> String {
        match self {
            Self::P256 => "p256",
            Self::P384 => "p384",
        }
        .to_owned()
    }
}

impl OptionValue for UrlList {
    const EXPECTED: &'static str = "http:// or https:// URLs separated by commas, or mdns";

    fn read(text: &str) -> Option<Self> {
        if text == MDNS {
            return Some(Self(vec![MDNS.to_owned()]));
        }
        let urls: Vec<_> = text.split(',').map(|url| url.trim().trim_end_matches('/').to_owned()).collect();
        urls.iter().all(|url| url.starts_with("http://") || url.starts_with("https://")).then_some(Self(urls))
    }

    fn show(&self) -> String {
        self.0.join(",")
    }
}

impl OptionValue for NameList {
    const EXPECTED: &'static str = "names separated by commas";

    fn read(text: &str) -> Option<Self> {
        let names: Vec<_> = text.split(',').map(|name| name.trim().to_owned()).collect();
        names.iter().all(|name| !name.is_empty()).then_some(Self(names))
    }

    fn show(&self) -> String {
        self.0.join(",")
    }
}

impl Destination {
    const ALL: [Self; 4] = [Self::Sel, Self::Efi, Self::Pstore, Self::Dhcp];

    /// Its name in the option.
    pub fn name(self) -> &'static str {
        match self {
            Self::Sel => "sel",
            Self::Efi => "efi",
            Self::Pstore => "pstore",
            Self::Dhcp => "dhcp",
        }
    }
}

impl Default for ReportList {
    /// The places that disturb no one: DHCP servers may publish host names.
    fn default() -> Self {
        Self(vec![Destination::Sel, Destination::Efi])
    }
}

impl OptionValue for ReportList {
    const EXPECTED: &'static str = "some of sel, efi, pstore and dhcp, separated by commas, or none";

    fn read(text: &str) -> Option<Self> {
        if text == NOWHERE {
            return Some(Self(Vec::new()));
        }
        let place = |name: &str| Destination::ALL.into_iter().find(|one| one.name() == name.trim());
        text.split(',').map(place).collect::<Option<_>>().map(Self)
    }

    fn show(&self) -> String {
        match &self.0[..] {
            [] => NOWHERE.to_owned(),
            places => places.iter().map(|place| place.name()).collect::<Vec<_>>().join(","),
        }
    }
}

impl OptionValue for Verify {
    const EXPECTED: &'static str = "on, sample or off";

    fn read(text: &str) -> Option<Self> {
        Self::parse(text)
    }

    fn show(&self) -> String {
        self.name().to_owned()
    }
}

impl OptionValue for RunnerKind {
    const EXPECTED: &'static str = "podman or docker";

    fn read(text: &str) -> Option<Self> {
        Self::parse(text)
    }

    fn show(&self) -> String {
        self.name().to_owned()
    }
}

impl OptionValue for Words {
    const EXPECTED: &'static str = "words separated by blanks, or by commas in front of dashes";

    fn read(text: &str) -> Option<Self> {
        Some(Self::parse(text))
    }

    fn show(&self) -> String {
        self.as_slice().join(" ")
    }
}

impl OptionValue for Protocol {
    const EXPECTED: &'static str = "http or https";

    fn read(text: &str) -> Option<Self> {
        match text {
            "http" => Some(Self::Http),
            "https" => Some(Self::Https),
            _ => None,
        }
    }

    fn show(&self) -> String {
        self.scheme().to_owned()
    }
}

impl Protocol {
    /// Its name in URLs.
    pub fn scheme(self) -> &'static str {
        match self {
            Self::Http => "http",
            Self::Https => "https",
        }
    }
}

impl UrlList {
    /// Whether multicast DNS finds the URLs.
    pub fn is_mdns(&self) -> bool {
        self.0 == [MDNS]
    }
}

impl NameList {
    /// These names.
    pub fn of(names: &[&str]) -> Self {
        Self(names.iter().map(|name| (*name).to_owned()).collect())
    }
}

impl SuiteList {
    /// Reads a list of OpenSSL, as far as it names suites that are offered here.
    pub fn from_text(text: &str) -> Option<Self> {
        Self::read(text)
    }
}

impl TlsVersion {
    /// Reads `1.2` or `1.3`.
    pub fn from_text(text: &str) -> Option<Self> {
        Self::read(text)
    }
}
