//! Reads JSON of others within limits.
//!
//! A text of one MiB may be 130 MiB of values, so the length of a text bounds nothing. The text is counted first, without a
//! value being made, and read only when it is within its [`Limits`].

use serde::Deserialize;
use serde::de::{DeserializeSeed, Deserializer, MapAccess, SeqAccess, Visitor};
use std::collections::HashSet;
use std::fmt;
use std::hash::{BuildHasher, RandomState};

/// What the values of a text may be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// How deep arrays and objects may be nested.
    pub depth: usize,
    /// How many keys an object may have.
    pub keys: usize,
    /// How many bytes a key may have.
    pub key_bytes: usize,
    /// How many keys of the same object may be repeated, in the whole text.
    pub repeated_keys: usize,
    /// How many bytes of memory all values may take, texts not counted: those are no longer than the text that is read. This
    /// bounds the number of values, as each of them takes [`PLACE`] bytes or more.
    pub memory: usize,
}

impl Limits {
    /// Few values, as heartbeats have.
    pub const FEW: Self = Self { depth: 8, keys: 64, key_bytes: 64, repeated_keys: 0, memory: 16 << 10 };

    /// What an honest request, report or answer has.
    pub const USUAL: Self =
        Self { depth: 25, keys: 10_000, key_bytes: 1024, repeated_keys: 0, memory: 4 << 20 };

    /// These with another depth.
    #[must_use]
    pub const fn as_deep_as(self, depth: usize) -> Self {
        Self { depth, ..self }
    }

    /// These with other memory, in bytes.
    #[must_use]
    pub const fn within(self, memory: usize) -> Self {
        Self { memory, ..self }
    }
}

/// Memory of one value in a list that grows, in bytes.
const PLACE: usize = 64;
/// Memory of an object that is not empty: a node of a tree with room for eleven.
const OBJECT: usize = 640;
/// Memory of each key after the first. Nodes of trees are half full when their keys come in order.
const KEY: usize = 128;
/// Memory of a text beside its bytes.
const TEXT: usize = 32;

/// A text is not read.
#[derive(Debug, thiserror::Error)]
pub enum JsonError {
    /// It is no JSON, or not what is wanted.
    #[error(transparent)]
    Unusable(#[from] serde_json::Error),
    /// It is nested too deep.
    #[error("it is nested more than {0} levels deep; send a flatter one")]
    TooDeep(usize),
    /// It has too many values.
    #[error("its values would take more than {0} bytes of memory; send fewer")]
    TooMany(usize),
    /// An object has too many keys.
    #[error("an object in it has more than {0} keys; send fewer")]
    TooManyKeys(usize),
    /// A key is too long.
    #[error("a key in it has more than {0} bytes; send shorter ones")]
    LongKey(usize),
    /// A key is repeated.
    #[error("keys of an object in it are repeated; send each once")]
    RepeatedKeys,
}

/// Reads a text within limits.
///
/// # Errors
///
/// [`JsonError`].
pub fn read<'a, T: Deserialize<'a>>(text: &'a [u8], limits: &Limits) -> Result<T, JsonError> {
    check(text, limits)?;
    Ok(serde_json::from_slice(text)?)
}

/// Counts the values of a text, and makes none.
///
/// # Errors
///
/// [`JsonError`].
pub fn check(text: &[u8], limits: &Limits) -> Result<(), JsonError> {
    count(serde_json::Deserializer::from_slice(text), limits)
}

fn count<'de, R: serde_json::de::Read<'de>>(
    mut deserializer: serde_json::Deserializer<R>,
    limits: &Limits,
) -> Result<(), JsonError> {
    let mut counter =
        Counter { limits, depth: 0, memory: 0, repeated: 0, hasher: RandomState::new(), exceeded: None };
    let counted = Values(&mut counter).deserialize(&mut deserializer);
    let counted = counted.and_then(|()| deserializer.end());
    match (counter.exceeded, counted) {
        (Some(exceeded), _) => Err(exceeded),
        (None, counted) => Ok(counted?),
    }
}

/// What was counted so far.
struct Counter<'l> {
    limits: &'l Limits,
    depth: usize,
    memory: usize,
    repeated: usize,
    hasher: RandomState,
    exceeded: Option<JsonError>,
}

