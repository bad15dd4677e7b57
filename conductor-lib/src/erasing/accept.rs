//! Takes the certificates of erasure that a step of an agent has produced.

use super::certificate::{CertificateError, Signed, Statement, Verdict};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use std::collections::BTreeMap;
use time::OffsetDateTime;
use uuid::Uuid;

/// A certificate of erasure that was taken from the agent which ran the step.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct EraseCertificate {
    /// The serial number of the disk, or what else tells it from the others of its machine.
    pub disk: String,
    /// What it states.
    pub statement: Statement,
    /// SHA-256 of the TLS certificate that the agent had, in hexadecimal digits.
    pub agent: String,
    /// When it was taken.
    #[serde(with = "time::serde::rfc3339")]
    pub accepted_at: OffsetDateTime,
    /// The certificate itself.
    pub certificate: String,
}

/// Who may sign for what.
pub(crate) struct Expected<'a> {
    pub(crate) node: Uuid,
    pub(crate) step: &'a str,
    /// SHA-256 of the certificate of the agent that ran the step.
    pub(crate) agent: &'a str,
    pub(crate) now: OffsetDateTime,
}

/// A certificate that is refused, named as the operator knows its disk.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "the certificate of erasure of {disk} {reason}; nothing proves that the disk was erased, so clean the node again"
)]
pub(crate) struct Refused {
    disk: String,
    reason: CertificateError,
}

/// The certificates in what a step has produced: an object for each disk, by its device. An agent that gives none for
/// any disk, as there are, leaves none.
///
/// # Errors
///
/// The first one that proves nothing.
pub(crate) fn accept(
    produced: &Map<String, Value>,
    expected: &Expected<'_>,
) -> Result<Vec<EraseCertificate>, Refused> {
    let disks = produced.iter().filter_map(|(device, entry)| Some((device, entry.as_object()?)));
    let disks: Vec<_> = disks.map(|(device, entry)| (device, entry.get("certificate"))).collect();
    if disks.iter().all(|(_, certificate)| certificate.is_none()) {
        return Ok(Vec::new());
    }
    let mut accepted = Vec::new();
    for (device, certificate) in disks {
        let text = certificate.and_then(Value::as_str);
        let read = text.ok_or(CertificateError::Missing).and_then(|text| verify(text, expected));
        accepted.push(read.map_err(|error| refused(device, certificate, error))?);
    }
    Ok(told_apart(accepted))
}

fn verify(text: &str, expected: &Expected<'_>) -> Result<EraseCertificate, CertificateError> {
    let signed = Signed::read(text)?;
    signed.is_of(&expected.node.to_string(), expected.agent)?;
    let Signed { statement, agent } = signed;
    if statement.step != expected.step {
        return Err(CertificateError::OtherStep(statement.step));
    }
    if statement.verdict == Verdict::Failed {
        return Err(CertificateError::NotErased(statement.reason.unwrap_or_default()));
    }
    let names = [&statement.serial, &statement.wwn];
    let known = names.into_iter().flatten().map(|name| name.trim()).find(|name| !name.is_empty());
    let disk = known.unwrap_or(&statement.device).to_owned();
    let (accepted_at, certificate) = (expected.now, text.to_owned());
    Ok(EraseCertificate { disk, statement, agent, accepted_at, certificate })
}

/// Disks with the same serial number, as the namespaces of a controller have it, are told apart by their devices.
fn told_apart(mut certificates: Vec<EraseCertificate>) -> Vec<EraseCertificate> {
    let mut counts = BTreeMap::new();
    for certificate in &certificates {
        *counts.entry(certificate.disk.clone()).or_insert(0) += 1;
    }
    for certificate in certificates.iter_mut().filter(|one| counts[&one.disk] > 1) {
        certificate.disk = format!("{} {}", certificate.disk, certificate.statement.device);
    }
    certificates
}

