//! Talks to the agent of one node (conductor contract 4.1 to 4.3).

mod answer;

use self::answer::{Answer, Flaw, Kept};
use super::failure_text;
use crate::agent::AgentSettings;
use crate::agent::certificate;
use crate::agent::token::is_same;
use crate::model::AgentSession;
use crate::untrusted::archive::Logs;
use farrier_protocol::command::{CommandResult, CommandStatus};
use farrier_protocol::error::Fault;
use farrier_protocol::json::{self, Limits};
use farrier_protocol::progress::Progress;
use rand::Rng;
use reqwest::redirect::Policy;
use reqwest::{Client, RequestBuilder, Response, StatusCode};
use serde::de::DeserializeOwned;
use serde_json::{Map, Value, json};
use tokio::sync::OnceCell;

/// Longest text of an agent that is repeated where it refuses, in characters.
const MOST_REASON: usize = 1000;

/// A resource that agents may offer beyond the contract.
const PROGRESS: &str = "progress";

/// The agent could not be reached, or refused.
#[derive(Debug, thiserror::Error)]
pub enum AgentError {
    /// No agent has called since the machine was powered on.
    #[error("the agent has not called since power on; wait for its heartbeat")]
    NotConnected,
    /// The certificate of the last heartbeat cannot be used.
    #[error("the certificate that the agent at {url} sent cannot be used: {reason}")]
    Certificate {
        /// The agent.
        url: String,
        /// What is wrong with it.
        reason: String,
    },
    /// Another command is running.
    #[error("the agent at {url} is busy: {reason}")]
    Busy {
        /// The agent.
        url: String,
        /// What it said.
        reason: String,
    },
    /// The agent refused a request.
    #[error("the agent at {url} refused {what} with status {status}: {reason}")]
    Refused {
        /// The agent.
        url: String,
        /// The command.
        what: String,
        /// HTTP status.
        status: u16,
        /// What it said.
        reason: String,
    },
    /// The agent answered something else than the contract says.
    #[error("the agent at {url} sent an unexpected response to {what}: {reason}")]
    Unexpected {
        /// The agent.
        url: String,
        /// The command.
        what: String,
        /// What is wrong with it.
        reason: String,
    },
    /// No attempt reached the agent.
    #[error("the agent at {url} cannot be reached after {attempts} attempts: {reason}")]
    Unreachable {
        /// The agent.
        url: String,
        /// Attempts made.
        attempts: u32,
        /// The last failure.
        reason: String,
    },
    /// The agent does not list what is asked for.
    #[error("the agent at {url} does not offer {what}")]
    NotOffered {
        /// The agent.
        url: String,
        /// What it does not offer.
        what: String,
    },
    /// A command did not end in time.
    #[error("command {what} of the agent at {url} did not end within {seconds} s")]
    Timeout {
        /// The agent.
        url: String,
        /// The command.
        what: String,
        /// Time given.
        seconds: u64,
    },
    /// A command ran and failed.
    #[error("{reason}")]
    Failed {
        /// The agent's own text.
        reason: String,
    },
}

/// Whether a request waits until the command has ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Wait {
    /// Answer when the command has ended.
    UntilDone,
    /// Answer when the command was accepted.
    UntilAccepted,
}

/// The agent that runs on one machine, trusted by the certificate of its heartbeat alone.
#[derive(Debug)]
pub struct AgentClient {
    http: Client,
    url: String,
    token: Option<String>,
    settings: AgentSettings,
    /// Whether the agent tells its progress, once it was asked what it offers.
    tells_progress: OnceCell<bool>,
}

