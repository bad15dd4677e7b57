//! A certificate of erasure: a JSON Web Signature (RFC 7515) in its compact form, whose header brings the certificate
//! of the agent (`x5c`).

use crate::evidence::erasing::statement::Statement;
use base64::Engine;
use base64::engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD};
use ring::digest::{SHA256, digest};
use ring::signature::{
    ECDSA_P256_SHA256_FIXED, ECDSA_P384_SHA384_FIXED, EcdsaVerificationAlgorithm, UnparsedPublicKey,
};
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject;
use rustls::server::ParsedCertificate;
use serde::Deserialize;
use serde::de::DeserializeOwned;
use std::ops::RangeInclusive;

/// The versions of statements that are understood. The first one knew neither nonces nor the machine.
const VERSIONS: RangeInclusive<u32> = 1..=2;

/// Signatures by their names, with the description of their keys up to the point itself (RFC 5480).
const ALGORITHMS: [(&str, &EcdsaVerificationAlgorithm, &[u8]); 2] = [
    (
        "ES384",
        &ECDSA_P384_SHA384_FIXED,
        b"\x30\x76\x30\x10\x06\x07\x2a\x86\x48\xce\x3d\x02\x01\x06\x05\x2b\x81\x04\x00\x22\x03\x62\x00",
    ),
    (
        "ES256",
        &ECDSA_P256_SHA256_FIXED,
        b"\x30\x59\x30\x13\x06\x07\x2a\x86\x48\xce\x3d\x02\x01\x06\x08\x2a\x86\x48\xce\x3d\x03\x01\x07\x03\x42\x00",
    ),
];

/// A certificate of erasure proves nothing.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum CertificateError {
    /// It is none.
    #[error("is not one: {0}")]
    Unreadable(String),
    /// Its signature is not by the certificate that it brings.
    #[error("has a signature that does not verify")]
    Signature,
    /// It is of another node.
    #[error("is of another node, {0}")]
    OtherNode(String),
    /// It is of another step.
    #[error("is of another step, {0}")]
    OtherStep(String),
    /// It lacks the nonce that the conductor issued for this run of the step.
    #[error("is not of this run of the step: its nonce is another one")]
    OtherRun,
    /// The statement for the machine and the certificates of its disks contradict each other.
    #[error("contradicts the statement for the machine")]
    Contradiction,
    /// Another agent has signed it than the one that ran the step.
    #[error("is signed by another agent than the one that ran the step")]
    OtherAgent,
    /// The disk was not erased.
    #[error("says that the disk was not erased: {0}")]
    NotErased(String),
    /// There is none for this disk, but for others.
    #[error("is missing, while other disks have theirs")]
    Missing,
}

/// A certificate of erasure whose signature verifies.
#[derive(Debug, Clone, PartialEq)]
pub struct Signed {
    /// What it states.
    pub statement: Statement,
    /// SHA-256 of the TLS certificate of the agent that has signed it, in hexadecimal digits.
    pub agent: String,
}

#[derive(Deserialize)]
struct Header {
    alg: String,
    x5c: Vec<String>,
}

impl Signed {
    /// Reads a certificate of erasure, and verifies its signature by the certificate that it brings.
    ///
    /// # Errors
    ///
    /// [`CertificateError::Unreadable`], [`CertificateError::Signature`].
    pub fn read(text: &str) -> Result<Self, CertificateError> {
        let mut parts = text.rsplitn(2, '.');
        let (signature, content) = (parts.next().unwrap_or_default(), parts.next().unwrap_or_default());
        let (header, payload) =
            content.split_once('.').ok_or_else(|| unreadable("it has not three parts"))?;
        let header: Header = decoded(header)?;
        let agent = header.x5c.first().and_then(|der| STANDARD.decode(der).ok());
        let agent = CertificateDer::from(agent.ok_or_else(|| unreadable("it brings no certificate"))?);
        let signature = bytes(signature)?;
        let key = ParsedCertificate::try_from(&agent)
            .map_err(|error| unreadable(&format!("the agent's certificate: {error}")))?
            .subject_public_key_info();
        let (_, algorithm, prefix) = ALGORITHMS
            .iter()
            .find(|(name, ..)| *name == header.alg)
            .ok_or_else(|| unreadable(&format!("the signature {:?} is not known", header.alg)))?;
        let point = key.strip_prefix(*prefix).ok_or(CertificateError::Signature)?;
        UnparsedPublicKey::new(*algorithm, point)
            .verify(content.as_bytes(), &signature)
            .map_err(|_| CertificateError::Signature)?;
        let statement: Statement = decoded(payload)?;
        let version = statement.version();
        if !VERSIONS.contains(&version) {
            let last = VERSIONS.end();
            return Err(unreadable(&format!(
                "its version is {version}, and {last} is the last that is known"
            )));
        }
        Ok(Self { statement, agent: sha256(&agent) })
    }

    /// Sees that this is of a node, and of an agent of which the SHA-256 of its certificate is known.
    ///
    /// # Errors
    ///
    /// [`CertificateError::OtherNode`], [`CertificateError::OtherAgent`].
    pub fn is_of(&self, node: &str, agent: &str) -> Result<(), CertificateError> {
        if self.statement.node() != node {
            return Err(CertificateError::OtherNode(self.statement.node().to_owned()));
        }
        if self.agent != agent {
            return Err(CertificateError::OtherAgent);
        }
        Ok(())
    }
}

/// SHA-256 of a certificate that is given as PEM text; nothing when it is none.
pub(crate) fn fingerprint(pem: &str) -> Option<String> {
    Some(sha256(&CertificateDer::from_pem_slice(pem.as_bytes()).ok()?))
}

