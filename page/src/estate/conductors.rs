//! The conductors, and how many nodes each one serves.

use crate::html;
use crate::refusal::Refusal;
use farrier_engine::Conductor;
use farrier_engine::store::{NodeColumn, Position, Selection, StoreError};
use maud::{Markup, html};
use serde_json::Value;
use std::collections::BTreeMap;
use time::OffsetDateTime;

const HEAD: [&str; 5] = ["Conductor", "Conductor group", "Answers", "Nodes", "Started"];

/// Nodes that one statement reads.
const AT_A_TIME: u32 = 5000;

/// All conductors over the store.
pub(super) async fn all(conductor: &Conductor, now: OffsetDateTime) -> Result<Markup, Refusal> {
    let conductors = conductor.conductors().await?;
    let served = served(conductor).await?;
    let nodes = |name: Option<&str>| served.get(&name.map(str::to_owned)).copied().unwrap_or_default();
    let unserved = nodes(None);
    Ok(html! {
        section aria-labelledby="conductors" {
            h2 #conductors { "Conductors" }
            table {
                caption { "Conductors and the nodes that each one serves" }
                (html::head(&HEAD))
                tbody { @for known in &conductors {
                    tr {
                        th scope="row" { (html::text(&known.record.name)) }
                        td data-label=(HEAD[1]) { (html::text_or_none(Some(&known.record.conductor_group))) }
                        td data-label=(HEAD[2]) { @if known.is_alive { "yes" } @else { strong.mark { "no" } } }
                        td data-label=(HEAD[3]) { (nodes(Some(&known.record.name))) }
                        td data-label=(HEAD[4]) { (html::when(known.record.registered_at, now)) }
                    }
                } }
            }
            @if unserved > 0 {
                p.failure { "Nodes that no conductor serves: " b { (unserved) } ". No conductor has their driver, interfaces and conductor group." }
            }
        }
    })
}

/// How many nodes each conductor serves, and how many none.
async fn served(conductor: &Conductor) -> Result<BTreeMap<Option<String>, u64>, StoreError> {
    let columns = Conductor::COLUMNS_OF_LEADER.into_iter().filter_map(NodeColumn::named).collect();
    let mut selection = Selection { sort: NodeColumn::UUID, columns, ..Selection::first(AT_A_TIME) };
    let mut served = BTreeMap::new();
    loop {
        let nodes: Vec<_> = match conductor.leaders_are_alike() {
            true => {
                conductor.store().outlines(&selection).await?.into_iter().map(|node| (node, None)).collect()
            }
            false => {
                let found = conductor.store().documents(&selection).await?;
                found.into_iter().map(|(node, documents)| (node, Some(documents))).collect()
            }
        };
        let (count, last) = (nodes.len(), nodes.last().map(|(node, _)| node.uuid));
        for (node, documents) in nodes {
            let outlined = conductor.catalogue().outlined(node, documents.as_ref());
            let leader = Some(outlined.text("conductor").to_owned()).filter(|name| !name.is_empty());
            *served.entry(leader).or_default() += 1;
        }
        selection.after = last.map(|uuid| Position { value: Value::from(uuid.to_string()), uuid });
        if count < AT_A_TIME as usize {
            return Ok(served);
        }
    }
}
