//! What happened to a node: its history, its last boot from the network, and what is proven of its disks.

use super::parts::NodePage;
use crate::html;
use crate::refusal::Refusal;
use crate::session::Visitor;
use axum::extract::{Extension, Path, State};
use farrier_engine::Conductor;
use farrier_engine::evidence::boot_trace::BootTrace;
use farrier_engine::evidence::erasing::{ErasureRecord, Statement};
use farrier_engine::records::{HistoryEntry, Severity};
use maud::{Markup, html};
use time::OffsetDateTime;

const HISTORY: [&str; 5] = ["When", "What", "About", "User", "Conductor"];
const BOOT: [&str; 4] = ["Stage", "File or address", "Sent", "When"];
const CERTIFICATES: [&str; 5] = ["Disk", "Step", "Verdict", "Method", "Accepted"];

/// `GET /page/nodes/{node}/history`
pub(crate) async fn show(
    State(conductor): State<Conductor>,
    Extension(visitor): Extension<Visitor>,
    Path(id): Path<String>,
) -> Result<Markup, Refusal> {
    let page = NodePage::open(&conductor, &id).await?;
    let (node, now) = (&page.node, page.now);
    let history = conductor.store().history(node.uuid).await?;
    let trace = conductor.store().boot_trace(node.uuid).await?;
    let erasure = conductor.evidence().certificates(&node.uuid.to_string()).await?;
    let content = html! {
        (entries(&history, now))
        (boot(trace.as_ref(), now))
        (erased(&erasure, now))
    };
    Ok(page.show(&visitor, "/history", &content))
}

/// The newest first.
fn entries(history: &[HistoryEntry], now: OffsetDateTime) -> Markup {
    html! {
        table {
            caption { "History, the newest first" }
            (html::head(&HISTORY))
            tbody { @for entry in history.iter().rev() {
                tr {
                    th scope="row" { (html::when(entry.created_at, now)) }
                    td data-label=(HISTORY[1]) {
                        @if entry.severity == Severity::Error { strong.mark { "Error" } " " }
                        (html::text(&entry.event))
                    }
                    td data-label=(HISTORY[2]) { (entry.event_type.as_str()) }
                    td data-label=(HISTORY[3]) { (html::text_or_none(entry.user.as_deref())) }
                    td data-label=(HISTORY[4]) { (html::text(&entry.conductor)) }
                }
            } }
        }
        @if history.is_empty() { p { "Nothing has happened to the node yet." } }
    }
}

fn boot(trace: Option<&BootTrace>, now: OffsetDateTime) -> Markup {
    let Some(trace) = trace.filter(|trace| !trace.is_empty()) else {
        return html! { h2 { "Boot" } p { "No boot from the network is on record." } };
    };
    html! {
        table {
            caption { "Last boot from the network" }
            (html::head(&BOOT))
            tbody { @for mark in trace.marks() {
                tr {
                    th scope="row" { (mark.stage.as_str()) }
                    td data-label=(BOOT[1]) { (html::text(&mark.what)) }
                    td data-label=(BOOT[2]) { (mark.bytes) " of " (mark.total) " bytes" }
                    td data-label=(BOOT[3]) { (html::when(mark.at, now)) }
                }
            } }
        }
    }
}

fn erased(record: &ErasureRecord, now: OffsetDateTime) -> Markup {
    let erasure = record.erasure.as_ref().map(ToString::to_string);
    html! {
        h2 { "Erasure of the disks" }
        p { (html::text(erasure.as_deref().unwrap_or("The node has not become available since it was enrolled."))) }
        @if !record.certificates.is_empty() {
            table {
                caption { "Certificates of erasure" }
                (html::head(&CERTIFICATES))
                tbody { @for certificate in &record.certificates {
                    tr {
                        th scope="row" { (html::text(&certificate.disk)) }
                        (stated(&certificate.statement))
                        td data-label=(CERTIFICATES[4]) { (html::when(certificate.accepted_at, now)) }
                    }
                } }
            }
        }
    }
}

fn stated(statement: &Statement) -> Markup {
    let (step, verdict, method) = match statement {
        Statement::Disk(disk) => {
            let verdict = serde_json::to_value(disk.verdict).unwrap_or_default();
            (&disk.step, verdict.as_str().unwrap_or_default().replace('_', " "), disk.method.as_deref())
        }
        Statement::Machine(machine) => {
            (&machine.step, format!("{} disks examined", machine.disks.len()), None)
        }
    };
    html! {
        td data-label=(CERTIFICATES[1]) { (html::text(step)) }
        td data-label=(CERTIFICATES[2]) { (verdict) }
        td data-label=(CERTIFICATES[3]) { (html::text_or_none(method)) }
    }
}
