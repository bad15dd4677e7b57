//! What an agent signs of the disks that it has erased.

use base64::Engine;
use base64::engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD};
use ring::rand::SystemRandom;
use ring::signature::{ECDSA_P256_SHA256_FIXED_SIGNING, EcdsaKeyPair};
use serde_json::{Map, Value, json};

/// What an agent gives for its erase steps.
#[derive(Debug, Clone, Default)]
pub struct Proof {
    /// Serial numbers of its disks; none for an agent that proves nothing.
    pub disks: Vec<String>,
    /// What erases them; else they are overwritten.
    pub method: Option<String>,
    /// The node that it signs for, where that is another one.
    pub node: Option<String>,
    /// Whether another agent has signed.
    pub is_of_another: bool,
    /// Whether what was signed is changed afterwards.
    pub is_forged: bool,
    /// Whether it is of an earlier run of the step.
    pub is_replayed: bool,
    /// Controllers of its machine that have no driver.
    pub without_driver: Vec<String>,
}

impl Proof {
    /// That these disks were erased.
    pub fn of(disks: &[&str]) -> Self {
        Self { disks: disks.iter().map(|disk| (*disk).to_owned()).collect(), ..Self::default() }
    }
}

/// The key of an agent's certificate.
pub struct Key {
    certificate: Vec<u8>,
    key: Vec<u8>,
}

impl Key {
    pub fn new(certificate: &[u8], key: Vec<u8>) -> Self {
        Self { certificate: certificate.to_vec(), key }
    }

    /// That of another agent.
    fn another() -> Self {
        let certified = rcgen::generate_simple_self_signed(["127.0.0.1".to_owned()]).unwrap();
        Self::new(certified.cert.der(), certified.signing_key.serialize_der())
    }

    fn sign(&self, statement: &Value) -> String {
        let header = json!({"alg": "ES256", "x5c": [STANDARD.encode(&self.certificate)]});
        let content = [&header, statement].map(|part| URL_SAFE_NO_PAD.encode(part.to_string())).join(".");
        let random = SystemRandom::new();
        let key = EcdsaKeyPair::from_pkcs8(&ECDSA_P256_SHA256_FIXED_SIGNING, &self.key, &random).unwrap();
        let signature = key.sign(&random, content.as_bytes()).unwrap();
        format!("{content}.{}", URL_SAFE_NO_PAD.encode(signature))
    }
}

/// The result of an erase step, of the run with this nonce: an entry for each disk, and one for the machine.
pub fn erased(proof: &Proof, key: &Key, node: &str, step: &str, nonce: &Value) -> Value {
    let node = proof.node.as_deref().unwrap_or(node);
    let nonce = if proof.is_replayed { &Value::Null } else { nonce };
    let signed = |mut entry: Value| {
        let signed = if proof.is_of_another { Key::another().sign(&entry) } else { key.sign(&entry) };
        let signed = match (proof.is_forged, signed.rsplit_once('.')) {
            (true, Some((content, signature))) => {
                let mut bytes = URL_SAFE_NO_PAD.decode(signature).unwrap();
                bytes[0] ^= 1;
                format!("{content}.{}", URL_SAFE_NO_PAD.encode(bytes))
            }
            _ => signed,
        };
        entry["certificate"] = signed.into();
        entry
    };
    let method = proof.method.clone().unwrap_or_else(|| match step {
        "erase_devices_metadata" => "metadata".to_owned(),
        _ => "overwrite".to_owned(),
    });
    let verdict = if method == "metadata" { "metadata_removed" } else { "erased" };
    let mut result = Map::new();
    let mut disks = Vec::new();
    for (place, serial) in proof.disks.iter().enumerate() {
        let device = format!("/dev/disk{place}");
        disks.push(
            json!({"device": device, "serial": serial, "wwn": null, "size_bytes": 4096, "verdict": verdict}),
        );
        let entry = json!({
            "version": 2, "node": node, "step": step, "nonce": nonce, "device": device,
            "vendor": null, "model": "Example", "serial": serial, "wwn": null, "size_bytes": 4096,
            "verdict": verdict, "method": method, "reason": null, "capabilities": {}, "attempts": [], "samples": 64,
            "started_at": "2026-11-23T03:00:00Z", "finished_at": "2026-11-23T03:10:00Z",
        });
        result.insert(device, signed(entry));
    }
    let machine = json!({
        "version": 2, "node": node, "step": step, "nonce": nonce, "disks": disks, "not_examined": [],
        "without_driver": proof.without_driver, "finished_at": "2026-11-23T03:10:00Z",
    });
    result.insert("machine".to_owned(), signed(machine));
    Value::Object(result)
}
