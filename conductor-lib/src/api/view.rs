//! How a record looks in an answer: the fields that were asked for, of those that the version has.

use super::asked::Asked;
use super::fields::{Field, Kind};
use crate::model::{ProvisionState, mask};
use axum::Json;
use axum::http::StatusCode;
use axum::http::header::LOCATION;
use axum::response::{IntoResponse, Response};
use farrier_protocol::heartbeat::ApiVersion;
use serde::{Serialize, Serializer};
use serde_json::value::{RawValue, to_raw_value};
use serde_json::{Map, Value};

/// First versions that know these states; for earlier ones there is another word.
const AVAILABLE: u16 = 2;
const INSPECT_WAIT: u16 = 39;

/// The text of a record in an answer.
pub(crate) type Shown = Box<RawValue>;

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

    /// A record of a collection as it looks, with the mask in the place of every secret (lessons S40 and S48).
    pub(crate) fn of(&self, collection: &str, id: &str, mut record: Map<String, Value>) -> Shown {
        for field in self.fields.iter().filter(|field| field.is_masked) {
            if let Some(Value::Object(map)) = record.get_mut(field.name) {
                mask(map);
            }
        }
        let seen = Seen { view: self, collection, id, record };
        to_raw_value(&seen).expect("keys are texts")
    }

    fn links(&self, collection: &str, id: &str, name: &str) -> [Link; 2] {
        let path = match name {
            "links" => format!("{collection}/{id}"),
            _ => format!("{collection}/{id}/{name}"),
        };
        links(&self.url, &path)
    }

    /// States that a version does not know have other words.
    fn translated<'a>(&self, field: &str, value: &'a Value) -> Look<'a> {
        if field != "provision_state" {
            return Look::Kept(value);
        }
        let before = |minor| self.version.minor < minor;
        match value.as_str().and_then(ProvisionState::named) {
            Some(ProvisionState::Available) if before(AVAILABLE) => Look::Instead(Value::Null),
            Some(ProvisionState::InspectWait) if before(INSPECT_WAIT) => {
                Look::Instead(ProvisionState::Inspecting.as_str().into())
            }
            _ => Look::Kept(value),
        }
    }
}

/// A record of a collection in a view.
struct Seen<'a> {
    view: &'a View,
    collection: &'a str,
    id: &'a str,
    record: Map<String, Value>,
}

/// How a field of it looks.
#[derive(Serialize)]
#[serde(untagged)]
enum Look<'a> {
    Kept(&'a Value),
    Instead(Value),
    Links([Link; 2]),
}

impl Seen<'_> {
    fn look(&self, field: &Field) -> Look<'_> {
        match (field.kind, self.record.get(field.name)) {
            (Kind::Links, _) => Look::Links(self.view.links(self.collection, self.id, field.name)),
            (kind, None | Some(Value::Null)) => Look::Instead(kind.default()),
            (_, Some(value)) => self.view.translated(field.name, value),
        }
    }
}

impl Serialize for Seen<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_map(self.view.fields.iter().map(|field| (field.name, self.look(field))))
    }
}

/// The answer to whoever has created something: what it is, and where.
pub(crate) fn created(url: &str, path: &str, shown: Shown) -> Response {
    let place = format!("{url}/v1/{path}");
    (StatusCode::CREATED, [(LOCATION, place)], Json(shown)).into_response()
}

/// One of the places of a resource.
#[derive(Debug, Serialize)]
pub(crate) struct Link {
    rel: &'static str,
    /// The URL.
    pub(crate) href: String,
}

/// Where a resource is, with the version before its path and without.
pub(crate) fn links(url: &str, path: &str) -> [Link; 2] {
    [
        Link { rel: "self", href: format!("{url}/v1/{path}") },
        Link { rel: "bookmark", href: format!("{url}/{path}") },
    ]
}

#[cfg(test)]
mod tests {
    use super::super::fields::NODE;
    use super::*;
    use serde_json::json;

    #[test]
    fn s48_what_is_seen_of_a_record_has_no_secrets_and_every_field_of_its_version() {
        let masked: Vec<_> = NODE.iter().filter(|field| field.is_masked).collect();
        assert!(!masked.is_empty());
        let secret = json!({"a_password": "hunter2", "deep": [{"token": "hunter2"}], "kept": 1});
        let record: Map<_, _> = masked.iter().map(|field| (field.name.to_owned(), secret.clone())).collect();
        let version = ApiVersion { major: 1, minor: 110 };
        let view = View { version, url: "http://h".into(), fields: NODE.iter().collect() };
        let text = view.of("nodes", "n1", record);
        assert!(!text.get().contains("hunter2"), "{text}");
        let seen: Map<String, Value> = serde_json::from_str(text.get()).unwrap();
        assert_eq!(seen.len(), NODE.len());
        for field in masked {
            assert_eq!(seen[field.name]["kept"], 1, "{field:?}");
        }
        assert_eq!(seen["ports"][1]["href"], "http://h/nodes/n1/ports");
        assert_eq!(
            (&seen["extra"]["kept"], &seen["traits"], &seen["name"]),
            (&json!(1), &json!([]), &Value::Null)
        );
    }
}
