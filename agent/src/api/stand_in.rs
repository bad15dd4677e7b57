//! The real declarations of commands and steps, and the real managers, over an agent that can do nothing to the
//! machine on which a test runs.
//!
//! Whatever is not known to read only is replaced by something with the same declaration that gives what
//! a test wants it to give. New commands and steps are replaced without being asked.

use crate::agent::Agent;
use crate::commands::{Command, Params};
use crate::extensions::{self, EXTENSIONS};
use crate::settings::options::Options;
use crate::steps::managers;
use farrier_hardware::dispatch::HardwareManagers;
use farrier_hardware::error::StepError;
use farrier_hardware::manager::{DeviceFilter, HardwareManager, StepCall, StepDeclaration, Support};
use farrier_protocol::error::CommandError;
use serde_json::Value;
use std::path::Path;
use std::sync::mpsc::Receiver;
use std::sync::{Arc, LazyLock, Mutex};
use std::time::Duration;

/// Commands that only read. They run as they are.
pub const READING: &[&str] = &[
    "collect_system_logs",
    "get_clean_steps",
    "get_deploy_steps",
    "get_hardware_info",
    "get_partition_uuids",
    "get_service_steps",
];

/// Commands that run as they are, and hand steps to the stand-in managers.
const HANDING_ON: &[&str] = &["execute_clean_step", "execute_deploy_step", "execute_service_step"];

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
    if READING.contains(&real.name) || HANDING_ON.contains(&real.name) {
        return Ok(real);
    }
    let replaced = COMMANDS.iter().filter(|(name, _)| *name == extension).flat_map(|(_, commands)| commands);
    Ok(replaced
        .into_iter()
        .find(|one| one.name == command)
        .unwrap_or_else(|| panic!("{command} has no stand-in")))
}

/// A real manager whose steps do nothing: it judges, names and lists as it does in a machine.
struct StandIn {
    real: Box<dyn HardwareManager>,
    steps: &'static [StepDeclaration],
}

impl StandIn {
    fn of(real: Box<dyn HardwareManager>) -> Box<dyn HardwareManager> {
        let replace = |step: &StepDeclaration| StepDeclaration { run: &replaced_step, ..*step };
        let steps = real.steps().iter().map(replace).collect::<Vec<_>>().leak();
        Box::new(Self { real, steps })
    }
}

/// What readies the machine is left out.
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
        self.real.evaluate()
    }

    fn device_filter(&self) -> Option<&dyn DeviceFilter> {
        self.real.device_filter()
    }

    fn steps(&self) -> &'static [StepDeclaration] {
        self.steps
    }

    fn origin(&self) -> Option<&Path> {
        self.real.origin()
    }

    fn fault(&self) -> Option<&CommandError> {
        self.real.fault()
    }
}

/// An agent whose managers, those of this very machine, run no step. Its own files lie below `root`.
pub fn agent(token: &str, root: &Path) -> Arc<Agent> {
    crate::network::http::install_tls_provider();
    let options = Options {
        agent_token: Some(token.to_owned()),
        // The disks of recorded nodes are nowhere.
        disk_wait_attempts: 1,
        ..Options::default()
    };
    let real = managers::all(&options, Path::new("/"));
    let agent = Agent::new(options, root, tokio::runtime::Handle::current()).unwrap();
    agent.use_managers(HardwareManagers::load(real.into_iter().map(StandIn::of).collect()));
    agent
}
