//! Which certificates are trusted of an agent (section 2.6 of the agent's contract): that of its heartbeat alone.

use rustls::client::WebPkiServerVerifier;
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::CryptoProvider;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::server::ParsedCertificate;
use rustls::{CertificateError, ClientConfig, DigitallySignedStruct, Error, RootCertStore, SignatureScheme};
use std::sync::Arc;

/// TLS 1.3 towards an agent whose certificate is in this PEM text.
///
/// # Errors
///
/// What is wrong with the text.
pub fn config(pem: &str) -> Result<ClientConfig, String> {
    let provider = CryptoProvider::get_default().ok_or("the program has chosen no implementation of TLS")?;
    let verifier = Trust::new(pem, provider)?;
    let config = ClientConfig::builder_with_provider(Arc::clone(provider));
    let config =
        config.with_protocol_versions(&[&rustls::version::TLS13]).map_err(|error| error.to_string())?;
    Ok(config.dangerous().with_custom_certificate_verifier(Arc::new(verifier)).with_no_client_auth())
}

/// Trusts the certificates of one agent.
#[derive(Debug)]
struct Trust {
    certificates: Vec<CertificateDer<'static>>,
    usual: Arc<WebPkiServerVerifier>,
}

impl Trust {
    fn new(pem: &str, provider: &Arc<CryptoProvider>) -> Result<Self, String> {
        let read = CertificateDer::pem_slice_iter(pem.as_bytes()).collect::<Result<Vec<_>, _>>();
        let certificates = read.map_err(|error| error.to_string())?;
        let mut roots = RootCertStore::empty();
        for certificate in &certificates {
            roots.add(certificate.clone()).map_err(|error| error.to_string())?;
        }
        let usual = WebPkiServerVerifier::builder_with_provider(Arc::new(roots), Arc::clone(provider));
        Ok(Self { certificates, usual: usual.build().map_err(|error| error.to_string())? })
    }
}

