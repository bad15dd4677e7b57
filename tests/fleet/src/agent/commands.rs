//! The commands of an agent (contract, 1.3, 1.6 and 4): which are taken, which wait, and what they result in.

use super::conductor::Found;
use super::identity::Identity;
use super::process::Order;
use super::{inventory, steps};
use crate::fault::Class;
use crate::file::Phase;
use crate::machine::Machine;
use farrier_protocol::command::{CommandRequest, CommandResult, CommandStatus};
use farrier_protocol::error::{CommandError, ErrorKind};
use farrier_protocol::step::Phase as StepPhase;
use hyper::StatusCode;
use serde_json::{Map, Value, json};
use std::future;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use time::OffsetDateTime;
use tokio::sync::{mpsc, watch};

/// Longest time that somebody waits for the end of a command.
const WAIT_LIMIT: Duration = Duration::from_secs(60);

/// What answers at once.
const SYNCHRONOUS: &[&str] = &[
    "standby.sync",
    "standby.get_partition_uuids",
    "log.collect_system_logs",
    "poll.get_hardware_info",
    "rescue.finalize_rescue",
    "system.lockdown",
];
/// What goes on after it was answered, beside the steps.
const ASYNCHRONOUS: &[&str] =
    &["standby.prepare_image", "standby.run_image", "standby.power_off", "image.install_bootloader"];

/// An agent, as all of its connections and commands share it.
#[derive(Debug)]
pub struct Agent {
    /// Its machine.
    pub machine: Arc<Machine>,
    /// Its certificate.
    pub identity: Arc<Identity>,
    /// Its node and token.
    pub found: Found,
    /// When its process started, in seconds since 1970.
    pub started_at: i64,
    commands: Mutex<Vec<CommandResult>>,
    orders: mpsc::UnboundedSender<Order>,
    /// How many commands have ended that force a heartbeat.
    ended: watch::Sender<u64>,
}

/// A command that is not taken.
#[derive(Debug)]
pub struct Refused {
    /// With this status.
    pub status: StatusCode,
    /// And this text.
    pub text: String,
}

/// What a command comes to.
pub type Outcome = Result<Value, CommandError>;

impl Agent {
    /// One that has run these commands.
    pub fn new(
        machine: Arc<Machine>,
        identity: Arc<Identity>,
        found: Found,
        history: Vec<CommandResult>,
        orders: mpsc::UnboundedSender<Order>,
        ended: watch::Sender<u64>,
    ) -> Self {
        let started_at = OffsetDateTime::now_utc().unix_timestamp();
        Self { machine, identity, found, started_at, commands: Mutex::new(history), orders, ended }
    }

    fn list(&self) -> MutexGuard<'_, Vec<CommandResult>> {
        self.commands.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// All commands, in their order.
    pub fn commands(&self) -> Vec<CommandResult> {
        self.list().clone()
    }

    /// Has the process do something.
    pub fn order(&self, order: Order) {
        // A process that has ended needs no orders.
        self.orders.send(order).ok();
    }

    /// What the next process knows after a crash: what was running, as failed. Its own list was lost.
    pub fn left_behind(&self) -> Vec<CommandResult> {
        let mut left = self.commands();
        left.retain(|command| command.command_status == CommandStatus::Running);
        for command in &mut left {
            let text = format!(
                "the agent process ended while {} ran; what was begun is unfinished: start the operation again",
                command.command_name
            );
            command.command_status = CommandStatus::Failed;
            command.command_error = Some(CommandError::new(ErrorKind::CommandExecutionError, text));
        }
        left
    }

    /// Takes a command, and waits for its end where that is wanted.
    pub async fn execute(&self, request: CommandRequest, waits: bool) -> Result<CommandResult, Refused> {
        let kind = known(&request.name)?;
        if listing(&request.name).is_some() {
            self.crash_between_steps().await;
        }
        let command = self.begin(&request.name)?;
        match kind {
            Kind::Synchronous => {
                tokio::time::sleep(self.machine.length(Phase::Answer)).await;
                let outcome = self.answer(&request);
                Ok(self.end(command, outcome))
            }
            Kind::Asynchronous => {
                let mut ended = self.ended.subscribe();
                self.order(Order::Run(command.clone(), request.params));
                if waits {
                    let is_over = |_: &u64| self.current(&command).command_status != CommandStatus::Running;
                    tokio::time::timeout(WAIT_LIMIT, ended.wait_for(is_over)).await.ok();
                }
                Ok(self.current(&command))
            }
        }
    }

