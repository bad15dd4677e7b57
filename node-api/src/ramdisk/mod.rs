//! What agents call: the API description, lookup and heartbeat (conductor contract 8.1 to 8.3).

mod boot;
pub(crate) mod inspection;
mod spool;

pub use boot::boot_router;

use crate::wire::reply::{Refusal, fallback, wrong_method};
use crate::wire::version::{describe, negotiate};
use axum::body::Bytes;
use axum::extract::{DefaultBodyLimit, Extension, Path, Query, Request, State};
use axum::http::StatusCode;
use axum::middleware::Next;
use axum::response::Response;
use axum::routing::{get, post};
use axum::{Json, Router, middleware};
use farrier_conductor::heartbeat::no_token;
use farrier_engine::Conductor;
use farrier_engine::Error;
use farrier_engine::{LookupAnswer, LookupQuery};
use farrier_protocol::heartbeat::{ApiVersion, Heartbeat};
use farrier_protocol::json::{self, Limits};
use farrier_protocol::lookup::LookupConfig;
use serde_json::{Map, Value, json};
use std::collections::HashMap;

/// Longest heartbeat, in bytes: a certificate and some words.
const HEARTBEAT_LIMIT: usize = 256 << 10;

/// What the values of a heartbeat may be.
const HEARTBEAT: Limits = Limits::FEW;

/// First version with `agent_status` in heartbeats.
const AGENT_STATUS: ApiVersion = ApiVersion::v1(72);

/// The routes that agents call, ready to be served or merged into another application. They need
/// no authentication; what protects them is the state of the node and the agent token.
pub fn ramdisk_router(conductor: Conductor) -> Router {
    let mut endpoints = Router::new();
    for prefix in ["", "/v1"] {
        for end in ["", "/"] {
            endpoints = endpoints
                .route(&format!("{prefix}/lookup{end}"), get(lookup))
                .route(&format!("{prefix}/heartbeat/{{node}}{end}"), post(heartbeat));
        }
    }
    endpoints
        .merge(inspection::ramdisk_routes())
        .route_layer(middleware::from_fn_with_state(conductor.clone(), refuse_if_disabled))
        .route("/", get(describe))
        .route("/v1", get(describe))
        .route("/v1/", get(describe))
        .fallback(fallback)
        .method_not_allowed_fallback(wrong_method)
        .layer(DefaultBodyLimit::max(HEARTBEAT_LIMIT))
        .layer(middleware::from_fn(negotiate))
        .with_state(conductor)
}

async fn refuse_if_disabled(
    State(conductor): State<Conductor>,
    request: Request,
    next: Next,
) -> Result<Response, Refusal> {
    if conductor.settings().enable_ramdisk_endpoints {
        return Ok(next.run(request).await);
    }
    let text = "this conductor does not serve ramdisks: enable_ramdisk_endpoints is off";
    Err(Refusal::new(StatusCode::FORBIDDEN, text))
}

async fn lookup(
    State(conductor): State<Conductor>,
    Extension(version): Extension<ApiVersion>,
    Query(parameters): Query<HashMap<String, String>>,
) -> Result<Json<Value>, Refusal> {
    if version < ApiVersion::LOOKUP {
        return Err(Refusal::not_found());
    }
    let answer =
        conductor.ramdisks().lookup(&query(&parameters)?, version >= ApiVersion::AGENT_TOKEN).await?;
    Ok(Json(lookup_reply(&conductor, answer)))
}

/// Addresses that are none are left out; some identity must remain.
fn query(parameters: &HashMap<String, String>) -> Result<LookupQuery, Refusal> {
    let addresses = parameters.get("addresses").map_or("", String::as_str);
    let addresses: Vec<_> = addresses.split(',').filter_map(|text| text.parse().ok()).collect();
    let node_uuid = parameters.get("node_uuid").map(|text| text.parse()).transpose();
    let node_uuid = node_uuid.map_err(|error| Refusal::bad_request(format!("node_uuid: {error}")))?;
    if addresses.is_empty() && node_uuid.is_none() {
        return Err(Refusal::bad_request("addresses or node_uuid is needed: MAC addresses, comma separated"));
    }
    Ok(LookupQuery { addresses, node_uuid })
}

/// What agents read of a node that they have looked up, and nobody proves to be one: of its hardware properties,
const PROPERTIES: &[&str] = &["root_device", "skip_block_devices", "capabilities", "cpu_arch", "local_gb"];

