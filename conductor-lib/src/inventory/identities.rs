//! What a report is known by, read without the rest of it becoming values: nobody knows yet whose it is.

use serde::de::{DeserializeSeed, Deserializer, Error, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde_json::{Map, Value};
use std::fmt;

/// The keys that are read, level by level.
const KEYS: [&[&str]; 3] = [
    &["inventory"],
    &["interfaces", "bmc_address", "bmc_v6address", "boot"],
    &["name", "mac_address", "ipv4_address", "ipv6_address", "pxe_interface"],
];

/// Longest text that is kept, in characters: addresses and names are shorter.
const TEXT: usize = 256;

/// Most entries of a list that are read: a machine has fewer network cards.
const ENTRIES: usize = 4096;

/// Reads a value, with the keys of a level and those below it.
pub(super) struct Identities(pub(super) usize);

impl<'de> DeserializeSeed<'de> for Identities {
    type Value = Value;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Value, D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Identities {
    type Value = Value;

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("a report")
    }

    fn visit_unit<E: Error>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }

    fn visit_bool<E: Error>(self, flag: bool) -> Result<Value, E> {
        Ok(flag.into())
    }

    fn visit_i64<E: Error>(self, number: i64) -> Result<Value, E> {
        Ok(number.into())
    }

    fn visit_u64<E: Error>(self, number: u64) -> Result<Value, E> {
        Ok(number.into())
    }

    fn visit_f64<E: Error>(self, number: f64) -> Result<Value, E> {
        Ok(number.into())
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<Value, E> {
        Ok(text.chars().take(TEXT).collect::<String>().into())
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut values: A) -> Result<Value, A::Error> {
        let mut read = Vec::new();
        match self.0 < KEYS.len() {
            true => {
                while let Some(value) = values.next_element_seed(Self(self.0))? {
                    read.push(value);
                    if read.len() > ENTRIES {
                        return Err(A::Error::custom(format_args!(
                            "a list in it has more than {ENTRIES} entries"
                        )));
                    }
                }
            }
            false => while values.next_element::<IgnoredAny>()?.is_some() {},
        }
        Ok(Value::Array(read))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut values: A) -> Result<Value, A::Error> {
        let keys = KEYS.get(self.0).copied().unwrap_or_default();
        let mut read = Map::new();
        while let Some(key) = values.next_key::<String>()? {
            match keys.contains(&key.as_str()) {
                true => drop(read.insert(key, values.next_value_seed(Self(self.0 + 1))?)),
                false => drop(values.next_value::<IgnoredAny>()?),
            }
        }
        Ok(Value::Object(read))
    }
}
