//! Hardware addresses.

use serde::{Deserialize, Serialize};
use std::fmt;
use std::str::FromStr;

/// A hardware address, lower case with colons (pitfall 13.20).
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct MacAddress(String);

impl MacAddress {
    /// The address as `aa:bb:cc:dd:ee:ff`.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for MacAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl From<MacAddress> for String {
    fn from(address: MacAddress) -> Self {
        address.0
    }
}

/// The text is not six hexadecimal octets.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0:?} is not a MAC address of the form aa:bb:cc:dd:ee:ff")]
pub struct ParseMacAddressError(String);

impl FromStr for MacAddress {
    type Err = ParseMacAddressError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let lower = text.trim().to_ascii_lowercase().replace('-', ":");
        let is_octet = |part: &str| part.len() == 2 && part.bytes().all(|byte| byte.is_ascii_hexdigit());
        match lower.split(':').count() == 6 && lower.split(':').all(is_octet) {
            true => Ok(Self(lower)),
            false => Err(ParseMacAddressError(text.to_owned())),
        }
    }
}

impl TryFrom<String> for MacAddress {
    type Error = ParseMacAddressError;

    fn try_from(text: String) -> Result<Self, Self::Error> {
        text.parse()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn mac_addresses_are_normalised() {
        for (text, expected) in [
            ("52:54:00:AB:cd:01", Some("52:54:00:ab:cd:01")),
            ("52-54-00-AB-CD-01", Some("52:54:00:ab:cd:01")),
            (" 52:54:00:ab:cd:01 ", Some("52:54:00:ab:cd:01")),
            ("525400abcd01", None),
            ("52:54:00:ab:cd", None),
            ("52:54:00:ab:cd:01:02", None),
            ("52:54:00:ab:cd:0g", None),
            ("", None),
        ] {
            assert_eq!(
                text.parse::<MacAddress>().ok().as_ref().map(MacAddress::as_str),
                expected,
                "{text:?}"
            );
        }
    }
}
