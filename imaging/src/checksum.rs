//! Digests: which one proves an image, and computing it (section 5.3).

use crate::error::Error;
use farrier_protocol::image_info::ImageInfo;
use sha2::{Digest, Sha256, Sha512};

/// A digest algorithm.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Algorithm {
    /// SHA-256
    Sha256,
    /// SHA-512
    Sha512,
}

/// The digest an image must have.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ExpectedDigest {
    /// How it is computed.
    pub algorithm: Algorithm,
    /// Hexadecimal, lower case.
    pub value: String,
}

/// A digest in the making.
pub(crate) enum Hasher {
    Sha256(Box<Sha256>),
    Sha512(Box<Sha512>),
}

impl Algorithm {
    /// Name as conductors spell it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Sha256 => "sha256",
            Self::Sha512 => "sha512",
        }
    }

    fn by_name(name: &str) -> Option<Self> {
        [Self::Sha256, Self::Sha512].into_iter().find(|one| one.name() == name.to_ascii_lowercase())
    }

    fn by_length(digits: usize) -> Option<Self> {
        [Self::Sha256, Self::Sha512].into_iter().find(|one| one.digits() == digits)
    }

    /// Hexadecimal digits of a digest.
    fn digits(self) -> usize {
        match self {
            Self::Sha256 => 64,
            Self::Sha512 => 128,
        }
    }

    pub(crate) fn hasher(self) -> Hasher {
        match self {
            Self::Sha256 => Hasher::Sha256(Box::default()),
            Self::Sha512 => Hasher::Sha512(Box::default()),
        }
    }
}

impl Hasher {
    pub(crate) fn update(&mut self, bytes: &[u8]) {
        match self {
            Self::Sha256(hasher) => hasher.update(bytes),
            Self::Sha512(hasher) => hasher.update(bytes),
        }
    }

    /// The digest in lower-case hexadecimal.
    pub(crate) fn finish(self) -> String {
        match self {
            Self::Sha256(hasher) => hex::encode(hasher.finalize()),
            Self::Sha512(hasher) => hex::encode(hasher.finalize()),
        }
    }
}

impl ExpectedDigest {
    /// Chooses the digest that proves an image: the named algorithm first, else the checksum by its
    /// length. MD5 proves nothing and is refused (S18).
    ///
    /// # Errors
    ///
    /// [`Error::Digest`] when nothing usable was given.
    pub fn choose(info: &ImageInfo) -> Result<Self, Error> {
        let named = match (info.os_hash_algo.as_deref(), info.os_hash_value.as_deref()) {
            (Some(name), Some(value)) => Algorithm::by_name(name).map(|algorithm| (algorithm, value)),
            _ => None,
        };
        let by_length =
            info.checksum.as_deref().and_then(|value| Some((Algorithm::by_length(value.len())?, value)));
        let unusable = |reason: String| Error::Digest { image: info.id.clone(), reason };
        let Some((algorithm, value)) = named.or(by_length) else {
            return Err(unusable(unusable_reason(info)));
        };
        let value = value.trim().to_ascii_lowercase();
        if value.starts_with("http://") || value.starts_with("https://") {
            return Err(unusable(format!(
                "{value} is a URL, which is not supported yet: give the digest itself"
            )));
        }
        if value.len() != algorithm.digits() || !value.bytes().all(|digit| digit.is_ascii_hexdigit()) {
            let (name, digits) = (algorithm.name(), algorithm.digits());
            return Err(unusable(format!(
                "{value:?} is no {name} digest, which has {digits} hexadecimal digits"
            )));
        }
        Ok(Self { algorithm, value })
    }
}

fn unusable_reason(info: &ImageInfo) -> String {
    let checksum = info.checksum.as_deref().unwrap_or_default();
    match info.os_hash_algo.as_deref() {
        _ if checksum.starts_with("http") => {
            format!("the checksum is the URL {checksum}, which is not supported yet: give the digest itself")
        }
        Some(name) => format!("the digest algorithm {name} is not supported: give sha256 or sha512"),
        None if checksum.len() == 32 => "MD5 proves nothing any more: give sha256 or sha512".to_owned(),
        None => format!("{checksum:?} is no digest: give sha256 (64 digits) or sha512 (128 digits)"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn info(checksum: Option<&str>, algorithm: Option<&str>, value: Option<&str>) -> ImageInfo {
        ImageInfo {
            id: "image.raw".into(),
            checksum: checksum.map(str::to_owned),
            os_hash_algo: algorithm.map(str::to_owned),
            os_hash_value: value.map(str::to_owned),
            ..ImageInfo::default()
        }
    }

    #[test]
    fn the_named_algorithm_goes_before_the_checksum() {
        let (short, long) = ("A".repeat(64), "b".repeat(128));
        for (info, algorithm, value) in [
            (info(None, Some("sha256"), Some(&short)), Algorithm::Sha256, "a".repeat(64)),
            (info(Some(&short), Some("SHA512"), Some(&long)), Algorithm::Sha512, long.clone()),
            (info(Some(&short), None, None), Algorithm::Sha256, "a".repeat(64)),
            (info(Some(&long), None, None), Algorithm::Sha512, long.clone()),
            (info(Some(&long), Some("whirlpool"), Some("x")), Algorithm::Sha512, long.clone()),
        ] {
            assert_eq!(ExpectedDigest::choose(&info).unwrap(), ExpectedDigest { algorithm, value });
        }
    }

    #[test]
    fn s18_what_cannot_prove_an_image_is_refused_with_a_reason() {
        for (info, reason) in [
            (info(Some(&"a".repeat(32)), None, None), "MD5"),
            (info(None, Some("md5"), Some(&"a".repeat(32))), "md5"),
            (info(Some("http://x/SHA256SUMS"), None, None), "http://x/SHA256SUMS"),
            (info(None, Some("sha256"), Some("https://x/y")), "https://x/y"),
            (info(None, Some("sha256"), Some("abc")), "64 hexadecimal digits"),
            (info(None, Some("sha256"), Some(&"x".repeat(64))), "64 hexadecimal digits"),
            (info(Some("abc"), None, None), "abc"),
        ] {
            let text = ExpectedDigest::choose(&info).unwrap_err().to_string();
            assert!(text.contains(reason) && text.contains("image.raw"), "{text}");
        }
    }

    #[test]
    fn digests_are_those_of_the_standard() {
        let digest = |algorithm: Algorithm| {
            let mut hasher = algorithm.hasher();
            hasher.update(b"ab");
            hasher.update(b"c");
            hasher.finish()
        };
        assert_eq!(
            digest(Algorithm::Sha256),
            "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"
        );
        assert!(digest(Algorithm::Sha512).starts_with("ddaf35a193617abacc417349ae204131"));
    }
}
