//! Blobs of OCI registries, named by their digest (section 12.3).
//!
//! Conductors usually resolve `oci://` themselves and send the URL of the blob with a header for it.
//! An address with a digest needs no resolving, so it is understood here as well; the registry's rules
//! for the header and for redirects are those of any other server.

use crate::error::Error;

const SCHEME: &str = "oci://";

/// The URL of the blob that `oci://REGISTRY/REPOSITORY@sha256:DIGEST` names. Any other URL stays.
pub(super) fn blob_url(url: &str) -> Result<String, Error> {
    let Some(address) = url.strip_prefix(SCHEME) else { return Ok(url.to_owned()) };
    let parts = address.split_once('/').and_then(|(registry, rest)| {
        let (repository, digest) = rest.rsplit_once('@')?;
        Some((registry, repository, digest))
    });
    match parts {
        Some((registry, repository, digest)) if is_name(registry, repository) && is_digest(digest) => {
            Ok(format!("https://{registry}/v2/{repository}/blobs/{digest}"))
        }
        _ => Err(Error::Registry { url: url.to_owned() }),
    }
}

fn is_name(registry: &str, repository: &str) -> bool {
    let allowed = |text: &str, others: &str| {
        !text.is_empty()
            && text.chars().all(|letter| letter.is_ascii_alphanumeric() || others.contains(letter))
    };
    allowed(registry, ".-:[]") && repository.split('/').all(|part| allowed(part, "._-") && part != "..")
}

fn is_digest(digest: &str) -> bool {
    let digits = |digest: &str, count: usize| {
        digest.len() == count && digest.bytes().all(|digit| matches!(digit, b'0'..=b'9' | b'a'..=b'f'))
    };
    match digest.split_once(':') {
        Some(("sha256", digest)) => digits(digest, 64),
        Some(("sha512", digest)) => digits(digest, 128),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blobs_are_named_by_their_digest() {
        let digest = format!("sha256:{}", "0a".repeat(32));
        let url = blob_url(&format!("oci://registry.example:5000/os/debian@{digest}")).unwrap();
        assert_eq!(url, format!("https://registry.example:5000/v2/os/debian/blobs/{digest}"));
        assert_eq!(blob_url("http://images/a.raw").unwrap(), "http://images/a.raw");
        for bad in [
            "oci://registry/debian:12".to_owned(),
            "oci://registry/debian@sha256:abc".to_owned(),
            format!("oci://registry/../debian@{digest}"),
            format!("oci://registry/de bian@{digest}"),
            format!("oci://ann@registry/debian@{digest}"),
            format!("oci:///debian@{digest}"),
            format!("oci://registry@{digest}"),
            "oci://".to_owned(),
        ] {
            let error = blob_url(&bad).unwrap_err().to_string();
            assert!(error.contains(&bad) && error.contains("@sha256:"), "{error}");
        }
    }
}
