//! Checksums of firmware images.

use md5::Md5;
use sha2::{Digest, Sha256, Sha512};

/// How a checksum is made.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Algorithm {
    Md5,
    Sha256,
    Sha512,
}

impl Algorithm {
    /// Reads its name.
    pub fn parse(name: &str) -> Option<Self> {
        match name.to_ascii_lowercase().as_str() {
            "md5" => Some(Self::Md5),
            "sha256" => Some(Self::Sha256),
            "sha512" => Some(Self::Sha512),
            _ => None,
        }
    }

    /// The checksum in hexadecimal digits.
    pub fn digest(self, content: &[u8]) -> String {
        match self {
            Self::Md5 => hex::encode(Md5::digest(content)),
            Self::Sha256 => hex::encode(Sha256::digest(content)),
            Self::Sha512 => hex::encode(Sha512::digest(content)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn checksums_are_those_of_the_standards() {
        for (name, expected) in [
            ("md5", "900150983cd24fb0d6963f7d28e17f72"),
            ("SHA256", "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"),
            ("sha512", "ddaf35a193617abacc417349ae204131"),
        ] {
            let digest = Algorithm::parse(name).unwrap().digest(b"abc");
            assert!(digest.starts_with(expected), "{name}: {digest}");
        }
        assert_eq!(Algorithm::parse("sha1"), None);
    }
}
