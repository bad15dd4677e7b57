//! The API describing itself (section 16.1).

use serde_json::{Value, json};

const DOCUMENTATION: &str = "https://docs.openstack.org/ironic-python-agent/";

/// Answer to `GET /`.
pub fn root(base: &str) -> Value {
    let version = json!({"id": "v1", "links": links(base)});
    json!({
        "name": "OpenStack Ironic Python Agent API",
        "description": "Farrier speaks the contract of the Ironic Python Agent.",
        "versions": [version],
        "default_version": version,
    })
}

/// Answer to `GET /v1/`.
pub fn version(base: &str) -> Value {
    let resource = |name: &str| {
        json!([
            {"href": format!("{base}/v1/{name}"), "rel": "self"},
            {"href": format!("{base}/{name}"), "rel": "bookmark"},
        ])
    };
    json!({
        "commands": resource("commands"),
        "status": resource("status"),
        "progress": resource("progress"),
        "media_types": [{
            "base": "application/json",
            "type": "application/vnd.openstack.ironic-python-agent.v1+json",
        }],
        "id": "v1",
        "links": links(base),
    })
}

fn links(base: &str) -> Value {
    json!([
        {"href": format!("{base}/v1"), "rel": "self"},
        {"href": DOCUMENTATION, "rel": "describedby", "type": "text/html"},
    ])
}
