//! Agents that speak the contract of the Ironic Python Agent, as Farrier's does, in machines that have no memory and no
//! disks: what takes time is waited for, and what would be written is noted.

mod answer_times;
mod commands;
mod conductor;
mod erasing;
mod identity;
mod interface;
mod inventory;
mod medium;
mod process;
mod steps;

pub use answer_times::{AnswerSummary, AnswerTimes};
pub use identity::{Identity, IdentityError, Keys};

use crate::fault::{Class, Kind};
use crate::file::Phase;
use crate::journal::Side;
use crate::machine::{Boot, BootSource, Machine};
use conductor::Conductor;
use medium::Parameters;
use process::Process;
use std::future;
use std::sync::Arc;
use std::time::Duration;

/// How long an agent that has crashed needs to come back, as in the real world.
const RESTART: Duration = Duration::from_secs(5);

/// What is the same for all agents of a fleet.
#[derive(Debug)]
pub struct Surroundings {
    /// Keys of their certificates.
    pub keys: Keys,
    /// URL of the conductor for agents that were booted from the network.
    pub api_url: Option<String>,
    /// How long heartbeats wait for their answers.
    pub answer_times: Arc<AnswerTimes>,
}

/// A boot of the ramdisk: from its start until the machine goes off.
pub async fn live(mut boot: Boot, machine: Arc<Machine>, surroundings: Arc<Surroundings>) {
    // The sender never sends, and is dropped when the machine goes off.
    let ends = boot.ends.clone();
    tokio::select! {
        _ = boot.ends.changed() => {}
        () = run(boot.source, ends, &machine, &surroundings) => {}
    }
}

/// Runs for as long as the machine is on.
async fn run(
    source: BootSource,
    ends: tokio::sync::watch::Receiver<()>,
    machine: &Arc<Machine>,
    surroundings: &Surroundings,
) {
    // Firmware reads the medium, and only what was read needs an address.
    let parameters = match source {
        BootSource::Medium(url) => medium::read(&url, machine.identity.address).await,
        _ => Ok(Parameters::of_network(surroundings.api_url.clone())),
    };
    tokio::time::sleep(machine.length(Phase::Boot)).await;
    let no_address = [machine.strike(Class::DhcpLost), machine.strike_as(Class::DeviceLate, Kind::Card)];
    for fault in no_address.into_iter().flatten() {
        match fault.recoverable {
            true => tokio::time::sleep(machine.file().shortened(fault.lasts)).await,
            false => future::pending().await,
        }
    }
    match parameters {
        Ok(parameters) => start(parameters, ends, machine, surroundings).await,
        Err(error) => machine.note(Side::Machine, None, "read its medium", error.to_string()),
    }
    // What has nothing to do stays on.
    future::pending().await
}

/// Starts the agent, and starts it again each time that it crashes.
async fn start(
    parameters: Parameters,
    ends: tokio::sync::watch::Receiver<()>,
    machine: &Arc<Machine>,
    surroundings: &Surroundings,
) {
    let identity = match Identity::new(machine, &surroundings.keys) {
        Ok(identity) => Arc::new(identity),
        Err(error) => return machine.note(Side::Machine, None, "make a certificate", error.to_string()),
    };
    let conductor = match Conductor::new(&parameters, machine, &surroundings.answer_times) {
        Ok(conductor) => conductor,
        Err(error) => return machine.note(Side::Machine, None, "make a client", error.to_string()),
    };
    if let Some(url) = &parameters.inspection_callback_url {
        tokio::time::sleep(machine.length(Phase::Inspect)).await;
        conductor.post_inventory(url, machine).await;
    }
    let Some(found) = conductor.look_up(machine, parameters.agent_token).await else { return };
    let mut history = Vec::new();
    loop {
        let process =
            Process::new(Arc::clone(machine), Arc::clone(&identity), found.clone(), history, ends.clone());
        // An agent that has crashed tells of what it was doing.
        history = process.run(&conductor).await;
        tokio::time::sleep(machine.file().shortened(RESTART)).await;
    }
}
