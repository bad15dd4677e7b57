//! The certificate of an agent, by which it is known and with whose key it signs what it has erased.

use crate::file::Certificates;
use crate::machine::Machine;
use base64::Engine;
use base64::engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD};
use rcgen::{CertificateParams, DnType, KeyPair, PKCS_ECDSA_P256_SHA256, SanType};
use ring::rand::SystemRandom;
use ring::signature::{ECDSA_P256_SHA256_FIXED_SIGNING, EcdsaKeyPair};
use rustls::ServerConfig;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, PrivatePkcs8KeyDer};
use serde_json::{Value, json};
use std::net::IpAddr;
use std::sync::Arc;
use time::{Duration, OffsetDateTime};

/// For how long a certificate holds, before and after now (contract, 2.6).
const VALID: (Duration, Duration) = (Duration::hours(1), Duration::days(30));

/// A certificate cannot be made.
#[derive(Debug, thiserror::Error)]
pub enum IdentityError {
    /// Making it failed.
    #[error("no certificate can be made: {0}; see whether this build has ring")]
    Certificate(#[from] rcgen::Error),
    /// TLS refuses it.
    #[error("the certificate cannot be used: {0}; see whether this build has ring")]
    Tls(#[from] rustls::Error),
    /// Its key cannot sign.
    #[error("the key of the certificate cannot sign: {0}; see whether this build has ring")]
    Key(String),
}

/// Keys of certificates.
#[derive(Debug)]
pub enum Keys {
    /// Each agent makes its own.
    Own,
    /// All agents have the same.
    Shared(Box<KeyPair>),
}

impl Keys {
    /// Those that a fleet file asks for.
    ///
    /// # Errors
    ///
    /// [`IdentityError::Certificate`].
    pub fn new(certificates: Certificates) -> Result<Self, IdentityError> {
        Ok(match certificates {
            Certificates::OwnKey => Self::Own,
            Certificates::SharedKey => Self::Shared(Box::new(new_key()?)),
        })
    }
}

fn new_key() -> Result<KeyPair, rcgen::Error> {
    KeyPair::generate_for(&PKCS_ECDSA_P256_SHA256)
}

/// The certificate of an agent, for one boot.
#[derive(Debug)]
pub struct Identity {
    /// The certificate as PEM text; goes into every heartbeat.
    pub pem: String,
    /// What its listener shows.
    pub tls: Arc<ServerConfig>,
    certificate: CertificateDer<'static>,
    key: EcdsaKeyPair,
}

impl Identity {
    /// One for the address of a machine.
    ///
    /// # Errors
    ///
    /// [`IdentityError`].
    pub fn new(machine: &Machine, keys: &Keys) -> Result<Self, IdentityError> {
        let own;
        let key = match keys {
            Keys::Shared(key) => key,
            Keys::Own => {
                own = new_key()?;
                &own
            }
        };
        let mut parameters = CertificateParams::default();
        parameters.distinguished_name.push(DnType::CommonName, machine.identity.serial());
        parameters.subject_alt_names = vec![SanType::IpAddress(IpAddr::V4(machine.identity.address))];
        let now = OffsetDateTime::now_utc();
        (parameters.not_before, parameters.not_after) = (now - VALID.0, now + VALID.1);
        let made = parameters.self_signed(key)?;
        let (pem, certificate) = (made.pem(), made.der().clone());
        let private = key.serialize_der();
        let signing =
            EcdsaKeyPair::from_pkcs8(&ECDSA_P256_SHA256_FIXED_SIGNING, &private, &SystemRandom::new())
                .map_err(|error| IdentityError::Key(error.to_string()))?;
        let private = PrivateKeyDer::Pkcs8(PrivatePkcs8KeyDer::from(private));
        let tls = ServerConfig::builder_with_provider(Arc::new(rustls::crypto::ring::default_provider()))
            .with_safe_default_protocol_versions()?
            .with_no_client_auth()
            .with_single_cert(vec![certificate.clone()], private)?;
        Ok(Self { pem, tls: Arc::new(tls), certificate, key: signing })
    }

    /// A statement, signed (RFC 7515, compact form) with the certificate in its header.
    ///
    /// # Errors
    ///
    /// [`IdentityError::Key`].
    pub fn sign(&self, statement: &Value) -> Result<String, IdentityError> {
        let header = json!({"alg": "ES256", "x5c": [STANDARD.encode(&self.certificate)]});
        let encoded = [&header, statement].map(|part| URL_SAFE_NO_PAD.encode(part.to_string()));
        let signed = encoded.join(".");
        let signature = self.key.sign(&SystemRandom::new(), signed.as_bytes());
        let signature = signature.map_err(|error| IdentityError::Key(error.to_string()))?;
        Ok(format!("{signed}.{}", URL_SAFE_NO_PAD.encode(signature)))
    }
}