impl Counter<'_> {
    fn refuse<E: serde::de::Error>(&mut self, error: JsonError) -> E {
        let text = error.to_string();
        self.exceeded = Some(error);
        E::custom(text)
    }

    fn take<E: serde::de::Error>(&mut self, memory: usize) -> Result<(), E> {
        self.memory += memory;
        match self.memory > self.limits.memory {
            true => Err(self.refuse(JsonError::TooMany(self.limits.memory))),
            false => Ok(()),
        }
    }

    fn enter<E: serde::de::Error>(&mut self) -> Result<(), E> {
        self.depth += 1;
        match self.depth > self.limits.depth {
            true => Err(self.refuse(JsonError::TooDeep(self.limits.depth))),
            false => Ok(()),
        }
    }
}

/// Counts a value.
struct Values<'c, 'l>(&'c mut Counter<'l>);

impl<'de> DeserializeSeed<'de> for Values<'_, '_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Values<'_, '_> {
    type Value = ();

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("any value")
    }

    fn visit_unit<E: serde::de::Error>(self) -> Result<(), E> {
        Ok(())
    }

    fn visit_bool<E: serde::de::Error>(self, _: bool) -> Result<(), E> {
        Ok(())
    }

    fn visit_i64<E: serde::de::Error>(self, _: i64) -> Result<(), E> {
        Ok(())
    }

    fn visit_u64<E: serde::de::Error>(self, _: u64) -> Result<(), E> {
        Ok(())
    }

    fn visit_f64<E: serde::de::Error>(self, _: f64) -> Result<(), E> {
        Ok(())
    }

    fn visit_str<E: serde::de::Error>(self, _: &str) -> Result<(), E> {
        self.0.take(TEXT)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut values: A) -> Result<(), A::Error> {
        self.0.enter()?;
        while values.next_element_seed(Values(self.0))?.is_some() {
            self.0.take(PLACE)?;
        }
        self.0.depth -= 1;
        Ok(())
    }

    fn visit_map<A: MapAccess<'de>>(self, mut values: A) -> Result<(), A::Error> {
        self.0.enter()?;
        let mut keys = HashSet::new();
        let mut count = 0;
        while let Some(key) = values.next_key_seed(Key(self.0))? {
            count += 1;
            if count > self.0.limits.keys {
                return Err(self.0.refuse(JsonError::TooManyKeys(self.0.limits.keys)));
            }
            self.0.take(if count == 1 { OBJECT } else { KEY })?;
            if !keys.insert(key) {
                self.0.repeated += 1;
                if self.0.repeated > self.0.limits.repeated_keys {
                    return Err(self.0.refuse(JsonError::RepeatedKeys));
                }
            }
            values.next_value_seed(Values(self.0))?;
        }
        self.0.depth -= 1;
        Ok(())
    }
}

/// Counts a key, and gives what it is known by.
struct Key<'c, 'l>(&'c mut Counter<'l>);

impl<'de> DeserializeSeed<'de> for Key<'_, '_> {
    type Value = u64;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<u64, D::Error> {
        deserializer.deserialize_str(self)
    }
}

