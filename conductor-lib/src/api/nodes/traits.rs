//! Traits: what schedulers may ask a node for.

use super::super::asked::Asked;
use super::super::reply::{Refusal, read_json};
use crate::conductor::Conductor;
use crate::model::Node;
use axum::Json;
use axum::body::Bytes;
use axum::extract::{Path, State};
use axum::http::StatusCode;
use serde::Deserialize;
use serde_json::{Value, json};

/// First version with traits.
const SINCE: u16 = 37;

/// Most traits of a node.
const LIMIT: usize = 50;

/// Longest trait, in characters.
const LENGTH: usize = 255;

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
    asked.since(SINCE)?;
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
        node.traits.iter().try_for_each(|name| check(name))?;
        match node.traits.len() > LIMIT {
            true => Err(Refusal::bad_request(format!("traits: a node has at most {LIMIT}"))),
            false => Ok(node),
        }
    };
    conductor.update(id, changed).await?;
    Ok(StatusCode::NO_CONTENT)
}

/// Standard traits are known to schedulers; all others begin with `CUSTOM_`. Both are spelled alike.
fn check(name: &str) -> Result<(), Refusal> {
    let is_plain = |c: char| c.is_ascii_uppercase() || c.is_ascii_digit() || c == '_';
    let begins_well = name.starts_with(|c: char| c.is_ascii_uppercase());
    match begins_well && name.len() <= LENGTH && name.chars().all(is_plain) {
        true => Ok(()),
        false => Err(Refusal::bad_request(format!(
            "trait {name:?} must be upper case letters, digits and '_', such as CUSTOM_GOLD, at most {LENGTH} of them"
        ))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn traits_are_spelled_as_schedulers_spell_them() {
        for (name, is_good) in [
            ("CUSTOM_GOLD", true),
            ("HW_CPU_X86_VMX", true),
            ("custom_gold", false),
            ("", false),
            ("1A", false),
            ("A-B", false),
        ] {
            assert_eq!(check(name).is_ok(), is_good, "{name}");
        }
        assert!(check(&"A".repeat(256)).is_err());
    }
}
