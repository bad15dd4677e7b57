//! What is made of the table of options: the default file and the JSON schema.

use super::command_line::serve_of;
use super::option::ServeOption;
use clap::Command;
use serde_json::{Map, Value, json};
use std::fmt::Write;

/// Characters in a line of a comment.
const WIDTH: usize = 100;

/// The options by the table of their keys: the top level first, as TOML has it.
pub(super) fn by_table(serve: &Command) -> Vec<(String, Vec<ServeOption<'_>>)> {
    let mut tables = vec![(String::new(), Vec::new())];
    for option in ServeOption::all(serve) {
        match tables.iter_mut().find(|(table, _)| *table == option.table()) {
            Some((_, options)) => options.push(option),
            None => tables.push((option.table(), vec![option])),
        }
    }
    tables
}

/// The values of an option as TOML.
pub(super) fn literal(option: ServeOption<'_>, values: &[String]) -> String {
    let values: Vec<_> = values.iter().map(|value| single(value)).collect();
    match values.as_slice() {
        [value] if !option.is_list() => value.clone(),
        values => format!("[{}]", values.join(", ")),
    }
}

/// Numbers and truth values are bare. A string of JSON is one of TOML.
fn single(value: &str) -> String {
    let is_number = value.parse::<i64>().is_ok_and(|number| number.to_string() == value);
    match value {
        "true" | "false" => value.to_owned(),
        _ if is_number => value.to_owned(),
        _ => Value::from(value).to_string(),
    }
}

/// The values that an option has where nobody sets it.
fn defaults(option: ServeOption<'_>) -> Vec<String> {
    match option.is_switch() {
        true => vec![false.to_string()],
        false => {
            option.0.get_default_values().iter().map(|value| value.to_string_lossy().into_owned()).collect()
        }
    }
}

/// A configuration file in which each option is a comment with its help and its default.
pub(crate) fn default_file(cli: &Command) -> String {
    let serve = serve_of(cli);
    let mut text = format!(
        "# Configuration of `farrier serve` {}. `farrier config check` checks it.\n",
        serve.get_version().unwrap_or_default()
    );
    for (table, options) in by_table(&serve) {
        if !table.is_empty() {
            let _ = writeln!(text, "\n[{table}]");
        }
        for option in options {
            let help = option.0.get_help().map(ToString::to_string).unwrap_or_default();
            text += "\n";
            wrap(&mut text, help.trim_end_matches('.'));
            if let Some(name) = option.0.get_env() {
                let _ = writeln!(text, "# Environment: {}", name.display());
            }
            let _ = match defaults(option) {
                values if values.is_empty() => writeln!(text, "# {} =", option.key()),
                values => writeln!(text, "# {} = {}", option.key(), literal(option, &values)),
            };
        }
    }
    text
}

/// Adds a sentence as comments.
fn wrap(text: &mut String, sentences: &str) {
    let mut line = String::from("#");
    for word in sentences.split_whitespace() {
        if line.len() + 1 + word.len() > WIDTH {
            let _ = writeln!(text, "{line}");
            line.truncate(1);
        }
        line = line + " " + word;
    }
    let _ = writeln!(text, "{line}.");
}

/// The JSON schema of configuration files.
pub(crate) fn schema(cli: &Command) -> Value {
    let serve = serve_of(cli);
    let mut properties = Map::new();
    for (table, options) in by_table(&serve) {
        let keys: Map<_, _> = options.into_iter().map(|option| (option.key(), of_option(option))).collect();
        match table.is_empty() {
            true => properties.extend(keys),
            false => {
                let table_schema =
                    json!({"type": "object", "properties": keys, "additionalProperties": false});
                properties.insert(table, table_schema);
            }
        }
    }
    json!({
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "Configuration of farrier serve",
        "type": "object",
        "properties": properties,
        "additionalProperties": false,
    })
}

fn of_option(option: ServeOption<'_>) -> Value {
    let help = option.0.get_help().map(ToString::to_string).unwrap_or_default();
    let single = match option.is_switch() {
        true => json!({"type": "boolean"}),
        false => of_value(option),
    };
    let mut schema = match option.is_list() {
        true => json!({"anyOf": [single, {"type": "array", "items": single}]}),
        false => single,
    };
    schema["description"] = Value::from(help);
    schema
}

fn of_value(option: ServeOption<'_>) -> Value {
    let possible = option.0.get_possible_values();
    if !possible.is_empty() {
        let names: Vec<_> = possible.iter().map(|value| single_value(value.get_name())).collect();
        return json!({"enum": names});
    }
    match defaults(option).first().map(|value| single_value(value)) {
        Some(Value::Number(_)) => json!({"type": "integer"}),
        Some(Value::Bool(_)) => json!({"type": "boolean"}),
        _ => json!({"type": ["string", "integer"]}),
    }
}

/// A value as the type that a file gives it.
fn single_value(value: &str) -> Value {
    serde_json::from_str(&single(value)).unwrap_or_default()
}
