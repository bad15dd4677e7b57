//! An agent that follows a script: it takes commands by HTTP without TLS, and each has the result that the script says.

use crate::model::AgentSession;
use farrier_protocol::command::{CommandResult, CommandStatus};
use http_body_util::{BodyExt, Full};
use hyper::body::{Bytes, Incoming};
use hyper::service::service_fn;
use hyper::{Method, Request, Response, StatusCode};
use hyper_util::rt::TokioIo;
use serde_json::{Value, json};
use std::collections::HashMap;
use std::convert::Infallible;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use time::OffsetDateTime;
use tokio::net::TcpListener;
use tokio::task::AbortHandle;

/// An agent that follows a script, on a port of this host, until it is dropped.
pub struct ScriptedAgent {
    url: String,
    state: Arc<Mutex<State>>,
    serving: AbortHandle,
}

#[derive(Default)]
struct State {
    script: HashMap<String, Value>,
    asked: Vec<(String, Value)>,
    commands: Vec<CommandResult>,
}

impl ScriptedAgent {
    /// Starts one whose commands, by their names such as `clean.get_clean_steps`, succeed with these results; one of
    /// another name is refused.
    ///
    /// # Errors
    ///
    /// There is no free port.
    pub async fn start(script: impl IntoIterator<Item = (&'static str, Value)>) -> std::io::Result<Self> {
        let listener = TcpListener::bind("127.0.0.1:0").await?;
        let url = format!("http://{}", listener.local_addr()?);
        let script = script.into_iter().map(|(name, result)| (name.to_owned(), result)).collect();
        let state = Arc::new(Mutex::new(State { script, ..State::default() }));
        let serving = tokio::spawn(serve(listener, Arc::clone(&state))).abort_handle();
        Ok(Self { url, state, serving })
    }

    /// What a conductor knows of it after its first heartbeat.
    pub fn session(&self) -> AgentSession {
        AgentSession {
            agent_url: Some(self.url.clone()),
            agent_secret_token: Some("token".to_owned()),
            agent_last_heartbeat: Some(OffsetDateTime::UNIX_EPOCH),
            ..AgentSession::default()
        }
    }

    /// The names and parameters of the commands that it was given, the first first.
    pub fn asked(&self) -> Vec<(String, Value)> {
        locked(&self.state).asked.clone()
    }
}

impl Drop for ScriptedAgent {
    fn drop(&mut self) {
        self.serving.abort();
    }
}

fn locked(state: &Mutex<State>) -> MutexGuard<'_, State> {
    state.lock().unwrap_or_else(PoisonError::into_inner)
}

async fn serve(listener: TcpListener, state: Arc<Mutex<State>>) {
    while let Ok((stream, _)) = listener.accept().await {
        let state = Arc::clone(&state);
        let service = service_fn(move |request| answer(Arc::clone(&state), request));
        tokio::spawn(
            hyper::server::conn::http1::Builder::new().serve_connection(TokioIo::new(stream), service),
        );
    }
}

async fn answer(
    state: Arc<Mutex<State>>,
    request: Request<Incoming>,
) -> Result<Response<Full<Bytes>>, Infallible> {
    let (method, path) = (request.method().clone(), request.uri().path().to_owned());
    let body = request.into_body().collect().await.map(|body| body.to_bytes()).unwrap_or_default();
    let (status, answer) = match (method, path.trim_end_matches('/')) {
        (Method::GET, "/v1/commands") => (StatusCode::OK, json!({"commands": locked(&state).commands})),
        (Method::POST, "/v1/commands") => run(&state, &body),
        (Method::GET, path) => found(&state, path),
        _ => (StatusCode::NOT_FOUND, fault("there is no such resource")),
    };
    let mut response = Response::new(Full::from(answer.to_string()));
    *response.status_mut() = status;
    Ok(response)
}

/// Runs a command, which ends at once.
fn run(state: &Mutex<State>, body: &[u8]) -> (StatusCode, Value) {
    let order: Value = serde_json::from_slice(body).unwrap_or_default();
    let name = order["name"].as_str().unwrap_or_default().to_owned();
    let mut state = locked(state);
    state.asked.push((name.clone(), order["params"].clone()));
    let Some(result) = state.script.get(&name).cloned() else {
        return (StatusCode::BAD_REQUEST, fault(&format!("the script has no command {name}")));
    };
    let bare = name.rsplit('.').next().unwrap_or_default();
    let command = CommandResult {
        command_status: CommandStatus::Succeeded,
        command_result: Some(result),
        ..CommandResult::running(bare)
    };
    state.commands.push(command.clone());
    (StatusCode::OK, json!(command))
}

fn found(state: &Mutex<State>, path: &str) -> (StatusCode, Value) {
    let state = locked(state);
    let command = state.commands.iter().find(|command| path.ends_with(&command.id.to_string()));
    match command {
        Some(command) => (StatusCode::OK, json!(command)),
        None => (StatusCode::NOT_FOUND, fault("there is no such command")),
    }
}

fn fault(details: &str) -> Value {
    json!({"type": "RESTError", "code": 400, "message": "refused", "details": details})
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::agent::{AgentClient, AgentError};
    use crate::registry::testing::settings;

    #[tokio::test]
    async fn commands_have_the_results_of_the_script_and_others_are_refused() {
        let agent = ScriptedAgent::start([("standby.sync", json!({"synced": true}))]).await.unwrap();
        let client = AgentClient::new(&agent.session(), &settings().agent).unwrap();
        assert_eq!(client.run("standby.sync", json!({"a": 1})).await.unwrap(), json!({"synced": true}));
        let refused = client.run("standby.power_off", json!({})).await.unwrap_err();
        assert!(matches!(refused, AgentError::Refused { .. }), "{refused}");
        assert_eq!(client.commands().await.unwrap().len(), 1);
        assert_eq!(agent.asked()[0], ("standby.sync".to_owned(), json!({"a": 1})));
    }
}