fn sha256(bytes: &[u8]) -> String {
    hex::encode(digest(&SHA256, bytes))
}

fn unreadable(reason: &str) -> CertificateError {
    CertificateError::Unreadable(reason.to_owned())
}

fn bytes(part: &str) -> Result<Vec<u8>, CertificateError> {
    URL_SAFE_NO_PAD.decode(part).map_err(|error| unreadable(&error.to_string()))
}

fn decoded<T: DeserializeOwned>(part: &str) -> Result<T, CertificateError> {
    serde_json::from_slice(&bytes(part)?).map_err(|error| unreadable(&error.to_string()))
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use ring::rand::SystemRandom;
    use ring::signature::{
        ECDSA_P256_SHA256_FIXED_SIGNING, ECDSA_P384_SHA384_FIXED_SIGNING, EcdsaKeyPair, EcdsaSigningAlgorithm,
    };
    use serde_json::Value;
    use serde_json::json;

    /// An agent that signs.
    pub(in super::super) struct Agent {
        algorithm: (&'static str, &'static EcdsaSigningAlgorithm),
        certificate: rcgen::Certificate,
        key: Vec<u8>,
    }

    impl Agent {
        pub(in super::super) fn new(is_p384: bool) -> Self {
            let (kind, algorithm) = match is_p384 {
                true => (&rcgen::PKCS_ECDSA_P384_SHA384, ("ES384", &ECDSA_P384_SHA384_FIXED_SIGNING)),
                false => (&rcgen::PKCS_ECDSA_P256_SHA256, ("ES256", &ECDSA_P256_SHA256_FIXED_SIGNING)),
            };
            let key = rcgen::KeyPair::generate_for(kind).unwrap();
            let certificate = rcgen::CertificateParams::new(["192.0.2.1".to_owned()]).unwrap();
            Self { algorithm, certificate: certificate.self_signed(&key).unwrap(), key: key.serialize_der() }
        }

        pub(in super::super) fn pem(&self) -> String {
            self.certificate.pem()
        }

        pub(in super::super) fn sign(&self, statement: &Value) -> String {
            let (name, algorithm) = self.algorithm;
            let header = json!({"alg": name, "x5c": [STANDARD.encode(self.certificate.der())]});
            let content = [&header, statement].map(|part| URL_SAFE_NO_PAD.encode(part.to_string())).join(".");
            let random = SystemRandom::new();
            let key = EcdsaKeyPair::from_pkcs8(algorithm, &self.key, &random).unwrap();
            let signature = key.sign(&random, content.as_bytes()).unwrap();
            format!("{content}.{}", URL_SAFE_NO_PAD.encode(signature))
        }
    }

    pub(in super::super) fn statement(node: &str, serial: &str) -> Value {
        json!({
            "version": 1, "node": node, "step": "erase_devices", "device": format!("/dev/{serial}"),
            "vendor": "Example", "serial": serial, "wwn": null, "size_bytes": 4096, "verdict": "erased",
            "method": "overwrite", "reason": null, "samples": 64, "started_at": "2026-11-23T03:00:00Z",
            "finished_at": "2026-11-23T03:10:00Z", "attempts": [],
        })
    }

    #[test]
    fn what_an_agent_has_signed_verifies_on_either_curve() {
        for is_p384 in [true, false] {
            let agent = Agent::new(is_p384);
            let given = statement("n", "S1");
            let signed = Signed::read(&agent.sign(&given)).unwrap();
            assert_eq!(serde_json::to_value(&signed.statement).unwrap(), given);
            assert_eq!(Some(&signed.agent), fingerprint(&agent.pem()).as_ref());
            assert_eq!(signed.is_of("n", &signed.agent), Ok(()));
            assert_eq!(signed.is_of("m", &signed.agent), Err(CertificateError::OtherNode("n".into())));
            let other = fingerprint(&Agent::new(true).pem()).unwrap();
            assert_eq!(signed.is_of("n", &other), Err(CertificateError::OtherAgent));
        }
    }

    #[test]
    fn a_certificate_of_which_one_letter_is_another_one_proves_nothing() {
        let agent = Agent::new(false);
        let text = agent.sign(&statement("n", "S1"));
        for (at, letter) in text.char_indices().step_by(7) {
            let other = if letter == 'A' { 'B' } else { 'A' };
            let mut forged = text.clone();
            forged.replace_range(at..=at, &other.to_string());
            // The last bits of a part may say nothing.
            let is_end = text[at..].chars().nth(1).is_none_or(|next| next == '.');
            assert!(is_end || Signed::read(&forged).is_err(), "{at} {forged}");
        }
    }

    #[test]
    fn texts_that_are_no_certificates_are_told_from_those_that_are_forged() {
        let agent = Agent::new(true);
        let later = Value::Object({
            let mut later = statement("n", "S1").as_object().unwrap().clone();
            later.insert("version".into(), 3.into());
            later
        });
        let strangers = agent.sign(&statement("n", "S1"));
        let (content, _) = strangers.rsplit_once('.').unwrap();
        let (_, signature) = strangers.rsplit_once('.').unwrap();
        let other = Agent::new(true).sign(&statement("n", "S1"));
        let (foreign, _) = other.rsplit_once('.').unwrap();
        for (text, is_forged) in [
            (String::new(), false),
            ("a.b".into(), false),
            ("a.b.c".into(), false),
            (format!("{content}."), true),
            (format!("{foreign}.{signature}"), true),
            (agent.sign(&later), false),
            (agent.sign(&json!({"version": 1})), false),
        ] {
            let error = Signed::read(&text).unwrap_err();
            assert_eq!(error == CertificateError::Signature, is_forged, "{text}: {error}");
        }
    }
}
