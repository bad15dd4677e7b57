//! The fingerprint of a certificate: SHA-256 of its DER form, by which a client knows a conductor.

use ring::digest::{SHA256, digest};
use std::fmt;
use std::str::FromStr;

const PREFIX: &str = "sha256:";

/// SHA-256 of a certificate.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Fingerprint([u8; 32]);

impl Fingerprint {
    /// Of a certificate in DER form.
    pub(crate) fn of(der: &[u8]) -> Self {
        Self(digest(&SHA256, der).as_ref().try_into().expect("SHA-256 has 32 bytes"))
    }
}

impl fmt::Display for Fingerprint {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{PREFIX}{}", hex::encode(self.0))
    }
}

/// A text that is no fingerprint.
#[derive(Debug, thiserror::Error)]
#[error(
    "a fingerprint is the SHA-256 of a certificate, 64 hexadecimal digits, as printed by `farrier serve`"
)]
pub(crate) struct NoFingerprint;

impl FromStr for Fingerprint {
    type Err = NoFingerprint;

    /// With or without the prefix, and colons between bytes as openssl writes them.
    fn from_str(text: &str) -> Result<Self, NoFingerprint> {
        let text = text.trim().to_ascii_lowercase();
        let digits = text.strip_prefix(PREFIX).unwrap_or(&text).replace(':', "");
        let bytes = hex::decode(digits).map_err(|_| NoFingerprint)?;
        bytes.try_into().map(Self).map_err(|_| NoFingerprint)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fingerprints_are_read_as_tools_write_them() {
        let fingerprint = Fingerprint::of(b"a certificate");
        let text = fingerprint.to_string();
        let digits = text.strip_prefix(PREFIX).unwrap();
        let pairs = digits.as_bytes().chunks(2).map(|pair| std::str::from_utf8(pair).unwrap());
        let colons = pairs.collect::<Vec<_>>().join(":").to_uppercase();
        for written in [&text, digits, &colons, &format!("SHA256:{colons}"), &format!(" {text}\n")] {
            assert_eq!(written.parse::<Fingerprint>().unwrap(), fingerprint, "{written}");
        }
        for other in
            ["", "sha256:", "sha1:00", &digits[2..], &format!("{digits}00"), &digits.replace('a', "g")]
        {
            assert!(other.parse::<Fingerprint>().is_err() || other == digits, "{other}");
        }
    }
}
