//! The digest algorithms, and computing them.

use blake2::{Blake2b512, Blake2s256};
use md5::Md5;
use sha2::digest::DynDigest;
use sha2::{Sha224, Sha256, Sha384, Sha512, Sha512_224, Sha512_256};
use sha3::{Sha3_224, Sha3_256, Sha3_384, Sha3_512};

/// A digest algorithm: those that prove something of what conductors' own library knows, and MD5.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Algorithm {
    /// MD5, which proves nothing against an attacker and is used only where it is allowed.
    Md5,
    /// SHA-224
    Sha224,
    /// SHA-256
    Sha256,
    /// SHA-384
    Sha384,
    /// SHA-512
    Sha512,
    /// SHA-512/224
    Sha512_224,
    /// SHA-512/256
    Sha512_256,
    /// SHA3-224
    Sha3_224,
    /// SHA3-256
    Sha3_256,
    /// SHA3-384
    Sha3_384,
    /// SHA3-512
    Sha3_512,
    /// BLAKE2b of 512 bits
    Blake2b,
    /// BLAKE2s of 256 bits
    Blake2s,
}

/// A digest in the making.
pub(crate) struct Hasher(Box<dyn DynDigest + Send>);

impl Algorithm {
    const ALL: [Self; 13] = [
        Self::Md5,
        Self::Sha224,
        Self::Sha256,
        Self::Sha384,
        Self::Sha512,
        Self::Sha512_224,
        Self::Sha512_256,
        Self::Sha3_224,
        Self::Sha3_256,
        Self::Sha3_384,
        Self::Sha3_512,
        Self::Blake2b,
        Self::Blake2s,
    ];

    /// Name as conductors spell it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Md5 => "md5",
            Self::Sha224 => "sha224",
            Self::Sha256 => "sha256",
            Self::Sha384 => "sha384",
            Self::Sha512 => "sha512",
            Self::Sha512_224 => "sha512_224",
            Self::Sha512_256 => "sha512_256",
            Self::Sha3_224 => "sha3_224",
            Self::Sha3_256 => "sha3_256",
            Self::Sha3_384 => "sha3_384",
            Self::Sha3_512 => "sha3_512",
            Self::Blake2b => "blake2b",
            Self::Blake2s => "blake2s",
        }
    }

    /// The algorithm of a name, as conductors or checksum files spell it: `sha3_256` is `SHA3-256` too, and
    /// `SHA2-256` is SHA-256.
    pub(super) fn by_name(name: &str) -> Option<Self> {
        let plain = |name: &str| -> String {
            name.chars()
                .filter(char::is_ascii_alphanumeric)
                .map(|letter| letter.to_ascii_lowercase())
                .collect()
        };
        let wanted = plain(&name.to_ascii_lowercase().replace("sha2-", "sha"));
        Self::ALL.into_iter().find(|one| plain(one.name()) == wanted)
    }

    /// What a digest of so many hexadecimal digits is if nothing else is said (section 5.3).
    pub(super) fn by_length(digits: usize) -> Option<Self> {
        [Self::Md5, Self::Sha256, Self::Sha512].into_iter().find(|one| one.digits() == digits)
    }

    /// Those that prove an image wherever it comes from.
    pub(super) fn believed() -> impl Iterator<Item = Self> {
        Self::ALL.into_iter().filter(|one| one.is_believed(false))
    }

    /// Hexadecimal digits of a digest.
    pub(super) fn digits(self) -> usize {
        2 * self.hasher().0.output_size()
    }

    pub(super) fn is_believed(self, md5: bool) -> bool {
        md5 || self != Self::Md5
    }

    pub(super) fn fits(self, value: &str) -> bool {
        value.len() == self.digits() && value.bytes().all(|digit| digit.is_ascii_hexdigit())
    }

    pub(crate) fn hasher(self) -> Hasher {
        Hasher(match self {
            Self::Md5 => Box::new(Md5::default()),
            Self::Sha224 => Box::new(Sha224::default()),
            Self::Sha256 => Box::new(Sha256::default()),
            Self::Sha384 => Box::new(Sha384::default()),
            Self::Sha512 => Box::new(Sha512::default()),
            Self::Sha512_224 => Box::new(Sha512_224::default()),
            Self::Sha512_256 => Box::new(Sha512_256::default()),
            Self::Sha3_224 => Box::new(Sha3_224::default()),
            Self::Sha3_256 => Box::new(Sha3_256::default()),
            Self::Sha3_384 => Box::new(Sha3_384::default()),
            Self::Sha3_512 => Box::new(Sha3_512::default()),
            Self::Blake2b => Box::new(Blake2b512::default()),
            Self::Blake2s => Box::new(Blake2s256::default()),
        })
    }
}

impl Hasher {
    pub(crate) fn update(&mut self, bytes: &[u8]) {
        self.0.update(bytes);
    }

    /// The digest in lower-case hexadecimal.
    pub(crate) fn finish(self) -> String {
        hex::encode(self.0.finalize())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn x27_digests_are_those_of_the_standards() {
        // Of "abc", which is the example in FIPS 180-4, FIPS 202, RFC 1321 and RFC 7693.
        for (name, beginning) in [
            ("md5", "900150983cd24fb0d6963f7d"),
            ("sha224", "23097d223405d8228642a477"),
            ("sha256", "ba7816bf8f01cfea414140de"),
            ("sha384", "cb00753f45a35e8bb5a03d69"),
            ("sha512", "ddaf35a193617abacc417349"),
            ("sha512_224", "4634270f707b6a54daae7530"),
            ("sha512_256", "53048e2681941ef99b2e29b7"),
            ("sha3_224", "e642824c3f8cf24ad09234ee"),
            ("sha3_256", "3a985da74fe225b2045c172d"),
            ("sha3_384", "ec01498288516fc926459f58"),
            ("sha3_512", "b751850b1a57168a5693cd92"),
            ("blake2b", "ba80a53f981c4d0d6a2797b6"),
            ("blake2s", "508c5e8c327c14e2e1a72ba3"),
        ] {
            let algorithm = Algorithm::by_name(name).unwrap();
            let mut hasher = algorithm.hasher();
            hasher.update(b"ab");
            hasher.update(b"c");
            let digest = hasher.finish();
            assert!(digest.starts_with(beginning), "{name}: {digest}");
            assert_eq!((algorithm.name(), algorithm.digits()), (name, digest.len()));
        }
    }

    #[test]
    fn x27_names_are_those_of_conductors_and_of_checksum_files() {
        for (name, expected) in [
            ("SHA256", Some(Algorithm::Sha256)),
            ("SHA2-256", Some(Algorithm::Sha256)),
            ("SHA512/256", Some(Algorithm::Sha512_256)),
            ("SHA3-384", Some(Algorithm::Sha3_384)),
            ("BLAKE2b", Some(Algorithm::Blake2b)),
            ("sha1", None),
            ("shake_256", None),
            ("", None),
        ] {
            assert_eq!(Algorithm::by_name(name), expected, "{name}");
        }
        // Only the lengths that the contract names tell an algorithm.
        for (digits, expected) in [
            (32, Some(Algorithm::Md5)),
            (64, Some(Algorithm::Sha256)),
            (96, None),
            (128, Some(Algorithm::Sha512)),
        ] {
            assert_eq!(Algorithm::by_length(digits), expected);
        }
    }
}
