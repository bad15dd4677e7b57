//! The REST interface of agents: commands, and their progress.

use super::{Agent, DEPLOY_STEP, Script, is_execute};
use axum::Json;
use axum::body::Bytes;
use axum::extract::{Query, State};
use axum::http::StatusCode;
use farrier_protocol::command::{CommandList, CommandRequest, CommandResult, CommandStatus};
use farrier_protocol::error::Fault;
use farrier_protocol::progress::{Phase, Progress};
use serde_json::{Value, json};
use std::collections::HashMap;
use std::time::Duration;

type Answer = Result<Json<Value>, (StatusCode, Json<Fault>)>;

fn refuse(status: StatusCode, text: &str) -> (StatusCode, Json<Fault>) {
    (status, Json(Fault::new(status.as_u16(), text)))
}

fn check(agent: &Agent, query: &HashMap<String, String>) -> Result<(), (StatusCode, Json<Fault>)> {
    match query.get("agent_token") == agent.script().token.as_ref() {
        true => Ok(()),
        false => Err(refuse(StatusCode::UNAUTHORIZED, "401 Unauthorized: Token invalid.")),
    }
}

/// An agent that cannot serve, for a while.
fn be_sick(agent: &Agent) -> Result<(), (StatusCode, Json<Fault>)> {
    let is_sick = agent.change(|script| {
        let is_sick = script.sick > 0;
        script.sick = script.sick.saturating_sub(1);
        is_sick
    });
    if is_sick { Err(refuse(StatusCode::SERVICE_UNAVAILABLE, "out of memory")) } else { Ok(()) }
}

fn is_running_step(command: &CommandResult) -> bool {
    command.command_name == DEPLOY_STEP && command.command_status == CommandStatus::Running
}

pub async fn list(State(agent): State<Agent>, Query(query): Query<HashMap<String, String>>) -> Answer {
    check(&agent, &query)?;
    be_sick(&agent)?;
    tokio::time::sleep(agent.script().slow.unwrap_or_default()).await;
    agent.until_vanished().await;
    if agent.script().deaf {
        std::future::pending::<()>().await;
    }
    let commands = agent.commands.lock().unwrap().clone();
    let is_at_work = commands.iter().any(is_running_step);
    agent.change(|script| script.listed_at_work += u32::from(is_at_work));
    let is_ended =
        |c: &CommandResult| is_execute(&c.command_name) && c.command_status != CommandStatus::Running;
    if commands.iter().any(is_ended) && agent.script().holds {
        agent.change(|script| script.held += 1);
        while agent.script().holds {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    }
    Ok(Json(json!(CommandList { commands })))
}

pub async fn execute(
    State(agent): State<Agent>,
    Query(query): Query<HashMap<String, String>>,
    body: Bytes,
) -> Answer {
    check(&agent, &query)?;
    be_sick(&agent)?;
    tokio::time::sleep(agent.script().slow.unwrap_or_default()).await;
    if agent.script().deaf {
        std::future::pending::<()>().await;
    }
    let request: CommandRequest = serde_json::from_slice(&body).unwrap();
    let running = agent.commands.lock().unwrap().iter().any(|c| c.command_status == CommandStatus::Running);
    let is_step = is_execute(&request.name);
    let other_work = is_step
        && agent.change(|script| {
            let busy = script.busy > 0;
            script.busy = script.busy.saturating_sub(1);
            busy
        });
    if running || other_work {
        return Err(refuse(StatusCode::CONFLICT, "Agent is busy: executing command sync"));
    }
    let result = CommandResult::running(request.name.split_once('.').unwrap().1);
    agent.start(&result);
    agent.change(|script| script.accepted.push((request.name.clone(), request.params.clone().into())));
    agent.run_command(&request, &result);
    let loses = |script: &mut Script| {
        std::mem::take(&mut script.loses_answer) || std::mem::take(&mut script.loses_late_answer)
    };
    if is_step && agent.change(loses) {
        std::future::pending::<()>().await;
    }
    let script = agent.script();
    let goes_off_unseen = script.is_switched_by_hand || script.ends_before_its_machine;
    let ends_before_it_answers = request.name == "standby.power_off" && goes_off_unseen
        || request.name == "rescue.finalize_rescue"
            && agent.change(|script| {
                let loses = script.loses_rescue_answers > 0;
                script.loses_rescue_answers = script.loses_rescue_answers.saturating_sub(1);
                loses
            });
    if ends_before_it_answers {
        agent.ends.notify_one();
        std::future::pending::<()>().await;
    }
    let commands = agent.commands.lock().unwrap();
    let result = commands.iter().find(|known| known.id == result.id).cloned().unwrap_or(result);
    Ok(Json(json!(result)))
}

pub async fn resources(State(agent): State<Agent>) -> Json<Value> {
    agent.until_vanished().await;
    let mut resources = json!({"id": "v1", "commands": [], "status": []});
    if !agent.script().offers_no_progress {
        resources["progress"] = json!([]);
    }
    Json(resources)
}

pub async fn progress(State(agent): State<Agent>) -> Json<Progress> {
    agent.change(|script| script.progress_asked += 1);
    agent.until_vanished().await;
    let writing = agent.commands.lock().unwrap().iter().any(|command| command.command_name == DEPLOY_STEP);
    if writing {
        agent.asked.notify_one();
    }
    let phase = match agent.commands.lock().unwrap().iter().any(is_running_step) {
        true => Phase::Writing,
        false if writing => Phase::Done,
        false => Phase::Idle,
    };
    let eta_seconds = Some(1);
    Json(Progress {
        phase,
        bytes: 64,
        total_bytes: Some(128),
        bytes_per_second: 64,
        eta_seconds,
        ..Progress::default()
    })
}
