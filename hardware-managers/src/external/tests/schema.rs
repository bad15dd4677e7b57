//! What is really said, the types that read it, and the schema for validators say the same.

use super::super::message::{
    Description, Evaluation, Failure, Line, ListedStep, PhaseName, Progress, StepList,
};
use super::*;
use farrier_protocol::step::ArgumentInfo;
use serde::de::{DeserializeOwned, Deserializer, Error, Visitor, value};
use std::collections::BTreeSet;
use std::sync::LazyLock;

static SCHEMA: LazyLock<Value> = LazyLock::new(|| {
    serde_json::from_str(include_str!("../../../../docs/src/external-managers.schema.json")).unwrap()
});

fn part(pointer: &str) -> &'static Value {
    SCHEMA.pointer(pointer).unwrap_or_else(|| panic!("the schema has no {pointer}"))
}

/// Whether a value keeps a schema; no keyword beyond those of the one schema is known.
fn keeps(schema: &Value, value: &Value) -> bool {
    let Some(rules) = schema.as_object() else { return schema == true };
    rules.iter().all(|(keyword, rule)| match keyword.as_str() {
        "$schema" | "title" | "description" | "default" | "$defs" | "then" => true,
        "$ref" => keeps(part(rule.as_str().unwrap().trim_start_matches('#')), value),
        "oneOf" => rule.as_array().unwrap().iter().filter(|one| keeps(one, value)).count() == 1,
        "if" => !keeps(rule, value) || keeps(&schema["then"], value),
        "const" => rule == value,
        "enum" => rule.as_array().unwrap().contains(value),
        "type" => match rule {
            Value::Array(kinds) => kinds.iter().any(|kind| is_a(kind, value)),
            kind => is_a(kind, value),
        },
        "minLength" => value.as_str().is_none_or(|text| text.chars().count() as u64 >= number(rule)),
        "minimum" => value.as_i64().is_none_or(|value| value >= rule.as_i64().unwrap()),
        "maximum" => value.as_i64().is_none_or(|value| value <= rule.as_i64().unwrap()),
        "items" => value.as_array().is_none_or(|items| items.iter().all(|item| keeps(rule, item))),
        _ => value.as_object().is_none_or(|object| keeps_of_objects(schema, keyword, object)),
    })
}

fn keeps_of_objects(schema: &Value, keyword: &str, object: &Map<String, Value>) -> bool {
    let rule = &schema[keyword];
    let properties = &schema["properties"];
    match keyword {
        "required" => rule.as_array().unwrap().iter().all(|key| object.contains_key(key.as_str().unwrap())),
        "minProperties" => object.len() as u64 >= number(rule),
        "maxProperties" => object.len() as u64 <= number(rule),
        "properties" => object.iter().all(|(key, value)| rule.get(key).is_none_or(|one| keeps(one, value))),
        "additionalProperties" => {
            object.iter().all(|(key, value)| properties.get(key).is_some() || keeps(rule, value))
        }
        other => panic!("{other} is not known here"),
    }
}

fn number(rule: &Value) -> u64 {
    rule.as_u64().unwrap()
}

fn is_a(kind: &Value, value: &Value) -> bool {
    match kind.as_str().unwrap() {
        "object" => value.is_object(),
        "array" => value.is_array(),
        "string" => value.is_string(),
        "boolean" => value.is_boolean(),
        "integer" => value.is_i64() || value.is_u64(),
        "null" => value.is_null(),
        other => panic!("{other} is not known here"),
    }
}

/// Whether the schema has it for something that the agent says.
pub fn is_request(said: &Value) -> bool {
    keeps(part("/$defs/request"), said)
}

fn keys(object: &Value) -> BTreeSet<&str> {
    object.as_object().unwrap().keys().map(String::as_str).collect()
}

/// Takes the names that a type asks for, and gives no value.
struct NamesOnly<'a>(&'a mut BTreeSet<&'static str>);

type Told<T> = Result<T, value::Error>;

impl<'de> Deserializer<'de> for NamesOnly<'_> {
    type Error = value::Error;

    fn deserialize_any<V: Visitor<'de>>(self, _: V) -> Told<V::Value> {
        panic!("it has no names")
    }

    fn deserialize_struct<V: Visitor<'de>>(
        self,
        _: &'static str,
        fields: &'static [&'static str],
        _: V,
    ) -> Told<V::Value> {
        self.0.extend(fields);
        Err(value::Error::custom("no value"))
    }

    fn deserialize_enum<V: Visitor<'de>>(
        self,
        name: &'static str,
        variants: &'static [&'static str],
        visitor: V,
    ) -> Told<V::Value> {
        self.deserialize_struct(name, variants, visitor)
    }

    serde::forward_to_deserialize_any! {
        bool i8 i16 i32 i64 i128 u8 u16 u32 u64 u128 f32 f64 char str string bytes byte_buf option unit
        unit_struct newtype_struct seq tuple tuple_struct map identifier ignored_any
    }
}

