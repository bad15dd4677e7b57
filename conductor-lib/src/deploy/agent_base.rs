//! The steps that every deployment by an agent has: the ramdisk is booted, and when all is written, the instance
//! (sections 5.3 and 5.8).

use crate::agent::{AgentClient, AgentError, Wait};
use crate::error::Error;
use crate::interfaces::outcome::Outcome;
use crate::model::{PlannedStep, PowerState, StepKind};
use crate::plan::KnownStep;
use crate::task::agent_steps;
use crate::task::event::EventKind;
use crate::task::ramdisk;
use crate::task::{NetworkChange, Task};
use serde_json::{Value, json};
use tokio::time::Instant;

/// The interface whose steps these are.
const DEPLOY: &str = "deploy";

/// Where in a deployment an image is written.
const WRITE_PRIORITY: i64 = 80;

/// A step that the conductor itself knows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CoreStep {
    /// The ramdisk is booted.
    Deploy,
    /// The machine is made to start from what was written.
    PrepareInstanceBoot,
    /// The agent ends, and its machine is off.
    TearDownAgent,
    /// The machine is connected to the networks of its instance.
    SwitchToTenantNetwork,
    /// The machine starts its instance.
    BootInstance,
}

/// The core steps with their names and priorities.
const CORE_STEPS: &[(CoreStep, &str, i64)] = &[
    (CoreStep::Deploy, "deploy", 100),
    (CoreStep::PrepareInstanceBoot, "prepare_instance_boot", 60),
    (CoreStep::TearDownAgent, "tear_down_agent", 40),
    (CoreStep::SwitchToTenantNetwork, "switch_to_tenant_network", 30),
    (CoreStep::BootInstance, "boot_instance", 20),
];

impl CoreStep {
    /// The core step that a step of a plan is.
    pub fn of(step: &PlannedStep) -> Option<Self> {
        CORE_STEPS.iter().find(|(_, name, _)| is(step, name)).map(|(core, _, _)| *core)
    }
}

/// Whether a step of a plan is this one of the deploy interface.
pub fn is(step: &PlannedStep, name: &str) -> bool {
    step.interface == DEPLOY && step.step == name
}

/// The core steps, as a node has them.
pub fn core_steps() -> Vec<KnownStep> {
    let known =
        |(_, name, priority): &(_, &str, _)| KnownStep::new(StepKind::Deploy, DEPLOY, name, *priority);
    CORE_STEPS.iter().map(known).collect()
}

/// The core steps, and that of the agent by which the image is written.
pub(super) fn core_steps_and(write: &str) -> Vec<KnownStep> {
    let write =
        KnownStep { in_band: true, ..KnownStep::new(StepKind::Deploy, DEPLOY, write, WRITE_PRIORITY) };
    core_steps().into_iter().chain([write]).collect()
}

/// The core steps, and one of the conductor itself by which the image is written.
pub fn core_steps_and_own(write: &str) -> Vec<KnownStep> {
    let write = KnownStep::new(StepKind::Deploy, DEPLOY, write, WRITE_PRIORITY);
    core_steps().into_iter().chain([write]).collect()
}

/// Runs a core step; any other is the agent's.
///
/// # Errors
///
/// Whatever fails the deployment.
pub async fn execute(task: &mut Task, step: &PlannedStep) -> Result<Outcome, Error> {
    match CoreStep::of(step) {
        Some(CoreStep::Deploy) => boot_ramdisk(task).await,
        Some(CoreStep::PrepareInstanceBoot) => {
            task.prepare_instance().await?;
            Ok(Outcome::Done)
        }
        Some(CoreStep::TearDownAgent) => tear_down_agent(task).await,
        Some(CoreStep::SwitchToTenantNetwork) => switch_to_tenant_network(task).await,
        Some(CoreStep::BootInstance) => boot_instance(task).await,
        None => start(task, step, json!(step.args)).await,
    }
}

/// Has the agent start a step with these arguments.
pub(super) async fn start(task: &Task, step: &PlannedStep, args: Value) -> Result<Outcome, Error> {
    agent_steps::start(task, StepKind::Deploy, step, &args).await?;
    Ok(Outcome::Wait)
}

