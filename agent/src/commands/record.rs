//! What the engine must know of the processes before it: a crashed agent never counts as a finished step.
//!
//! Conductors look at the last entry of the list of commands, and take an empty list for that of a machine which
//! has just booted: the step that was ordered is done then, and the next one follows (section 14). So the newest
//! asynchronous command lies in a file, before it begins and with its outcome when it has ended, and the history
//! of a process begins with what the file holds. A command that ran when its process ended has failed.
//!
//! Synchronous commands are not recorded. Their caller waits on the connection that breaks, and an entry for one
//! would hide the outcome of the step before it. The file lies on a memory file system and goes with the boot,
//! as does what its steps did to the machine.

use super::Params;
use farrier_init::{agent_end, private_file};
use farrier_protocol::command::{CommandResult, CommandStatus};
use farrier_protocol::error::{CommandError, ErrorKind};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

/// Where it lies, below the root directory.
const PATH: &str = "run/farrier/command.json";
/// What stands before the name of the command there.
const NAME: &str = "\"command_name\":\"";
/// The command that is the worst one to be taken for done: a disk would be given away that was not erased.
const WORST: &str = "execute_clean_step";

/// The file.
pub struct Record {
    root: PathBuf,
}

/// What is in the file.
#[derive(Serialize, Deserialize)]
struct Entry {
    /// The command, running or ended.
    result: CommandResult,
    /// The step that it is about, where it is about one.
    step: Option<String>,
}

impl Record {
    /// The record of the agents of this boot, below `root`.
    pub fn below(root: &Path) -> Self {
        Self { root: root.to_owned() }
    }

    /// Records a command that is about to begin.
    ///
    /// # Errors
    ///
    /// It cannot be recorded, and so it must not begin.
    pub fn begin(&self, command: &CommandResult, params: &Params) -> Result<(), CommandError> {
        let step = params.get("step").and_then(|step| step["step"].as_str()).map(str::to_owned);
        self.store(&Entry { result: command.clone(), step }).map_err(|reason| {
            let details = format!(
                "{} was not begun, because it cannot be recorded in /{PATH} ({reason}): give the machine more \
                 memory",
                command.command_name
            );
            CommandError::new(ErrorKind::CommandExecutionError, details)
        })
    }

    /// Records how a command ended. Where that fails it stays one that was running.
    pub fn end(&self, command: &CommandResult) {
        let command_result = command.command_result.as_ref().map(without_arguments);
        let (id, command_name) = (command.id, command.command_name.clone());
        let (command_status, command_error) = (command.command_status.clone(), command.command_error.clone());
        let result = CommandResult { id, command_name, command_status, command_error, command_result };
        if let Err(reason) = self.store(&Entry { result, step: None }) {
            tracing::warn!(reason, "the outcome of a command would be lost with this process");
        }
    }

    /// The newest command of the processes before this one; nothing when there is none, because no file is there:
    /// no command begins without it. A file that cannot be read is a failed command, and not an empty history.
    pub fn take_up(&self) -> Option<CommandResult> {
        let bytes = match fs::read(self.root.join(PATH)) {
            Ok(bytes) => bytes,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return None,
            Err(error) => return Some(lost(&[], &error.to_string())),
        };
        let Entry { mut result, step } = match serde_json::from_slice(&bytes) {
            Ok(entry) => entry,
            Err(error) => return Some(lost(&bytes, &error.to_string())),
        };
        if result.command_status == CommandStatus::Running {
            let error = interrupted(&result.command_name, step.as_deref(), &agent_end::told(&self.root));
            tracing::error!("{}", error.details);
            result.command_status = CommandStatus::Failed;
            result.command_error = Some(error);
            // This reason, and not that of a next crash.
            self.end(&result);
        }
        Some(result)
    }

    fn store(&self, entry: &Entry) -> Result<(), String> {
        let content = serde_json::to_vec(entry).map_err(|error| error.to_string())?;
        private_file::replace(&self.root.join(PATH), &content).map_err(|error| error.to_string())
    }
}

/// A result without the arguments of its step: conductors find that again by name and interface, and the arguments can
/// be a whole config drive.
pub(super) fn without_arguments(result: &Value) -> Value {
    let Some(fields) = result.as_object() else { return result.clone() };
    let shortened = fields.iter().map(|(name, value)| {
        let step = value.as_object().filter(|_| name.ends_with("_step"));
        let without = step.map(|step| step.iter().filter(|(key, _)| *key != "args").map(own).collect());
        (name.clone(), without.unwrap_or_else(|| value.clone()))
    });
    shortened.collect()
}

fn own((key, value): (&String, &Value)) -> (String, Value) {
    (key.clone(), value.clone())
}

/// A command of which nothing can be read but, perhaps, its name: conductors take what has another name than they
/// ordered for a command that has not begun, and wait until their own deadline.
fn lost(bytes: &[u8], reason: &str) -> CommandResult {
    let text = String::from_utf8_lossy(bytes);
    let name = text.split_once(NAME).and_then(|(_, rest)| rest.split_once('"')).map(|(name, _)| name);
    let details = format!(
        "the agent process ended, and what it ran is not known, because /{PATH} cannot be read ({reason}). What was \
         begun may be unfinished: start the operation again"
    );
    tracing::error!("{details}");
    let name = name.filter(|name| !name.is_empty()).unwrap_or(WORST);
    CommandResult {
        command_status: CommandStatus::Failed,
        command_error: Some(CommandError::new(ErrorKind::CommandExecutionError, details)),
        ..CommandResult::running(name)
    }
}

fn interrupted(command: &str, step: Option<&str>, end: &str) -> CommandError {
    let step = step.map(|step| format!(" (step {step})")).unwrap_or_default();
    let details = format!(
        "the agent process ended while {command}{step} ran; {end}. What was begun is unfinished: start the \
         operation again"
    );
    CommandError::new(ErrorKind::CommandExecutionError, details)
}

#[cfg(test)]
#[path = "record_tests.rs"]
mod tests;
