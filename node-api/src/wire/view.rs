//! How a record looks in an answer: the fields that were asked for, of those that the version has.

use crate::wire::asked::Asked;
use crate::wire::fields::{Field, Kind};
use axum::Json;
use axum::http::StatusCode;
use axum::http::header::LOCATION;
use axum::response::{IntoResponse, Response};
use farrier_conductor::model::{ProvisionState, mask_value};
use farrier_protocol::heartbeat::ApiVersion;
use serde::{Serialize, Serializer};
use serde_json::value::{RawValue, to_raw_value};
use serde_json::{Map, Value};
use uuid::Uuid;

/// First versions that know these states; for earlier ones there is another word.
const AVAILABLE: u16 = 2;
const INSPECT_WAIT: u16 = 39;

/// Characters of identities, addresses and times beside hexadecimal digits. Nothing that has these alone is a secret that is
/// known by its form.
const PLAIN: [char; 6] = ['-', ':', '.', '+', 'T', 'Z'];

/// Characters without one of which no text has a secret that is known by its form.
const TELLING: [char; 4] = ['=', ':', '/', '-'];

/// The text of a record in an answer.
pub(crate) type Shown = Box<RawValue>;

/// A member of a list.
pub(crate) struct Member {
    /// Its identity.
    pub(crate) uuid: Uuid,
    /// What the list is sorted by.
    pub(crate) key: Value,
    /// How it looks in the answer.
    pub(crate) shown: Shown,
}

/// How records look in the answer to a request.
#[derive(Debug, Clone)]
pub(crate) struct View {
    version: ApiVersion,
    url: String,
    fields: Vec<&'static Field>,
    /// The field by which a list of them is sorted.
    sort_key: Option<&'static str>,
}

impl View {
    pub(crate) fn new(asked: &Asked, fields: Vec<&'static Field>) -> Self {
        Self { version: asked.version, url: asked.url.clone(), fields, sort_key: None }
    }

    /// The same for a list that is sorted by a field.
    pub(crate) fn sorted_by(self, sort_key: Option<&'static str>) -> Self {
        Self { sort_key, ..self }
    }

    /// A record as a member of a list of its collection.
    pub(crate) fn member(&self, collection: &str, uuid: Uuid, record: &impl Fields) -> Member {
        let key = self.sort_key.and_then(|key| record.field(key)).map(|kept| kept.read());
        let shown = self.of(collection, &uuid.to_string(), record);
        Member { uuid, key: key.unwrap_or_default(), shown }
    }

    /// Whether all of the fields that are asked for are among these, or come from nowhere.
    pub(crate) fn needs_only(&self, has: impl Fn(&str) -> bool) -> bool {
        let is_had = |field: &&Field| field.kind == Kind::Links || has(field.name);
        self.fields.iter().all(is_had)
    }

    /// Whether a field is asked for.
    pub(crate) fn shows(&self, field: &str) -> bool {
        self.fields.iter().any(|shown| shown.name == field)
    }

    /// A record of a collection as it looks, with the mask in the place of every secret (lessons S40 and S48).
    pub(crate) fn of(&self, collection: &str, id: &str, record: &impl Fields) -> Shown {
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
            return Look::Value(value);
        }
        let before = |minor| self.version.minor < minor;
        match value.as_str().and_then(ProvisionState::named) {
            Some(ProvisionState::Available) if before(AVAILABLE) => Look::Instead(Value::Null),
            Some(ProvisionState::InspectWait) if before(INSPECT_WAIT) => {
                Look::Instead(ProvisionState::Inspecting.as_str().into())
            }
            _ => Look::Value(value),
        }
    }
}

/// Where the fields of a record are.
pub(crate) trait Fields {
    /// How one of them is kept, if it is there.
    fn field(&self, name: &str) -> Option<Kept<'_>>;
}

/// A field as a record keeps it.
pub(crate) enum Kept<'a> {
    Value(&'a Value),
    /// An unparsed text.
    Text(&'a RawValue),
}

impl Fields for Map<String, Value> {
    fn field(&self, name: &str) -> Option<Kept<'_>> {
        self.get(name).map(Kept::Value)
    }
}

