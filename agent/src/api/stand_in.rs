//! The real declarations of commands and steps over an agent that can do nothing to the machine on which a
//! test runs.
//!
//! Whatever is not known to read only is replaced by something with the same declaration that gives what
//! a test wants it to give. New commands and steps are replaced without being asked.

use crate::agent::Agent;
use crate::commands::{Command, Params};
use crate::extensions::{self, EXTENSIONS};
use crate::settings::options::Options;
use farrier_hardware::dispatch::HardwareManagers;
use farrier_hardware::error::StepError;
use farrier_hardware::generic::GenericHardwareManager;
use farrier_hardware::manager::{HardwareManager, StepCall, StepDeclaration, Support};
use farrier_protocol::error::CommandError;
use serde_json::Value;
use std::path::Path;
use std::sync::mpsc::Receiver;
use std::sync::{Arc, LazyLock, Mutex};
use std::time::Duration;

/// Commands that run as they are: they parse, list, and hand steps to the stand-in manager.
const REAL: &[&str] = &[
    "get_clean_steps",
    "execute_clean_step",
    "get_deploy_steps",
    "execute_deploy_step",
    "get_service_steps",
    "execute_service_step",
];

/// What the next replaced command or step gives.
pub struct Outcome {
    pub result: Result<Value, CommandError>,
    /// It is not given before something comes out of this.
    pub released: Receiver<()>,
}

/// One for the process: a test that sets it must be alone.
pub static NEXT: Mutex<Option<Outcome>> = Mutex::new(None);

static COMMANDS: LazyLock<Vec<(&str, Vec<Command>)>> = LazyLock::new(|| {
    let replace = |command: &Command| Command { run: replaced_command, ..*command };
    EXTENSIONS.iter().map(|(name, commands)| (*name, commands.iter().map(replace).collect())).collect()
});

fn outcome() -> Result<Value, CommandError> {
    let Some(Outcome { result, released }) = NEXT.lock().unwrap().take() else { return Ok(Value::Null) };
    // A sender that is gone has nothing against going on.
    released.recv_timeout(Duration::from_secs(30)).ok();
    result
}

fn replaced_command(_: &Arc<Agent>, _: &Params) -> Result<Value, CommandError> {
    outcome()
}

fn replaced_step(_: &StepCall<'_>) -> Result<Value, StepError> {
    outcome().map_err(StepError::Failed)
}

/// Finds a command as [`extensions::find`] does.
pub fn find(extension: &str, command: &str) -> Result<&'static Command, CommandError> {
    let real = extensions::find(extension, command)?;
    if REAL.contains(&real.name) {
        return Ok(real);
    }
    let replaced = COMMANDS.iter().filter(|(name, _)| *name == extension).flat_map(|(_, commands)| commands);
    Ok(replaced
        .into_iter()
        .find(|one| one.name == command)
        .unwrap_or_else(|| panic!("{command} has no stand-in")))
}

struct StandIn {
    real: GenericHardwareManager,
    steps: &'static [StepDeclaration],
}

impl HardwareManager for StandIn {
    fn class_name(&self) -> &'static str {
        self.real.class_name()
    }

    fn name(&self) -> &'static str {
        self.real.name()
    }

    fn version(&self) -> &'static str {
        self.real.version()
    }

    fn evaluate(&self) -> Support {
        Support::Generic
    }

    fn steps(&self) -> &'static [StepDeclaration] {
        self.steps
    }
}

/// An agent whose only manager runs no step.
pub fn agent(token: &str, root: &Path) -> Arc<Agent> {
    crate::network::http::install_tls_provider();
    let real = GenericHardwareManager::default();
    let replace = |step: &StepDeclaration| StepDeclaration { run: &replaced_step, ..*step };
    let steps = real.steps().iter().map(replace).collect::<Vec<_>>().leak();
    let options = Options {
        agent_token: Some(token.to_owned()),
        // The disks of recorded nodes are nowhere.
        disk_wait_attempts: 1,
        ..Options::default()
    };
    let agent = Agent::new(options, root, tokio::runtime::Handle::current()).unwrap();
    let managers = HardwareManagers::load(vec![Box::new(StandIn { real, steps })]);
    agent.use_managers(managers);
    agent
}
