//! The agent's own certificate (section 2.6) and the TLS settings of its listener and of its client
//! (section 3.3), which follow the same rules (S15).
//!
//! The contract asks for an ECDSA signature with SHA-512; the signature here is made with the digest
//! that belongs to the curve. Conductors verify either.

pub mod client;
pub mod listener;

use crate::settings::cipher_suites::{SUITES, suite};
use crate::settings::options::{Curve, Options, SuiteList, TlsVersion};
use rcgen::{
    CertificateParams, CustomExtension, DnType, KeyPair, PKCS_ECDSA_P256_SHA256, PKCS_ECDSA_P384_SHA384,
    SerialNumber,
};
use rustls::crypto::CryptoProvider;
use rustls::crypto::ring::{self, cipher_suite};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, pem};
use rustls::{ServerConfig, SupportedProtocolVersion, version};
use serde::{Deserialize, Serialize};
use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;
use time::OffsetDateTime;

/// Days the certificate is valid from now on.
const VALID_DAYS: i64 = 30;

/// A certificate and its key.
#[derive(Clone, Serialize, Deserialize)]
pub struct Identity {
    /// Address the certificate is for.
    pub address: IpAddr,
    /// The certificate as PEM text; goes into every heartbeat.
    pub certificate_pem: String,
    key_pem: String,
}

/// The certificate or the listener's settings cannot be made.
#[derive(Debug, thiserror::Error)]
pub enum TlsError {
    /// Generating the certificate failed.
    #[error("no certificate can be made for {address}: {source}")]
    Certificate {
        /// Address it was for.
        address: IpAddr,
        /// Cause.
        #[source]
        source: rcgen::Error,
    },
    /// The settings were refused.
    #[error("TLS settings were refused: {0}")]
    Settings(#[from] rustls::Error),
    /// A certificate or key is missing or damaged.
    #[error("a certificate or key cannot be read: {0}")]
    Stored(#[from] pem::Error),
    /// TLS is wanted with files that are not named.
    #[error("listen_tls needs both tls_cert_file and tls_key_file: name them, or turn listen_tls off")]
    NoFiles,
    /// The files of the listener cannot be used.
    #[error(
        "tls_cert_file={certificate} and tls_key_file={key} cannot be used ({source}): \
         correct them, or leave both out to have a certificate made"
    )]
    Files {
        /// File with the certificate.
        certificate: String,
        /// File with its key.
        key: String,
        /// Cause.
        #[source]
        source: Box<TlsError>,
    },
}

impl Identity {
    /// Makes a self-signed certificate for the address the agent is called under.
    ///
    /// It is valid from `clock_skew` before now, because clocks of fresh machines differ (S16).
    ///
    /// # Errors
    ///
    /// [`TlsError::Certificate`].
    pub fn generate(
        host_name: &str,
        address: IpAddr,
        clock_skew: Duration,
        curve: Curve,
    ) -> Result<Self, TlsError> {
        Self::try_generate(host_name, address, clock_skew, curve)
            .map_err(|source| TlsError::Certificate { address, source })
    }

    fn try_generate(
        host_name: &str,
        address: IpAddr,
        clock_skew: Duration,
        curve: Curve,
    ) -> Result<Self, rcgen::Error> {
        let key = KeyPair::generate_for(match curve {
            Curve::P256 => &PKCS_ECDSA_P256_SHA256,
            Curve::P384 => &PKCS_ECDSA_P384_SHA384,
        })?;
        let now = OffsetDateTime::now_utc();
        let mut params = CertificateParams::default();
        params.distinguished_name = rcgen::DistinguishedName::new();
        params.distinguished_name.push(DnType::CommonName, host_name);
        params.serial_number = Some(SerialNumber::from_slice(&rand::random::<[u8; 16]>()));
        params.not_before = now - clock_skew;
        params.not_after = now + time::Duration::days(VALID_DAYS);
        params.custom_extensions = vec![subject_alternative_name(address)];
        let certificate = params.self_signed(&key)?;
        Ok(Self { address, certificate_pem: certificate.pem(), key_pem: key.serialize_pem() })
    }

    /// Certificate and key, the latter as PKCS #8.
    ///
    /// # Errors
    ///
    /// The texts were damaged.
    pub fn parts(&self) -> Result<(CertificateDer<'static>, PrivateKeyDer<'static>), pem::Error> {
        let certificate = CertificateDer::from_pem_slice(self.certificate_pem.as_bytes())?;
        Ok((certificate, PrivateKeyDer::from_pem_slice(self.key_pem.as_bytes())?))
    }
}

