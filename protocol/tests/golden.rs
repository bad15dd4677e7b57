//! What two releases of a real Ironic and the agent said to each other in the life of a node, read with the
//! types of this crate. How such a file is recorded: `tests/golden/README.md`.

#![allow(clippy::unwrap_used)]

use farrier_protocol::command::{CommandList, CommandRequest, CommandResult};
use farrier_protocol::heartbeat::Heartbeat;
use farrier_protocol::image_info::ImageInfo;
use farrier_protocol::lookup::{LookupReply, Node};
use farrier_protocol::step::{DeploySteps, Step};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

const IRONIC_26: &str = include_str!("../../tests/golden/ironic-26.1.6.jsonl");
const IRONIC_39: &str = include_str!("../../tests/golden/ironic-39.0.0.jsonl");

/// The exchanges of both recordings whose path starts so; each has some.
fn exchanges(method: &str, path: &str) -> Vec<Value> {
    [IRONIC_26, IRONIC_39].map(|recording| exchanges_of(recording, method, path)).concat()
}

fn exchanges_of(recording: &str, method: &str, path: &str) -> Vec<Value> {
    let all = recording.lines().map(|line| serde_json::from_str(line).unwrap());
    let is_wanted = |exchange: &Value| {
        exchange["method"] == method && exchange["path"].as_str().is_some_and(|text| text.starts_with(path))
    };
    let found: Vec<_> = all.filter(is_wanted).collect();
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
fn x34_lookup_replies_are_understood() {
    for (recording, tls) in [(IRONIC_26, None), (IRONIC_39, Some("1.3"))] {
        let lookups = exchanges_of(recording, "GET", "/v1/lookup");
        // A node that is locked is asked for again.
        let (answered, others): (Vec<_>, Vec<_>) =
            lookups.into_iter().partition(|exchange| exchange["status"] == 200);
        assert!(others.iter().all(|exchange| exchange["status"] == 409), "{others:#?}");
        assert!(!answered.is_empty());
        for exchange in answered {
            let reply: LookupReply = parsed(&exchange["reply"]);
            assert_eq!(reply.node.root_device(), Some(&json!({"serial": "ROOT"})));
            assert!(reply.config.agent_token.is_some() && reply.config.agent_token_required);
            assert_eq!(reply.config.tls_min_version.as_deref(), tls);
            assert_eq!(exchange["version"], "1.62");
        }
    }
}

#[test]
fn x34_heartbeats_are_accepted_unless_the_node_is_locked() {
    for exchange in exchanges("POST", "/v1/heartbeat/") {
        let heartbeat: Heartbeat = unchanged(&exchange["request"]);
        assert!(heartbeat.callback_url.starts_with("https://") && heartbeat.agent_verify_ca.is_some());
        assert_eq!(exchange["version"], "1.68");
        assert!([202, 409].contains(&exchange["status"].as_u64().unwrap()), "{exchange}");
    }
}

#[test]
fn x34_commands_of_a_deployment_come_in_the_order_of_the_contract() {
    for recording in [IRONIC_26, IRONIC_39] {
        let commands = exchanges_of(recording, "POST", "/v1/commands/");
        let names: Vec<_> =
            commands.iter().map(|exchange| parsed::<CommandRequest>(&exchange["request"]).name).collect();
        let deployment = [
            "deploy.get_deploy_steps",
            "deploy.execute_deploy_step",
            "standby.get_partition_uuids",
            "image.install_bootloader",
            "standby.power_off",
        ];
        assert!(names.windows(deployment.len()).any(|names| names == deployment), "{names:#?}");
    }
}

#[test]
fn x34_the_order_to_write_an_image_is_understood() {
    for request in parameters("deploy.execute_deploy_step") {
        let params = &request["params"];
        let step: Step = unchanged(&params["step"]);
        assert_eq!((step.interface.as_str(), step.step.as_str()), ("deploy", "write_image"));
        let info = ImageInfo::from_params(&step.args.unwrap()["image_info"]).unwrap();
        assert_eq!((info.id.is_empty(), info.disk_format.as_deref()), (false, Some("raw")));
        assert_eq!(info.os_hash_algo.as_deref(), Some("sha256"));
        let node: Node = parsed(&params["node"]);
        assert_eq!(node.root_device(), Some(&json!({"serial": "ROOT"})));
    }
}

#[test]
fn x34_answers_of_the_agent_keep_their_form() {
    for exchange in exchanges("POST", "/v1/commands/") {
        unchanged::<CommandResult>(&exchange["reply"]);
    }
    for exchange in exchanges("GET", "/v1/commands/") {
        let list: CommandList = unchanged(&exchange["reply"]);
        for listing in list.commands.iter().filter(|command| command.command_name == "get_deploy_steps") {
            parsed::<DeploySteps>(listing.command_result.as_ref().unwrap());
        }
    }
}
