//! What a real Ironic and the agent said to each other in a direct deployment, read with the types of
//! this crate. How such a file is recorded: `tests/golden/README.md`.

#![allow(clippy::unwrap_used)]

use farrier_protocol::command::{CommandList, CommandRequest, CommandResult};
use farrier_protocol::heartbeat::Heartbeat;
use farrier_protocol::image_info::ImageInfo;
use farrier_protocol::lookup::{LookupReply, Node};
use farrier_protocol::step::{DeploySteps, Step};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

/// The exchanges whose path starts so.
fn exchanges(method: &str, path: &str) -> Vec<Value> {
    let text = include_str!("../../tests/golden/ironic-39.0.0-direct-deploy.json");
    let all: Vec<Value> = serde_json::from_str(text).unwrap();
    let is_wanted = |exchange: &Value| {
        exchange["method"] == method && exchange["path"].as_str().is_some_and(|text| text.starts_with(path))
    };
    let found: Vec<_> = all.into_iter().filter(is_wanted).collect();
    assert!(!found.is_empty(), "no {method} {path}");
    found
}

fn parsed<T: DeserializeOwned>(value: &Value) -> T {
    T::deserialize(value).unwrap_or_else(|error| panic!("{error} in {value:#}"))
}

/// Reads a value of the agent's own and sees that nothing is lost on the way.
fn unchanged<T: DeserializeOwned + Serialize>(value: &Value) -> T {
    let read = parsed(value);
    assert_eq!(serde_json::to_value(&read).unwrap(), *value);
    read
}

/// The parameters of the commands of this name.
fn parameters(name: &str) -> Vec<Value> {
    let commands = exchanges("POST", "/v1/commands/");
    commands.iter().map(|command| &command["request"]).filter(|it| it["name"] == name).cloned().collect()
}

#[test]
fn a_lookup_reply_is_understood() {
    for exchange in exchanges("GET", "/v1/lookup") {
        let reply: LookupReply = parsed(&exchange["reply"]);
        assert_eq!(reply.node.root_device(), Some(&json!({"serial": "ROOT"})));
        assert!(reply.config.agent_token.is_some() && reply.config.agent_token_required);
        assert_eq!(reply.config.tls_min_version.as_deref(), Some("1.3"));
        assert_eq!(exchange["version"], "1.62");
    }
}

#[test]
fn heartbeats_are_accepted() {
    for exchange in exchanges("POST", "/v1/heartbeat/") {
        let heartbeat: Heartbeat = unchanged(&exchange["request"]);
        assert!(heartbeat.callback_url.starts_with("https://") && heartbeat.agent_verify_ca.is_some());
        assert_eq!((&exchange["version"], &exchange["status"]), (&json!("1.68"), &json!(202)));
    }
}

#[test]
fn commands_come_in_the_order_of_the_contract() {
    let commands: Vec<CommandRequest> =
        exchanges("POST", "/v1/commands/").iter().map(|exchange| parsed(&exchange["request"])).collect();
    let names: Vec<_> = commands.iter().map(|command| command.name.as_str()).collect();
    assert_eq!(
        names,
        [
            "deploy.get_deploy_steps",
            "deploy.execute_deploy_step",
            "standby.get_partition_uuids",
            "image.install_bootloader",
            "standby.power_off"
        ]
    );
}

#[test]
fn the_order_to_write_an_image_is_understood() {
    for request in parameters("deploy.execute_deploy_step") {
        let params = &request["params"];
        let step: Step = unchanged(&params["step"]);
        assert_eq!((step.interface.as_str(), step.step.as_str()), ("deploy", "write_image"));
        let info = ImageInfo::from_params(&step.args.unwrap()["image_info"]).unwrap();
        assert_eq!((info.id.as_str(), info.disk_format.as_deref()), ("image.raw", Some("raw")));
        assert_eq!(info.os_hash_algo.as_deref(), Some("sha256"));
        let node: Node = parsed(&params["node"]);
        assert_eq!(node.root_device(), Some(&json!({"serial": "ROOT"})));
    }
}

#[test]
fn answers_of_the_agent_keep_their_form() {
    for exchange in exchanges("POST", "/v1/commands/") {
        unchanged::<CommandResult>(&exchange["reply"]);
    }
    for exchange in exchanges("GET", "/v1/commands/") {
        let list: CommandList = unchanged(&exchange["reply"]);
        let steps = list.commands[0].command_result.as_ref().unwrap();
        parsed::<DeploySteps>(steps);
    }
}
