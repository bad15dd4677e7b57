//! Hardware types, as Ironic's drivers, and the conductors that have them.

use crate::wire::asked::Asked;
use crate::wire::reply::Refusal;
use crate::wire::view::links;
use axum::Json;
use axum::extract::{Path, State};
use axum::http::StatusCode;
use axum::routing::{MethodRouter, get};
use farrier_conductor::model::InterfaceKind;
use farrier_engine::{Conductor, KnownConductor};
use serde_json::{Map, Value, json};
use std::collections::BTreeMap;
use time::OffsetDateTime;
use time::format_description::well_known::Rfc3339;

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
    let types = offered(&conductor).await?;
    let drivers = types.iter().filter(|_| is_listed);
    let drivers =
        drivers.map(|(name, offered)| chosen(described(&asked, name, offered, detail), fields.as_deref()));
    Ok(Json(json!({"drivers": drivers.collect::<Vec<_>>()})))
}

async fn driver(
    State(conductor): State<Conductor>,
    mut asked: Asked,
    Path(name): Path<String>,
) -> Result<Json<Value>, Refusal> {
    let fields = asked.take("fields", FIELDS)?;
    asked.done()?;
    let types = offered(&conductor).await?;
    let Some(offered) = types.get(&name) else {
        let names: Vec<_> = types.keys().map(String::as_str).collect();
        let text = format!("driver {name:?} does not exist; there are: {}", names.join(", "));
        return Err(Refusal::new(StatusCode::NOT_FOUND, text));
    };
    Ok(Json(chosen(described(&asked, &name, offered, true), fields.as_deref())))
}

/// A hardware type, as the conductors that live have it.
#[derive(Default)]
struct Offered {
    hosts: Vec<String>,
    interfaces: BTreeMap<InterfaceKind, Vec<String>>,
}

/// The hardware types of the conductors that live. Each kind of interface has the default of the first conductor first.
async fn offered(conductor: &Conductor) -> Result<BTreeMap<String, Offered>, Refusal> {
    let mut types: BTreeMap<String, Offered> = BTreeMap::new();
    for known in conductor.conductors().await?.into_iter().filter(|known| known.is_alive) {
        for (name, kinds) in known.record.hardware {
            let offered = types.entry(name).or_default();
            offered.hosts.push(known.record.name.clone());
            for (kind, names) in kinds {
                let known = offered.interfaces.entry(kind).or_default();
                known.extend(names.into_iter().filter(|name| !known.contains(name)).collect::<Vec<_>>());
            }
        }
    }
    Ok(types)
}

fn described(asked: &Asked, name: &str, offered: &Offered, detail: bool) -> Map<String, Value> {
    let mut driver = Map::new();
    driver.insert("name".into(), name.into());
    driver.insert("hosts".into(), json!(offered.hosts));
    driver.insert("links".into(), json!(links(&asked.url, &format!("drivers/{name}"))));
    driver.insert("properties".into(), json!(links(&asked.url, &format!("drivers/{name}/properties"))));
    if asked.version.minor < INTERFACES {
        return driver;
    }
    driver.insert("type".into(), "dynamic".into());
    for kind in InterfaceKind::ALL.iter().filter(|_| detail) {
        let enabled = offered.interfaces.get(kind).map_or(&[][..], Vec::as_slice);
        driver.insert(format!("default_{kind}_interface"), json!(enabled.first()));
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
    let fields = fields.or(brief);
    let known = conductor.conductors().await?;
    let known = known.iter().map(|known| chosen(of_conductor(known, &asked), fields.as_deref()));
    Ok(Json(json!({"conductors": known.collect::<Vec<_>>()})))
}

async fn conductor(
    State(conductor): State<Conductor>,
    mut asked: Asked,
    Path(name): Path<String>,
) -> Result<Json<Value>, Refusal> {
    asked.since(CONDUCTORS)?;
    let fields = asked.take("fields", CONDUCTORS)?;
    let known = conductor.conductors().await?;
    let Some(found) = known.iter().find(|known| known.record.name == name) else {
        let names: Vec<_> = known.iter().map(|known| known.record.name.as_str()).collect();
        let text = format!("conductor {name:?} does not exist; there are: {}", names.join(", "));
        return Err(Refusal::new(StatusCode::NOT_FOUND, text));
    };
    Ok(Json(chosen(of_conductor(found, &asked), fields.as_deref())))
}

fn of_conductor(known: &KnownConductor, asked: &Asked) -> Map<String, Value> {
    let KnownConductor { record, is_alive } = known;
    let time = |time: OffsetDateTime| time.format(&Rfc3339).ok();
    let fields = json!({
        "hostname": record.name,
        "conductor_group": record.conductor_group,
        "alive": is_alive,
        "drivers": record.hardware.keys().collect::<Vec<_>>(),
        "created_at": time(record.registered_at),
        "updated_at": time(record.updated_at),
        "links": links(&asked.url, &format!("conductors/{}", record.name)),
    });
    fields.as_object().cloned().unwrap_or_default()
}
