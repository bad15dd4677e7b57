//! Signed statements about erased disks.
//!
//! Each is a JSON Web Signature (RFC 7515) in its compact form: the key is that of the agent's
//! certificate, and the certificate is in its header (`x5c`), so that it can be compared with the one
//! that the conductor keeps from the heartbeat. They go into the result of the step, and into a file on
//! a memory file system from which the logs are collected.

use crate::agent::Agent;
use crate::identity::tls::Identity;
use base64::Engine;
use base64::engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD};
use ring::rand::SystemRandom;
use ring::signature::{
    ECDSA_P256_SHA256_FIXED_SIGNING, ECDSA_P384_SHA384_FIXED_SIGNING, EcdsaKeyPair, EcdsaSigningAlgorithm,
};
use rustls::pki_types::pem;
use serde_json::{Value, json};
use std::fs::{self, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

/// Where they are kept, one in a line, below the root directory.
const PATH: &str = "run/farrier/erase-certificates";

/// The curves of the agent's certificate with their names in a signature.
const ALGORITHMS: [(&str, &EcdsaSigningAlgorithm); 2] =
    [("ES384", &ECDSA_P384_SHA384_FIXED_SIGNING), ("ES256", &ECDSA_P256_SHA256_FIXED_SIGNING)];

/// A statement was not signed.
#[derive(Debug, thiserror::Error)]
pub enum CertifyError {
    /// The agent has no certificate.
    #[error("the agent has no key to sign with before it listens")]
    NoKey,
    /// The key cannot be used.
    #[error("the agent's key cannot sign: {0}")]
    Key(String),
    /// The key cannot be read.
    #[error(transparent)]
    Stored(#[from] pem::Error),
    /// The statement has no JSON form.
    #[error("the statement cannot be written: {0}")]
    Statement(#[from] serde_json::Error),
}

/// Signs a statement and keeps it for the logs.
///
/// # Errors
///
/// [`CertifyError`]. A signature that cannot be kept is still returned.
pub fn certify(agent: &Agent, statement: &Value) -> Result<String, CertifyError> {
    let identity = agent.current_identity().ok_or(CertifyError::NoKey)?;
    let signed = sign(&identity, statement)?;
    if let Err(error) = keep(&agent.root, &signed) {
        tracing::warn!(%error, "the erase certificate will not be among the collected logs");
    }
    Ok(signed)
}

/// What was signed since the machine started.
///
/// # Errors
///
/// `NotFound` when nothing was.
pub fn read(root: &Path) -> io::Result<Vec<u8>> {
    fs::read(root.join(PATH))
}

fn sign(identity: &Identity, statement: &Value) -> Result<String, CertifyError> {
    let (certificate, key) = identity.parts()?;
    let random = SystemRandom::new();
    let load = |algorithm| EcdsaKeyPair::from_pkcs8(algorithm, key.secret_der(), &random).ok();
    let mut usable = ALGORITHMS.iter().filter_map(|(name, algorithm)| Some((name, load(algorithm)?)));
    let (algorithm, key) = usable.next().ok_or_else(|| CertifyError::Key("unknown kind".to_owned()))?;
    let header = json!({"alg": algorithm, "x5c": [STANDARD.encode(certificate)]});
    let encode = |value: &Value| Ok::<_, CertifyError>(URL_SAFE_NO_PAD.encode(serde_json::to_vec(value)?));
    let signed = format!("{}.{}", encode(&header)?, encode(statement)?);
    let signature =
        key.sign(&random, signed.as_bytes()).map_err(|error| CertifyError::Key(error.to_string()))?;
    Ok(format!("{signed}.{}", URL_SAFE_NO_PAD.encode(signature)))
}

fn keep(root: &Path, signed: &str) -> io::Result<()> {
    let path = root.join(PATH);
    if let Some(directory) = path.parent() {
        fs::create_dir_all(directory)?;
    }
    let mut file = OpenOptions::new().create(true).append(true).mode(0o600).open(path)?;
    file.write_all(format!("{signed}\n").as_bytes())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::settings::options::{Curve, Options};
    use ring::signature::{self, KeyPair, UnparsedPublicKey, VerificationAlgorithm};
    use std::time::Duration;

    fn identity(curve: Curve) -> Identity {
        Identity::generate("host", "192.0.2.20".parse().unwrap(), Duration::ZERO, curve).unwrap()
    }

    #[test]
    fn a_statement_is_signed_with_the_certificate_in_its_header() {
        let cases: [(_, &str, &EcdsaSigningAlgorithm, &dyn VerificationAlgorithm); 2] = [
            (Curve::P384, "ES384", &ECDSA_P384_SHA384_FIXED_SIGNING, &signature::ECDSA_P384_SHA384_FIXED),
            (Curve::P256, "ES256", &ECDSA_P256_SHA256_FIXED_SIGNING, &signature::ECDSA_P256_SHA256_FIXED),
        ];
        for (curve, name, algorithm, verification) in cases {
            let identity = identity(curve);
            let statement = json!({"device": "/dev/sda", "verdict": "erased"});
            let signed = sign(&identity, &statement).unwrap();
            let (content, signature) = signed.rsplit_once('.').unwrap();
            let (header, payload) = content.split_once('.').unwrap();
            let decode = |text: &str| URL_SAFE_NO_PAD.decode(text).unwrap();
            let (header, payload): (Value, Value) = (
                serde_json::from_slice(&decode(header)).unwrap(),
                serde_json::from_slice(&decode(payload)).unwrap(),
            );
            let (certificate, key) = identity.parts().unwrap();
            assert_eq!(header, json!({"alg": name, "x5c": [STANDARD.encode(certificate)]}));
            assert_eq!(payload, statement);
            let key = EcdsaKeyPair::from_pkcs8(algorithm, key.secret_der(), &SystemRandom::new()).unwrap();
            let key = UnparsedPublicKey::new(verification, key.public_key());
            key.verify(content.as_bytes(), &decode(signature)).unwrap();
            let forged = content.replacen('.', ".A", 1);
            assert!(key.verify(forged.as_bytes(), &decode(signature)).is_err());
        }
    }

    #[tokio::test]
    async fn what_was_signed_is_kept_for_the_logs() {
        crate::network::http::install_tls_provider();
        let root = tempfile::tempdir().unwrap();
        let agent = Agent::new(Options::default(), root.path(), tokio::runtime::Handle::current()).unwrap();
        assert!(matches!(certify(&agent, &json!({})), Err(CertifyError::NoKey)));
        agent.identity("192.0.2.20".parse().unwrap()).unwrap();
        let signed = [json!({"n": 1}), json!({"n": 2})].map(|statement| certify(&agent, &statement).unwrap());
        let kept = String::from_utf8(read(root.path()).unwrap()).unwrap();
        assert_eq!(kept.lines().collect::<Vec<_>>(), signed);
    }
}
