//! Why a conductor could not be asked, in one line with what to do.

use crate::access::trust::Untrusted;
use anyhow::anyhow;
use farrier_protocol::error_codes;
use reqwest::Url;
use rustls::{CertificateError, OtherError};
use std::error::Error;
use std::io;

error_codes! {
    /// Errors of `farrier` when it connects to a conductor.
    CONNECTION_ERRORS:
    UNTRUSTED = 901, "`farrier` does not trust the certificate of the conductor.",
        "Give its fingerprint with `--fingerprint`, or its CA with `--ca`.";
    NO_TLS = 902, "The conductor does not use TLS.", "Use a URL with http:// if it runs with `--admin-plain-http`.";
    TLS_FAILED = 903, "TLS with the conductor failed.", "Check the URL, and the certificate of the conductor.";
    NO_ANSWER = 904, "The conductor did not answer in time.", "Check its load and its log, then retry.";
    UNREACHABLE = 905, "`farrier` cannot connect to the conductor.",
        "Start it with `farrier serve`, or set `--url` to its node API.";
}

/// Why there is no answer from a URL.
pub(crate) fn of_request(url: &Url, error: reqwest::Error) -> anyhow::Error {
    let error = error.without_url();
    let (code, text) = match tls_error(&error) {
        Some(rustls::Error::InvalidCertificate(CertificateError::Other(OtherError(other))))
            if other.is::<Untrusted>() =>
        {
            let text = format!(
                "the conductor at {url} is not trusted: {other}; if `farrier serve` printed this fingerprint, give it as --fingerprint, otherwise give the CA certificate as --ca; on the conductor's host, --state-dir is enough"
            );
            (UNTRUSTED, text)
        }
        Some(rustls::Error::InvalidMessage(_)) => {
            let text = format!(
                "the conductor at {url} does not use TLS: use http:// if it runs with --admin-plain-http"
            );
            (NO_TLS, text)
        }
        Some(tls) => (TLS_FAILED, format!("TLS with the conductor at {url} failed: {tls}")),
        None if error.is_timeout() => {
            (NO_ANSWER, format!("the conductor at {url} did not answer in time: {}", innermost(&error)))
        }
        None => {
            let text = format!(
                "the conductor at {url} cannot be reached ({}); start it with `farrier serve` or set --url",
                innermost(&error)
            );
            (UNREACHABLE, text)
        }
    };
    anyhow!(code.after(&text))
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