impl AgentClient {
    /// A client for the agent of this session.
    ///
    /// ```no_run
    /// use farrier_conductor::agent::{AgentClient, AgentError, AgentSettings};
    /// use farrier_conductor::model::AgentSession;
    /// use serde_json::json;
    ///
    /// # async fn inventory(session: AgentSession) -> Result<(), AgentError> {
    /// let agent = AgentClient::new(&session, &AgentSettings::default())?;
    /// let inventory = agent.run("poll.get_hardware_info", json!({})).await?;
    /// println!("{} disks", inventory["disks"].as_array().map_or(0, Vec::len));
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    ///
    /// [`AgentError::NotConnected`] before the first heartbeat and [`AgentError::Certificate`]
    /// when its certificate is not one.
    pub fn new(session: &AgentSession, settings: &AgentSettings) -> Result<Self, AgentError> {
        let url = session.agent_url.clone().ok_or(AgentError::NotConnected)?;
        let bad = |reason: String| AgentError::Certificate { url: url.clone(), reason };
        // An agent that sends elsewhere would have the conductor ask whom it cannot reach itself.
        let http = Client::builder()
            .user_agent(settings.user_agent.as_str())
            .timeout(settings.command_timeout)
            .no_proxy()
            .redirect(Policy::none());
        let http = match &session.agent_verify_ca {
            Some(pem) => http.tls_backend_preconfigured(certificate::config(pem).map_err(bad)?),
            None => http.tls_certs_only([]),
        };
        let http = http.build().map_err(|error| bad(chain(&error)))?;
        let token = session.agent_secret_token.clone();
        let tells_progress = OnceCell::new();
        Ok(Self { http, url, token, settings: settings.clone(), tells_progress })
    }

    /// Where the agent answers.
    pub fn url(&self) -> &str {
        &self.url
    }

    /// Whether this talks to the agent of that session; each boot has its own token.
    pub fn is_of(&self, session: &AgentSession) -> bool {
        session.agent_url.as_ref() == Some(&self.url)
            && match (&session.agent_secret_token, &self.token) {
                (Some(known), Some(own)) => is_same(known, own),
                (known, own) => known.is_none() && own.is_none(),
            }
    }

    /// Sends a command. When the answer to an earlier attempt was lost but the command runs, that
    /// run is returned instead of a second one being started.
    ///
    /// # Errors
    ///
    /// Any [`AgentError`] except [`AgentError::Failed`]: whether the command itself succeeded is in
    /// its status.
    pub async fn execute(&self, name: &str, params: Value, wait: Wait) -> Result<CommandResult, AgentError> {
        self.execute_once(name, params, wait, |_| false).await
    }

    /// As [`Self::execute`], of a command that must not run twice: one whose answer is lost is known by its result too, when it
    /// has ended meanwhile.
    ///
    /// # Errors
    ///
    /// As [`Self::execute`].
    pub async fn execute_once(
        &self,
        name: &str,
        params: Value,
        wait: Wait,
        is_known: impl Fn(&CommandResult) -> bool,
    ) -> Result<CommandResult, AgentError> {
        let body = json!({"name": name, "params": params});
        let mut last = String::new();
        for attempt in 1..=self.settings.max_command_attempts {
            match self.attempt(attempt, self.order(&body, wait)).await {
                Ok(response) => return self.read(name, response).await,
                Err(reason) => last = reason,
            }
            if let Some(begun) = self.begun(short_name(name), &is_known).await {
                return Ok(begun);
            }
            self.pause_after(attempt).await;
        }
        Err(self.unreachable(last))
    }

    fn order(&self, body: &Value, wait: Wait) -> RequestBuilder {
        let wait = if wait == Wait::UntilDone { "true" } else { "false" };
        self.http.post(self.commands_url()).query(&[("wait", wait)]).json(body)
    }

    /// The logs of the agent's system: an archive; nothing where it sent none. One attempt only.
    ///
    /// # Errors
    ///
    /// As [`Self::run`].
    pub async fn collect_system_logs(&self) -> Result<Option<Vec<u8>>, AgentError> {
        let name = "log.collect_system_logs";
        let body = json!({"name": name, "params": {}});
        let last_attempt = self.settings.max_command_attempts;
        let response = self.attempt(last_attempt, self.order(&body, Wait::UntilDone)).await;
        let response = response.map_err(|reason| self.unreachable(reason))?;
        let mut answer = self.received(name, response, Kept::Logs).await?;
        let logs = std::mem::replace(&mut answer.logs, Logs::None);
        let result: CommandResult = answer.read().await.map_err(|flaw| self.flawed(name, flaw))?;
        self.outcome(name, result)?;
        match logs {
            Logs::Archive(archive) => Ok(Some(archive)),
            Logs::None | Logs::Unusable => Ok(None),
        }
    }