fn refused(device: &str, certificate: Option<&Value>, reason: CertificateError) -> Refused {
    let signed = certificate.and_then(Value::as_str).and_then(|text| Signed::read(text).ok());
    let serial =
        signed.and_then(|signed| signed.statement.serial).map(|serial| format!(" (serial {serial})"));
    Refused { disk: format!("{device}{}", serial.unwrap_or_default()), reason }
}

#[cfg(test)]
mod tests {
    use super::super::certificate::fingerprint;
    use super::super::certificate::tests::{Agent, statement};
    use super::*;
    use serde_json::json;

    const NODE: Uuid = Uuid::from_u128(7);

    fn accepted(agent: &Agent, produced: &Value) -> Result<Vec<EraseCertificate>, String> {
        let fingerprint = fingerprint(&agent.pem()).unwrap();
        let now = OffsetDateTime::UNIX_EPOCH;
        let expected = Expected { node: NODE, step: "erase_devices", agent: &fingerprint, now };
        accept(produced.as_object().unwrap(), &expected).map_err(|error| error.to_string())
    }

    fn with(key: &str, value: Value) -> Value {
        let mut changed = statement(&NODE.to_string(), "S1");
        changed[key] = value;
        changed
    }

    #[test]
    fn certificates_are_kept_by_the_serial_numbers_of_their_disks() {
        let agent = Agent::new(true);
        let entry = |device: &str, serial: Value| {
            let mut statement = with("device", json!(device));
            statement["serial"] = serial;
            json!({"certificate": agent.sign(&statement)})
        };
        let produced = json!({
            "/dev/sda": entry("/dev/sda", json!("S1")),
            "/dev/sdb": entry("/dev/sdb", json!(" ")),
            "/dev/sdc": entry("/dev/sdc", json!(null)),
            "/dev/nvme0n1": entry("/dev/nvme0n1", json!("S2")),
            "/dev/nvme0n2": entry("/dev/nvme0n2", json!("S2")),
            "warnings": ["an entry of skip_block_devices matches no disk"],
        });
        let certificates = accepted(&agent, &produced).unwrap();
        let mut disks: Vec<_> = certificates.iter().map(|one| one.disk.as_str()).collect();
        disks.sort_unstable();
        assert_eq!(disks, ["/dev/sdb", "/dev/sdc", "S1", "S2 /dev/nvme0n1", "S2 /dev/nvme0n2"]);
        assert!(certificates.iter().all(|one| Signed::read(&one.certificate).unwrap().agent == one.agent));
    }

    #[test]
    fn an_agent_that_gives_none_leaves_nothing() {
        let agent = Agent::new(true);
        for produced in [json!({}), json!({"/dev/sda": null}), json!({"/dev/sda": {"verdict": "erased"}})] {
            assert_eq!(accepted(&agent, &produced), Ok(Vec::new()), "{produced}");
        }
    }

    #[test]
    fn a_certificate_that_proves_nothing_is_refused_and_named() {
        let (agent, other) = (Agent::new(true), Agent::new(true));
        let good = agent.sign(&with("serial", json!("S1")));
        for (certificate, reason) in [
            (json!(other.sign(&with("serial", json!("S1")))), "is signed by another agent"),
            (json!(agent.sign(&with("node", json!("8")))), "is of another node, 8"),
            (json!(agent.sign(&with("step", json!("erase_devices_metadata")))), "is of another step"),
            (json!(agent.sign(&with("verdict", json!("failed")))), "was not erased"),
            (json!(format!("{good}x")), "is not one"),
            (json!(7), "is missing"),
            (json!(null), "is missing"),
        ] {
            let produced =
                json!({"/dev/sda": {"certificate": good}, "/dev/sdb": {"certificate": certificate}});
            let error = accepted(&agent, &produced).unwrap_err();
            assert!(error.contains("/dev/sdb") && error.contains(reason), "{error}");
        }
        let forged = format!("{}AAAA", &good[..good.len() - 4]);
        let error = accepted(&agent, &json!({"/dev/sdb": {"certificate": forged}})).unwrap_err();
        assert!(error.contains("does not verify"), "{error}");
    }
}
