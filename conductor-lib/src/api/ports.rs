//! Ports: the network cards of machines, which are created, changed and deleted by themselves.

use super::asked::Asked;
use super::fields::{PORT, PORT_BRIEF, read_new, settable};
use super::json_patch::{self, Op, Operation};
use super::listing::{Paging, Piece, Reading, Source, answer};
use super::reply::{Refusal, read_json};
use super::view::{View, links};
use crate::conductor::Conductor;
use crate::error::Error;
use crate::model::{MacAddress, Port};
use crate::store::{OwnedPort, PortSelection};
use axum::Json;
use axum::body::Bytes;
use axum::extract::{Path, State};
use axum::http::StatusCode;
use axum::http::header::LOCATION;
use axum::response::{IntoResponse, Response};
use axum::routing::{MethodRouter, get};
use serde_json::{Map, Value, json};
use uuid::Uuid;

/// Ports that are read at a time.
const STEP: u32 = 500;

/// First version in which the node of a port may be called by its name.
const NODE_NAME: u16 = 94;

pub(super) fn routes() -> Vec<(&'static str, MethodRouter<Conductor>)> {
    vec![
        ("/ports", get(brief).post(create)),
        ("/ports/detail", get(detail)),
        ("/ports/{port}", get(show).patch(update).delete(delete)),
        ("/nodes/{node}/ports", get(of_node)),
        ("/nodes/{node}/ports/detail", get(detail_of_node)),
    ]
}

async fn brief(State(conductor): State<Conductor>, asked: Asked) -> Result<Response, Refusal> {
    list(conductor, asked, "ports", None, Some(PORT_BRIEF)).await
}

async fn detail(State(conductor): State<Conductor>, asked: Asked) -> Result<Response, Refusal> {
    list(conductor, asked, "ports/detail", None, None).await
}

async fn of_node(
    State(conductor): State<Conductor>,
    asked: Asked,
    Path(node): Path<String>,
) -> Result<Response, Refusal> {
    let path = format!("nodes/{node}/ports");
    list(conductor, asked, &path, Some(node), Some(PORT_BRIEF)).await
}

async fn detail_of_node(
    State(conductor): State<Conductor>,
    asked: Asked,
    Path(node): Path<String>,
) -> Result<Response, Refusal> {
    let path = format!("nodes/{node}/ports/detail");
    list(conductor, asked, &path, Some(node), None).await
}

async fn list(
    conductor: Conductor,
    mut asked: Asked,
    path: &str,
    node: Option<String>,
    usual: Option<&'static [&'static str]>,
) -> Result<Response, Refusal> {
    let url = asked.same_list(path);
    let fields = asked.take_fields(PORT, usual)?;
    let view = View::new(&asked, fields);
    let paging = Paging::take(&mut asked)?;
    let address: Option<MacAddress> = asked.take_as("address", 1, "a MAC address")?;
    let node = match (node, asked.take("node", 6)?, asked.take("node_uuid", 1)?) {
        (Some(node), _, _) | (_, Some(node), _) | (_, _, Some(node)) => {
            Some(conductor.find(&node).await?.node.uuid)
        }
        (None, None, None) => None,
    };
    let has_group = asked.take("portgroup", 24)?.is_some();
    asked.done()?;
    let after = match &paging.marker {
        Some(marker) => Some(conductor.port(marker).await?.port.uuid),
        None => None,
    };
    let selection = PortSelection { node, address, after, limit: 0 };
    answer("ports", Ports { conductor, view, selection, is_empty: has_group }, STEP, &paging, url).await
}

/// Ports as they look in the answer.
struct Ports {
    conductor: Conductor,
    view: View,
    selection: PortSelection,
    /// There is no group of ports, and so none is in one.
    is_empty: bool,
}

impl Source for Ports {
    fn next(&mut self, most: u32) -> Reading<'_> {
        Box::pin(async move {
            self.selection.limit = if self.is_empty { 0 } else { most };
            let ports = self.conductor.store().ports(&self.selection).await.map_err(Error::from)?;
            let last = ports.last().map(|owned| owned.port.uuid);
            self.selection.after = last.or(self.selection.after);
            Ok(Piece {
                count: ports.len(),
                members: ports.iter().map(|owned| shown(&self.view, owned)).collect(),
                last,
            })
        })
    }
}

fn shown(view: &View, owned: &OwnedPort) -> Value {
    view.of("ports", &owned.port.uuid.to_string(), document(owned))
}

