//! The record of a node: created, shown, changed, validated and deleted.

use super::kept::KeptNode;
use crate::wire::asked::Asked;
use crate::wire::fields::{NODE, read_new, settable};
use crate::wire::json_patch::{self, Op, Operation};
use crate::wire::reply::{Refusal, read_json};
use crate::wire::view::{Shown, View, created};
use axum::Json;
use axum::body::Bytes;
use axum::extract::{Path, State};
use axum::http::StatusCode;
use axum::response::Response;
use farrier_conductor::hardware_type::Validity;
use farrier_conductor::model::{InitialState, InterfaceKind, NewNode, Node};
use farrier_engine::Conductor;
use farrier_protocol::heartbeat::ApiVersion;
use serde_json::{Map, Value};
use std::collections::BTreeMap;

/// First version in which new nodes are not yet known to be controllable.
const ENROLL: u16 = 11;

/// First version of the word that has a new driver choose the interfaces.
const RESET_INTERFACES: u16 = 45;

/// `POST /nodes`
pub(super) async fn create(
    State(conductor): State<Conductor>,
    asked: Asked,
    body: Bytes,
) -> Result<Response, Refusal> {
    asked.done()?;
    let given = read_new(NODE, read_json(&body)?, asked.version)?;
    if !given.contains_key("driver") {
        return Err(Refusal::bad_request("driver: is missing; give the name of a hardware type"));
    }
    let initial_state = match asked.version.minor < ENROLL {
        true => InitialState::Available,
        false => InitialState::Enroll,
    };
    let node = Node::enrol(NewNode { initial_state, ..NewNode::default() }, conductor.now());
    let mut record = document(&node)?;
    record.extend(given.into_iter().filter(|(name, value)| name != "uuid" || !value.is_null()));
    let node = conductor.enrol(read_record(record)?).await?;
    let url = asked.url.clone();
    let Json(shown) = shown(&conductor, asked, &node.uuid.to_string()).await?;
    Ok(created(&url, &format!("nodes/{}", node.uuid), shown))
}

/// `GET /nodes/{node}`
pub(super) async fn show(
    State(conductor): State<Conductor>,
    asked: Asked,
    Path(id): Path<String>,
) -> Result<Json<Shown>, Refusal> {
    shown(&conductor, asked, &id).await
}

async fn shown(conductor: &Conductor, mut asked: Asked, id: &str) -> Result<Json<Shown>, Refusal> {
    let view = View::new(&asked.clone(), asked.take_fields(NODE, None)?);
    asked.done()?;
    seen(conductor, &view, id).await
}

/// How a node looks in a view.
pub(super) async fn seen(conductor: &Conductor, view: &View, id: &str) -> Result<Json<Shown>, Refusal> {
    let (outline, documents) = conductor.catalogue().document(id).await?;
    let outline = conductor.catalogue().outlined(outline, Some(&documents));
    let node = KeptNode::read(&outline, &documents).map_err(|error| {
        let reason = format!("the record of node {} cannot be read: {error}", outline.uuid);
        Refusal::new(StatusCode::INTERNAL_SERVER_ERROR, reason)
    })?;
    Ok(Json(view.of("nodes", &outline.uuid.to_string(), &node)))
}

/// `PATCH /nodes/{node}`
pub(super) async fn update(
    State(conductor): State<Conductor>,
    mut asked: Asked,
    Path(id): Path<String>,
    body: Bytes,
) -> Result<Json<Shown>, Refusal> {
    let resets = asked.take_flag("reset_interfaces", RESET_INTERFACES)?;
    asked.done()?;
    let patch: Vec<Operation> = read_json(&body)?;
    json_patch::check_length(&patch)?;
    let mut changed_fields = Vec::new();
    for operation in &patch {
        changed_fields.push(check(operation, asked.version)?);
    }
    if resets == Some(true) && !changed_fields.iter().any(|field| field == "driver") {
        return Err(Refusal::bad_request(
            "reset_interfaces: the patch changes no driver; leave the word out",
        ));
    }
    let node = conductor
        .update(&id, |node| {
            let mut record = document(&node)?;
            if resets == Some(true) {
                for kind in InterfaceKind::ALL.iter().filter(|kind| !changed_fields.contains(&kind.field())) {
                    record.insert(kind.field(), Value::Null);
                }
            }
            for operation in &patch {
                operation.apply(&mut record)?;
            }
            read_record(normal(record, &changed_fields)?)
        })
        .await?;
    shown(&conductor, asked, &node.uuid.to_string()).await
}

/// The field that an operation changes, if it may.
fn check(operation: &Operation, version: ApiVersion) -> Result<String, Refusal> {
    let name = operation.field()?;
    if name == "traits" {
        return Err(Refusal::bad_request(
            "traits: are not changed by a patch, but below /nodes/{node}/traits",
        ));
    }
    let field =
        settable(NODE, &name, version, |field| field.on_patch || operation.op == Op::Test, "by a patch")?;
    match operation.value() {
        Some(value) if operation.is_of_whole_field() => drop(field.read(value.clone())?),
        Some(value) if crate::wire::fields::has_mask(value) => {
            return Err(Refusal::bad_request(format!(
                "{name}: the mask stands for a secret; give the secret itself, or leave its key out"
            )));
        }
        _ => {}
    }
    Ok(name)
}

/// A record whose changed fields are as records keep them; those that were removed are empty.
fn normal(mut record: Map<String, Value>, changed: &[String]) -> Result<Map<String, Value>, Refusal> {
    for field in NODE.iter().filter(|field| changed.iter().any(|name| name == field.name)) {
        let value = record.remove(field.name).unwrap_or_default();
        let value = match field.is_masked {
            // What was not changed within it may be the mask that is kept for the config drive.
            true => field
                .kind
                .read(value)
                .map_err(|reason| Refusal::bad_request(format!("{}: {reason}", field.name)))?,
            false => field.read(value)?,
        };
        record.insert(field.name.to_owned(), value);
    }
    Ok(record)
}

fn document(node: &Node) -> Result<Map<String, Value>, Refusal> {
    match serde_json::to_value(node) {
        Ok(Value::Object(record)) => Ok(record),
        _ => Err(Refusal::new(
            StatusCode::INTERNAL_SERVER_ERROR,
            "the record of the node cannot be written as JSON",
        )),
    }
}

fn read_record(record: Map<String, Value>) -> Result<Node, Refusal> {
    serde_json::from_value(Value::Object(record))
        .map_err(|error| Refusal::bad_request(format!("the node cannot be as it is asked for: {error}")))
}

/// `DELETE /nodes/{node}`
pub(super) async fn delete(
    State(conductor): State<Conductor>,
    Path(id): Path<String>,
) -> Result<StatusCode, Refusal> {
    conductor.remove_node(&id).await?;
    Ok(StatusCode::NO_CONTENT)
}

/// `GET /nodes/{node}/validate`
pub(super) async fn validate(
    State(conductor): State<Conductor>,
    Path(id): Path<String>,
) -> Result<Json<BTreeMap<InterfaceKind, Validity>>, Refusal> {
    Ok(Json(conductor.machines().validate(&id).await?))
}
