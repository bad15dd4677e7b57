//! Digests: which one proves an image, and computing it (section 5.3).

mod algorithm;
mod file;

pub use algorithm::Algorithm;
pub(crate) use algorithm::Hasher;

use crate::cancel::CancelHandle;
use crate::error::Error;
use crate::source::Download;
use farrier_protocol::image_info::ImageInfo;

/// Which proofs of an image are believed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Trust {
    /// Whether MD5 is (`md5_enabled`, S18).
    pub md5: bool,
    /// Whether a digest may come from a URL, where it can change (S51).
    pub checksum_urls: bool,
}

impl Default for Trust {
    fn default() -> Self {
        Self { md5: false, checksum_urls: true }
    }
}

/// The digest an image must have.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ExpectedDigest {
    /// How it is computed.
    pub algorithm: Algorithm,
    /// Hexadecimal, lower case.
    pub value: String,
}

/// The source of the digest of an image.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum DigestSource {
    /// It was given.
    Given(ExpectedDigest),
    /// It stands in a checksum file.
    File {
        /// URL of the file.
        url: String,
        /// Algorithm that was named.
        algorithm: Option<Algorithm>,
        /// Whether MD5 is believed.
        md5: bool,
    },
}

impl DigestSource {
    /// Chooses the digest that proves an image: the named algorithm first, else the checksum by its
    /// length. Either may be the URL of a checksum file, where that is allowed. MD5 is used only where that
    /// is (S18).
    ///
    /// # Errors
    ///
    /// [`Error::Digest`] when nothing usable was given.
    pub fn choose(info: &ImageInfo, trust: Trust) -> Result<Self, Error> {
        let named = match (info.os_hash_algo.as_deref(), info.os_hash_value.as_deref()) {
            (Some(name), Some(value)) => {
                let algorithm = Algorithm::by_name(name.trim());
                let algorithm = algorithm.filter(|algorithm| algorithm.is_believed(trust.md5));
                algorithm.map(|algorithm| (Some(algorithm), without_name(value, algorithm)))
            }
            _ => None,
        };
        let checksum = info.checksum.as_deref().map(str::trim).and_then(|value| {
            let (algorithm, value) = match split_name(value) {
                Some((algorithm, digest)) => (Some(algorithm), digest),
                None => (Algorithm::by_length(value.len()), value),
            };
            let algorithm = algorithm.filter(|one| one.is_believed(trust.md5));
            (is_url(value) || algorithm.is_some()).then_some((algorithm, value))
        });
        let unusable = |reason: String| Error::Digest { image: info.id.clone(), reason };
        let (algorithm, value) = named.or(checksum).ok_or_else(|| unusable(unusable_reason(info)))?;
        let value = value.trim();
        if is_url(value) {
            let algorithm = named.and(algorithm);
            if !trust.checksum_urls {
                return Err(unusable("its digest must be given itself, not as a URL".to_owned()));
            }
            return Ok(Self::File { url: value.to_owned(), algorithm, md5: trust.md5 });
        }
        let value = value.to_ascii_lowercase();
        match algorithm {
            Some(algorithm) if algorithm.fits(&value) => Ok(Self::Given(ExpectedDigest { algorithm, value })),
            _ => Err(unusable(format!("{value:?} is no digest: {}", what_digests_are(algorithm)))),
        }
    }

    /// The digest itself, out of its file if need be. The image is looked up there by the last part
    /// of its URL.
    ///
    /// # Errors
    ///
    /// What keeps the file from being fetched, or [`Error::ChecksumFile`].
    pub(crate) fn resolve(
        &self,
        download: &Download<'_>,
        image_url: &str,
        cancel: &CancelHandle,
    ) -> Result<ExpectedDigest, Error> {
        match self {
            Self::Given(digest) => Ok(digest.clone()),
            Self::File { url, algorithm, md5 } => {
                let content = download.fetch(url, file::MOST, cancel)?;
                file::find(&String::from_utf8_lossy(&content), file_name(image_url), *algorithm, *md5)
                    .map_err(|reason| Error::checksum_file(url, reason))
            }
        }
    }
}

/// The digest that a checksum file gives for a file name, for fuzzing.
#[cfg(feature = "fuzzing")]
pub fn find_in_file(text: &str, name: &str) -> Option<String> {
    file::find(text, name, None, true).ok().map(|digest| digest.value)
}

fn is_url(value: &str) -> bool {
    let scheme = value.split_once("://").map(|(scheme, _)| scheme);
    scheme.is_some_and(|scheme| ["http", "https"].iter().any(|known| scheme.eq_ignore_ascii_case(known)))
}

/// Algorithm and digest of a text such as `sha256:9f86…`, as registries write digests.
fn split_name(value: &str) -> Option<(Algorithm, &str)> {
    let (name, digest) = value.split_once(':')?;
    Some((Algorithm::by_name(name)?, digest))
}

/// The digest without the name of its algorithm in front, where that is the one that was named.
fn without_name(value: &str, algorithm: Algorithm) -> &str {
    let value = value.trim();
    split_name(value).filter(|(named, _)| *named == algorithm).map_or(value, |(_, digest)| digest)
}

/// Last component of the path of a URL.
fn file_name(url: &str) -> &str {
    let path = url.split(['?', '#']).next().unwrap_or(url);
    path.rsplit('/').next().unwrap_or(path)
}

fn what_digests_are(algorithm: Option<Algorithm>) -> String {
    let digits =
        |algorithm: Algorithm| format!("{} has {} hexadecimal digits", algorithm.name(), algorithm.digits());
    match algorithm {
        Some(algorithm) => digits(algorithm),
        None => format!("{}, {}", digits(Algorithm::Sha256), digits(Algorithm::Sha512)),
    }
}

