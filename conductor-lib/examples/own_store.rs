//! A conductor with a store of its own, here a map in memory: it cleans one machine and switches it off.
//!
//! ```console
//! $ cargo run -p farrier-conductor --features client --example own_store -- 0.0.0.0:6385 52:54:00:00:00:01
//! ```
//!
//! Boot the machine from the ramdisk with `ipa-api-url=http://THIS-HOST:6385`. Of the library this takes the pure
//! functions of `heartbeat` and the agent's client; states, records and routes are the example's own.

use axum::extract::{Path, Query, State};
use axum::http::StatusCode;
use axum::routing::{get, post};
use axum::{Json, Router};
use farrier_conductor::agent::{AgentClient, AgentError, AgentSettings, Wait};
use farrier_conductor::heartbeat::{Next, SessionEnd, Situation, Verdict, accept, next};
use farrier_conductor::model::{AgentSession, PlannedStep, ProvisionState, StepKind, StepPlan};
use farrier_node_api::description;
use farrier_protocol::command::CommandResult;
use farrier_protocol::heartbeat::Heartbeat;
use serde_json::{Value, json};
use std::collections::HashMap;
use std::sync::{Arc, Mutex};
use time::OffsetDateTime;
use uuid::Uuid;

const STEP: &str = "erase_devices_metadata";

/// What is known of the machine.
#[derive(Clone)]
struct Machine {
    address: String,
    state: ProvisionState,
    session: AgentSession,
    step: Option<PlannedStep>,
}

impl Machine {
    /// What a heartbeat sets off, or with the agent's command list, what becomes of the step.
    fn next<'a>(&self, commands: Option<&'a [CommandResult]>) -> Next<'a> {
        let plan = StepPlan::default();
        let situation =
            Situation { step: self.step.as_ref(), plan: Some(&plan), ..Situation::of(self.state) };
        next(&situation, commands)
    }
}

type Machines = Arc<Mutex<HashMap<Uuid, Machine>>>;

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let [_, listen, address] = &std::env::args().collect::<Vec<_>>()[..] else {
        return Err("give an address to listen on, and the MAC address of the machine".into());
    };
    // The library leaves the choice of a TLS implementation to the program.
    rustls::crypto::ring::default_provider().install_default().map_err(|_| "TLS is set up already")?;
    let machine = Machine {
        address: address.to_ascii_lowercase(),
        state: ProvisionState::CleanWait,
        session: AgentSession::default(),
        step: None,
    };
    let routes = Router::new()
        .route("/", get(async || Json(description(""))))
        .route("/v1/lookup", get(lookup))
        .route("/v1/heartbeat/{uuid}", post(heartbeat))
        .with_state(Machines::new(HashMap::from([(Uuid::new_v4(), machine)]).into()));
    let listener = tokio::net::TcpListener::bind(listen).await?;
    println!("listening on {}", listener.local_addr()?);
    Ok(axum::serve(listener, routes).await?)
}

/// Tells a machine who it is, and its token once.
async fn lookup(
    State(machines): State<Machines>,
    Query(query): Query<HashMap<String, String>>,
) -> Result<Json<Value>, StatusCode> {
    let addresses = query.get("addresses").map_or("", String::as_str).to_ascii_lowercase();
    let mut machines = machines.lock().expect("nobody panics");
    let is_meant = |machine: &Machine| addresses.split(',').any(|one| one == machine.address);
    let found = machines.iter_mut().find(|(_, one)| is_meant(one) && one.state.allows_lookup(false));
    let (uuid, machine) = found.ok_or(StatusCode::NOT_FOUND)?;
    let fresh = format!("{}{}", Uuid::new_v4().simple(), Uuid::new_v4().simple());
    let issued = machine.session.agent_secret_token.get_or_insert_with(|| fresh.clone());
    let token = if *issued == fresh { &fresh } else { "******" };
    let config = json!({"heartbeat_timeout": 30, "agent_token": token, "agent_token_required": true});
    Ok(Json(json!({"node": {"uuid": uuid, "properties": {}, "driver_internal_info": {}}, "config": config})))
}

/// Takes a heartbeat, and lets it set off what it sets off.
async fn heartbeat(
    State(machines): State<Machines>,
    Path(uuid): Path<Uuid>,
    Json(heartbeat): Json<Heartbeat>,
) -> Result<StatusCode, (StatusCode, String)> {
    let machine = {
        let mut machines = machines.lock().expect("nobody panics");
        let machine = machines.get_mut(&uuid).ok_or((StatusCode::NOT_FOUND, String::new()))?;
        let heard = accept(&machine.session, &heartbeat, true, OffsetDateTime::now_utc());
        machine.session = heard.map_err(|refusal| (StatusCode::BAD_REQUEST, refusal.to_string()))?;
        let begins = machine.next(None) == Next::Begin(StepKind::Clean);
        let before = machine.clone();
        if begins {
            machine.step = Some(PlannedStep { in_band: true, ..PlannedStep::new("deploy", STEP, 0) });
        }
        before
    };
    tokio::spawn(async move {
        let outcome = act(&machine, uuid).await.unwrap_or_else(|error| {
            println!("{error}");
            Some(ProvisionState::CleanFailed)
        });
        if let (Some(state), Some(machine)) =
            (outcome, machines.lock().expect("nobody panics").get_mut(&uuid))
        {
            machine.session = SessionEnd::Operation { keeps_agent: false }.after(&machine.session);
            machine.state = state;
            println!("{} is {state}", machine.address);
        }
    });
    Ok(StatusCode::ACCEPTED)
}

/// Does what the heartbeat sets off; the state in which that leaves the machine, where it is another one.
async fn act(machine: &Machine, uuid: Uuid) -> Result<Option<ProvisionState>, AgentError> {
    let agent = AgentClient::new(&machine.session, &AgentSettings::default())?;
    match machine.next(None) {
        Next::Begin(StepKind::Clean) => {
            let node =
                json!({"uuid": uuid, "properties": {}, "instance_info": {}, "driver_internal_info": {}});
            let listed = agent.run("clean.get_clean_steps", json!({"node": node, "ports": []})).await?;
            let params = json!({"node": node, "ports": [], "step": {"interface": "deploy", "step": STEP},
                "clean_version": listed["hardware_manager_version"]});
            agent.execute("clean.execute_clean_step", params, Wait::UntilAccepted).await?;
            Ok(None)
        }
        Next::ReadCommands { .. } => match machine.next(Some(&agent.commands().await?)) {
            Next::Step(_, Verdict::Continue(_)) => {
                agent.execute("standby.power_off", json!({}), Wait::UntilAccepted).await?;
                Ok(Some(ProvisionState::Manageable))
            }
            Next::Step(_, Verdict::Fail(reason)) => Err(AgentError::Failed { reason }),
            _ => Ok(None),
        },
        _ => Ok(None),
    }
}
