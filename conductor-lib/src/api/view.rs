//! How a record looks in an answer: the fields that were asked for, of those that the version has.

use super::asked::Asked;
use super::fields::{Field, Kind};
use crate::model::ProvisionState;
use axum::Json;
use axum::http::StatusCode;
use axum::http::header::LOCATION;
use axum::response::{IntoResponse, Response};
use farrier_protocol::heartbeat::ApiVersion;
use serde_json::{Map, Value, json};

/// First versions that know these states; for earlier ones there is another word.
const AVAILABLE: u16 = 2;
const INSPECT_WAIT: u16 = 39;

/// How records look in the answer to a request.
#[derive(Debug, Clone)]
pub(crate) struct View {
    version: ApiVersion,
    url: String,
    fields: Vec<&'static Field>,
}

impl View {
    pub(crate) fn new(asked: &Asked, fields: Vec<&'static Field>) -> Self {
        Self { version: asked.version, url: asked.url.clone(), fields }
    }

    /// Whether all of the fields that are asked for are among these, or come from nowhere.
    pub(crate) fn needs_only(&self, has: impl Fn(&str) -> bool) -> bool {
        let is_had = |field: &&Field| field.kind == Kind::Links || has(field.name);
        self.fields.iter().all(is_had)
    }

    /// A record of a collection as it looks.
    pub(crate) fn of(&self, collection: &str, id: &str, mut record: Map<String, Value>) -> Value {
        let shown = self.fields.iter().map(|field| {
            let value = match field.kind {
                Kind::Links => self.links(collection, id, field.name),
                kind => match record.remove(field.name) {
                    None | Some(Value::Null) => kind.default(),
                    Some(value) => value,
                },
            };
            (field.name.to_owned(), self.translated(field.name, value))
        });
        Value::Object(shown.collect())
    }

    fn links(&self, collection: &str, id: &str, name: &str) -> Value {
        let end = if name == "links" { String::new() } else { format!("/{name}") };
        let path = format!("{collection}/{id}{end}");
        links(&self.url, &path)
    }

    /// States that a version does not know have other words.
    fn translated(&self, field: &str, value: Value) -> Value {
        if field != "provision_state" {
            return value;
        }
        let before = |minor| self.version.minor < minor;
        match value.as_str().and_then(ProvisionState::named) {
            Some(ProvisionState::Available) if before(AVAILABLE) => Value::Null,
            Some(ProvisionState::InspectWait) if before(INSPECT_WAIT) => {
                ProvisionState::Inspecting.as_str().into()
            }
            _ => value,
        }
    }
}

/// The answer to whoever has created something: what it is, and where.
pub(crate) fn created(url: &str, path: &str, shown: Value) -> Response {
    let place = format!("{url}/v1/{path}");
    (StatusCode::CREATED, [(LOCATION, place)], Json(shown)).into_response()
}

/// Where a resource is, with the version before its path and without.
pub(crate) fn links(url: &str, path: &str) -> Value {
    json!([
        {"rel": "self", "href": format!("{url}/v1/{path}")},
        {"rel": "bookmark", "href": format!("{url}/{path}")},
    ])
}
