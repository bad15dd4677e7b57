//! `farrier certificates`: what proves that the disks of a node were erased.

use crate::client::NodeApi;
use crate::table::{none, table};
use anyhow::bail;
use clap::Args;
use farrier_conductor::api::extension::Certificates;
use farrier_conductor::erasing::{CertificateError, EraseCertificate, Signed, Verdict};
use serde_json::json;

/// Options of `farrier certificates`.
#[derive(Debug, Args)]
#[group(id = "certified")]
pub(crate) struct ShowCertificates {
    /// Name or UUID of the node.
    node: String,
    /// Verify each certificate here: its signature, its node, and its agent. Fails when one does not verify, when there
    /// is none, and when the node is available and its disks are not proven to be erased.
    #[arg(long)]
    verify: bool,
    /// Print all of it as JSON, with the certificates themselves.
    #[arg(long)]
    json: bool,
}

impl ShowCertificates {
    pub(crate) async fn run(&self, api: &NodeApi) -> anyhow::Result<()> {
        let told = api.certificates(&self.node).await?;
        let verified: Vec<_> = told.certificates.iter().map(|one| verify(&told.node, one)).collect();
        match self.json {
            true => println!(
                "{}",
                serde_json::to_string_pretty(&json_of(&told, self.verify.then_some(&verified)))?
            ),
            false => print!("{}", shown(&told, self.verify.then_some(&verified))),
        }
        if self.verify { judge(&self.node, &told, &verified) } else { Ok(()) }
    }
}

type Verified = Result<(), CertificateError>;

/// Whether a certificate proves what it is shown as, without a word of the conductor but for the agent's fingerprint.
fn verify(node: &str, shown: &EraseCertificate) -> Verified {
    let signed = Signed::read(&shown.certificate)?;
    signed.is_of(node, &shown.agent)?;
    match signed.statement == shown.statement {
        true => Ok(()),
        false => Err(CertificateError::Unreadable("it says something else than the conductor".to_owned())),
    }
}

fn judge(node: &str, told: &Certificates, verified: &[Verified]) -> anyhow::Result<()> {
    for (certificate, outcome) in told.certificates.iter().zip(verified) {
        if let Err(error) = outcome {
            bail!("the certificate of disk {} for {} {error}", certificate.disk, certificate.statement.step);
        }
    }
    if let Some(mark) = told.erasure.as_ref().filter(|mark| !mark.is_proven) {
        bail!(
            "the disks of node {node} are not proven to be erased: {}",
            mark.reason.as_deref().unwrap_or_default()
        );
    }
    if told.certificates.is_empty() {
        bail!("node {node} has no certificates of erasure; clean it");
    }
    Ok(())
}

fn shown(told: &Certificates, verified: Option<&Vec<Verified>>) -> String {
    let outcome = |place: usize| match verified.map(|verified| &verified[place]) {
        None => String::new(),
        Some(Ok(())) => "verified".to_owned(),
        Some(Err(error)) => error.to_string(),
    };
    let row = |(place, one): (usize, &EraseCertificate)| {
        let statement = &one.statement;
        let verdict = match statement.verdict {
            Verdict::Erased => "erased",
            Verdict::Kept => "kept",
            Verdict::Failed => "failed",
        };
        [
            one.disk.clone(),
            format!("{:.1} GiB", statement.size_bytes as f64 / f64::from(1 << 30)),
            statement.step.clone(),
            verdict.to_owned(),
            none(statement.method.as_deref().or(statement.reason.as_deref())),
            statement.finished_at.clone(),
            outcome(place),
        ]
    };
    let columns = ["Disk", "Size", "Step", "Verdict", "Method", "Finished At", ""];
    let mark = told.erasure.as_ref().map(|mark| format!("Erasure: {mark}\n")).unwrap_or_default();
    mark + &table(columns, told.certificates.iter().enumerate().map(row))
}

fn json_of(told: &Certificates, verified: Option<&Vec<Verified>>) -> serde_json::Value {
    let mut value = json!(told);
    for (place, outcome) in verified.into_iter().flatten().enumerate() {
        let error = outcome.as_ref().err().map(ToString::to_string);
        value["certificates"][place]["verified"] = json!(error.is_none());
        value["certificates"][place]["error"] = json!(error);
    }
    value
}
