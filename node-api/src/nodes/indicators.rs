//! Lights of a machine.

use crate::wire::asked::Asked;
use crate::wire::reply::{Refusal, read_json};
use axum::Json;
use axum::body::Bytes;
use axum::extract::{Path, State};
use axum::http::StatusCode;
use farrier_conductor::interfaces::{Indicator, IndicatorState};
use farrier_engine::Conductor;
use serde::Deserialize;
use serde_json::{Value, json};

/// The first version.
const SINCE: u16 = 63;

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Wanted {
    state: IndicatorState,
}

/// `GET /nodes/{node}/management/indicators`
pub(super) async fn components(
    State(conductor): State<Conductor>,
    asked: Asked,
    Path(id): Path<String>,
) -> Result<Json<Value>, Refusal> {
    asked.part_since(SINCE)?;
    let mut names: Vec<_> =
        conductor.machines().indicators(&id).await?.into_iter().map(|one| one.component).collect();
    names.dedup();
    let components: Vec<_> =
        names.iter().map(|name| json!({"name": name, "links": links(&id, name)})).collect();
    Ok(Json(json!({"components": components})))
}

/// `GET /nodes/{node}/management/indicators/{component}`
pub(super) async fn list(
    State(conductor): State<Conductor>,
    asked: Asked,
    Path((id, component)): Path<(String, String)>,
) -> Result<Json<Value>, Refusal> {
    asked.part_since(SINCE)?;
    let all = conductor.machines().indicators(&id).await?;
    let own = all.iter().filter(|one| one.component == component);
    Ok(Json(json!({"indicators": own.map(|one| shown(&id, one)).collect::<Vec<_>>()})))
}

/// `GET /nodes/{node}/management/indicators/{component}/{indicator}`
pub(super) async fn state(
    State(conductor): State<Conductor>,
    asked: Asked,
    Path((id, component, name)): Path<(String, String, String)>,
) -> Result<Json<Value>, Refusal> {
    asked.part_since(SINCE)?;
    Ok(Json(json!({"state": conductor.machines().indicator_state(&id, &component, &name).await?})))
}

/// `PUT /nodes/{node}/management/indicators/{component}/{indicator}`
pub(super) async fn set_state(
    State(conductor): State<Conductor>,
    asked: Asked,
    Path((id, component, name)): Path<(String, String, String)>,
    body: Bytes,
) -> Result<StatusCode, Refusal> {
    asked.part_since(SINCE)?;
    let Wanted { state } = read_json(&body)?;
    conductor.machines().set_indicator_state(&id, &component, &name, state).await?;
    Ok(StatusCode::NO_CONTENT)
}

fn shown(id: &str, indicator: &Indicator) -> Value {
    let Indicator { component, name, states } = indicator;
    json!({
        "name": name,
        "component": component,
        "readonly": states.is_empty(),
        "states": states,
        "links": links(id, &format!("{component}/{name}")),
    })
}

fn links(id: &str, rest: &str) -> Value {
    let path = format!("nodes/{id}/management/indicators/{rest}");
    json!([{"href": format!("/v1/{path}"), "rel": "self"}, {"href": format!("/{path}"), "rel": "bookmark"}])
}
