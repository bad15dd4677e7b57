//! Nodes that wait: for a BMC that answers, and for whatever else.

use crate::html;
use crate::nodes::rows::{self, Row};
use crate::refusal::Refusal;
use farrier_conductor::model::{Activity, Fault, ProvisionState};
use farrier_engine::Conductor;
use farrier_engine::store::{Filter, NodeColumn, Selection};
use maud::{Markup, html};
use time::OffsetDateTime;

const REFUSING: [&str; 4] = ["Node", "State", "Driver", "Since"];
const LONGEST: [&str; 5] = ["Node", "State", "Since", "Waits for", "Until"];

/// Rows of a table.
const ROWS: u32 = 20;

/// The nodes whose BMCs refuse, or do not answer.
pub(super) async fn refusing(conductor: &Conductor, now: OffsetDateTime) -> Result<Markup, Refusal> {
    let fault = Fault::Power.as_str();
    let found = first(conductor, "fault", vec![fault.to_owned()]).await?;
    let list = format!("/page/?fault={}", fault.replace(' ', "+"));
    Ok(html! {
        section #bmcs aria-labelledby="refusing" {
            h2 #refusing { "BMCs that refuse" }
            @if found.is_empty() { p { "The conductor has the power state of each node." } } @else {
                p { "The conductor has set the fault " b { (fault) } ", since the BMC refuses or does not answer. " a href=(list) { "All of these nodes" } }
                table {
                    caption { "Nodes with the fault " (fault) }
                    (html::head(&REFUSING))
                    tbody { @for row in &found {
                        tr {
                            th scope="row" { (link(row)) }
                            td data-label=(REFUSING[1]) { @if let Some(state) = row.state() { (html::state(state)) } }
                            td data-label=(REFUSING[2]) { (html::text_or_none(row.text("driver"))) }
                            td data-label=(REFUSING[3]) { @if let Some(since) = row.since() { (html::when(since, now)) } }
                        }
                    } }
                }
            }
        }
    })
}

/// The nodes that wait for the longest time.
pub(super) async fn longest(conductor: &Conductor, now: OffsetDateTime) -> Result<Markup, Refusal> {
    let waits = ProvisionState::ALL.iter().filter(|state| state.activity() == Activity::Wait);
    let waits = waits.map(|state| state.as_str().to_owned()).collect();
    let mut rows = Vec::new();
    for row in first(conductor, "provision_state", waits).await? {
        // A node that was deleted meanwhile waits no more.
        if let Ok(explanation) = conductor.evidence().explain_record(&row.node().to_string()).await {
            rows.push((row, explanation));
        }
    }
    Ok(html! {
        section aria-labelledby="waits" {
            h2 #waits { "Longest waits" }
            @if rows.is_empty() { p { "No node waits for its agent." } } @else {
                table {
                    caption { "Nodes that wait, the longest wait first" }
                    (html::head(&LONGEST))
                    tbody { @for (row, explanation) in &rows {
                        tr {
                            th scope="row" { (link(row)) }
                            td data-label=(LONGEST[1]) { @if let Some(state) = row.state() { (html::state(state)) } }
                            td data-label=(LONGEST[2]) { @if let Some(since) = row.since() { (html::when(since, now)) } }
                            td data-label=(LONGEST[3]) { (html::text(&explanation.waits_for)) }
                            td data-label=(LONGEST[4]) {
                                @match explanation.until {
                                    Some(until) => {
                                        (html::when(until, now)) @if explanation.is_overdue { strong.mark { " Overdue" } }
                                    },
                                    None => (html::text_or_none(None)),
                                }
                            }
                        }
                    } }
                }
            }
        }
    })
}

/// The nodes with one of some values of a column that are in their states for the longest time.
async fn first(conductor: &Conductor, field: &str, values: Vec<String>) -> Result<Vec<Row>, Refusal> {
    let (Some(column), Some(sort)) = (NodeColumn::named(field), NodeColumn::named("provision_updated_at"))
    else {
        return Ok(Vec::new());
    };
    let filters = vec![Filter::IsOneOf(column, values)];
    Ok(rows::select(conductor, Selection { filters, sort, ..Selection::first(ROWS) }).await?)
}

fn link(row: &Row) -> Markup {
    html! { a href=(format!("/page/nodes/{}", row.node())) { (html::text(&row.label())) } }
}