/// A port with the fields that its record does not have.
fn document(owned: &OwnedPort) -> Map<String, Value> {
    let Ok(Value::Object(mut port)) = serde_json::to_value(&owned.port) else { return Map::new() };
    port.insert("node_uuid".into(), json!(owned.node));
    port
}

async fn show(
    State(conductor): State<Conductor>,
    mut asked: Asked,
    Path(id): Path<String>,
) -> Result<Json<Value>, Refusal> {
    let fields = asked.take_fields(PORT, None)?;
    asked.done()?;
    Ok(Json(shown(&View::new(&asked, fields), &conductor.port(&id).await?)))
}

async fn create(
    State(conductor): State<Conductor>,
    mut asked: Asked,
    body: Bytes,
) -> Result<impl IntoResponse, Refusal> {
    let mut given: Map<String, Value> = read_json(&body)?;
    if let Some(node) = given.get("node_uuid").and_then(Value::as_str).map(str::to_owned)
        && node.parse::<Uuid>().is_err()
    {
        asked.needs(NODE_NAME, "node_uuid that is a name")?;
        let found = conductor.find(&node).await.map_err(bad_node)?;
        given.insert("node_uuid".into(), found.node.uuid.to_string().into());
    }
    let mut given = read_new(PORT, given, asked.version)?;
    let Some(node) = given.remove("node_uuid").and_then(|node| node.as_str().map(str::to_owned)) else {
        return Err(Refusal::bad_request("node_uuid: is missing; give the node that the port belongs to"));
    };
    if !given.contains_key("address") {
        return Err(Refusal::bad_request("address: is missing; give the MAC address of the port"));
    }
    let owned = conductor.create_port(&node, read_record(given)?).await.map_err(bad_node)?;
    let fields = asked.take_fields(PORT, None)?;
    let place = links(&asked.url, &format!("ports/{}", owned.port.uuid))[0]["href"].clone();
    let shown = Json(shown(&View::new(&asked, fields), &owned));
    Ok((StatusCode::CREATED, [(LOCATION, place.as_str().unwrap_or_default().to_owned())], shown))
}

/// A node that is named in a body and does not exist makes the body wrong, not the path.
fn bad_node(error: Error) -> Refusal {
    match error {
        Error::NodeNotFound(_) => Refusal::bad_request(format!("node_uuid: {error}")),
        error => error.into(),
    }
}

/// Without what is null or kept elsewhere.
fn read_record(mut record: Map<String, Value>) -> Result<Port, Refusal> {
    record.remove("node_uuid");
    record.remove("portgroup_uuid");
    record.retain(|_, value| !value.is_null());
    serde_json::from_value(Value::Object(record))
        .map_err(|error| Refusal::bad_request(format!("the port cannot be as it is asked for: {error}")))
}

async fn update(
    State(conductor): State<Conductor>,
    mut asked: Asked,
    Path(id): Path<String>,
    body: Bytes,
) -> Result<Json<Value>, Refusal> {
    let patch: Vec<Operation> = read_json(&body)?;
    json_patch::check_length(&patch)?;
    let mut changed = Vec::new();
    for operation in &patch {
        let name = operation.field()?;
        let may = |field: &super::fields::Field| field.on_patch || operation.op == Op::Test;
        changed.push(settable(PORT, &name, asked.version, may, "by a patch")?);
    }
    let owned = conductor
        .update_port(&id, |owned| {
            let mut record = document(&owned);
            for field in &changed {
                record.entry(field.name).or_insert_with(|| field.kind.default());
            }
            for operation in &patch {
                operation.apply(&mut record)?;
            }
            for field in &changed {
                let value = record.remove(field.name).unwrap_or_default();
                record.insert(field.name.to_owned(), field.read(value)?);
            }
            if record.get("node_uuid") != Some(&json!(owned.node)) {
                return Err(Refusal::bad_request(
                    "node_uuid: a port stays with its node; delete it and create it at the other one",
                ));
            }
            read_record(record)
        })
        .await?;
    let fields = asked.take_fields(PORT, None)?;
    Ok(Json(shown(&View::new(&asked, fields), &owned)))
}

async fn delete(State(conductor): State<Conductor>, Path(id): Path<String>) -> Result<StatusCode, Refusal> {
    conductor.delete_port(&id).await?;
    Ok(StatusCode::NO_CONTENT)
}
