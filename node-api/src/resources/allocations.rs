//! Allocations: what users want of any node, and the node that they got.

use crate::wire::asked::Asked;
use crate::wire::fields::{ALLOCATION, read_new};
use crate::wire::listing::{Paging, Successive, answer_successive};
use crate::wire::patch::Patch;
use crate::wire::reply::{Refusal, read_json};
use crate::wire::routes::part;
use crate::wire::view::{Shown, View, created};
use axum::Json;
use axum::body::Bytes;
use axum::extract::{Path, State};
use axum::http::StatusCode;
use axum::response::Response;
use axum::routing::{MethodRouter, get};
use farrier_engine::Conductor;
use farrier_engine::Error;
use farrier_engine::records::{Allocation, AllocationState};
use farrier_engine::store::AllocationSelection;
use serde_json::{Map, Value, json};
use uuid::Uuid;

/// First versions: of allocations, of their PATCH, and of those for a node that has its instance already.
const SINCE: u16 = 52;
const PATCH: u16 = 57;
const BACKFILL: u16 = 58;

/// Allocations that are read at a time.
const STEP: u32 = 500;

pub(crate) fn routes() -> Vec<(&'static str, MethodRouter<Conductor>)> {
    vec![
        ("/allocations", get(list).post(create)),
        ("/allocations/{allocation}", get(show).patch(update).delete(delete)),
        ("/nodes/{node}/allocation", part(SINCE, get(of_node).delete(delete_of_node))),
    ]
}

async fn list(State(conductor): State<Conductor>, mut asked: Asked) -> Result<Response, Refusal> {
    asked.since(SINCE)?;
    let url = asked.same_list("allocations");
    let fields = asked.take_fields(ALLOCATION, None)?;
    let paging = Paging::take_sorted(&mut asked, ALLOCATION)?;
    let view = View::new(&asked, fields).sorted_by(paging.sort_key());
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
        selection.after = Some(conductor.catalogue().allocation(marker).await?.uuid);
    }
    let after = selection.after;
    let read = move |after: Option<Uuid>, limit: u32| {
        let (conductor, view) = (conductor.clone(), view.clone());
        let selection = AllocationSelection { after, limit, ..selection.clone() };
        async move {
            let found = conductor.store().allocations(&selection).await?;
            let members = found
                .iter()
                .map(|allocation| view.member("allocations", allocation.uuid, &document(allocation)));
            Ok::<_, Error>(members.collect())
        }
    };
    answer_successive("allocations", Successive { after, read }, STEP, &paging, url).await
}

fn shown(view: &View, allocation: &Allocation) -> Shown {
    view.of("allocations", &allocation.uuid.to_string(), &document(allocation))
}

fn read(record: Map<String, Value>) -> Result<Allocation, Refusal> {
    serde_json::from_value(Value::Object(record)).map_err(|error| {
        Refusal::bad_request(format!("the allocation cannot be as it is asked for: {error}"))
    })
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
) -> Result<Json<Shown>, Refusal> {
    asked.since(SINCE)?;
    let view = View::new(&asked.clone(), asked.take_fields(ALLOCATION, None)?);
    asked.done()?;
    Ok(Json(shown(&view, &conductor.catalogue().allocation(&id).await?)))
}

async fn create(
    State(conductor): State<Conductor>,
    mut asked: Asked,
    body: Bytes,
) -> Result<Response, Refusal> {
    asked.since(SINCE)?;
    let mut given: Map<String, Value> = read_json(&body)?;
    let node = given.remove("node").filter(|node| !node.is_null());
    if node.is_some() {
        asked.needs(BACKFILL, "node")?;
    }
    let mut given = read_new(ALLOCATION, given, asked.version)?;
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
    let allocation = match node {
        Some(node) => {
            let node = node.as_str().unwrap_or_default();
            let backfilled = conductor.catalogue().backfill_allocation(read(given)?, node).await;
            backfilled.map_err(|error| match error {
                Error::NodeNotFound(_) => Refusal::bad_request(format!("node: {error}")),
                error => error.into(),
            })?
        }
        None => conductor.catalogue().create_allocation(read(given)?).await?,
    };
    let view = View::new(&asked.clone(), asked.take_fields(ALLOCATION, None)?);
    let path = format!("allocations/{}", allocation.uuid);
    Ok(created(&asked.url, &path, shown(&view, &allocation)))
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
) -> Result<Json<Shown>, Refusal> {
    asked.since(PATCH)?;
    let patch = Patch::read(&body, ALLOCATION, asked.version)?;
    let change = |before: Allocation| read(patch.apply(document(&before))?);
    let allocation = conductor.catalogue().update_allocation(&id, change).await?;
    let view = View::new(&asked.clone(), asked.take_fields(ALLOCATION, None)?);
    Ok(Json(shown(&view, &allocation)))
}

async fn delete(
    State(conductor): State<Conductor>,
    asked: Asked,
    Path(id): Path<String>,
) -> Result<StatusCode, Refusal> {
    asked.since(SINCE)?;
    conductor.catalogue().delete_allocation(&id).await?;
    Ok(StatusCode::NO_CONTENT)
}

/// The identity of the allocation that has a node.
async fn allocation_of(conductor: &Conductor, node: &str) -> Result<String, Refusal> {
    let node = conductor.find(node).await.map_err(|error| match error {
        Error::NodeNotFound(_) => Refusal::bad_request(error.to_string()),
        error => error.into(),
    })?;
    let node = node.node;
    let none = || Refusal::new(StatusCode::NOT_FOUND, format!("node {} has no allocation", node.label()));
    node.allocation_uuid.map(|uuid| uuid.to_string()).ok_or_else(none)
}

async fn of_node(
    State(conductor): State<Conductor>,
    asked: Asked,
    Path(node): Path<String>,
) -> Result<Json<Shown>, Refusal> {
    asked.part_since(SINCE)?;
    let id = allocation_of(&conductor, &node).await?;
    show(State(conductor), asked, Path(id)).await
}

async fn delete_of_node(
    State(conductor): State<Conductor>,
    asked: Asked,
    Path(node): Path<String>,
) -> Result<StatusCode, Refusal> {
    asked.part_since(SINCE)?;
    let id = allocation_of(&conductor, &node).await?;
    delete(State(conductor), asked, Path(id)).await
}