    /// Sends a command and returns what it produced.
    ///
    /// # Errors
    ///
    /// [`AgentError::Failed`] with the agent's text, or any other [`AgentError`].
    pub async fn run(&self, name: &str, params: Value) -> Result<Value, AgentError> {
        self.outcome(name, self.execute(name, params, Wait::UntilDone).await?)
    }

    /// Starts a command that runs on its own and looks at it until it has ended.
    ///
    /// # Errors
    ///
    /// As [`Self::run`], and [`AgentError::Timeout`].
    pub async fn run_polled(&self, name: &str, params: Value) -> Result<Value, AgentError> {
        let mut result = self.execute(name, params, Wait::UntilAccepted).await?;
        for _ in 0..self.settings.command_wait_attempts {
            if result.command_status != CommandStatus::Running {
                return self.outcome(name, result);
            }
            tokio::time::sleep(self.settings.command_wait_interval).await;
            let commands = self.commands().await?;
            let latest = commands.into_iter().rev().find(|known| known.command_name == short_name(name));
            result = latest.ok_or_else(|| self.unexpected(name, "the command is no longer listed"))?;
        }
        let budget = self.settings.command_wait_interval * self.settings.command_wait_attempts;
        Err(AgentError::Timeout { url: self.url.clone(), what: name.to_owned(), seconds: budget.as_secs() })
    }

    /// Every command of this agent process, oldest first.
    ///
    /// # Errors
    ///
    /// Any [`AgentError`] of a request.
    pub async fn commands(&self) -> Result<Vec<CommandResult>, AgentError> {
        let mut last = String::new();
        for attempt in 1..=self.settings.max_command_attempts {
            match self.attempt(attempt, self.http.get(self.commands_url())).await {
                Ok(response) => return self.read_list("the command list", response).await,
                Err(reason) => last = reason,
            }
            self.pause_after(attempt).await;
        }
        Err(self.unreachable(last))
    }

    /// How far the running command is; one attempt only. Ironic's contract does not have it, so that only agents are
    /// asked that list it among their resources (section 16.1 of the agent's contract).
    ///
    /// # Errors
    ///
    /// Any [`AgentError`] of a request, and [`AgentError::NotOffered`].
    pub async fn progress(&self) -> Result<Progress, AgentError> {
        match self.tells_progress.get_or_try_init(|| self.offers(PROGRESS)).await? {
            true => self.resource(PROGRESS).await,
            false => Err(AgentError::NotOffered { url: self.url.clone(), what: PROGRESS.to_owned() }),
        }
    }

    async fn offers(&self, resource: &str) -> Result<bool, AgentError> {
        Ok(self.resource::<Map<String, Value>>("").await?.contains_key(resource))
    }

