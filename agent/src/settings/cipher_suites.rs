//! The cipher suites of TLS 1.2 that are offered, and lists of them as OpenSSL writes and reads them (its manual page
//! `openssl-ciphers`).

use rustls::SupportedCipherSuite;
use rustls::crypto::ring::{self, cipher_suite};

/// The cipher suites of TLS 1.2 by their names in OpenSSL; all keep old traffic secret when a key
/// becomes known.
pub const SUITES: &[(&str, SupportedCipherSuite)] = &[
    ("ECDHE-ECDSA-AES256-GCM-SHA384", cipher_suite::TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384),
    ("ECDHE-ECDSA-AES128-GCM-SHA256", cipher_suite::TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256),
    ("ECDHE-RSA-AES256-GCM-SHA384", cipher_suite::TLS_ECDHE_RSA_WITH_AES_256_GCM_SHA384),
    ("ECDHE-RSA-AES128-GCM-SHA256", cipher_suite::TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256),
];

/// A cipher suite of TLS 1.2 by its name in OpenSSL.
pub fn suite(name: &str) -> Option<SupportedCipherSuite> {
    SUITES.iter().find(|(known, _)| name.eq_ignore_ascii_case(known)).map(|(_, suite)| *suite)
}

/// Words for what all of these suites have in common.
const COMMON: &[&str] =
    &["ALL", "DEFAULT", "HIGH", "FIPS", "TLSv1.2", "ECDHE", "EECDH", "kECDHE", "kEECDH", "AES", "AESGCM"];

/// What a list asks for.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Selection<'a> {
    /// Names of suites that are offered here, the preferred one first.
    pub names: Vec<&'static str>,
    /// Entries that name no suite that is offered here.
    pub unknown: Vec<&'a str>,
}

/// Reads a list. What it excludes need not be known: nothing else is offered than what it asks for.
pub fn read(list: &str) -> Selection<'_> {
    let mut selection = Selection::default();
    let mut banned = Vec::new();
    for entry in list.split([':', ',', ';', ' ']).filter(|entry| !entry.is_empty()) {
        let words = entry.trim_start_matches(['!', '-', '+']);
        let meant: Vec<_> = SUITES.iter().map(|(name, _)| *name).filter(|name| has(name, words)).collect();
        let names = &mut selection.names;
        match entry.as_bytes()[0] {
            // The order by strength, and the security level: all of these suites are strong ones.
            b'@' => {}
            b'!' | b'-' => {
                names.retain(|name| !meant.contains(name));
                if entry.starts_with('!') {
                    banned.extend(meant);
                }
            }
            b'+' => names.sort_by_key(|name| meant.contains(name)),
            _ if meant.is_empty() && !is_always_offered(entry) => selection.unknown.push(entry),
            _ => {
                for name in meant {
                    if !names.contains(&name) && !banned.contains(&name) {
                        names.push(name);
                    }
                }
            }
        }
    }
    selection
}

/// Whether a suite has all of the properties that are joined by plus signs.
fn has(suite: &str, words: &str) -> bool {
    let standard_name = self::suite(suite).and_then(|suite| suite.suite().as_str());
    words.split('+').all(|word| {
        word.eq_ignore_ascii_case(suite)
            || standard_name == Some(word)
            || COMMON.contains(&word)
            || match word {
                "aECDSA" | "ECDSA" => suite.contains("-ECDSA-"),
                "aRSA" => suite.contains("-RSA-"),
                "AES128" | "AES256" => suite.contains(word),
                _ => false,
            }
    })
}

/// Whether it is a suite of TLS 1.3, which lists of OpenSSL have no say in.
fn is_always_offered(name: &str) -> bool {
    let offered = ring::DEFAULT_CIPHER_SUITES.iter();
    offered.filter(|suite| suite.tls13().is_some()).any(|suite| {
        // The standard calls it TLS_…, the library TLS13_….
        let standard = suite.suite().as_str().map(|text| text.replacen("TLS13_", "TLS_", 1));
        standard.as_deref() == Some(name)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const EC256: &str = "ECDHE-ECDSA-AES256-GCM-SHA384";
    const EC128: &str = "ECDHE-ECDSA-AES128-GCM-SHA256";
    const RSA256: &str = "ECDHE-RSA-AES256-GCM-SHA384";
    const RSA128: &str = "ECDHE-RSA-AES128-GCM-SHA256";

    #[test]
    fn x20_what_can_be_understood_of_a_list_is_kept() {
        for (list, names, unknown) in [
            ("ECDHE+AESGCM:!aNULL", &[EC256, EC128, RSA256, RSA128][..], &[][..]),
            ("ECDHE-RSA-AES256-GCM-SHA384", &[RSA256], &[]),
            ("ecdhe-rsa-aes128-gcm-sha256, ECDHE-RSA-AES256-GCM-SHA384", &[RSA128, RSA256], &[]),
            ("TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256", &[RSA128], &[]),
            ("AES128-SHA:ECDHE-RSA-AES128-GCM-SHA256", &[RSA128], &["AES128-SHA"]),
            ("ECDHE+AESGCM:DHE+AESGCM:!RSA:@STRENGTH", &[EC256, EC128, RSA256, RSA128], &["DHE+AESGCM"]),
            ("HIGH:!AES128:!aRSA", &[EC256], &[]),
            ("!aRSA:ALL", &[EC256, EC128], &[]),
            ("ALL:-aRSA:ECDHE+aRSA+AES256", &[EC256, EC128, RSA256], &[]),
            ("ALL:+AES256", &[EC128, RSA128, EC256, RSA256], &[]),
            ("TLS_AES_256_GCM_SHA384:ECDHE+AESGCM+ECDSA", &[EC256, EC128], &[]),
            ("AES128-SHA:tea", &[], &["AES128-SHA", "tea"]),
            ("", &[], &[]),
            ("::!", &[], &[]),
        ] {
            let found = read(list);
            assert_eq!((&found.names[..], &found.unknown[..]), (names, unknown), "{list}");
        }
    }
}
