//! Traits: what schedulers may ask a node for.

use crate::wire::asked::Asked;
use crate::wire::reply::{Refusal, read_json};
use axum::Json;
use axum::body::Bytes;
use axum::extract::{Path, State};
use axum::http::StatusCode;
use farrier_conductor::model::{Node, check_trait};
use farrier_engine::Conductor;
use serde::Deserialize;
use serde_json::{Value, json};

/// First version with traits.
const SINCE: u16 = 37;

/// Most traits of a node.
const LIMIT: usize = 50;

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Traits {
    traits: Vec<String>,
}

/// `GET /nodes/{node}/traits`
pub(super) async fn list(
    State(conductor): State<Conductor>,
    asked: Asked,
    Path(id): Path<String>,
) -> Result<Json<Value>, Refusal> {
    asked.needs(SINCE, "traits")?;
    Ok(Json(json!({"traits": conductor.find(&id).await?.node.traits})))
}

/// `PUT /nodes/{node}/traits`
pub(super) async fn replace(
    State(conductor): State<Conductor>,
    asked: Asked,
    Path(id): Path<String>,
    body: Bytes,
) -> Result<StatusCode, Refusal> {
    let Traits { traits } = read_json(&body)?;
    change(&conductor, &asked, &id, |node| {
        node.traits = traits;
        Ok(())
    })
    .await
}

/// `DELETE /nodes/{node}/traits`
pub(super) async fn clear(
    State(conductor): State<Conductor>,
    asked: Asked,
    Path(id): Path<String>,
) -> Result<StatusCode, Refusal> {
    asked.part_since(SINCE)?;
    change(&conductor, &asked, &id, |node| {
        node.traits.clear();
        Ok(())
    })
    .await
}

/// `PUT /nodes/{node}/traits/{trait}`
pub(super) async fn add(
    State(conductor): State<Conductor>,
    asked: Asked,
    Path((id, name)): Path<(String, String)>,
) -> Result<StatusCode, Refusal> {
    change(&conductor, &asked, &id, |node| {
        node.traits.push(name);
        Ok(())
    })
    .await
}

/// `DELETE /nodes/{node}/traits/{trait}`
pub(super) async fn remove(
    State(conductor): State<Conductor>,
    asked: Asked,
    Path((id, name)): Path<(String, String)>,
) -> Result<StatusCode, Refusal> {
    asked.part_since(SINCE)?;
    change(&conductor, &asked, &id, |node| {
        let before = node.traits.len();
        node.traits.retain(|other| *other != name);
        match node.traits.len() < before {
            true => Ok(()),
            false => Err(Refusal::new(
                StatusCode::NOT_FOUND,
                format!("node {} has no trait {name:?}", node.label()),
            )),
        }
    })
    .await
}

/// Changes the traits of a node, which are sorted and each there once.
async fn change(
    conductor: &Conductor,
    asked: &Asked,
    id: &str,
    change: impl FnOnce(&mut Node) -> Result<(), Refusal>,
) -> Result<StatusCode, Refusal> {
    asked.since(SINCE)?;
    let changed = |mut node: Node| {
        change(&mut node)?;
        node.traits.sort_unstable();
        node.traits.dedup();
        let checked = node.traits.iter().try_for_each(|name| check_trait(name));
        checked.map_err(|error| Refusal::bad_request(error.to_string()))?;
        match node.traits.len() > LIMIT {
            true => Err(Refusal::bad_request(format!("traits: a node has at most {LIMIT}"))),
            false => Ok(node),
        }
    };
    conductor.update(id, changed).await?;
    Ok(StatusCode::NO_CONTENT)
}