impl Visitor<'_> for Key<'_, '_> {
    type Value = u64;

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("a key")
    }

    fn visit_str<E: serde::de::Error>(self, key: &str) -> Result<u64, E> {
        if key.len() > self.0.limits.key_bytes {
            return Err(self.0.refuse(JsonError::LongKey(self.0.limits.key_bytes)));
        }
        self.0.take(TEXT)?;
        Ok(self.0.hasher.hash_one(key))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};

    const SMALL: Limits = Limits { depth: 3, keys: 4, key_bytes: 5, repeated_keys: 0, memory: 4096 };

    fn refused(text: &str) -> Option<JsonError> {
        check(text.as_bytes(), &SMALL).err()
    }

    #[test]
    fn n01_a_text_is_read_within_its_limits_alone() {
        for text in ["1", "null", r#""x""#, "[]", r#"{"a": [[1.5, true]], "b": -1}"#, r#"["[[[[[{{{"]"#] {
            assert!(refused(text).is_none(), "{text}");
            let value: Value = read(text.as_bytes(), &SMALL).unwrap();
            assert_eq!(value, serde_json::from_str::<Value>(text).unwrap());
        }
        assert!(matches!(refused("[[[[]]]]"), Some(JsonError::TooDeep(3))));
        assert!(matches!(refused(r#"{"a":{"a":{"a":{}}}}"#), Some(JsonError::TooDeep(3))));
        assert!(matches!(refused(r#"{"a":1,"b":1,"c":1,"d":1,"e":1}"#), Some(JsonError::TooManyKeys(4))));
        assert!(matches!(refused(r#"{"123456":1}"#), Some(JsonError::LongKey(5))));
        assert!(matches!(refused(r#"{"a":1,"a":1}"#), Some(JsonError::RepeatedKeys)));
        // Also where one of them is written in another way.
        assert!(matches!(refused(r#"{"a":1,"\u0061":1}"#), Some(JsonError::RepeatedKeys)));
        assert!(refused(r#"[{"a":1},{"a":1}]"#).is_none());
        assert!(matches!(refused(&format!("[{}]", vec!["0"; 65].join(","))), Some(JsonError::TooMany(4096))));
        assert!(matches!(refused(&format!("[{}]", ["{\"\":0}"; 6].join(","))), Some(JsonError::TooMany(_))));
        for text in ["", "{", "[1,]", "nul", "1 2", r#"{"a" 1}"#] {
            assert!(matches!(refused(text), Some(JsonError::Unusable(_))), "{text}");
        }
    }

    /// What is refused is refused where it begins to be too much, however long the rest is.
    #[test]
    fn n01_nothing_is_read_behind_what_is_too_much() {
        let text = format!("[[[[{}", "not JSON at all ".repeat(1000));
        assert!(matches!(refused(&text), Some(JsonError::TooDeep(3))));
    }

    #[test]
    fn some_keys_may_be_repeated_where_that_is_allowed() {
        let limits = Limits { repeated_keys: 1, ..SMALL };
        assert!(check(br#"{"a":1,"a":1}"#, &limits).is_ok());
        assert!(check(br#"{"a":1,"a":1,"a":1}"#, &limits).is_err());
        let read: Value = read(br#"{"a":1,"a":2}"#, &limits).unwrap();
        assert_eq!(read, json!({"a": 2}));
    }

    /// An inventory of a machine as large as there are.
    #[test]
    fn what_an_honest_machine_reports_is_within_the_usual_limits() {
        let lldp = vec![json!([1, "0123456789abcdef0123456789abcdef"]); 30];
        let card = json!({"name": "eth0", "mac_address": "52:54:00:00:00:01", "ipv4_address": "192.0.2.1",
            "has_carrier": true, "lldp": lldp, "vendor": "0x8086", "product": "0x1572", "client_id": null,
            "biosdevname": null, "speed_mbps": 10000, "driver": "i40e", "pci_address": "0000:00:00.0"});
        let device = json!({"vendor_id": "8086", "product_id": "1572", "class": "020000", "revision": "01",
            "bus": "0000:00:00.0"});
        let text = json!({
            "inventory": {"interfaces": vec![card; 64], "disks": vec![device.clone(); 100]},
            "pci_devices": vec![device; 1000], "extra": vec![json!(["a", "b", "c", "d"]); 3000],
        });
        check(text.to_string().as_bytes(), &Limits::USUAL).unwrap();
    }
}
