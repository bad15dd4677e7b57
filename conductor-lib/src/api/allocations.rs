//! Allocations: what users want of any node, and the node that they got.

use super::asked::Asked;
use super::fields::{ALLOCATION, read_new, settable};
use super::json_patch::{self, Operation};
use super::listing::{Paging, Piece, Reading, Source, answer};
use super::reply::{Refusal, read_json};
use super::view::{View, links};
use crate::conductor::Conductor;
use crate::error::Error;
use crate::model::{Allocation, AllocationState};
use crate::store::AllocationSelection;
use axum::Json;
use axum::body::Bytes;
use axum::extract::{Path, State};
use axum::http::StatusCode;
use axum::http::header::LOCATION;
use axum::response::{IntoResponse, Response};
use axum::routing::{MethodRouter, get};
use serde_json::{Map, Value, json};
use uuid::Uuid;

/// First versions: of allocations, and of their PATCH.
const SINCE: u16 = 52;
const PATCH: u16 = 57;

/// Allocations that are read at a time.
const STEP: u32 = 500;

pub(super) fn routes() -> Vec<(&'static str, MethodRouter<Conductor>)> {
    vec![
        ("/allocations", get(list).post(create)),
        ("/allocations/{allocation}", get(show).patch(update).delete(delete)),
        ("/nodes/{node}/allocation", get(of_node).delete(delete_of_node)),
    ]
}

async fn list(State(conductor): State<Conductor>, mut asked: Asked) -> Result<Response, Refusal> {
    asked.since(SINCE)?;
    let url = asked.same_list("allocations");
    let view = View::new(&asked.clone(), asked.take_fields(ALLOCATION, None)?);
    let paging = Paging::take(&mut asked)?;
    let mut selection = AllocationSelection::first(0);
    if let Some(node) = asked.take("node", SINCE)? {
        selection.node = Some(conductor.find(&node).await?.node.uuid);
    }
    if let Some(state) = asked.take("state", SINCE)? {
        let named = AllocationState::named(&state);
        selection.state = Some(named.ok_or_else(|| {
            Refusal::bad_request(format!("state: {state:?} must be one of: allocating, active, error"))
        })?);
    }
    selection.resource_class = asked.take("resource_class", SINCE)?;
    selection.owner = asked.take("owner", 60)?;
    asked.done()?;
    if let Some(marker) = &paging.marker {
        selection.after = Some(conductor.allocation(marker).await?.uuid);
    }
    answer("allocations", Allocations { conductor, view, selection }, STEP, &paging, url).await
}

/// Allocations as they look in the answer.
struct Allocations {
    conductor: Conductor,
    view: View,
    selection: AllocationSelection,
}

impl Source for Allocations {
    fn next(&mut self, most: u32) -> Reading<'_> {
        Box::pin(async move {
            self.selection.limit = most;
            let found = self.conductor.store().allocations(&self.selection).await.map_err(Error::from)?;
            let last = found.last().map(|allocation| allocation.uuid);
            self.selection.after = last.or(self.selection.after);
            let members = found.iter().map(|allocation| shown(&self.view, allocation)).collect();
            Ok(Piece { count: found.len(), members, last })
        })
    }
}

fn shown(view: &View, allocation: &Allocation) -> Value {
    view.of("allocations", &allocation.uuid.to_string(), document(allocation))
}

fn document(allocation: &Allocation) -> Map<String, Value> {
    match serde_json::to_value(allocation) {
        Ok(Value::Object(fields)) => fields,
        _ => Map::new(),
    }
}

async fn show(
    State(conductor): State<Conductor>,
    mut asked: Asked,
    Path(id): Path<String>,
) -> Result<Json<Value>, Refusal> {
    asked.since(SINCE)?;
    let view = View::new(&asked.clone(), asked.take_fields(ALLOCATION, None)?);
    asked.done()?;
    Ok(Json(shown(&view, &conductor.allocation(&id).await?)))
}

