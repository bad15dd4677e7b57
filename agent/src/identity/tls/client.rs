//! TLS towards servers: trusted CAs and the client certificate (S17).
//!
//! A file that cannot be used is reported and left out. That fails safely: a server is then refused,
//! or refuses the agent.

use super::{TlsError, provider, read_certificates, versions};
use crate::settings::options::Options;
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::{
    CryptoProvider, WebPkiSupportedAlgorithms, ring, verify_tls12_signature, verify_tls13_signature,
};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName, UnixTime};
use rustls::sign::{CertifiedKey, SingleCertAndKey};
use rustls::{ClientConfig, DigitallySignedStruct, RootCertStore, SignatureScheme};
use std::path::Path;
use std::sync::Arc;

/// The system's authorities; a ramdisk may have none.
const SYSTEM_AUTHORITIES: &str = "/etc/ssl/certs/ca-certificates.crt";

/// Settings of every connection the agent opens.
pub fn config(options: &Options) -> ClientConfig {
    let provider = Arc::new(provider(options.tls_cipher_suites.as_ref()));
    let identity = identity(options, &provider);
    let builder = ClientConfig::builder_with_provider(provider)
        .with_protocol_versions(versions(options.tls_min_version))
        .expect("the provider has suites of every version");
    let builder = if options.insecure {
        builder.dangerous().with_custom_certificate_verifier(Arc::new(TrustAnybody))
    } else {
        builder.with_root_certificates(authorities(options.cafile.as_deref()))
    };
    match identity {
        Some(key) => builder.with_client_cert_resolver(Arc::new(SingleCertAndKey::from(key))),
        None => builder.with_no_client_auth(),
    }
}

fn authorities(cafile: Option<&str>) -> RootCertStore {
    let mut store = RootCertStore::empty();
    let file = cafile.unwrap_or(SYSTEM_AUTHORITIES);
    if cafile.is_none() && !Path::new(file).exists() {
        return store;
    }
    match CertificateDer::pem_file_iter(file) {
        Ok(found) => {
            // One that is damaged takes no other one with it.
            let (found, damaged): (Vec<_>, Vec<_>) = found.partition(Result::is_ok);
            let (added, ignored) = store.add_parsable_certificates(found.into_iter().flatten());
            let ignored = ignored + damaged.len();
            if added == 0 || (cafile.is_some() && ignored > 0) {
                tracing::error!(cafile = file, added, ignored, "CA certificates cannot be used");
            }
        }
        Err(error) => tracing::error!(cafile = file, %error, "no server can be verified: correct the file"),
    }
    store
}

fn identity(options: &Options, provider: &CryptoProvider) -> Option<CertifiedKey> {
    let (certfile, keyfile) = match (&options.certfile, &options.keyfile) {
        (Some(certfile), Some(keyfile)) => (certfile, keyfile),
        (None, None) => return None,
        _ => {
            tracing::error!("certfile and keyfile are required together: no client certificate is used");
            return None;
        }
    };
    let key = read_identity(certfile, keyfile, provider);
    key.inspect_err(|error| {
        tracing::error!(certfile, keyfile, %error, "no client certificate is used: correct the files");
    })
    .ok()
}

fn read_identity(certfile: &str, keyfile: &str, provider: &CryptoProvider) -> Result<CertifiedKey, TlsError> {
    let key = PrivateKeyDer::from_pem_file(keyfile)?;
    Ok(CertifiedKey::from_der(read_certificates(certfile)?, key, provider)?)
}

/// Takes any certificate, as the operator asked; the handshake itself is still verified.
#[derive(Debug)]
struct TrustAnybody;

impl TrustAnybody {
    fn algorithms() -> WebPkiSupportedAlgorithms {
        ring::default_provider().signature_verification_algorithms
    }
}

impl ServerCertVerifier for TrustAnybody {
    fn verify_server_cert(
        &self,
        _: &CertificateDer<'_>,
        _: &[CertificateDer<'_>],
        _: &ServerName<'_>,
        _: &[u8],
        _: UnixTime,
    ) -> Result<ServerCertVerified, rustls::Error> {
        Ok(ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        verify_tls12_signature(message, certificate, signature, &Self::algorithms())
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        verify_tls13_signature(message, certificate, signature, &Self::algorithms())
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        Self::algorithms().supported_schemes()
    }
}

#[cfg(test)]
#[path = "client_tests.rs"]
mod tests;
