//! The command engine: one command at a time, every result kept (sections 1.3, 1.5 and 1.6).
//!
//! A synchronous command holds the submission lock for its whole run, so that the next one waits.
//! An asynchronous command is started under the lock; while it runs, every further command is
//! refused as busy. Reading results never takes the lock. What a crash must not hide from a conductor is in the
//! [`record`].

pub mod allowance;
mod declaration;
pub mod errors;
mod history;
mod record;

pub use declaration::{Command, Find, JsonType, Kind, Parameter, Params, Run, Validate};

use crate::agent::Agent;
use crate::status;
use allowance::Claim;
use axum::body::Bytes;
use farrier_protocol::command::{CommandResult, CommandStatus};
use farrier_protocol::error::{CommandError, ErrorKind, Fault};
use farrier_protocol::error_code::{self, ErrorCode};
use history::{Entry, History};
use record::Record;
use serde_json::{Value, json};
use std::sync::{Arc, Mutex, MutexGuard};
use tokio::sync::watch;
use uuid::Uuid;

/// A command that was not accepted: an HTTP status and the text of its fault (section 1.5).
#[derive(Debug, thiserror::Error)]
#[error("{text}")]
pub struct Refusal {
    /// HTTP status.
    pub status: u16,
    /// Text of the fault.
    pub text: String,
    /// Code of the error.
    pub code: &'static ErrorCode,
}

impl Refusal {
    /// A refusal with the code of its HTTP status.
    pub fn new(status: u16, text: impl Into<String>) -> Self {
        Self { status, text: text.into(), code: error_code::agent::of_status(status) }
    }

    /// The refusal of a malformed request.
    pub fn bad_request(text: &str) -> Self {
        Self::new(400, format!("400 Bad Request: {text}"))
    }

    /// Its body on the wire.
    pub fn fault(&self) -> Fault {
        Fault::new(self.status, &self.text)
    }
}

impl From<CommandError> for Refusal {
    fn from(error: CommandError) -> Self {
        let code = error_code::agent::of_command(&error);
        Self { status: error.code, text: format!("{}: {}", error.message, error.details), code }
    }
}

/// Runs commands and remembers their results for the life of the process, and the newest one for the boot.
pub struct CommandEngine {
    agent: Arc<Agent>,
    find_command: Find,
    submission: Arc<tokio::sync::Mutex<()>>,
    results: Mutex<History>,
    record: Record,
    /// Counts finished commands, so that waiters wake up.
    finished: watch::Sender<u64>,
}

impl CommandEngine {
    /// An engine that knows the commands `find_command` finds. Its history begins with the newest command of an
    /// earlier process of this boot.
    pub fn new(agent: Arc<Agent>, find_command: Find) -> Arc<Self> {
        let record = Record::below(&agent.root);
        let mut results = History::default();
        if let Some(earlier) = record.take_up() {
            results.put(&earlier);
        }
        Arc::new(Self {
            agent,
            find_command,
            submission: Arc::default(),
            results: Mutex::new(results),
            record,
            finished: watch::Sender::new(0),
        })
    }

    /// The results of the commands so far, in order of execution, as JSON.
    pub fn list(&self) -> Vec<Bytes> {
        self.results().texts()
    }

    /// The same without the arguments of steps.
    pub fn list_without_arguments(&self) -> Vec<Bytes> {
        self.results().texts_without_arguments()
    }

    /// The result of one command as JSON; with `wait` not before it is finished.
    ///
    /// # Errors
    ///
    /// A 404 refusal when there is no command with this id.
    pub async fn get(&self, id: &str, wait: bool) -> Result<Bytes, Refusal> {
        let found = match Uuid::parse_str(id) {
            Ok(id) if wait => self.wait(id).await,
            Ok(id) => self.find(id).map(|entry| entry.text),
            Err(_) => None,
        };
        found.ok_or_else(|| {
            let details = format!("Command Result with id {id} not found.");
            CommandError::new(ErrorKind::RequestedObjectNotFoundError, details).into()
        })
    }

    /// Accepts a command of the form `{"name": "<extension>.<command>", "params": {…}}`, for which memory was
    /// claimed until it has ended.
    ///
    /// # Errors
    ///
    /// A [`Refusal`] when it is malformed, unknown, or another command is running. A command that
    /// ran and failed is a result, not a refusal.
    pub async fn submit(
        self: &Arc<Self>,
        request: Value,
        memory: Option<Claim>,
        wait: bool,
    ) -> Result<Bytes, Refusal> {
        let (name, params) = shape(request)?;
        let lock = Arc::clone(&self.submission).lock_owned().await;
        let (extension, command) = split(&name)?;
        self.refuse_when_busy()?;
        let command = (self.find_command)(extension, command)?;
        let names = command.check_names(&params);
        if names.is_ok() {
            command.check_values(&params)?;
        }
        tracing::info!(command = name, "command accepted");
        let accepted = CommandResult::running(command.name);
        let id = accepted.id;
        let is_recorded = command.kind == Kind::Async;
        let ready =
            names.and_then(|()| if is_recorded { self.record.begin(&accepted, &params) } else { Ok(()) });
        let accepted = self.results().put(&accepted);
        let run = Arc::clone(self).run(id, command, ready.map(|()| params));
        let run = async move {
            run.await;
            drop(memory);
        };
        match command.kind {
            Kind::Sync => {
                // A task of its own: a client that goes away does not cut the command short.
                let finished = self.agent.runtime.spawn(async move {
                    run.await;
                    drop(lock);
                });
                finished.await.ok();
                Ok(self.find(id).map_or(accepted, |entry| entry.text))
            }
            Kind::Async => {
                self.agent.runtime.spawn(run);
                drop(lock);
                if wait { Ok(self.wait(id).await.unwrap_or(accepted)) } else { Ok(accepted) }
            }
        }
    }

