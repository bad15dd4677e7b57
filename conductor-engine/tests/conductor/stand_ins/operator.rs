//! An operator, who calls the REST interface of a stage's conductor.

use super::stage::Stage;
use reqwest::{Method, Response};
use serde_json::{Value, json};

/// The newest version there is.
pub const NEWEST: &str = "1.110";

/// Asks the conductor in one of its versions.
pub async fn ask_in(version: &str, stage: &Stage, method: Method, path: &str, body: &Value) -> Response {
    let request = stage.http.request(method, format!("{}{path}", stage.node_api));
    let request = request.header("X-OpenStack-Ironic-API-Version", version);
    let request = if body.is_null() { request } else { request.json(body) };
    request.send().await.unwrap()
}

pub async fn ask(stage: &Stage, method: Method, path: &str, body: &Value) -> Response {
    ask_in(NEWEST, stage, method, path, body).await
}

pub async fn get(stage: &Stage, path: &str) -> Value {
    let reply = ask(stage, Method::GET, path, &Value::Null).await;
    assert_eq!(reply.status(), 200, "{path}");
    reply.json().await.unwrap()
}

/// Sets fields of a node, or what is in them.
pub async fn set(stage: &Stage, node: &str, values: &Value) -> Response {
    let set = |(path, value): (&String, &Value)| json!({"op": "add", "path": path, "value": value});
    let patch: Vec<_> = values.as_object().unwrap().iter().map(set).collect();
    ask(stage, Method::PATCH, &format!("/v1/nodes/{node}"), &json!(patch)).await
}