async fn create(
    State(conductor): State<Conductor>,
    mut asked: Asked,
    body: Bytes,
) -> Result<impl IntoResponse, Refusal> {
    asked.since(SINCE)?;
    let mut given = read_new(ALLOCATION, read_json(&body)?, asked.version)?;
    let mut candidates = Vec::new();
    for name in
        given.remove("candidate_nodes").iter().flat_map(|names| names.as_array().into_iter().flatten())
    {
        let node = conductor.find(name.as_str().unwrap_or_default()).await;
        candidates
            .push(node.map_err(|error| Refusal::bad_request(format!("candidate_nodes: {error}")))?.node.uuid);
    }
    given.retain(|_, value| !value.is_null());
    given.entry("uuid").or_insert_with(|| Uuid::new_v4().to_string().into());
    given.insert("candidate_nodes".into(), json!(candidates));
    given.insert("state".into(), AllocationState::Allocating.as_str().into());
    given.insert("created_at".into(), document_time(&conductor));
    let allocation = serde_json::from_value(Value::Object(given)).map_err(|error| {
        Refusal::bad_request(format!("the allocation cannot be as it is asked for: {error}"))
    })?;
    let allocation = conductor.create_allocation(allocation).await?;
    let view = View::new(&asked.clone(), asked.take_fields(ALLOCATION, None)?);
    let place = links(&asked.url, &format!("allocations/{}", allocation.uuid))[0]["href"].clone();
    let place = place.as_str().unwrap_or_default().to_owned();
    Ok((StatusCode::CREATED, [(LOCATION, place)], Json(shown(&view, &allocation))))
}

fn document_time(conductor: &Conductor) -> Value {
    use time::format_description::well_known::Rfc3339;
    conductor.now().format(&Rfc3339).unwrap_or_default().into()
}

async fn update(
    State(conductor): State<Conductor>,
    mut asked: Asked,
    Path(id): Path<String>,
    body: Bytes,
) -> Result<Json<Value>, Refusal> {
    asked.since(PATCH)?;
    let patch: Vec<Operation> = read_json(&body)?;
    json_patch::check_length(&patch)?;
    let mut changed = Vec::new();
    for operation in &patch {
        let name = operation.field()?;
        changed.push(settable(ALLOCATION, &name, asked.version, |field| field.on_patch, "by a patch")?);
    }
    let allocation = conductor
        .update_allocation(&id, |allocation| {
            let mut record = document(&allocation);
            for operation in &patch {
                operation.apply(&mut record)?;
            }
            for field in &changed {
                let value = record.remove(field.name).unwrap_or_default();
                record.insert(field.name.to_owned(), field.read(value)?);
            }
            serde_json::from_value(Value::Object(record)).map_err(|error| {
                Refusal::bad_request(format!("the allocation cannot be as it is asked for: {error}"))
            })
        })
        .await?;
    let view = View::new(&asked.clone(), asked.take_fields(ALLOCATION, None)?);
    Ok(Json(shown(&view, &allocation)))
}

async fn delete(
    State(conductor): State<Conductor>,
    asked: Asked,
    Path(id): Path<String>,
) -> Result<StatusCode, Refusal> {
    asked.since(SINCE)?;
    conductor.delete_allocation(&id).await?;
    Ok(StatusCode::NO_CONTENT)
}

/// The identity of the allocation that has a node.
async fn allocation_of(conductor: &Conductor, node: &str) -> Result<String, Refusal> {
    let node = conductor.find(node).await?.node;
    let none = || Refusal::new(StatusCode::NOT_FOUND, format!("node {} has no allocation", node.label()));
    node.allocation_uuid.map(|uuid| uuid.to_string()).ok_or_else(none)
}

async fn of_node(
    State(conductor): State<Conductor>,
    asked: Asked,
    Path(node): Path<String>,
) -> Result<Json<Value>, Refusal> {
    let id = allocation_of(&conductor, &node).await?;
    show(State(conductor), asked, Path(id)).await
}

async fn delete_of_node(
    State(conductor): State<Conductor>,
    asked: Asked,
    Path(node): Path<String>,
) -> Result<StatusCode, Refusal> {
    let id = allocation_of(&conductor, &node).await?;
    delete(State(conductor), asked, Path(id)).await
}