    /// Crashes where that is a fault that passes: before the answer to what changes nothing, so that nothing is lost that a
    /// conductor could not ask for again.
    async fn crash_between_steps(&self) {
        if self.machine.recovers(Class::AgentCrash) && self.machine.strike(Class::AgentCrash).is_some() {
            self.order(Order::Crash);
            future::pending::<()>().await;
        }
    }

    /// Puts a command on the list, unless another one runs.
    fn begin(&self, name: &str) -> Result<CommandResult, Refused> {
        let mut list = self.list();
        if let Some(busy) = list.last().filter(|last| last.command_status == CommandStatus::Running) {
            let text = format!("Agent is busy: executing command {}", busy.command_name);
            return Err(Refused { status: StatusCode::CONFLICT, text });
        }
        let command = CommandResult::running(name.rsplit('.').next().unwrap_or_default());
        list.push(command.clone());
        Ok(command)
    }

    fn current(&self, command: &CommandResult) -> CommandResult {
        self.list().iter().find(|one| one.id == command.id).unwrap_or(command).clone()
    }

    fn end(&self, mut command: CommandResult, outcome: Outcome) -> CommandResult {
        match outcome {
            Ok(result) => {
                command.command_status = CommandStatus::Succeeded;
                command.command_result = Some(result);
            }
            Err(error) => {
                let is_mismatch = error.kind == ErrorKind::VersionMismatch.name();
                command.command_status =
                    if is_mismatch { CommandStatus::CleanVersionMismatch } else { CommandStatus::Failed };
                command.command_error = Some(error);
            }
        }
        if let Some(listed) = self.list().iter_mut().find(|one| one.id == command.id) {
            listed.clone_from(&command);
        }
        command
    }

    /// What is answered at once.
    fn answer(&self, request: &CommandRequest) -> Outcome {
        let name = request.name.as_str();
        if let Some(phase) = listing(name) {
            return Ok(steps::list(phase));
        }
        match name {
            "standby.get_partition_uuids" => Ok(json!({"root uuid": "0x00000000"})),
            "poll.get_hardware_info" => {
                Ok(serde_json::to_value(inventory::inventory(&self.machine)).unwrap_or_default())
            }
            // An empty archive, packed.
            "log.collect_system_logs" => {
                Ok(json!({"system_logs": "H4sIAAAAAAACA2NgGAWjYBSMVAAALq+17wAEAAA="}))
            }
            "rescue.finalize_rescue" | "system.lockdown" => {
                self.order(Order::Leave);
                Ok(Value::Null)
            }
            _ => Ok(Value::Null),
        }
    }

    /// Runs what goes on after it was answered.
    pub async fn run(self: Arc<Self>, command: CommandResult, parameters: Map<String, Value>) {
        let outcome = match command.command_name.as_str() {
            "power_off" => {
                self.machine.shut_down();
                Ok(Value::Null)
            }
            "run_image" => {
                self.machine.power_off("reboot");
                return self.machine.power_on();
            }
            "prepare_image" => steps::write_image(&self, &Value::Object(parameters)).await,
            "install_bootloader" => {
                steps::take_time(&self, Phase::Bootloader).await;
                Ok(Value::Null)
            }
            name => steps::execute(&self, name, &parameters).await,
        };
        self.end(command, outcome);
        self.ended.send_modify(|count| *count += 1);
    }
}

enum Kind {
    Synchronous,
    Asynchronous,
}

/// How a command is carried out.
fn known(name: &str) -> Result<Kind, Refused> {
    if SYNCHRONOUS.contains(&name) || listing(name).is_some() {
        return Ok(Kind::Synchronous);
    }
    if ASYNCHRONOUS.contains(&name) || steps::phase_of(name).is_some() {
        return Ok(Kind::Asynchronous);
    }
    let (extension, command) = name.split_once('.').unwrap_or((name, ""));
    let text = format!("Invalid command: Unknown command: {command} of {extension}");
    Err(Refused { status: StatusCode::BAD_REQUEST, text })
}

/// The phase whose steps a command lists.
fn listing(name: &str) -> Option<StepPhase> {
    let of = |phase: &&StepPhase| name == format!("{0}.get_{0}_steps", phase.name());
    StepPhase::ALL.iter().find(of).copied()
}
