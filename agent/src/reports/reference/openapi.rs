//! The OpenAPI 3.1 document of the agent's REST interface (section 1).

use crate::commands::{Command, JsonType, Parameter};
use crate::extensions::EXTENSIONS;
use farrier_protocol::error::ErrorKind;
use serde_json::{Map, Value, json};

const DESCRIPTION: &str = "The interface of the Ironic Python Agent. Every route also exists without /v1. A client \
    that is too slow or too greedy gets 408 or 413. A command that ran and failed, and one with unknown or missing \
    parameters, is a result with status 200.";

/// The document as it is committed.
pub fn text() -> String {
    format!("{:#}\n", document())
}

fn document() -> Value {
    let port = json!({"address": {"default": "localhost"}, "port": {"default": "9999"}});
    json!({
        "openapi": "3.1.0",
        "info": {
            "title": "Farrier agent",
            "version": crate::agent::VERSION,
            "description": DESCRIPTION,
            "license": {"name": "Apache-2.0", "identifier": "Apache-2.0"},
        },
        "servers": [{"url": "https://{address}:{port}", "variables": port}],
        "paths": paths(),
        "components": {
            "schemas": schemas(),
            "securitySchemes": {"token": {"type": "apiKey", "in": "query", "name": "agent_token"}},
        },
    })
}

fn paths() -> Value {
    let wait = "Answer when the command is finished; only true means yes";
    let wait = json!({"name": "wait", "in": "query", "description": wait, "schema": {"type": "string"}});
    let id = json!({"name": "id", "in": "path", "required": true, "schema": {"type": "string"}});
    let body = json!({"required": true, "content": content("CommandRequest")});
    let listing = secured(
        "listCommands",
        "Every command of this agent process, in order",
        json!([]),
        "CommandList",
        &[],
    );
    let refusals = [
        (400, "Malformed, unknown, or refused parameters"),
        (404, "Unknown extension"),
        (408, "The body did not arrive in time"),
        (409, "Another command is running"),
        (413, "The body is too large"),
    ];
    let mut submission = secured("runCommand", "Runs a command", json!([wait]), "CommandResult", &refusals);
    submission["requestBody"] = body;
    let unknown = [(404, "No command has this id")];
    let one = secured("showCommand", "One command", json!([id, wait]), "CommandResult", &unknown);
    json!({
        "/": {"get": open("describe", "The API", "Description")},
        "/v1/": {"get": open("describeVersion", "The version", "VersionDescription")},
        "/v1/status": {"get": open("status", "Version of the agent, and since when it runs", "Status")},
        "/v1/progress": {"get": open("progress", "The progress of a deployment", "Progress")},
        "/v1/commands/": {"get": listing, "post": submission},
        "/v1/commands/{id}": {"get": one},
    })
}

/// An operation without a token.
fn open(id: &str, summary: &str, schema: &str) -> Value {
    json!({"operationId": id, "summary": summary, "responses": responses(schema, &[])})
}

/// An operation for who has the token.
fn secured(id: &str, summary: &str, parameters: Value, schema: &str, refusals: &[(u16, &str)]) -> Value {
    let refusals = [&[(401, "The token is missing or not the agent's")], refusals].concat();
    json!({
        "operationId": id,
        "summary": summary,
        "security": [{"token": []}],
        "parameters": parameters,
        "responses": responses(schema, &refusals),
    })
}

fn responses(schema: &str, refusals: &[(u16, &str)]) -> Value {
    let done = ("200".to_owned(), json!({"description": "Done", "content": content(schema)}));
    let refusal = |(status, text): &(u16, &str)| {
        (status.to_string(), json!({"description": text, "content": content("Fault")}))
    };
    Value::Object([done].into_iter().chain(refusals.iter().map(refusal)).collect())
}

fn content(schema: &str) -> Value {
    json!({"application/json": {"schema": reference(schema)}})
}

fn reference(schema: &str) -> Value {
    json!({"$ref": format!("#/components/schemas/{schema}")})
}

