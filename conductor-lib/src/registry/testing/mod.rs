//! Tests of interfaces without a conductor (feature `testing`): a host in memory, a machine that is not there, an agent
//! that follows a script, and a clock that a test moves.
//!
//! ```
//! use farrier_conductor::testing::{FakeMachine, task};
//! use farrier_conductor::{Drivers, Task};
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), farrier_conductor::Error> {
//! let machine = FakeMachine::default();
//! let mut held = task(machine.drivers(Drivers::default(), ["direct"]))?;
//! let task: &mut Task = &mut held;
//! task.power_on().await?;
//! task.reboot().await?;
//! assert_eq!(machine.told(), ["power on", "power off", "power on"]);
//! # Ok(())
//! # }
//! ```

mod agent;
mod clock;
mod host;
mod machine;

pub use agent::ScriptedAgent;
pub use clock::JumpingClock;
pub use host::MemoryHost;
pub use machine::FakeMachine;

use super::Drivers;
use crate::error::Error;
use crate::model::{AgentSession, NewNode, Node, ProvisionState};
use crate::settings::Settings;
use crate::task::Task;
use std::time::Duration;
use time::OffsetDateTime;

/// A task of a node whose machine is a [`FakeMachine`], as it is while it is deployed, with [`settings`].
///
/// # Errors
///
/// [`Error::Hardware`] where the drivers cannot work together, [`Error::Unresolved`] where the node cannot have them.
pub fn task(drivers: Drivers) -> Result<Task<MemoryHost>, Error> {
    let settings = settings();
    let (hardware, _) = drivers.build(&settings)?;
    let new = NewNode { name: Some("n1".to_owned()), driver: machine::NAME.to_owned(), ..NewNode::default() };
    let mut node = Node::enrol(new, OffsetDateTime::UNIX_EPOCH);
    node.interfaces = hardware.composition.resolve_all(&node)?;
    node.provision_state = ProvisionState::Deploying;
    Ok(Task::new(node, AgentSession::default(), MemoryHost::new(settings, hardware)))
}

/// Settings whose waits take milliseconds, for agents without TLS.
pub fn settings() -> Settings {
    let mut settings = Settings {
        power_poll_interval: Duration::from_millis(5),
        power_off_timeout: Duration::from_millis(300),
        ..Settings::new("http://127.0.0.1:6385")
    };
    settings.agent.command_retry_pause = Duration::from_millis(5);
    settings.agent.command_wait_interval = Duration::from_millis(5);
    settings.agent.require_tls = false;
    settings
}
