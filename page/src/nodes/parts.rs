//! The parts of the list that have changed, each of which replaces the one that a page has.

use super::{rows, view};
use crate::address::part::{Part, STATES};
use crate::address::query::ListQuery;
use crate::form::Form;
use crate::refusal::Refusal;
use axum::extract::{RawQuery, State};
use farrier_engine::Conductor;
use maud::{Markup, html};
use uuid::Uuid;

/// Most rows of an answer: those of a page.
const MOST: usize = 100;

/// `GET /page/parts`
pub(crate) async fn show(
    State(conductor): State<Conductor>,
    RawQuery(query): RawQuery,
) -> Result<Markup, Refusal> {
    let asked = Form::of(query.unwrap_or_default().as_bytes());
    let query = ListQuery::read(asked.text("list"))?;
    let parts: Option<Vec<_>> =
        asked.fields().filter(|(name, _)| *name == "part").map(|(_, id)| Part::named(id)).collect();
    let parts = parts.filter(|parts| parts.len() <= MOST + 1);
    let parts = parts.ok_or_else(|| Refusal::bad_request("The address names a part that no list has."))?;
    let nodes = parts.iter().filter_map(|part| match part {
        Part::Row(uuid) => Some(*uuid),
        Part::States => None,
    });
    let nodes: Vec<Uuid> = nodes.collect();
    let found = if nodes.is_empty() { Vec::new() } else { rows::of(&conductor, &nodes).await? };
    let counts = match parts.contains(&Part::States) {
        true => Some(conductor.store().provision_states().await?),
        false => None,
    };
    let now = conductor.now();
    let gone = nodes.iter().filter(|node| !found.iter().any(|row| row.node() == **node));
    Ok(html! {
        @if let Some(counts) = counts { (part(STATES, "outerMorph", &view::states(&query, &counts))) }
        @for row in &found { (part(&Part::Row(row.node()).to_string(), "outerMorph", &view::line(row, now))) }
        @for node in gone { (part(&Part::Row(*node).to_string(), "delete", &html! {})) }
    })
}

/// A part by which htmx replaces the one with the same `id`.
fn part(id: &str, how: &str, content: &Markup) -> Markup {
    html! { hx-partial hx-target=(format!("#{id}")) hx-swap=(how) { (content) } }
}