/// of its instance, the config drive being a mask,
const INSTANCE_INFO: &[&str] =
    &["root_device", "capabilities", "deploy_boot_mode", "secure_boot", "configdrive"];

/// and of the notes of the conductor.
const NOTES: &[&str] = &[
    "agent_erase_devices_iterations",
    "agent_erase_devices_zeroize",
    "agent_continue_if_secure_erase_failed",
    "agent_continue_if_ata_erase_failed",
    "agent_enable_ata_secure_erase",
    "agent_enable_nvme_secure_erase",
    "agent_erase_skip_read_only",
    "disk_erasure_concurrency",
    "deploy_boot_mode",
];

fn picked(map: &Map<String, Value>, keys: &[&str]) -> Map<String, Value> {
    keys.iter()
        .filter_map(|key| map.get_key_value(*key))
        .map(|(key, value)| (key.clone(), value.clone()))
        .collect()
}

/// The least that an agent needs (lesson S40). Python agents read the metrics settings too.
pub(crate) fn lookup_reply(conductor: &Conductor, answer: LookupAnswer) -> Value {
    let node = answer.node;
    let link = format!("{}/v1/nodes/{}", conductor.settings().api_url, node.uuid);
    let config = LookupConfig {
        heartbeat_timeout: conductor.settings().heartbeat_timeout.as_secs().max(1),
        agent_token: answer.token,
        agent_token_required: true,
        agent_md5_checksum_enable: Some(false),
        tls_min_version: Some("1.3".to_owned()),
        tls_cipher_suites: None,
        permitted_image_formats: Some(conductor.settings().permitted_image_formats.clone()),
        disable_deep_image_inspection: None,
        enable_bios_bootloader_install: Some(conductor.settings().enable_bios_bootloader_install),
        agent_skip_bmc_detect: None,
        agent_containers: Map::new(),
        left_out: Vec::new(),
    };
    let mut config = json!(config);
    config["metrics"] = json!({
        "backend": "noop",
        "prepend_host": false,
        "prepend_uuid": false,
        "prepend_host_reverse": true,
        "global_prefix": null,
    });
    config["metrics_statsd"] = json!({"statsd_host": "localhost", "statsd_port": 8125});
    json!({
        "node": {
            "uuid": node.uuid,
            "properties": picked(&node.properties, PROPERTIES),
            "instance_info": picked(&node.instance_info, INSTANCE_INFO),
            "driver_internal_info": picked(&node.driver_internal_info.others, NOTES),
            "links": [{"href": link, "rel": "self"}],
        },
        "config": config,
    })
}

async fn heartbeat(
    State(conductor): State<Conductor>,
    Extension(version): Extension<ApiVersion>,
    Path(node): Path<String>,
    body: Bytes,
) -> Result<StatusCode, Refusal> {
    if version < ApiVersion::LOOKUP {
        return Err(Refusal::not_found());
    }
    let heartbeat: Heartbeat = json::read(&body, &HEARTBEAT)
        .map_err(|error| Refusal::bad_request(format!("the heartbeat cannot be used: {error}")))?;
    refuse_newer_fields(&heartbeat, version)?;
    match conductor.ramdisks().heartbeat(&node, heartbeat).await {
        // Whoever has no token learns nothing of which nodes there are.
        Err(Error::NodeNotFound(_)) => Err(Error::from(no_token()).into()),
        heard => Ok(heard.map(|()| StatusCode::ACCEPTED)?),
    }
}

fn refuse_newer_fields(heartbeat: &Heartbeat, version: ApiVersion) -> Result<(), Refusal> {
    for (field, since, is_sent) in [
        ("agent_version", ApiVersion::AGENT_VERSION, heartbeat.agent_version.is_some()),
        ("agent_token", ApiVersion::AGENT_TOKEN, heartbeat.agent_token.is_some()),
        ("agent_verify_ca", ApiVersion::AGENT_VERIFY_CA, heartbeat.agent_verify_ca.is_some()),
        ("agent_status", AGENT_STATUS, heartbeat.agent_status.is_some()),
        ("agent_status_message", AGENT_STATUS, heartbeat.agent_status_message.is_some()),
    ] {
        if version < since && is_sent {
            return Err(Refusal::bad_request(format!("{field} needs API version {since}, not {version}")));
        }
    }
    Ok(())
}