/// Settings of the listener: no client certificates, forward-secret suites only (S15).
fn listener_config(
    chain: Vec<CertificateDer<'static>>,
    key: PrivateKeyDer<'static>,
    options: &Options,
) -> Result<ServerConfig, TlsError> {
    let provider = Arc::new(provider(options.tls_cipher_suites.as_ref()));
    let mut config = ServerConfig::builder_with_provider(provider)
        .with_protocol_versions(versions(options.tls_min_version))?
        .with_no_client_auth()
        .with_single_cert(chain, key)?;
    config.alpn_protocols = vec![b"http/1.1".to_vec()];
    Ok(config)
}

/// Every certificate in a file.
fn read_certificates(file: &str) -> Result<Vec<CertificateDer<'static>>, pem::Error> {
    CertificateDer::pem_file_iter(file)?.collect()
}

/// A critical subject alternative name with one address (RFC 5280, 4.2.1.6).
fn subject_alternative_name(address: IpAddr) -> CustomExtension {
    let octets = match address {
        IpAddr::V4(address) => address.octets().to_vec(),
        IpAddr::V6(address) => address.octets().to_vec(),
    };
    let length = octets.len() as u8;
    // SEQUENCE { [7] IMPLICIT OCTET STRING }
    let content = [&[0x30, length + 2, 0x87, length], octets.as_slice()].concat();
    let mut extension = CustomExtension::from_oid_content(&[2, 5, 29, 17], content);
    extension.set_criticality(true);
    extension
}

fn provider(suites: Option<&SuiteList>) -> CryptoProvider {
    let mut cipher_suites = vec![
        cipher_suite::TLS13_AES_256_GCM_SHA384,
        cipher_suite::TLS13_AES_128_GCM_SHA256,
        cipher_suite::TLS13_CHACHA20_POLY1305_SHA256,
    ];
    match suites {
        Some(SuiteList(names)) => cipher_suites.extend(names.iter().filter_map(|name| suite(name))),
        None => cipher_suites.extend(SUITES.iter().map(|(_, suite)| *suite)),
    }
    CryptoProvider { cipher_suites, ..ring::default_provider() }
}

fn versions(minimum: TlsVersion) -> &'static [&'static SupportedProtocolVersion] {
    static FROM_1_2: [&SupportedProtocolVersion; 2] = [&version::TLS12, &version::TLS13];
    match minimum {
        TlsVersion::V1_2 => &FROM_1_2,
        TlsVersion::V1_3 => &FROM_1_2[1..],
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rustls::RootCertStore;
    use rustls::client::WebPkiServerVerifier;
    use rustls::client::danger::ServerCertVerifier;
    use rustls::pki_types::UnixTime;

    #[test]
    fn certificates_are_made_for_both_families_and_curves_and_differ() {
        for (address, curve) in
            [("192.0.2.20", Curve::P256), ("192.0.2.20", Curve::P384), ("2001:db8::20", Curve::P384)]
        {
            let address = address.parse().unwrap();
            let make = || Identity::generate("host", address, Duration::from_secs(3600), curve).unwrap();
            let (one, other) = (make(), make());
            assert!(one.certificate_pem.starts_with("-----BEGIN CERTIFICATE-----"));
            assert_ne!(one.certificate_pem, other.certificate_pem);
            for minimum in [TlsVersion::V1_2, TlsVersion::V1_3] {
                let options = Options { tls_min_version: minimum, ..Options::default() };
                listener::from_identity(&one, &options).unwrap();
            }
        }
    }

    #[test]
    fn s15_only_the_suites_asked_for_are_offered_beside_those_of_tls_1_3() {
        let count = |suites: Option<&SuiteList>| provider(suites).cipher_suites.len();
        assert_eq!(count(None), 3 + SUITES.len());
        let one = SuiteList(vec!["ecdhe-rsa-aes128-gcm-sha256".to_owned()]);
        assert_eq!(count(Some(&one)), 4);
        assert!(suite("AES128-SHA").is_none());
    }

    #[test]
    fn s16_conductors_with_a_clock_an_hour_off_accept_the_certificate() {
        crate::network::http::install_tls_provider();
        let address: IpAddr = "192.0.2.20".parse().unwrap();
        let skew = Duration::from_secs(3600);
        let made = Identity::generate("host", address, skew, Curve::P384).unwrap();
        let (certificate, _) = made.parts().unwrap();
        let mut roots = RootCertStore::empty();
        roots.add(certificate.clone()).unwrap();
        let verifier = WebPkiServerVerifier::builder(Arc::new(roots)).build().unwrap();
        let now = i64::try_from(UnixTime::now().as_secs()).unwrap();
        for (seconds, expected) in
            [(-3590, true), (0, true), (3600, true), (-7200, false), (31 * 86_400, false)]
        {
            let at = UnixTime::since_unix_epoch(Duration::from_secs((now + seconds).try_into().unwrap()));
            let verified = verifier.verify_server_cert(&certificate, &[], &address.into(), &[], at);
            assert_eq!(verified.is_ok(), expected, "{seconds} s off: {verified:?}");
        }
    }
}