    /// Something that the agent tells everybody; one attempt only.
    async fn resource<T: DeserializeOwned + Send + 'static>(&self, name: &str) -> Result<T, AgentError> {
        let path = format!("/v1/{name}");
        let response = self.http.get(format!("{}{path}", self.url)).send().await;
        let response = response.map_err(|error| AgentError::Unreachable {
            url: self.url.clone(),
            attempts: 1,
            reason: chain(&error.without_url()),
        })?;
        self.read(&path, response).await
    }

    /// What is answered to an attempt; the reason for another one, where nothing is, or the agent is there and cannot
    /// serve (lesson F36). That it is busy is an answer: the operation goes on later.
    async fn attempt(&self, attempt: u32, request: RequestBuilder) -> Result<Response, String> {
        match self.with_token(request).send().await {
            Ok(response)
                if response.status().is_server_error() && attempt < self.settings.max_command_attempts =>
            {
                Err(format!("status {}", response.status()))
            }
            Ok(response) => Ok(response),
            Err(error) => Err(chain(&error.without_url())),
        }
    }

    fn commands_url(&self) -> String {
        format!("{}/v1/commands/", self.url)
    }

    fn with_token(&self, request: RequestBuilder) -> RequestBuilder {
        match &self.token {
            Some(token) => request.query(&[("agent_token", token)]),
            None => request,
        }
    }

    /// The newest command, when it has this name and runs (lesson F37), or is known by its result.
    async fn begun(&self, name: &str, is_known: &impl Fn(&CommandResult) -> bool) -> Option<CommandResult> {
        let response = self.with_token(self.http.get(self.commands_url())).send().await.ok()?;
        let newest = self.read_list(name, response).await.ok()?.pop()?;
        let has_begun = newest.command_status == CommandStatus::Running || is_known(&newest);
        (newest.command_name == name && has_begun).then_some(newest)
    }

    async fn read<T: DeserializeOwned + Send + 'static>(
        &self,
        what: &str,
        response: Response,
    ) -> Result<T, AgentError> {
        let answer = self.received(what, response, Kept::Result).await?;
        answer.read().await.map_err(|flaw| self.flawed(what, flaw))
    }

    async fn read_list(&self, what: &str, response: Response) -> Result<Vec<CommandResult>, AgentError> {
        let answer = self.received(what, response, Kept::List).await?;
        answer.read_list().await.map_err(|flaw| self.flawed(what, flaw))
    }

    /// An answer that is no refusal.
    async fn received(&self, what: &str, response: Response, kept: Kept) -> Result<Answer, AgentError> {
        let answer = Answer::receive(response, kept).await.map_err(|flaw| self.flawed(what, flaw))?;
        match answer.status.is_success() {
            true => Ok(answer),
            false => Err(self.refused(what, answer.status, &answer.text)),
        }
    }

    fn flawed(&self, what: &str, flaw: Flaw) -> AgentError {
        match flaw {
            // The agent, or its network, went away in the middle of an answer.
            Flaw::Broken(error) => self.unreachable(chain(&error.without_url())),
            Flaw::Unusable(reason) => self.unexpected(what, &reason),
        }
    }

    fn refused(&self, what: &str, status: StatusCode, body: &[u8]) -> AgentError {
        let url = self.url.clone();
        let reason: String = match json::read::<Fault>(body, &Limits::USUAL) {
            _ if status.is_redirection() => "it sends elsewhere, which is not followed".to_owned(),
            Ok(fault) => fault.faultstring.chars().take(MOST_REASON).collect(),
            Err(_) => String::from_utf8_lossy(body).chars().take(200).collect(),
        };
        if status == StatusCode::CONFLICT || reason.to_ascii_lowercase().contains("agent is busy") {
            return AgentError::Busy { url, reason };
        }
        AgentError::Refused { url, what: what.to_owned(), status: status.as_u16(), reason }
    }

    fn outcome(&self, name: &str, result: CommandResult) -> Result<Value, AgentError> {
        match result.command_status {
            CommandStatus::Succeeded => Ok(result.command_result.unwrap_or(Value::Object(Map::new()))),
            _ => Err(AgentError::Failed { reason: failure_text(name, &result) }),
        }
    }

    fn unexpected(&self, what: &str, reason: &str) -> AgentError {
        AgentError::Unexpected { url: self.url.clone(), what: what.to_owned(), reason: reason.to_owned() }
    }

    fn unreachable(&self, reason: String) -> AgentError {
        AgentError::Unreachable {
            url: self.url.clone(),
            attempts: self.settings.max_command_attempts,
            reason,
        }
    }

    async fn pause_after(&self, attempt: u32) {
        if attempt < self.settings.max_command_attempts {
            let factor = rand::rng().random_range(0.5..1.5);
            tokio::time::sleep(self.settings.command_retry_pause.mul_f64(factor)).await;
        }
    }
}

/// The name that an agent lists a command under.
fn short_name(name: &str) -> &str {
    name.split_once('.').map_or(name, |(_, command)| command)
}

/// An error with its causes, on one line.
fn chain(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut source = error.source();
    while let Some(cause) = source {
        text = format!("{text}: {cause}");
        source = cause.source();
    }
    text
}

#[cfg(test)]
mod tests;
