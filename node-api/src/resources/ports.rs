//! Ports: the network cards of machines, which are created, changed and deleted by themselves.

use crate::wire::asked::Asked;
use crate::wire::fields::{PORT, PORT_BRIEF, read_new};
use crate::wire::listing::{Given, Paging, Successive, answer, answer_successive};
use crate::wire::patch::Patch;
use crate::wire::reply::{Refusal, read_json};
use crate::wire::view::{Member, Shown, View, created};
use axum::Json;
use axum::body::Bytes;
use axum::extract::{Path, State};
use axum::http::StatusCode;
use axum::response::Response;
use axum::routing::{MethodRouter, get};
use farrier_conductor::model::{MacAddress, Port, is_name};
use farrier_engine::Conductor;
use farrier_engine::Error;
use farrier_engine::records::ResourceKind;
use farrier_engine::store::{OwnedPort, PortSelection};
use serde_json::{Map, Value, json};
use uuid::Uuid;

/// Ports that are read at a time.
const STEP: u32 = 500;

/// The key of the group in the record of a port for agents.
const GROUP: &str = "portgroup_id";

/// First version in which ports are in groups.
const IN_GROUPS: u16 = 24;

/// First version in which ports have names.
const NAME: u16 = 88;

/// First version in which the node of a port may be called by its name.
const NODE_NAME: u16 = 94;