fn unusable_reason(info: &ImageInfo) -> String {
    let checksum = info.checksum.as_deref().unwrap_or_default();
    match info.os_hash_algo.as_deref() {
        Some(name) => {
            let names = Algorithm::believed().map(Algorithm::name).collect::<Vec<_>>().join(", ");
            format!("the digest algorithm {name} proves nothing here: give one of {names}")
        }
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
            (info(Some(&short), Some("blake2b"), Some(&long)), Algorithm::Blake2b, long.clone()),
            (info(None, Some("sha3-256"), Some(&short)), Algorithm::Sha3_256, "a".repeat(64)),
        ] {
            let expected = DigestSource::Given(ExpectedDigest { algorithm, value });
            assert_eq!(DigestSource::choose(&info, Trust::default()).unwrap(), expected);
        }
    }

    #[test]
    fn f04_either_field_may_be_the_url_of_a_checksum_file() {
        for (info, url, algorithm) in [
            (info(Some("http://x/SHA256SUMS"), None, None), "http://x/SHA256SUMS", None),
            (info(None, Some("sha512"), Some("https://x/y")), "https://x/y", Some(Algorithm::Sha512)),
            (info(Some("http://x/sums"), Some("whirlpool"), Some("x")), "http://x/sums", None),
        ] {
            let expected = DigestSource::File { url: url.to_owned(), algorithm, md5: false };
            assert_eq!(DigestSource::choose(&info, Trust::default()).unwrap(), expected);
        }
    }

    #[test]
    fn s18_what_cannot_prove_an_image_is_refused_with_a_reason() {
        for (info, reason) in [
            (info(Some(&"a".repeat(32)), None, None), "MD5"),
            (info(None, Some("md5"), Some(&"a".repeat(32))), "md5"),
            (info(None, Some("sha1"), Some(&"a".repeat(40))), "give one of sha224, sha256"),
            (info(None, Some("sha384"), Some(&"a".repeat(64))), "96 hexadecimal digits"),
            (info(None, Some("sha256"), Some("abc")), "64 hexadecimal digits"),
            (info(None, Some("sha256"), Some(&"x".repeat(64))), "64 hexadecimal digits"),
            (info(Some("abc"), None, None), "abc"),
            (info(Some("file:///etc/SHA256SUMS"), None, None), "SHA256SUMS"),
        ] {
            let text = DigestSource::choose(&info, Trust::default()).unwrap_err().to_string();
            assert!(text.contains(reason) && text.contains("image.raw"), "{text}");
        }
    }

    #[test]
    fn a11_a_digest_may_have_its_algorithm_in_front() {
        let (short, long) = ("A".repeat(64), "b".repeat(128));
        for (info, algorithm, value) in [
            (info(Some(&format!("sha256:{short}")), None, None), Algorithm::Sha256, "a".repeat(64)),
            (info(Some(&format!(" SHA512:{long} ")), None, None), Algorithm::Sha512, long.clone()),
            (info(Some(&format!("sha3-256:{short}")), None, None), Algorithm::Sha3_256, "a".repeat(64)),
            (info(None, Some("sha256"), Some(&format!("sha256:{short}"))), Algorithm::Sha256, "a".repeat(64)),
            (info(None, Some(" SHA-512 "), Some(&format!("sha512:{long}"))), Algorithm::Sha512, long.clone()),
        ] {
            let expected = DigestSource::Given(ExpectedDigest { algorithm, value });
            assert_eq!(DigestSource::choose(&info, Trust::default()).unwrap(), expected);
        }
        for info in [
            info(Some(&format!("md5:{}", "a".repeat(32))), None, None),
            info(Some(&format!("sha512:{short}")), None, None),
            info(None, Some("sha512"), Some(&format!("sha256:{short}"))),
        ] {
            assert!(DigestSource::choose(&info, Trust::default()).is_err(), "{info:?}");
        }
        let shouted = info(Some("HTTPS://x/SHA256SUMS"), None, None);
        assert!(matches!(DigestSource::choose(&shouted, Trust::default()), Ok(DigestSource::File { .. })));
    }

    #[test]
    fn s18_md5_is_believed_only_where_it_is_enabled() {
        let value = "a".repeat(32);
        let enabled = Trust { md5: true, ..Trust::default() };
        let expected =
            DigestSource::Given(ExpectedDigest { algorithm: Algorithm::Md5, value: value.clone() });
        for info in [info(Some(&value), None, None), info(None, Some("md5"), Some(&value))] {
            assert!(DigestSource::choose(&info, Trust::default()).is_err());
            assert_eq!(DigestSource::choose(&info, enabled).unwrap(), expected);
        }
    }

    #[test]
    fn s51_checksum_urls_can_be_forbidden() {
        let forbidden = Trust { checksum_urls: false, ..Trust::default() };
        let info = info(Some("http://x/SHA256SUMS"), None, None);
        let error = DigestSource::choose(&info, forbidden).unwrap_err().to_string();
        assert!(error.contains("not as a URL"), "{error}");
    }

    #[test]
    fn the_name_of_an_image_is_the_end_of_its_path() {
        for (url, name) in [
            ("http://x/a/image.raw", "image.raw"),
            ("http://x/image.raw?token=a/b", "image.raw"),
            ("http://x/image.raw#part", "image.raw"),
        ] {
            assert_eq!(file_name(url), name);
        }
    }
}
