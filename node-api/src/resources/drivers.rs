//! Hardware types, as Ironic's drivers, and the conductors that have them.

use crate::wire::asked::Asked;
use crate::wire::reply::Refusal;
use crate::wire::view::links;
use axum::Json;
use axum::extract::{Path, State};
use axum::http::StatusCode;
use axum::routing::{MethodRouter, get};
use farrier_conductor::model::InterfaceKind;
use farrier_engine::Conductor;
use serde_json::{Map, Value, json};
use std::collections::BTreeMap;

/// First versions: of the interfaces of a hardware type, of choosing its fields, of conductors, of RAID volumes.
const INTERFACES: u16 = 30;
const FIELDS: u16 = 77;
const CONDUCTORS: u16 = 49;
const RAID: u16 = 12;

pub(crate) fn routes() -> Vec<(&'static str, MethodRouter<Conductor>)> {
    vec![
        ("/drivers", get(drivers)),
        ("/drivers/{driver}", get(driver)),
        ("/drivers/{driver}/properties", get(properties)),
        ("/drivers/{driver}/raid/logical_disk_properties", get(logical_disk_properties)),
        ("/conductors", get(conductors)),
        ("/conductors/{conductor}", get(conductor)),
    ]
}

async fn drivers(State(conductor): State<Conductor>, mut asked: Asked) -> Result<Json<Value>, Refusal> {
    let detail = asked.take_flag("detail", INTERFACES)?.unwrap_or(false);
    let is_listed = asked.take("type", INTERFACES)?.is_none_or(|kind| kind == "dynamic");
    let fields = asked.take("fields", FIELDS)?;
    asked.done()?;
    let machines = conductor.machines();
    let names = machines.hardware_types().into_iter().filter(|_| is_listed);
    let drivers = names.map(|name| chosen(described(&conductor, &asked, name, detail), fields.as_deref()));
    Ok(Json(json!({"drivers": drivers.collect::<Vec<_>>()})))
}

async fn driver(
    State(conductor): State<Conductor>,
    mut asked: Asked,
    Path(name): Path<String>,
) -> Result<Json<Value>, Refusal> {
    let fields = asked.take("fields", FIELDS)?;
    asked.done()?;
    let machines = conductor.machines();
    let names = machines.hardware_types();
    let Some(name) = names.iter().find(|one| **one == name) else {
        let text = format!("driver {name:?} does not exist; there are: {}", names.join(", "));
        return Err(Refusal::new(StatusCode::NOT_FOUND, text));
    };
    Ok(Json(chosen(described(&conductor, &asked, name, true), fields.as_deref())))
}

fn described(conductor: &Conductor, asked: &Asked, name: &str, detail: bool) -> Map<String, Value> {
    let mut driver = Map::new();
    driver.insert("name".into(), name.into());
    driver.insert("hosts".into(), json!([conductor.settings().conductor_name]));
    driver.insert("links".into(), json!(links(&asked.url, &format!("drivers/{name}"))));
    driver.insert("properties".into(), json!(links(&asked.url, &format!("drivers/{name}/properties"))));
    if asked.version.minor < INTERFACES {
        return driver;
    }
    driver.insert("type".into(), "dynamic".into());
    let machines = conductor.machines();
    for kind in InterfaceKind::ALL.iter().filter(|_| detail) {
        let (default, enabled) = machines.interfaces_of(name, *kind);
        driver.insert(format!("default_{kind}_interface"), json!(default));
        driver.insert(format!("enabled_{kind}_interfaces"), json!(enabled));
    }
    driver
}

/// The fields that were asked for, or all.
fn chosen(mut resource: Map<String, Value>, fields: Option<&str>) -> Value {
    if let Some(fields) = fields {
        resource.retain(|name, _| name == "links" || fields.split(',').any(|field| field.trim() == name));
    }
    Value::Object(resource)
}

async fn properties(
    State(conductor): State<Conductor>,
    Path(driver): Path<String>,
) -> Result<Json<BTreeMap<&'static str, &'static str>>, Refusal> {
    let found = conductor.machines().properties(&driver);
    found.map(Json).map_err(|error| Refusal::new(StatusCode::NOT_FOUND, error.to_string()))
}

async fn logical_disk_properties(
    State(conductor): State<Conductor>,
    asked: Asked,
    Path(driver): Path<String>,
) -> Result<Json<BTreeMap<&'static str, &'static str>>, Refusal> {
    asked.needs(RAID, "logical_disk_properties")?;
    asked.done()?;
    let found = conductor.machines().logical_disk_properties(&driver);
    found.map(Json).map_err(|error| Refusal::new(StatusCode::NOT_FOUND, error.to_string()))
}

async fn conductors(State(conductor): State<Conductor>, mut asked: Asked) -> Result<Json<Value>, Refusal> {
    asked.since(CONDUCTORS)?;
    let detail = asked.take_flag("detail", CONDUCTORS)?.unwrap_or(false);
    let fields = asked.take("fields", CONDUCTORS)?;
    let brief = (!detail).then(|| "hostname,conductor_group,alive".to_owned());
    Ok(Json(json!({"conductors": [chosen(itself(&conductor, &asked), fields.or(brief).as_deref())]})))
}

async fn conductor(
    State(conductor): State<Conductor>,
    mut asked: Asked,
    Path(name): Path<String>,
) -> Result<Json<Value>, Refusal> {
    asked.since(CONDUCTORS)?;
    let fields = asked.take("fields", CONDUCTORS)?;
    let own = &conductor.settings().conductor_name;
    if name != *own {
        let text = format!("conductor {name:?} does not exist; there is: {own}");
        return Err(Refusal::new(StatusCode::NOT_FOUND, text));
    }
    Ok(Json(chosen(itself(&conductor, &asked), fields.as_deref())))
}

/// The conductor that answers, which is alive.
fn itself(conductor: &Conductor, asked: &Asked) -> Map<String, Value> {
    let name = &conductor.settings().conductor_name;
    let own = json!({
        "hostname": name,
        "conductor_group": "",
        "alive": true,
        "drivers": conductor.machines().hardware_types(),
        "links": links(&asked.url, &format!("conductors/{name}")),
    });
    own.as_object().cloned().unwrap_or_default()
}
