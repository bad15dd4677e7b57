//! Reads what an agent answers. A machine may be in anybody's hands, so an answer is bounded in bytes, in values and in
//! their memory; logs alone may be long, and never become values.

use crate::untrusted::archive::{LogExtraction, Logs, Place, Room};
use crate::untrusted::json;
use farrier_protocol::command::CommandResult;
use farrier_protocol::json::{JsonError, Limits};
use reqwest::{Response, StatusCode};
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::value::RawValue;

/// Longest listing of steps, result or report, in bytes.
const MOST_RESULT: usize = 1 << 20;

/// Longest list of all commands without their logs, in bytes: an agent that stays runs many.
const MOST_LIST: usize = 4 << 20;

/// Longest answer with its logs, in bytes.
const MOST_ANSWER: usize = 64 << 20;

/// Most bytes of logs, as which the longest answer is decoded.
const MOST_LOGS: usize = MOST_ANSWER / 4 * 3;

/// What the values of an answer may be.
const LIMITS: Limits = Limits::USUAL.as_deep_as(64).within(8 << 20);

/// Where logs are in a result.
const SYSTEM_LOGS: Place = Place { key: "system_logs", depth: None };

/// What is wrong with an answer.
#[derive(Debug)]
pub(super) enum Flaw {
    /// It broke off.
    Broken(reqwest::Error),
    /// It is too long, or no JSON of the wanted kind.
    Unusable(String),
}

/// An answer, as it came.
#[derive(Debug)]
pub(super) struct Answer {
    pub(super) status: StatusCode,
    /// It without its logs.
    pub(super) text: Vec<u8>,
    pub(super) logs: Logs,
}

/// What is kept of an answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kept {
    /// One result.
    Result,
    /// The list of all commands.
    List,
    /// One result, and the logs in it.
    Logs,
}

impl Answer {
    /// Receives one.
    pub(super) async fn receive(mut response: Response, kept: Kept) -> Result<Self, Flaw> {
        let status = response.status();
        let text = if kept == Kept::List { MOST_LIST } else { MOST_RESULT };
        let logs = if kept == Kept::Logs { MOST_LOGS } else { 0 };
        let mut extraction = LogExtraction::new(SYSTEM_LOGS, Room { text, logs, depth: usize::MAX });
        let mut received = 0;
        while let Some(part) = response.chunk().await.map_err(Flaw::Broken)? {
            received += part.len();
            let limit = if received > MOST_ANSWER { MOST_ANSWER } else { text };
            if received > MOST_ANSWER || extraction.feed(&part).is_err() {
                return Err(Flaw::Unusable(format!("it has more than {} MiB", limit >> 20)));
            }
        }
        let (text, logs) = extraction.end();
        Ok(Self { status, text, logs })
    }

    /// Reads it as one value.
    pub(super) async fn read<T: DeserializeOwned + Send + 'static>(self) -> Result<T, Flaw> {
        Ok(json::read(self.text, LIMITS).await?)
    }

    /// Reads it as the list of all commands, of which none has a longer result than it could have answered with.
    pub(super) async fn read_list(self) -> Result<Vec<CommandResult>, Flaw> {
        /// The list, each command as its text.
        #[derive(Deserialize)]
        struct List<'a> {
            #[serde(borrow)]
            commands: Vec<&'a RawValue>,
        }
        let read = |text: &[u8]| -> Result<Vec<CommandResult>, Flaw> {
            let list: List<'_> = farrier_protocol::json::read(text, &LIMITS)?;
            let read = |command: &RawValue| match command.get().len() > MOST_RESULT {
                true => {
                    Err(Flaw::Unusable(format!("a command in it has more than {} MiB", MOST_RESULT >> 20)))
                }
                false => Ok(serde_json::from_str(command.get()).map_err(JsonError::from)?),
            };
            list.commands.into_iter().map(read).collect()
        };
        json::examine(self.text, read).await.1
    }
}

impl From<JsonError> for Flaw {
    fn from(error: JsonError) -> Self {
        Self::Unusable(error.to_string())
    }
}
