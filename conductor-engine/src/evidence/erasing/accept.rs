//! Takes the certificates of erasure that a step of an agent has produced.

use crate::evidence::erasing::certificate::{CertificateError, Signed};
use crate::evidence::erasing::statement::{MachineStatement, Statement, Verdict};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use std::collections::BTreeMap;
use time::OffsetDateTime;
use uuid::Uuid;

/// What a statement for the machine is kept as, and the key of its entry in the result of a step.
pub const MACHINE: &str = "machine";

/// The first version of statements of which a nonce and a statement for the machine are demanded.
const WITH_MACHINE: u32 = 2;

/// A certificate of erasure that was taken from the agent which ran the step.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct EraseCertificate {
    /// The serial number of the disk, or another name that distinguishes it on its machine; [`MACHINE`] for the
    /// machine.
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
    /// What the conductor issued for this run of the step.
    pub(crate) nonce: Option<&'a str>,
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

/// The certificates in what a step has produced: an object for each disk, by its device, and one for the machine. An
/// agent that gives none at all, as there are, leaves none.
///
/// # Errors
///
/// The first one that proves nothing.
pub(crate) fn accept(
    produced: &Map<String, Value>,
    expected: &Expected<'_>,
) -> Result<Vec<EraseCertificate>, Refused> {
    let entries = produced.iter().filter_map(|(name, entry)| Some((name, entry.as_object()?)));
    let entries: Vec<_> = entries.map(|(name, entry)| (name, entry.get("certificate"))).collect();
    if entries.iter().all(|(_, certificate)| certificate.is_none()) {
        return Ok(Vec::new());
    }
    let mut accepted = Vec::new();
    for (name, certificate) in entries {
        let text = certificate.and_then(Value::as_str);
        let read = text.ok_or(CertificateError::Missing).and_then(|text| verify(name, text, expected));
        accepted.push(read.map_err(|error| refused(name, certificate, error))?);
    }
    require_one_story(&accepted)?;
    Ok(told_apart(accepted))
}

fn verify(name: &str, text: &str, expected: &Expected<'_>) -> Result<EraseCertificate, CertificateError> {
    let signed = Signed::read(text)?;
    signed.is_of(&expected.node.to_string(), expected.agent)?;
    let Signed { statement, agent } = signed;
    if statement.step() != expected.step {
        return Err(CertificateError::OtherStep(statement.step().to_owned()));
    }
    if statement.version() >= WITH_MACHINE && statement.nonce() != expected.nonce {
        return Err(CertificateError::OtherRun);
    }
    let disk = match &statement {
        Statement::Machine(_) if name == MACHINE => MACHINE.to_owned(),
        Statement::Disk(disk) if disk.verdict == Verdict::Failed => {
            return Err(CertificateError::NotErased(disk.reason.clone().unwrap_or_default()));
        }
        Statement::Disk(disk) if name == disk.device => {
            let names = [&disk.serial, &disk.wwn];
            let known = names.into_iter().flatten().map(|name| name.trim()).find(|name| !name.is_empty());
            known.unwrap_or(&disk.device).to_owned()
        }
        Statement::Machine(_) | Statement::Disk(_) => return Err(CertificateError::Contradiction),
    };
    let (accepted_at, certificate) = (expected.now, text.to_owned());
    Ok(EraseCertificate { disk, statement, agent, accepted_at, certificate })
}

/// The statement for the machine names the disks that have certificates, with the same verdicts, and no others.
/// Agents of the first version give none.
fn require_one_story(certificates: &[EraseCertificate]) -> Result<(), Refused> {
    let is_of_old = |one: &EraseCertificate| one.statement.version() < WITH_MACHINE;
    let machine = certificates.iter().find_map(|one| match &one.statement {
        Statement::Machine(machine) => Some(machine),
        Statement::Disk(_) => None,
    });
    let Some(machine) = machine else {
        return match certificates.iter().all(is_of_old) {
            true => Ok(()),
            false => Err(Refused { disk: MACHINE.to_owned(), reason: CertificateError::Missing }),
        };
    };
    let certified = |one: &EraseCertificate| match &one.statement {
        Statement::Disk(disk) => Some((disk.device.clone(), disk.verdict)),
        Statement::Machine(_) => None,
    };
    let mut certified: Vec<_> = certificates.iter().filter_map(certified).collect();
    for disk in stated(machine) {
        match certified.iter().position(|one| *one == disk) {
            Some(place) => drop(certified.remove(place)),
            None => return Err(Refused { disk: disk.0, reason: CertificateError::Contradiction }),
        }
    }
    match certified.pop() {
        Some((disk, _)) => Err(Refused { disk, reason: CertificateError::Contradiction }),
        None => Ok(()),
    }
}

fn stated(machine: &MachineStatement) -> impl Iterator<Item = (String, Verdict)> {
    machine.disks.iter().map(|disk| (disk.device.clone(), disk.verdict))
}

