//! The REST interface of an agent (contract, 1.1 to 1.6).

use super::commands::{Agent, Refused};
use crate::http::{Answer, Asked, json};
use crate::journal::{Side, Who};
use farrier_protocol::command::{CommandList, CommandRequest};
use farrier_protocol::error::Fault;
use hyper::{Method, StatusCode};
use serde::Serialize;
use serde_json::{Value, json};

/// Answers a request.
pub async fn answer(agent: &Agent, asked: Asked) -> Answer {
    let path = asked.path.strip_prefix("/v1").unwrap_or(&asked.path);
    match (&asked.method, path) {
        (&Method::GET, "/status") => {
            json(StatusCode::OK, &json!({"started_at": agent.started_at, "version": "0.1.0"}))
        }
        (&Method::GET, "" | "/") => json(StatusCode::OK, &description(&asked)),
        (_, path) if path.starts_with("/commands") => commands(agent, &asked, path).await,
        _ => fault(StatusCode::NOT_FOUND, "404 Not Found: there is nothing at this path"),
    }
}

async fn commands(agent: &Agent, asked: &Asked, path: &str) -> Answer {
    if asked.parameter("agent_token") != Some(&agent.found.token) {
        return fault(StatusCode::UNAUTHORIZED, "401 Unauthorized: Token invalid.");
    }
    match (&asked.method, path) {
        (&Method::GET, "/commands/") => ok(&CommandList { commands: agent.commands() }),
        (&Method::GET, path) => {
            let id = path.rsplit('/').next().unwrap_or_default();
            match agent.commands().into_iter().find(|command| command.id.to_string() == id) {
                Some(command) => ok(&command),
                None => {
                    let text = format!("Not found: Command Result with id {id} not found.");
                    fault(StatusCode::NOT_FOUND, &text)
                }
            }
        }
        (&Method::POST, "/commands/") => execute(agent, asked).await,
        _ => fault(StatusCode::METHOD_NOT_ALLOWED, "405 Method Not Allowed: commands are listed or posted"),
    }
}

async fn execute(agent: &Agent, asked: &Asked) -> Answer {
    let Ok(request) = serde_json::from_slice::<CommandRequest>(&asked.body) else {
        return fault(StatusCode::BAD_REQUEST, "400 Bad Request: Missing or invalid name or params");
    };
    let step = &request.params.get("step").unwrap_or(&Value::Null);
    let text = |key: &str| step[key].as_str();
    let step = text("interface").zip(text("step")).map(|(interface, step)| format!(" {interface}.{step}"));
    let act = format!("{}{}", request.name, step.unwrap_or_default());
    let waits = asked.parameter("wait") == Some("true");
    let answer = match agent.execute(request, waits).await {
        Ok(result) => ok(&result),
        Err(Refused { status, text }) => fault(status, &text),
    };
    let by = Who { peer: asked.peer, user: None, program: asked.program() };
    agent.machine.note(Side::Agent, Some(by), act, answer.status().as_str());
    answer
}

fn ok(body: &impl Serialize) -> Answer {
    json(StatusCode::OK, &serde_json::to_value(body).unwrap_or_default())
}

fn fault(status: StatusCode, text: &str) -> Answer {
    json(status, &serde_json::to_value(Fault::new(status.as_u16(), text)).unwrap_or_default())
}

/// What is where (16.1).
fn description(asked: &Asked) -> Value {
    let base = format!("https://{}", asked.header("host").unwrap_or_default());
    let link = |path: &str, relation: &str| json!({"href": format!("{base}{path}"), "rel": relation});
    if asked.path.starts_with("/v1") {
        return json!({
            "id": "v1", "links": [link("/v1", "self")],
            "commands": [link("/v1/commands", "self"), link("/commands", "bookmark")],
            "status": [link("/v1/status", "self"), link("/status", "bookmark")],
            "media_types": [{
                "base": "application/json", "type": "application/vnd.openstack.ironic-python-agent.v1+json",
            }],
        });
    }
    let version = json!({"id": "v1", "links": [link("/v1", "self")]});
    json!({
        "name": "OpenStack Ironic Python Agent API", "description": "An agent of a simulated machine",
        "versions": [version], "default_version": version,
    })
}
