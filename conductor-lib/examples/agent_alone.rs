//! Asks any machine that boots from the ramdisk what it is made of, and switches it off.
//!
//! ```console
//! $ cargo run -p farrier-conductor --features client --example agent_alone -- 0.0.0.0:6385
//! ```
//!
//! Boot the machine from the ramdisk with `ipa-api-url=http://THIS-HOST:6385`. Of the library this takes the agent's
//! client and nothing else. Whoever calls is believed, so it is for a network of which everybody is trusted.

use axum::extract::{Path, State};
use axum::http::StatusCode;
use axum::routing::{get, post};
use axum::{Json, Router};
use farrier_conductor::agent::{AgentClient, AgentError, AgentSettings, Wait};
use farrier_conductor::model::AgentSession;
use farrier_node_api::description;
use farrier_protocol::heartbeat::Heartbeat;
use serde_json::{Value, json};
use std::collections::HashMap;
use std::sync::{Arc, Mutex};
use uuid::Uuid;

/// The token of each machine; none for one that was asked already.
type Tokens = Arc<Mutex<HashMap<Uuid, String>>>;

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let listen = std::env::args().nth(1).ok_or("give an address to listen on")?;
    // The library leaves the choice of a TLS implementation to the program.
    rustls::crypto::ring::default_provider().install_default().map_err(|_| "TLS is set up already")?;
    let routes = Router::new()
        .route("/", get(async || Json(description(""))))
        .route("/v1/lookup", get(lookup))
        .route("/v1/heartbeat/{uuid}", post(heartbeat))
        .with_state(Tokens::default());
    let listener = tokio::net::TcpListener::bind(listen).await?;
    println!("listening on {}", listener.local_addr()?);
    Ok(axum::serve(listener, routes).await?)
}

/// Makes every machine a node, with a token.
async fn lookup(State(tokens): State<Tokens>) -> Json<Value> {
    let (uuid, token) = (Uuid::new_v4(), Uuid::new_v4().simple().to_string());
    let config = json!({"heartbeat_timeout": 30, "agent_token": token, "agent_token_required": true});
    tokens.lock().expect("nobody panics").insert(uuid, token);
    Json(json!({"node": {"uuid": uuid, "properties": {}, "driver_internal_info": {}}, "config": config}))
}

/// Asks a machine at its first heartbeat.
async fn heartbeat(
    State(tokens): State<Tokens>,
    Path(uuid): Path<Uuid>,
    Json(heartbeat): Json<Heartbeat>,
) -> StatusCode {
    let token = tokens.lock().expect("nobody panics").remove(&uuid);
    if let Some(token) = token.filter(|token| heartbeat.agent_token.as_ref() == Some(token)) {
        let session = AgentSession {
            agent_url: Some(heartbeat.callback_url),
            agent_verify_ca: heartbeat.agent_verify_ca,
            agent_secret_token: Some(token),
            ..AgentSession::default()
        };
        tokio::spawn(async move {
            match ask(&session).await {
                Ok(inventory) => println!("{inventory:#}"),
                Err(error) => eprintln!("{error}"),
            }
        });
    }
    StatusCode::ACCEPTED
}

/// What the machine is made of.
async fn ask(session: &AgentSession) -> Result<Value, AgentError> {
    let agent = AgentClient::new(session, &AgentSettings::default())?;
    let inventory = agent.run("poll.get_hardware_info", json!({})).await?;
    agent.execute("standby.power_off", json!({}), Wait::UntilAccepted).await?;
    Ok(inventory)
}
