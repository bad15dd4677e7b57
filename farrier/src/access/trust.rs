//! By what a command knows the certificate of its conductor.

use crate::state::CERTIFICATE;
use crate::state::StateDir;
use crate::state::fingerprint::Fingerprint;
use anyhow::{Context, anyhow, bail};
use reqwest::{ClientBuilder, Url};
use rustls::client::WebPkiServerVerifier;
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::ring::default_provider;
use rustls::crypto::{WebPkiSupportedAlgorithms, verify_tls12_signature, verify_tls13_signature};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::{
    CertificateError, ClientConfig, DigitallySignedStruct, OtherError, RootCertStore, SignatureScheme,
};
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::sync::Arc;

/// What a certificate has to be.
#[derive(Debug)]
pub(super) enum Trust {
    /// This one.
    Known(Fingerprint),
    /// From one of these authorities, for the name in the URL.
    Authorities(Vec<CertificateDer<'static>>),
}

impl Trust {
    /// What an option says, else what lies in the state directory, else what this host trusts.
    pub(super) fn find(
        url: &Url,
        ca: Option<&Path>,
        fingerprint: Option<Fingerprint>,
        state: Option<&StateDir>,
    ) -> anyhow::Result<Self> {
        let local = || state.map(|state| state.tls().join(CERTIFICATE)).filter(|file| is_own(file));
        match (fingerprint, ca) {
            (Some(fingerprint), _) => Ok(Self::Known(fingerprint)),
            (None, Some(file)) => Ok(Self::Authorities(certificates(file, "--ca")?)),
            (None, None) if url.scheme() != "https" => Ok(Self::Authorities(Vec::new())),
            (None, None) => match local() {
                Some(file) => {
                    let found = certificates(&file, "the certificate in the state directory")?;
                    Ok(Self::Known(Fingerprint::of(&found[0])))
                }
                None => Ok(Self::Authorities(rustls_native_certs::load_native_certs().certs)),
            },
        }
    }

    pub(super) fn apply(self, builder: ClientBuilder) -> anyhow::Result<ClientBuilder> {
        let provider = Arc::new(default_provider());
        let algorithms = provider.signature_verification_algorithms;
        let check = match self {
            Self::Known(fingerprint) => Check::Fingerprint(fingerprint),
            Self::Authorities(certificates) => {
                let mut roots = RootCertStore::empty();
                let (added, _) = roots.add_parsable_certificates(certificates);
                let verifier =
                    WebPkiServerVerifier::builder_with_provider(Arc::new(roots), Arc::clone(&provider));
                match added {
                    0 => Check::Nobody,
                    _ => Check::Authorities(verifier.build()?),
                }
            }
        };
        let config = ClientConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()?
            .dangerous()
            .with_custom_certificate_verifier(Arc::new(Verifier { check, algorithms }))
            .with_no_client_auth();
        Ok(builder.tls_backend_preconfigured(config))
    }
}

/// Whether a file belongs to the current user or root: in a folder for all users, another user may have created it.
fn is_own(file: &Path) -> bool {
    let own = nix::unistd::geteuid().as_raw();
    file.metadata().is_ok_and(|metadata| [0, own].contains(&metadata.uid()))
}

/// At least one certificate.
fn certificates(file: &Path, what: &str) -> anyhow::Result<Vec<CertificateDer<'static>>> {
    let failed = || format!("{what}: {} cannot be used", file.display());
    let text = std::fs::read(file).with_context(failed)?;
    let found = CertificateDer::pem_slice_iter(&text).collect::<Result<Vec<_>, _>>();
    let found = found.map_err(|error| anyhow!("{}: {error}", failed()))?;
    if found.is_empty() {
        bail!("{}: it has no certificate in PEM format", failed());
    }
    Ok(found)
}

/// A certificate that is not trusted, and which it is.
#[derive(Debug, Clone, thiserror::Error)]
#[error("its certificate is not trusted ({reason}); its fingerprint is {presented}")]
pub(super) struct Untrusted {
    presented: Fingerprint,
    reason: String,
}

#[derive(Debug)]
enum Check {
    Fingerprint(Fingerprint),
    Authorities(Arc<WebPkiServerVerifier>),
    Nobody,
}

/// Verifies as usual, or by fingerprint; an error has the fingerprint of the refused certificate. The handshake is verified either
/// way: a certificate alone proves nothing.
#[derive(Debug)]
struct Verifier {
    check: Check,
    algorithms: WebPkiSupportedAlgorithms,
}

impl ServerCertVerifier for Verifier {
    fn verify_server_cert(
        &self,
        end_entity: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        server_name: &ServerName<'_>,
        ocsp_response: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, rustls::Error> {
        let presented = Fingerprint::of(end_entity);
        let reason = match &self.check {
            Check::Fingerprint(known) if *known == presented => return Ok(ServerCertVerified::assertion()),
            Check::Fingerprint(known) => format!("{known} was expected"),
            Check::Nobody => "no authority is known here".to_owned(),
            Check::Authorities(verifier) => {
                match verifier.verify_server_cert(end_entity, intermediates, server_name, ocsp_response, now)
                {
                    Ok(verified) => return Ok(verified),
                    Err(error) => error.to_string(),
                }
            }
        };
        let untrusted = OtherError(Arc::new(Untrusted { presented, reason }));
        Err(CertificateError::Other(untrusted).into())
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        verify_tls12_signature(message, certificate, signature, &self.algorithms)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        verify_tls13_signature(message, certificate, signature, &self.algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.algorithms.supported_schemes()
    }
}
