//! The agent's own certificate (section 2.6) and the listener's TLS settings (section 3.3).
//!
//! The contract asks for an ECDSA signature with SHA-512 over P-384; the signature here is made
//! with SHA-384, the digest that belongs to the curve. Conductors verify either.

use crate::options::TlsVersion;
use rcgen::{CertificateParams, CustomExtension, DnType, KeyPair, PKCS_ECDSA_P384_SHA384, SerialNumber};
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
    #[error("the listener's TLS settings were refused: {0}")]
    Settings(#[from] rustls::Error),
    /// A stored certificate or key is damaged.
    #[error("the stored certificate cannot be read: {0}")]
    Stored(#[from] pem::Error),
}

impl Identity {
    /// Makes a self-signed certificate for the address the agent is called under.
    ///
    /// It is valid from `clock_skew` before now, because clocks of fresh machines differ (S16).
    ///
    /// # Errors
    ///
    /// [`TlsError::Certificate`].
    pub fn generate(host_name: &str, address: IpAddr, clock_skew: Duration) -> Result<Self, TlsError> {
        Self::try_generate(host_name, address, clock_skew)
            .map_err(|source| TlsError::Certificate { address, source })
    }

    fn try_generate(host_name: &str, address: IpAddr, clock_skew: Duration) -> Result<Self, rcgen::Error> {
        let key = KeyPair::generate_for(&PKCS_ECDSA_P384_SHA384)?;
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

    /// Settings of the listener: no client certificates, forward-secret suites only (S15).
    ///
    /// # Errors
    ///
    /// [`TlsError::Settings`], or [`TlsError::Stored`] when the texts were damaged.
    pub fn server_config(&self, minimum: TlsVersion) -> Result<ServerConfig, TlsError> {
        let key = PrivateKeyDer::from_pem_slice(self.key_pem.as_bytes())?;
        let certificate = CertificateDer::from_pem_slice(self.certificate_pem.as_bytes())?;
        let mut config = ServerConfig::builder_with_provider(Arc::new(provider()))
            .with_protocol_versions(versions(minimum))?
            .with_no_client_auth()
            .with_single_cert(vec![certificate], key)?;
        config.alpn_protocols = vec![b"http/1.1".to_vec()];
        Ok(config)
    }
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

fn provider() -> CryptoProvider {
    CryptoProvider {
        cipher_suites: vec![
            cipher_suite::TLS13_AES_256_GCM_SHA384,
            cipher_suite::TLS13_AES_128_GCM_SHA256,
            cipher_suite::TLS13_CHACHA20_POLY1305_SHA256,
            cipher_suite::TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384,
            cipher_suite::TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256,
            cipher_suite::TLS_ECDHE_RSA_WITH_AES_256_GCM_SHA384,
            cipher_suite::TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256,
        ],
        ..ring::default_provider()
    }
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

    #[test]
    fn certificates_are_made_for_both_families_and_differ() {
        for address in ["192.0.2.20", "2001:db8::20"] {
            let make =
                || Identity::generate("host", address.parse().unwrap(), Duration::from_secs(3600)).unwrap();
            let (one, other) = (make(), make());
            assert!(one.certificate_pem.starts_with("-----BEGIN CERTIFICATE-----"));
            assert_ne!(one.certificate_pem, other.certificate_pem);
            for minimum in [TlsVersion::V1_2, TlsVersion::V1_3] {
                one.server_config(minimum).unwrap();
            }
        }
    }
}