/// Disks with the same serial number, as the namespaces of a controller have it, are told apart by their devices.
fn told_apart(mut certificates: Vec<EraseCertificate>) -> Vec<EraseCertificate> {
    let mut counts = BTreeMap::new();
    for certificate in &certificates {
        *counts.entry(certificate.disk.clone()).or_insert(0) += 1;
    }
    for certificate in certificates.iter_mut().filter(|one| counts[&one.disk] > 1) {
        if let Statement::Disk(disk) = &certificate.statement {
            certificate.disk = format!("{} {}", certificate.disk, disk.device);
        }
    }
    certificates
}

fn refused(device: &str, certificate: Option<&Value>, reason: CertificateError) -> Refused {
    let signed = certificate.and_then(Value::as_str).and_then(|text| Signed::read(text).ok());
    let serial = signed.and_then(|signed| match signed.statement {
        Statement::Disk(disk) => disk.serial,
        Statement::Machine(_) => None,
    });
    let serial = serial.map(|serial| format!(" (serial {serial})"));
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
        let (step, nonce) = ("erase_devices", Some("n1"));
        let expected = Expected { node: NODE, step, nonce, agent: &fingerprint, now };
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
        let of_sdb = |key: &str, value: Value| {
            let mut statement = with("device", json!("/dev/sdb"));
            statement[key] = value;
            statement
        };
        let good = agent.sign(&with("device", json!("/dev/sda")));
        for (certificate, reason) in [
            (json!(other.sign(&of_sdb("serial", json!("S1")))), "is signed by another agent"),
            (json!(agent.sign(&of_sdb("node", json!("8")))), "is of another node, 8"),
            (json!(agent.sign(&of_sdb("step", json!("erase_devices_metadata")))), "is of another step"),
            (json!(agent.sign(&of_sdb("verdict", json!("failed")))), "was not erased"),
            (json!(good), "contradicts the statement for the machine"),
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

    /// What an agent of the second version gives for two disks, changed by `change`, which is told what is stated.
    fn second_version(agent: &Agent, change: impl Fn(&str, &mut Value)) -> Value {
        let mut produced = Map::new();
        let mut sign = |name: &str, mut statement: Value| {
            change(name, &mut statement);
            if !statement.is_null() {
                produced.insert(name.to_owned(), json!({"certificate": agent.sign(&statement)}));
            }
        };
        let mut disks = Vec::new();
        for (device, serial) in [("/dev/sda", "S1"), ("/dev/sdb", "S2")] {
            let mut statement = with("device", json!(device));
            statement["serial"] = json!(serial);
            (statement["version"], statement["nonce"]) = (json!(2), json!("n1"));
            disks.push(json!({"device": device, "serial": serial, "size_bytes": 4096, "verdict": "erased"}));
            sign(device, statement);
        }
        let machine = json!({
            "version": 2, "node": NODE.to_string(), "step": "erase_devices", "nonce": "n1", "disks": disks,
            "not_examined": [], "without_driver": [], "finished_at": "2026-11-26T03:10:00Z",
        });
        sign(MACHINE, machine);
        Value::Object(produced)
    }

    #[test]
    fn g03_the_statement_for_the_machine_and_the_certificates_of_its_disks_tell_one_story() {
        let agent = Agent::new(false);
        let kept = accepted(&agent, &second_version(&agent, |_, _| {})).unwrap();
        let mut names: Vec<_> = kept.iter().map(|one| one.disk.as_str()).collect();
        names.sort_unstable();
        assert_eq!(names, ["S1", "S2", MACHINE]);
        type Change = fn(&str, &mut Value);
        let cases: [(Change, &str); 5] = [
            (
                |name, statement| {
                    if name == MACHINE {
                        *statement = Value::Null
                    }
                },
                "of machine is missing",
            ),
            (
                |name, statement| {
                    if name == "/dev/sdb" {
                        *statement = Value::Null
                    }
                },
                "of /dev/sdb contradicts",
            ),
            (
                |name, statement| {
                    if name == MACHINE {
                        statement["disks"].as_array_mut().unwrap().pop();
                    }
                },
                "of /dev/sdb contradicts",
            ),
            (
                |name, statement| {
                    if name == "/dev/sda" {
                        statement["verdict"] = json!("metadata_removed");
                    }
                },
                "of /dev/sda contradicts",
            ),
            (
                |name, statement| {
                    if name == MACHINE {
                        statement["node"] = json!("8")
                    }
                },
                "of machine is of another node",
            ),
        ];
        for (change, reason) in cases {
            let error = accepted(&agent, &second_version(&agent, change)).unwrap_err();
            assert!(error.contains(reason), "{reason}: {error}");
        }
    }

    #[test]
    fn g09_a_certificate_of_an_earlier_run_of_the_step_is_refused() {
        let agent = Agent::new(false);
        for (name, nonce) in [("/dev/sda", json!("n0")), (MACHINE, json!("n0")), ("/dev/sdb", Value::Null)] {
            let produced = second_version(&agent, |one, statement| {
                if one == name {
                    statement["nonce"] = nonce.clone();
                }
            });
            let error = accepted(&agent, &produced).unwrap_err();
            assert!(error.contains(name) && error.contains("is not of this run of the step"), "{error}");
        }
    }
}