async fn boot_ramdisk(task: &mut Task) -> Result<Outcome, Error> {
    task.attach_volumes().await?;
    ramdisk::run(task).await
}

/// The agent powers its machine off itself, after it flushed what it wrote; only a machine that
/// stays on is forced. A machine that is off already was asked before a conductor stopped.
async fn tear_down_agent(task: &mut Task) -> Result<Outcome, Error> {
    if task.is_switched_by_agent()? {
        return reboot_by_agent(task).await;
    }
    if task.node.disable_power_off {
        return lock_down(task).await;
    }
    if task.power_state().await? != PowerState::Off {
        task.collect_logs().await;
        let client = task.agent().await?;
        let told = client.execute("standby.power_off", json!({}), Wait::UntilAccepted).await;
        let sees_power = task.sees_power().await?;
        let deadline = Instant::now() + task.settings().power_off_timeout;
        match told {
            // Where nobody sees the power, an agent that is gone is what tells of it.
            Err(AgentError::Unreachable { .. }) if !sees_power => {}
            // It ended after it was told, by this conductor or one before, and its machine flushes its disks.
            Err(AgentError::Unreachable { .. }) if task.goes_off(deadline).await? => {}
            // A machine that is off can answer no more.
            Err(error) if task.power_state().await? != PowerState::Off => return Err(error.into()),
            Ok(_) | Err(_) => {}
        }
        let is_off = match sees_power {
            true => task.goes_off(deadline).await?,
            false => falls_silent(task, &client, deadline).await?,
        };
        if !is_off {
            tracing::warn!(node = %task.node.label(), "the agent did not power the machine off; forcing it");
        }
    }
    task.power_off().await?;
    task.emit(EventKind::PoweredOff);
    Ok(Outcome::Done)
}

/// The agent of a machine that nothing else can switch flushes what it wrote, and reboots it: nobody could tell it to
/// once the machine is on the networks of its instance, which it joins while its firmware starts. One that is
/// forgotten was told so before a conductor stopped.
async fn reboot_by_agent(task: &mut Task) -> Result<Outcome, Error> {
    if task.session().agent_url.is_some() {
        if !task.agent_has_left().await? {
            task.collect_logs().await;
            task.agent().await?.run("standby.sync", json!({})).await?;
        }
        task.reboot().await?;
    }
    Ok(Outcome::Done)
}

/// The agent of a machine that must never be powered off flushes what it wrote, and ends (section 4.5). One that does
/// not answer was told so before a conductor stopped.
async fn lock_down(task: &mut Task) -> Result<Outcome, Error> {
    task.collect_logs().await;
    let client = task.agent().await?;
    match client.run("standby.sync", json!({})).await {
        Ok(_) => drop(client.execute("system.lockdown", json!({}), Wait::UntilAccepted).await),
        Err(AgentError::Unreachable { .. }) => {}
        Err(error) => return Err(error.into()),
    }
    let deadline = Instant::now() + task.settings().power_off_timeout;
    match falls_silent(task, &client, deadline).await? {
        true => Ok(Outcome::Done),
        false => {
            let reason = "the agent still answers after system.lockdown; see its log";
            Err(Error::invalid("the agent", reason))
        }
    }
}

/// Whether an agent answers no more before the deadline.
async fn falls_silent(task: &Task, client: &AgentClient, deadline: Instant) -> Result<bool, Error> {
    while client.commands().await.is_ok() {
        if Instant::now() >= deadline {
            return Ok(false);
        }
        task.hold().await?;
        tokio::time::sleep(task.settings().power_poll_interval).await;
    }
    Ok(true)
}

async fn switch_to_tenant_network(task: &mut Task) -> Result<Outcome, Error> {
    let mut changes = ramdisk::leaving(task);
    changes.push(NetworkChange::ConfigureTenant);
    task.change_networks(&changes).await?;
    Ok(Outcome::Done)
}

async fn boot_instance(task: &mut Task) -> Result<Outcome, Error> {
    match task.node.disable_power_off {
        // Its agent has rebooted it.
        _ if task.is_switched_by_agent()? => {}
        true => task.reboot().await?,
        false => task.power_on().await?,
    }
    task.emit(EventKind::Booting);
    Ok(Outcome::Done)
}
