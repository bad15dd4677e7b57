//! Why a conductor could not be asked, in one line with what to do.

use crate::access::trust::Untrusted;
use anyhow::anyhow;
use reqwest::Url;
use rustls::{CertificateError, OtherError};
use std::error::Error;
use std::io;

/// Why there is no answer from a URL.
pub(crate) fn of_request(url: &Url, error: reqwest::Error) -> anyhow::Error {
    let error = error.without_url();
    match tls_error(&error) {
        Some(rustls::Error::InvalidCertificate(CertificateError::Other(OtherError(other))))
            if other.is::<Untrusted>() =>
        {
            anyhow!(
                "the conductor at {url} is not trusted: {other}; if `farrier serve` printed this fingerprint, give it as --fingerprint, otherwise give the CA certificate as --ca; on the conductor's host, --state-dir is enough"
            )
        }
        Some(rustls::Error::InvalidMessage(_)) => {
            anyhow!("the conductor at {url} does not use TLS: use http:// if it runs with --admin-plain-http")
        }
        Some(tls) => anyhow!("TLS with the conductor at {url} failed: {tls}"),
        None if error.is_timeout() => {
            anyhow!("the conductor at {url} did not answer in time: {}", innermost(&error))
        }
        None => anyhow!(
            "the conductor at {url} cannot be reached ({}); start it with `farrier serve` or set --url",
            innermost(&error)
        ),
    }
}

/// What TLS complained about, wherever it is among the causes; errors of input and output hide theirs.
fn tls_error<'a>(error: &'a (dyn Error + 'static)) -> Option<&'a rustls::Error> {
    if let Some(tls) = error.downcast_ref() {
        return Some(tls);
    }
    let hidden = error.downcast_ref::<io::Error>().and_then(io::Error::get_ref);
    let hidden = hidden.map(|hidden| hidden as &(dyn Error + 'static));
    hidden.or_else(|| error.source()).and_then(tls_error)
}

fn innermost<'a>(error: &'a (dyn Error + 'static)) -> &'a dyn Error {
    error.source().map_or(error, innermost)
}
