//! `farrier certificates`: what proves that the disks of a node were erased.

use crate::client::NodeApi;
use crate::failure::{NOT_PROVEN, coded};
use crate::view::table::{none, table};
use clap::Args;
use farrier_engine::evidence::erasing::{
    CertificateError, DiskStatement, EraseCertificate, ErasureRecord, MachineStatement, Signed, Statement,
    Verdict,
};
use serde_json::json;

/// Options of `farrier certificates`.
#[derive(Debug, Args)]
#[group(id = "certified")]
pub(crate) struct ShowCertificates {
    /// Name or UUID of the node.
    node: String,
    /// Verify each certificate on this host, and compare the machine statement with the disks of the last
    /// inspection. Fails if a certificate is invalid or missing, or if the disks of an available node are not
    /// proven erased.
    #[arg(long)]
    verify: bool,
    /// Print the records and the certificates as JSON.
    #[arg(long)]
    json: bool,
}

impl ShowCertificates {
    pub(crate) async fn run(&self, api: &NodeApi) -> anyhow::Result<()> {
        let record = api.certificates(&self.node).await?;
        let verified: Vec<_> = record.certificates.iter().map(|one| verify(&record.node, one)).collect();
        match self.json {
            true => println!(
                "{}",
                serde_json::to_string_pretty(&json_of(&record, self.verify.then_some(&verified)))?
            ),
            false => print!("{}", shown(&record, self.verify.then_some(&verified))),
        }
        if self.verify { judge(&self.node, &record, &verified) } else { Ok(()) }
    }
}

type Verified = Result<(), CertificateError>;

/// Whether a certificate proves what it is shown as, without a word of the conductor but for the agent's fingerprint.
fn verify(node: &str, shown: &EraseCertificate) -> Verified {
    let signed = Signed::read(&shown.certificate)?;
    signed.is_of(node, &shown.agent)?;
    match signed.statement == shown.statement {
        true => Ok(()),
        false => Err(CertificateError::Unreadable("it differs from the conductor's record".to_owned())),
    }
}

fn judge(node: &str, record: &ErasureRecord, verified: &[Verified]) -> anyhow::Result<()> {
    for (certificate, outcome) in record.certificates.iter().zip(verified) {
        if let Err(error) = outcome {
            let step = certificate.statement.step();
            let text = format!("the certificate of {} for {step} {error}", certificate.disk);
            return Err(coded(NOT_PROVEN, text));
        }
    }
    let marks = record.erasure.iter().cloned().chain(record.proven());
    if let Some(mark) = marks.into_iter().find(|mark| !mark.is_proven) {
        let reason = mark.reason.as_deref().unwrap_or_default();
        let text = format!("the disks of node {node} are not proven to be erased: {reason}");
        return Err(coded(NOT_PROVEN, text));
    }
    if record.certificates.is_empty() {
        let text = format!("node {node} has no certificates of erasure; clean the node");
        return Err(coded(NOT_PROVEN, text));
    }
    Ok(())
}

fn shown(record: &ErasureRecord, verified: Option<&Vec<Verified>>) -> String {
    let outcome = |place: usize| match verified.map(|verified| &verified[place]) {
        None => String::new(),
        Some(Ok(())) => "verified".to_owned(),
        Some(Err(error)) => error.to_string(),
    };
    let row = |(place, one): (usize, &EraseCertificate)| {
        let (size, verdict, how) = match &one.statement {
            Statement::Disk(disk) => of_disk(disk),
            Statement::Machine(machine) => of_machine(machine),
        };
        let (step, finished_at) = (one.statement.step().to_owned(), one.statement.finished_at().to_owned());
        [one.disk.clone(), size, step, verdict, how, finished_at, outcome(place)]
    };
    let columns = ["Disk", "Size", "Step", "Verdict", "Method", "Finished At", ""];
    let mark = record.erasure.as_ref().map(|mark| format!("Erasure: {mark}\n")).unwrap_or_default();
    mark + &table(columns, record.certificates.iter().enumerate().map(row))
}

/// Size, verdict, and method or reason.
fn of_disk(disk: &DiskStatement) -> (String, String, String) {
    let verdict = match disk.verdict {
        Verdict::Erased => "erased",
        Verdict::MetadataRemoved => "metadata removed",
        Verdict::Kept => "kept",
        Verdict::Failed => "failed",
    };
    let size = format!("{:.1} GiB", disk.size_bytes as f64 / f64::from(1 << 30));
    (size, verdict.to_owned(), none(disk.method.as_deref().or(disk.reason.as_deref())))
}

/// How many disks were examined, and what was not.
fn of_machine(machine: &MachineStatement) -> (String, String, String) {
    let unseen = machine.not_examined.iter().chain(&machine.without_driver).cloned().collect::<Vec<_>>();
    let unseen = (!unseen.is_empty()).then(|| format!("not examined: {}", unseen.join(", ")));
    (format!("{} disks", machine.disks.len()), "examined".to_owned(), none(unseen.as_deref()))
}

fn json_of(record: &ErasureRecord, verified: Option<&Vec<Verified>>) -> serde_json::Value {
    let mut value = json!(record);
    for (place, outcome) in verified.into_iter().flatten().enumerate() {
        let error = outcome.as_ref().err().map(ToString::to_string);
        value["certificates"][place]["verified"] = json!(error.is_none());
        value["certificates"][place]["error"] = json!(error);
    }
    value
}