fn names<T: DeserializeOwned>() -> BTreeSet<&'static str> {
    let mut names = BTreeSet::new();
    T::deserialize(NamesOnly(&mut names)).err().expect("there is no value");
    names
}

/// Type and schema know the same keys, and refuse and accept alike what differs from `whole` in one of them.
fn assert_same<T: DeserializeOwned>(pointer: &str, whole: Value) {
    let schema = part(pointer);
    assert_eq!(names::<T>(), keys(&schema["properties"]), "{pointer}");
    assert_eq!(keys(&whole), keys(&schema["properties"]), "{pointer}");
    let assert_alike = |variant: Value| {
        let is_read = serde_json::from_value::<T>(variant.clone()).is_ok();
        assert_eq!(is_read, keeps(schema, &variant), "{pointer}: {variant}");
        is_read
    };
    assert!(assert_alike(whole.clone()), "{pointer}");
    let change = |key: &str, value: Option<Value>| {
        let mut changed = whole.as_object().unwrap().clone();
        match value {
            Some(value) => changed.insert(key.to_owned(), value),
            None => changed.remove(key),
        };
        assert_alike(Value::Object(changed));
    };
    for key in keys(&whole) {
        change(key, None);
        change(key, Some(Value::Null));
        change(key, Some(json!({"odd": 1})));
    }
    change("no_such_key", Some(json!(1)));
}

#[test]
fn the_schema_and_the_types_have_the_same_keys() {
    let argument = json!({"description": "x", "required": true});
    let step = json!({
        "step": "flash_bmc", "interface": "deploy", "priorities": {"clean": 0}, "reboot_requested": true,
        "abortable": true, "arguments": {"file": argument}, "silence_seconds": 60,
    });
    assert_same::<Description>("/$defs/description", json!({"class_name": "A", "name": "a", "version": "1"}));
    assert_same::<Evaluation>("/$defs/evaluation", json!({"support": 3}));
    assert_same::<StepList>("/$defs/step_list", json!({"steps": [step]}));
    assert_same::<ListedStep>("/$defs/step", step);
    assert_same::<ArgumentInfo>("/$defs/step/properties/arguments/additionalProperties", argument);
    assert_same::<Failure>("/$defs/line/properties/error", json!({"message": "no firmware"}));
    assert_same::<Progress>("/$defs/line/properties/progress", json!({"percent": 4, "text": "writing"}));
    assert_eq!(names::<Line>(), keys(&part("/$defs/line")["properties"]));
    let phases = names::<PhaseName>();
    assert_eq!(phases, keys(&part("/$defs/step/properties/priorities")["properties"]));
    assert_eq!(json!(phases), *part("/$defs/request/properties/phase/enum"));
}

/// A program that passes everything on to another one and back, and writes it down.
fn recorder(programs: &Programs, program: &Path) -> PathBuf {
    let record = programs.path().join("record");
    let answers = format!(
        "*) printf '> %s\\n' \"$request\" >>{record}
        printf '%s\\n' \"$request\" | {program} | while read -r line; do
            printf '< %s\\n' \"$line\" >>{record}
            printf '%s\\n' \"$line\"
        done;;",
        record = record.display(),
        program = program.display(),
    );
    programs.shell("recorder", &answers);
    record
}

/// The part of the schema for the result of a request.
fn result_schema(request: &str) -> &'static Value {
    match request {
        "describe" => part("/$defs/description"),
        "evaluate" => part("/$defs/evaluation"),
        "list_steps" => part("/$defs/step_list"),
        _ => &Value::Bool(true),
    }
}

#[test]
fn real_conversations_keep_the_schema() {
    for (name, step) in [("blink_leds.sh", "blink_leds"), ("asset_tag.py", "check_asset_tag")] {
        let programs = Programs::new();
        let record = recorder(&programs, &example(name));
        // Whether the step succeeds depends on the machine; what is said keeps the schema either way.
        run(&load_all(programs.path()), step, json!({})).ok();
        let mut asked = Vec::new();
        for line in fs::read_to_string(record).unwrap().lines() {
            let (speaker, text) = line.split_at(2);
            let said: Value = serde_json::from_str(text).unwrap();
            assert!(keeps(&SCHEMA, &said), "{name}: {line}");
            if speaker == "> " {
                assert!(is_request(&said), "{line}");
                asked.push(said);
                continue;
            }
            assert!(keeps(part("/$defs/line"), &said), "{name}: {line}");
            let request = asked.last().unwrap()["request"].as_str().unwrap();
            assert!(said.get("result").is_none_or(|it| keeps(result_schema(request), it)), "{name}: {line}");
        }
        let requests: Vec<_> = asked.iter().map(|said| said["request"].as_str().unwrap()).collect();
        assert_eq!(requests, ["describe", "evaluate", "list_steps", "run_step"], "{name}");
        assert_eq!(keys(&asked[3]), keys(&part("/$defs/request")["properties"]), "{name}");
    }
}