    async fn run(self: Arc<Self>, id: Uuid, command: &'static Command, params: Result<Params, CommandError>) {
        let agent = Arc::clone(&self.agent);
        agent.status.say(command.name);
        let outcome = match params {
            Err(error) => Err(error),
            Ok(params) => match tokio::task::spawn_blocking(move || (command.run)(&agent, &params)).await {
                Ok(outcome) => outcome,
                // This process ends before the command began. The next one tells.
                Err(error) if error.is_cancelled() => return,
                Err(error) => Err(panicked(command, error)),
            },
        };
        match &outcome {
            Ok(_) => tracing::info!(command = command.name, "command succeeded"),
            Err(error) => tracing::error!(command = command.name, "command failed: {}", error.text()),
        }
        self.agent.status.say(status::READY);
        self.finish(id, command, outcome);
        if command.kind == Kind::Async {
            self.agent.heartbeat_wanted.notify_one();
        }
    }

    /// The record comes first: who has seen a result must see it again after a crash.
    fn finish(&self, id: Uuid, command: &Command, outcome: Result<Value, CommandError>) {
        let mut ended = CommandResult { id, ..CommandResult::running(command.name) };
        match outcome {
            Ok(value) => {
                ended.command_result = wrap(command, value);
                ended.command_status = CommandStatus::Succeeded;
            }
            Err(error) => {
                let is_mismatch = error.kind == ErrorKind::VersionMismatch.name();
                ended.command_status =
                    if is_mismatch { CommandStatus::CleanVersionMismatch } else { CommandStatus::Failed };
                ended.command_error = Some(error);
            }
        }
        if command.kind == Kind::Async {
            self.record.end(&ended);
        }
        self.results().put(&ended);
        self.finished.send_modify(|count| *count += 1);
    }

    /// The result of a command that is finished; nothing when there is none, or it is kept no longer.
    async fn wait(&self, id: Uuid) -> Option<Bytes> {
        let mut finished = self.finished.subscribe();
        loop {
            let entry = self.find(id)?;
            if !entry.is_running {
                return Some(entry.text);
            }
            // The sender lives as long as self, so this wakes up only when something finished.
            finished.changed().await.ok();
        }
    }

    fn refuse_when_busy(&self) -> Result<(), Refusal> {
        match self.results().last() {
            Some(last) if last.is_running => {
                let details = format!("executing command {}", last.name);
                Err(CommandError::new(ErrorKind::AgentIsBusy, details).into())
            }
            _ => Ok(()),
        }
    }

    fn find(&self, id: Uuid) -> Option<Entry> {
        self.results().find(id)
    }

    fn results(&self) -> MutexGuard<'_, History> {
        self.results.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
    }
}

fn shape(mut request: Value) -> Result<(String, Params), Refusal> {
    let mut take = |name| request.get_mut(name).map(Value::take);
    match (take("name"), take("params")) {
        (Some(Value::String(name)), Some(Value::Object(params))) => Ok((name, params)),
        _ => Err(Refusal::bad_request("Missing or invalid name or params")),
    }
}

/// Extension and command of a full name.
///
/// # Errors
///
/// There is no dot in it.
pub fn split(name: &str) -> Result<(&str, &str), CommandError> {
    name.split_once('.').ok_or_else(|| {
        let details = format!("{name} lacks an extension: use <extension>.<command>");
        CommandError::new(ErrorKind::InvalidCommandError, details)
    })
}

/// Texts are wrapped, nothing stays nothing (section 1.3).
fn wrap(command: &Command, value: Value) -> Option<Value> {
    match (value, command.kind) {
        (Value::Null, _) => None,
        (Value::String(text), Kind::Sync) => Some(json!({"result": text})),
        (Value::String(text), Kind::Async) => Some(json!({"result": format!("{}: {text}", command.name)})),
        (other, _) => Some(other),
    }
}

fn panicked(command: &Command, error: tokio::task::JoinError) -> CommandError {
    let details =
        format!("{} ended by a defect of the agent ({error}); report it with the log", command.name);
    CommandError::new(ErrorKind::CommandExecutionError, details)
}

#[cfg(test)]
mod tests {
    use super::*;

    const COMMAND: Command = Command {
        name: "prepare_image",
        kind: Kind::Async,
        help: "",
        parameters: &[],
        validate: None,
        run: |_, _| Ok(Value::Null),
    };

    #[test]
    fn results_are_wrapped_as_the_contract_says() {
        let sync = Command { kind: Kind::Sync, ..COMMAND };
        for (command, value, expected) in [
            (&COMMAND, json!("done"), json!({"result": "prepare_image: done"})),
            (&sync, json!("done"), json!({"result": "done"})),
            (&COMMAND, Value::Null, Value::Null),
            (&sync, json!({"a": 1}), json!({"a": 1})),
        ] {
            assert_eq!(wrap(command, value).unwrap_or_default(), expected);
        }
    }

    #[test]
    fn malformed_requests_are_refused_with_400() {
        for request in [
            json!(null),
            json!("text"),
            json!([1]),
            json!({}),
            json!({"name": "a.b"}),
            json!({"name": "a.b", "params": []}),
            json!({"name": 1, "params": {}}),
        ] {
            let refusal = shape(request).unwrap_err();
            assert_eq!(refusal.status, 400);
            assert_eq!(refusal.text, "400 Bad Request: Missing or invalid name or params");
        }
        assert!(Refusal::from(split("sync").unwrap_err()).text.starts_with("Invalid command: "));
    }
}