impl ServerCertVerifier for Trust {
    /// The Python agent signs its certificate by ECDSA with SHA-512, which not every implementation of TLS can check.
    /// It need not be: that an agent has signed its certificate itself proves nothing, and that it is this one is told
    /// by its bytes. Everything else is checked as ever, its time before its signature.
    fn verify_server_cert(
        &self,
        certificate: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        name: &ServerName<'_>,
        ocsp_response: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        let verified = self.usual.verify_server_cert(certificate, intermediates, name, ocsp_response, now);
        match verified {
            Err(Error::InvalidCertificate(CertificateError::UnsupportedSignatureAlgorithmContext {
                ..
            })) if self.certificates.contains(certificate) => {
                rustls::client::verify_server_name(&ParsedCertificate::try_from(certificate)?, name)?;
                Ok(ServerCertVerified::assertion())
            }
            verified => verified,
        }
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        self.usual.verify_tls12_signature(message, certificate, signature)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        self.usual.verify_tls13_signature(message, certificate, signature)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.usual.supported_verify_schemes()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    /// Two certificates as the Python agent makes them, for 127.0.0.1, from the end of 2026 to 2126.
    const OWN: &str = "\
-----BEGIN CERTIFICATE-----
MIIByjCCAVCgAwIBAgIUM1xl4sQr3eh8uQtxwcckqcRUqbwwCgYIKoZIzj0EAwQw
FDESMBAGA1UEAwwJMTI3LjAuMC4xMCAXDTI2MTEyMzE2Mjg0NFoYDzIxMjYxMDMw
MTYyODQ0WjAUMRIwEAYDVQQDDAkxMjcuMC4wLjEwdjAQBgcqhkjOPQIBBgUrgQQA
IgNiAAQbp76abGwxpu1A+aApipHxwalJWpPu5hWbk+5XYyxGp0fTZG98yuFT0bDB
T7pU5XF+ajw1q+AD7LRQbbl2DJyCSWTAdBPRUqdVQJJUnxVOmqojmNbuMz2t2Aug
z+VqFr2jYTBfMB0GA1UdDgQWBBSvSy0X0W5JAo5liR0blXlGO1655zAfBgNVHSME
GDAWgBSvSy0X0W5JAo5liR0blXlGO1655zASBgNVHREBAf8ECDAGhwR/AAABMAkG
A1UdEwQCMAAwCgYIKoZIzj0EAwQDaAAwZQIwTDmcFwlb4LZZpdLRja8fO5xOIj57
4whtcgybeVPGc0W1IS1jwmEpjrg5eQJ+3lP1AjEA1/Nd8l36th9VqznSQ6xkdMVh
HG3bFT7NHWg/OxxDOBR+/Dfr6O6HUesgrMhrXqBi
-----END CERTIFICATE-----
";
    const OTHER: &str = "\
-----BEGIN CERTIFICATE-----
MIIByTCCAVCgAwIBAgIUPUsmfoBRlNdpv7vjJeI4WB+rgecwCgYIKoZIzj0EAwQw
FDESMBAGA1UEAwwJMTI3LjAuMC4xMCAXDTI2MTEyMzE2Mjg0NFoYDzIxMjYxMDMw
MTYyODQ0WjAUMRIwEAYDVQQDDAkxMjcuMC4wLjEwdjAQBgcqhkjOPQIBBgUrgQQA
IgNiAATZjYvwAZRwFGcw1mclvo8rGPROyNx4yEMYqiC5IOrSBFNfxK90vbAHW2MM
OhFbPlxyeh5zMrC8QHkidcPRfmMbROpJcpMEtcE5LmR8gsYbvieMlcH/x4P2AQzq
YaBMu76jYTBfMB0GA1UdDgQWBBTpAeFTUvkACTSydh1qniccBVkBQTAfBgNVHSME
GDAWgBTpAeFTUvkACTSydh1qniccBVkBQTASBgNVHREBAf8ECDAGhwR/AAABMAkG
A1UdEwQCMAAwCgYIKoZIzj0EAwQDZwAwZAIwGFRihLJOCKmAb+FbRroqYsT840/g
K1Gdsf9yzsynk7zh1FtJuk13OauEV4ZnfOC/AjArZ9Zt0uu+HdSXo2K3zrBaQrMG
S3fIm7vVVV7LlCqSsVaapGIXwfrrWN6AtcWzGqo=
-----END CERTIFICATE-----
";
    const SECONDS_OF_2027: u64 = 1_800_000_000;
    const SECONDS_OF_2128: u64 = 5_000_000_000;

    fn der(pem: &str) -> CertificateDer<'static> {
        CertificateDer::from_pem_slice(pem.as_bytes()).unwrap()
    }

    #[test]
    fn a_certificate_signed_by_ecdsa_with_sha_512_is_known_by_its_bytes() {
        let trust = Trust::new(OWN, &Arc::new(rustls::crypto::ring::default_provider())).unwrap();
        for (shown, host, seconds, expected) in [
            (OWN, "127.0.0.1", SECONDS_OF_2027, true),
            (OTHER, "127.0.0.1", SECONDS_OF_2027, false),
            (OWN, "192.0.2.1", SECONDS_OF_2027, false),
            (OWN, "127.0.0.1", SECONDS_OF_2128, false),
            (OWN, "127.0.0.1", 0, false),
        ] {
            let (name, now) =
                (host.try_into().unwrap(), UnixTime::since_unix_epoch(Duration::from_secs(seconds)));
            let verified = trust.verify_server_cert(&der(shown), &[], &name, &[], now);
            assert_eq!(verified.is_ok(), expected, "{host} {seconds} {verified:?}");
        }
    }

    #[test]
    fn what_is_no_certificate_is_refused() {
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        for pem in ["", "no PEM", "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n"] {
            assert!(Trust::new(pem, &provider).is_err(), "{pem:?}");
        }
    }
}