impl Kept<'_> {
    fn is_null(&self) -> bool {
        match self {
            Self::Value(value) => value.is_null(),
            Self::Text(text) => text.get() == "null",
        }
    }

    /// Whether something in it could be a secret: an object, a list, or a text with more than words.
    fn may_hold_secrets(&self) -> bool {
        match self {
            Self::Value(Value::Object(map)) => !map.is_empty(),
            Self::Value(Value::Array(values)) => !values.is_empty(),
            Self::Value(Value::String(text)) => may_tell(text),
            Self::Value(_) => false,
            Self::Text(text) => text.get().starts_with(['{', '[']) || may_tell(text.get().trim_matches('"')),
        }
    }

    fn read(&self) -> Value {
        match self {
            Self::Value(value) => (*value).clone(),
            Self::Text(text) => serde_json::from_str(text.get()).expect("a raw value is JSON"),
        }
    }

    fn masked(&self) -> Value {
        let mut value = self.read();
        mask_value(&mut value);
        value
    }
}

/// Whether a text may have a secret that is known by its form.
fn may_tell(text: &str) -> bool {
    text.contains(TELLING) && !text.chars().all(|one| one.is_ascii_hexdigit() || PLAIN.contains(&one))
}

/// A record of a collection in a view.
struct Seen<'a, F> {
    view: &'a View,
    collection: &'a str,
    id: &'a str,
    record: &'a F,
}

/// How a field of it looks.
#[derive(Serialize)]
#[serde(untagged)]
enum Look<'a> {
    Value(&'a Value),
    Text(&'a RawValue),
    Instead(Value),
    Links([Link; 2]),
}

impl<F: Fields> Seen<'_, F> {
    fn look(&self, field: &Field) -> Look<'_> {
        if field.kind == Kind::Links {
            return Look::Links(self.view.links(self.collection, self.id, field.name));
        }
        match self.record.field(field.name).filter(|kept| !kept.is_null()) {
            None => Look::Instead(field.kind.default()),
            Some(kept) if kept.may_hold_secrets() => Look::Instead(kept.masked()),
            Some(Kept::Value(value)) => self.view.translated(field.name, value),
            Some(Kept::Text(text)) => Look::Text(text),
        }
    }
}

impl<F: Fields> Serialize for Seen<'_, F> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_map(self.view.fields.iter().map(|field| (field.name, self.look(field))))
    }
}

/// The response to a creation: the object and its URL.
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
    use super::*;
    use crate::wire::fields::NODE;
    use serde_json::json;

    #[test]
    fn s48_what_is_seen_of_a_record_has_no_secrets_and_every_field_of_its_version() {
        let masked: Vec<_> = NODE.iter().filter(|field| field.kind != Kind::Links).collect();
        assert!(!masked.is_empty());
        let secret = json!({"a_password": "hunter2", "deep": [{"token": "hunter2"}], "kept": 1});
        let record: Map<_, _> = masked.iter().map(|field| (field.name.to_owned(), secret.clone())).collect();
        let version = ApiVersion { major: 1, minor: 110 };
        let view = View { version, url: "http://h".into(), fields: NODE.iter().collect(), sort_key: None };
        let text = view.of("nodes", "n1", &record);
        assert!(!text.get().contains("hunter2"), "{text}");
        let seen: Map<String, Value> = serde_json::from_str(text.get()).unwrap();
        assert_eq!(seen.len(), NODE.len());
        for field in masked {
            assert_eq!(seen[field.name]["kept"], 1, "{field:?}");
        }
        assert_eq!(seen["ports"][1]["href"], "http://h/nodes/n1/ports");
        let empty = view.of("nodes", "n1", &Map::new());
        let seen: Map<String, Value> = serde_json::from_str(empty.get()).unwrap();
        assert_eq!((&seen["traits"], &seen["name"]), (&json!([]), &Value::Null));
    }
}