fn schemas() -> Value {
    let (text, integer, object) =
        (json!({"type": "string"}), json!({"type": "integer"}), json!({"type": "object"}));
    let count = json!({"type": ["integer", "null"], "minimum": 0});
    let links = json!({"type": "array", "items": reference("Link")});
    let versions = json!({"type": "array", "items": reference("Version")});
    let results = json!({"type": "array", "items": reference("CommandResult")});
    let kinds: Vec<_> = ErrorKind::ALL.iter().map(|kind| kind.name()).collect();
    let statuses = json!({"enum": ["RUNNING", "SUCCEEDED", "FAILED", "CLEAN_VERSION_MISMATCH"]});
    let phases = json!({"enum": ["idle", "writing", "verifying", "finishing", "done", "failed"]});
    let mut link = closed(json!({"href": text, "rel": text, "type": text}));
    link["required"] = json!(["href", "rel"]);
    json!({
        "CommandError": closed(json!({"type": {"enum": kinds}, "code": integer, "message": text, "details": text})),
        "CommandList": closed(json!({"commands": results})),
        "CommandRequest": command_request(),
        "CommandResult": closed(json!({
            "id": {"type": "string", "format": "uuid"},
            "command_name": text,
            "command_status": statuses,
            "command_error": {"anyOf": [reference("CommandError"), {"type": "null"}]},
            "command_result": {},
        })),
        "Description": closed(json!({
            "name": text, "description": text, "versions": versions, "default_version": reference("Version"),
        })),
        "Fault": closed(json!({"faultcode": {"enum": ["Client", "Server"]}, "faultstring": text})),
        "Link": link,
        "Progress": closed(json!({
            "phase": phases, "bytes": integer, "total_bytes": count, "bytes_per_second": integer, "eta_seconds": count,
            "retry_in_seconds": count,
        })),
        "Status": closed(json!({"started_at": {"type": "number"}, "version": text})),
        "Version": closed(json!({"id": text, "links": links})),
        "VersionDescription": closed(json!({
            "id": text, "links": links, "commands": links, "status": links, "progress": links,
            "media_types": {"type": "array", "items": object},
        })),
    })
}

/// An object with these keys, all of them and no other.
fn closed(properties: Value) -> Value {
    let names: Vec<_> = properties.as_object().into_iter().flat_map(Map::keys).cloned().collect();
    json!({"type": "object", "properties": properties, "required": names, "additionalProperties": false})
}

fn command_request() -> Value {
    let all = EXTENSIONS.iter().flat_map(|(extension, commands)| {
        commands.iter().map(move |command| one_command(extension, command))
    });
    json!({"anyOf": all.collect::<Vec<_>>()})
}

fn one_command(extension: &str, command: &Command) -> Value {
    let named = command.parameters.iter().filter(|one| one.name != Parameter::OTHERS.name);
    let properties: Map<_, _> = named.map(|one| (one.name.to_owned(), parameter(one))).collect();
    let required = command.parameters.iter().filter(|one| one.required).map(|one| one.name);
    let required: Vec<_> = required.collect();
    json!({
        "title": format!("{extension}.{}", command.name),
        "description": command.help,
        "type": "object",
        "required": ["name", "params"],
        "properties": {
            "name": {"const": format!("{extension}.{}", command.name)},
            "params": {"type": "object", "properties": properties, "required": required},
        },
    })
}

fn parameter(parameter: &Parameter) -> Value {
    let types: Vec<_> = parameter.types.iter().copied().map(JsonType::name).collect();
    let mut schema = parameter.schema.map_or_else(|| json!({}), |schema| schema());
    schema["type"] = json!(types);
    schema["description"] = json!(parameter.help);
    schema
}

#[cfg(test)]
mod tests {
    use super::*;
    use farrier_protocol::image_info::ImageInfo;

    #[test]
    fn every_reference_leads_somewhere() {
        let document = document();
        let text = text();
        for part in text.split("#/components/schemas/").skip(1) {
            let name = part.split('"').next().unwrap();
            assert!(document["components"]["schemas"][name].is_object(), "{name}");
        }
    }

    #[test]
    fn x49_the_document_is_as_narrow_as_the_validator_of_images() {
        let document = document();
        let all = document["components"]["schemas"]["CommandRequest"]["anyOf"].as_array().unwrap();
        let one = all.iter().find(|one| one["title"] == "standby.prepare_image").unwrap();
        let described = &one["properties"]["params"]["properties"]["image_info"];
        let accepted = json!({"id": "x", "urls": ["http://192.0.2.1/x"], "os_hash_algo": "sha256",
            "os_hash_value": "9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08"});
        let takes = |info: &Value| ImageInfo::from_params(info).is_ok();
        assert!(takes(&accepted) && !takes(&json!({})));
        for (name, schema) in described["properties"].as_object().unwrap() {
            let with = |value: Value| {
                let mut info = accepted.clone();
                info[name] = value;
                info
            };
            assert!(
                schema["minLength"] == 1 && !takes(&with(json!(""))) || schema["minItems"] == 1,
                "{name}"
            );
            assert!(!takes(&with(json!([]))) && !takes(&with(json!(1))), "{name}");
            let mut without = accepted.clone();
            without.as_object_mut().unwrap().remove(name);
            let is_required = described["required"].as_array().unwrap().contains(&json!(name));
            assert!(!is_required || !takes(&without), "{name}");
        }
    }

    #[test]
    fn every_command_and_its_parameters_are_described() {
        let document = document();
        let described = document["components"]["schemas"]["CommandRequest"]["anyOf"].as_array().unwrap();
        let commands = EXTENSIONS.iter().flat_map(|(_, commands)| *commands);
        assert_eq!(described.len(), commands.count());
        let flow = described.iter().find(|one| one["title"] == "flow.start_flow").unwrap();
        assert_eq!(flow["properties"]["params"]["required"], json!(["flow"]));
        assert_eq!(flow["properties"]["params"]["properties"]["flow"]["type"], json!(["array"]));
    }
}
