//! Which fields of a record are columns, and which are in its document.

use crate::store::StoreError;
use crate::store::selection::Kind;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value};
use time::OffsetDateTime;
use time::format_description::well_known::Rfc3339;
use uuid::Uuid;

/// The value of a column.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum Column {
    Text(Option<String>),
    /// Microseconds since 1970 where it is a time.
    Number(Option<i64>),
    Flag(bool),
}

impl From<&str> for Column {
    fn from(text: &str) -> Self {
        Self::Text(Some(text.to_owned()))
    }
}

impl From<String> for Column {
    fn from(text: String) -> Self {
        Self::Text(Some(text))
    }
}

impl From<Option<String>> for Column {
    fn from(text: Option<String>) -> Self {
        Self::Text(text)
    }
}

impl From<Uuid> for Column {
    fn from(uuid: Uuid) -> Self {
        Self::Text(Some(uuid.to_string()))
    }
}

impl From<Option<Uuid>> for Column {
    fn from(uuid: Option<Uuid>) -> Self {
        Self::Text(uuid.map(|uuid| uuid.to_string()))
    }
}

impl From<i64> for Column {
    fn from(number: i64) -> Self {
        Self::Number(Some(number))
    }
}

impl From<Option<i64>> for Column {
    fn from(number: Option<i64>) -> Self {
        Self::Number(number)
    }
}

impl From<OffsetDateTime> for Column {
    fn from(time: OffsetDateTime) -> Self {
        Self::Number(Some(micros(time)))
    }
}

impl From<bool> for Column {
    fn from(flag: bool) -> Self {
        Self::Flag(flag)
    }
}

/// Refuses a text with the character NUL: PostgreSQL keeps none, and records have to fit into every store.
pub(super) fn check_texts(columns: &[Column]) -> Result<(), StoreError> {
    let has_nul = |column: &Column| matches!(column, Column::Text(Some(text)) if text.contains('\0'));
    match columns.iter().any(has_nul) {
        true => Err(StoreError::NulCharacter),
        false => Ok(()),
    }
}

/// Fields of a node that are kept elsewhere: its key, its lease, its ports.
const NODE_ELSEWHERE: &[&str] = &["uuid", "reservation", "ports"];

/// Fields of a session that are columns, in the order of the statements' parameters.
pub(super) const SESSION: &[(&str, Kind)] = &[
    ("agent_secret_token", Kind::Text),
    ("agent_url", Kind::Text),
    ("agent_version", Kind::Text),
    ("agent_last_heartbeat", Kind::Time),
    ("agent_verify_ca", Kind::Text),
    ("agent_status", Kind::Text),
    ("agent_status_message", Kind::Text),
];

/// Fields of a port that are columns, in the order of the statements' parameters.
pub(super) const PORT: &[(&str, Kind)] =
    &[("address", Kind::Text), ("name", Kind::Text), ("updated_at", Kind::Time), ("created_at", Kind::Time)];

/// Takes a record apart into its columns and its document.
pub(super) fn split(record: &impl Serialize, columns: &[(&str, Kind)]) -> (Vec<Column>, String) {
    let Ok(Value::Object(mut fields)) = serde_json::to_value(record) else {
        unreachable!("a record is an object whose keys are texts")
    };
    let values = columns.iter().map(|(name, kind)| column(*kind, fields.remove(*name))).collect();
    for name in NODE_ELSEWHERE {
        fields.remove(*name);
    }
    (values, Value::Object(fields).to_string())
}

/// Puts a record together again; `elsewhere` are the fields that are kept in other rows.
pub(super) fn join<T: DeserializeOwned>(
    document: &str,
    columns: impl IntoIterator<Item = (&'static str, Column)>,
    elsewhere: impl IntoIterator<Item = (&'static str, Value)>,
) -> Result<T, serde_json::Error> {
    let mut fields: Map<String, Value> = serde_json::from_str(document)?;
    let columns = columns.into_iter().map(|(name, column)| (name, value(column)));
    fields.extend(columns.chain(elsewhere).map(|(name, value)| (name.to_owned(), value)));
    serde_json::from_value(Value::Object(fields))
}

/// A time as the store keeps it.
pub(super) fn micros(time: OffsetDateTime) -> i64 {
    // Some 292,000 years either way.
    i64::try_from(time.unix_timestamp_nanos() / 1000).unwrap_or(i64::MAX)
}

/// A time that the store kept.
pub(super) fn time_of(micros: i64) -> Option<OffsetDateTime> {
    OffsetDateTime::from_unix_timestamp_nanos(i128::from(micros) * 1000).ok()
}

/// A field as its column keeps it.
pub(super) fn column(kind: Kind, value: Option<Value>) -> Column {
    let value = value.unwrap_or_default();
    match kind {
        Kind::Text => Column::Text(value.as_str().map(str::to_owned)),
        Kind::Flag => Column::Flag(value == true),
        Kind::Time => {
            let time = value.as_str().and_then(|text| OffsetDateTime::parse(text, &Rfc3339).ok());
            Column::Number(time.map(micros))
        }
    }
}

/// The value of a field that is a column.
pub(super) fn value(column: Column) -> Value {
    match column {
        Column::Text(text) => text.into(),
        Column::Flag(flag) => flag.into(),
        Column::Number(micros) => micros.and_then(time_of).and_then(|time| time.format(&Rfc3339).ok()).into(),
    }
}

#[cfg(test)]
mod tests {
    use super::super::selection::NODE;
    use super::*;
    use farrier_conductor::model::{AgentSession, Event, NewNode, Node, Port};
    use serde_json::json;

    #[test]
    fn a_record_is_whole_again_and_its_document_has_nothing_that_moves() {
        let new: NewNode = serde_json::from_value(json!({
            "name": "n1", "driver": "fake", "ports": ["52:54:00:00:00:01"],
            "driver_info": {"a": 1}, "properties": {"root_device": {"serial": "R"}},
        }))
        .unwrap();
        let now = OffsetDateTime::from_unix_timestamp_nanos(1_795_000_000_123_456_000).unwrap();
        let mut node = Node::enrol(new, now);
        node.driver_internal_info.others.insert("vendor_note".into(), json!(7));
        let (columns, document) = split(&node, NODE);
        let elsewhere = [("uuid", json!(node.uuid)), ("ports", json!([]))];
        let named = NODE.iter().map(|(name, _)| *name).zip(columns);
        let ports = std::mem::take(&mut node.ports);
        assert_eq!(join::<Node>(&document, named, elsewhere).unwrap(), node);
        let (columns, of_port) = split(&ports[0], PORT);
        let named = PORT.iter().map(|(name, _)| *name).zip(columns);
        assert_eq!(join::<Port>(&of_port, named, [("uuid", json!(ports[0].uuid))]).unwrap(), ports[0]);

        assert!(node.apply(Event::Deploy, now + time::Duration::HOUR));
        node.updated_at = now + time::Duration::HOUR;
        assert_eq!(split(&node, NODE).1, document);
    }

    #[test]
    fn every_column_is_a_field() {
        let node = serde_json::to_value(Node::enrol(NewNode::default(), OffsetDateTime::UNIX_EPOCH)).unwrap();
        for (name, _) in NODE {
            assert!(node.get(*name).is_some(), "{name}");
        }
        let (columns, document) = split(&AgentSession::default(), SESSION);
        let named = SESSION.iter().map(|(name, _)| *name).zip(columns);
        assert_eq!(join::<AgentSession>(&document, named, []).unwrap(), AgentSession::default());
    }
}
