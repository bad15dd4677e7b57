//! The history of a node, as in Ironic's API from version 1.78 on.

use crate::wire::asked::Asked;
use crate::wire::fields::{HISTORY, HISTORY_BRIEF};
use crate::wire::listing::{Given, Paging, answer};
use crate::wire::reply::Refusal;
use crate::wire::routes::part;
use crate::wire::view::{Shown, View};
use axum::Json;
use axum::extract::{Path, State};
use axum::http::StatusCode;
use axum::response::Response;
use axum::routing::{MethodRouter, get};
use farrier_engine::Conductor;
use farrier_engine::Error;
use farrier_engine::records::HistoryEntry;
use serde_json::{Map, Value};
use uuid::Uuid;

/// First version with histories.
const SINCE: u16 = 78;

pub(crate) fn routes() -> Vec<(&'static str, MethodRouter<Conductor>)> {
    vec![
        ("/nodes/{node}/history", part(SINCE, get(list))),
        ("/nodes/{node}/history/{entry}", part(SINCE, get(show))),
    ]
}

async fn list(
    State(conductor): State<Conductor>,
    mut asked: Asked,
    Path(id): Path<String>,
) -> Result<Response, Refusal> {
    asked.part_since(SINCE)?;
    let node = conductor.find(&id).await?.node.uuid;
    let url = asked.same_list(&collection(node));
    let fields = asked.take_fields(HISTORY, Some(HISTORY_BRIEF))?;
    let paging = Paging::take_sorted(&mut asked, HISTORY)?;
    let view = View::new(&asked, fields).sorted_by(paging.sort_key());
    asked.done()?;
    let entries = entries(&conductor, node).await?;
    let entries =
        entries.iter().map(|entry| view.member(&collection(node), entry.uuid, &document(entry))).collect();
    let entries = Given::of(&paging, entries)?;
    let step = entries.step();
    answer("history", entries, step, &paging, url).await
}

async fn show(
    State(conductor): State<Conductor>,
    asked: Asked,
    Path((id, entry)): Path<(String, String)>,
) -> Result<Json<Shown>, Refusal> {
    asked.part_since(SINCE)?;
    let node = conductor.find(&id).await?.node.uuid;
    let view = View::new(&asked, HISTORY.iter().collect());
    let found = entries(&conductor, node).await?.into_iter().find(|one| one.uuid.to_string() == entry);
    Ok(Json(shown(&view, node, &found.ok_or_else(|| unknown(&entry))?)))
}

async fn entries(conductor: &Conductor, node: Uuid) -> Result<Vec<HistoryEntry>, Error> {
    Ok(conductor.store().history(node).await?)
}

fn unknown(entry: &str) -> Refusal {
    Refusal::new(StatusCode::NOT_FOUND, format!("the history of the node has no entry {entry:?}"))
}

fn collection(node: Uuid) -> String {
    format!("nodes/{node}/history")
}

fn shown(view: &View, node: Uuid, entry: &HistoryEntry) -> Shown {
    view.of(&collection(node), &entry.uuid.to_string(), &document(entry))
}

fn document(entry: &HistoryEntry) -> Map<String, Value> {
    match serde_json::to_value(entry) {
        Ok(Value::Object(fields)) => fields,
        _ => Map::new(),
    }
}