pub(crate) fn routes() -> Vec<(&'static str, MethodRouter<Conductor>)> {
    vec![
        ("/ports", get(brief).post(create)),
        ("/ports/detail", get(detail)),
        ("/ports/{port}", get(show).patch(update).delete(delete)),
        ("/portgroups/{portgroup}/ports", get(of_port_group)),
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

async fn of_port_group(
    State(conductor): State<Conductor>,
    mut asked: Asked,
    Path(group): Path<String>,
) -> Result<Response, Refusal> {
    asked.since(IN_GROUPS)?;
    let url = asked.same_list(&format!("portgroups/{group}/ports"));
    let fields = asked.take_fields(PORT, Some(PORT_BRIEF))?;
    let paging = Paging::take_sorted(&mut asked, PORT)?;
    let view = View::new(&asked, fields).sorted_by(paging.sort_key());
    asked.done()?;
    list_of_group(&conductor, &view, &group, &paging, url).await
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
    let paging = Paging::take_sorted(&mut asked, PORT)?;
    let view = View::new(&asked, fields).sorted_by(paging.sort_key());
    let address: Option<MacAddress> = asked.take_as("address", 1, "a MAC address")?;
    let node = match (node, asked.take("node", 6)?, asked.take("node_uuid", 1)?) {
        (Some(node), _, _) | (_, Some(node), _) | (_, _, Some(node)) => {
            Some(conductor.find(&node).await?.node.uuid)
        }
        (None, None, None) => None,
    };
    let group = asked.take("portgroup", IN_GROUPS)?;
    asked.done()?;
    if let Some(group) = group {
        return list_of_group(&conductor, &view, &group, &paging, url).await;
    }
    let after = match &paging.marker {
        Some(marker) => Some(conductor.catalogue().port(marker).await?.port.uuid),
        None => None,
    };
    let read = move |after: Option<Uuid>, limit: u32| {
        let (conductor, view) = (conductor.clone(), view.clone());
        let selection = PortSelection { node, address: address.clone(), after, limit };
        async move {
            let ports = conductor.store().ports(&selection).await?;
            Ok::<_, Error>(ports.iter().map(|owned| member(&view, owned)).collect())
        }
    };
    answer_successive("ports", Successive { after, read }, STEP, &paging, url).await
}

/// The ports of a group, which are all of one node.
async fn list_of_group(
    conductor: &Conductor,
    view: &View,
    group: &str,
    paging: &Paging,
    url: String,
) -> Result<Response, Refusal> {
    let group = conductor.catalogue().resource(ResourceKind::PortGroup, group).await?;
    let node = group.node_uuid.unwrap_or_default();
    let record = conductor.store().get(node).await.map_err(Error::from)?;
    let ports = record.into_iter().flat_map(|record| record.node.ports);
    let ports = ports.filter(|port| port.portgroup_id == Some(group.uuid));
    let members = ports.map(|port| member(view, &OwnedPort { node, port })).collect();
    let members = Given::of(paging, members)?;
    let step = members.step();
    answer("ports", members, step, paging, url).await
}

fn member(view: &View, owned: &OwnedPort) -> Member {
    view.member("ports", owned.port.uuid, &document(owned))
}

fn shown(view: &View, owned: &OwnedPort) -> Shown {
    view.of("ports", &owned.port.uuid.to_string(), &document(owned))
}

/// Refuses what no port could be called by: its name is none before it has one, and its address never is.
fn check_ident(asked: &Asked, id: &str) -> Result<(), Refusal> {
    let may_be_name = asked.version.minor >= NAME && id.parse::<MacAddress>().is_err() && is_name(id);
    match may_be_name || id.parse::<Uuid>().is_ok() {
        true => Ok(()),
        false => Err(Refusal::no_uuid("port", id)),
    }
}

/// A port with the fields that its record does not have.
fn document(owned: &OwnedPort) -> Map<String, Value> {
    let Ok(Value::Object(mut port)) = serde_json::to_value(&owned.port) else { return Map::new() };
    port.insert("node_uuid".into(), json!(owned.node));
    let group = port.remove(GROUP).unwrap_or_default();
    port.insert("portgroup_uuid".into(), group);
    port
}

async fn show(
    State(conductor): State<Conductor>,
    mut asked: Asked,
    Path(id): Path<String>,
) -> Result<Json<Shown>, Refusal> {
    let fields = asked.take_fields(PORT, None)?;
    asked.done()?;
    check_ident(&asked, &id)?;
    Ok(Json(shown(&View::new(&asked, fields), &conductor.catalogue().port(&id).await?)))
}

async fn create(
    State(conductor): State<Conductor>,
    mut asked: Asked,
    body: Bytes,
) -> Result<Response, Refusal> {
    let mut given: Map<String, Value> = read_json(&body)?;
    if let Some(node) = given.get("node_uuid").and_then(Value::as_str).map(str::to_owned)
        && node.parse::<Uuid>().is_err()
    {
        if asked.version.minor < NODE_NAME {
            return Err(Refusal::bad_request(format!(
                "node_uuid: {node:?} must be a UUID before version 1.{NODE_NAME}"
            )));
        }
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
    let owned = conductor.catalogue().create_port(&node, read_record(given)?).await.map_err(bad_node)?;
    let fields = asked.take_fields(PORT, None)?;
    let path = format!("ports/{}", owned.port.uuid);
    Ok(created(&asked.url, &path, shown(&View::new(&asked, fields), &owned)))
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
    if let Some(group) = record.remove("portgroup_uuid") {
        record.insert(GROUP.to_owned(), group);
    }
    record.retain(|_, value| !value.is_null());
    serde_json::from_value(Value::Object(record))
        .map_err(|error| Refusal::bad_request(format!("the port cannot be as it is asked for: {error}")))
}

async fn update(
    State(conductor): State<Conductor>,
    mut asked: Asked,
    Path(id): Path<String>,
    body: Bytes,
) -> Result<Json<Shown>, Refusal> {
    check_ident(&asked, &id)?;
    let patch = Patch::read(&body, PORT, asked.version)?;
    let owned = conductor
        .catalogue()
        .update_port(&id, |owned| {
            let record = patch.apply(document(&owned))?;
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

async fn delete(
    State(conductor): State<Conductor>,
    asked: Asked,
    Path(id): Path<String>,
) -> Result<StatusCode, Refusal> {
    check_ident(&asked, &id)?;
    conductor.catalogue().delete_port(&id).await?;
    Ok(StatusCode::NO_CONTENT)
}
