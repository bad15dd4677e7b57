//! What a task does to the power of a machine that only its own agent can switch (section 4.6).
//!
//! Such a machine stays on where others are powered off, and is rebooted where they are powered on again. That the agent
//! is told so is saved before it is: from then on lookups are told to ask again, since the machine may be back before the
//! order is answered, and a conductor that goes on after another one knows why the agent is gone. The node is held until
//! it is, and the agent is forgotten then; that the machine comes back is for the wait of the operation, which holds
//! nothing, so that lookups and heartbeats get in, and which has its own deadline.

use super::Task;
use crate::agent::AgentSettings;
use crate::agent::{AgentClient, AgentError, failure_text};
use crate::error::Error;
use crate::interfaces::InterfaceError;
use crate::interfaces::power::InBandPower;
use crate::model::{InterfaceKind, PowerAction, PowerState};
use farrier_protocol::command::CommandStatus;
use std::time::Duration;
use tokio::time::Instant;

/// A machine that only its agent can switch was not switched.
#[derive(Debug, thiserror::Error)]
enum NotSwitched {
    /// There is no agent.
    #[error(
        "no agent answers for node {0}, and nothing else can switch its machine; start its ramdisk by hand, or choose \
         another power_interface"
    )]
    NoAgent(String),
    /// It runs on.
    #[error(
        "the agent at {url} still answers {} s after the command to reboot its machine; look at its console, and \
         restart it by hand", .limit.as_secs_f64()
    )]
    Stays { url: String, limit: Duration },
}

impl From<NotSwitched> for Error {
    fn from(error: NotSwitched) -> Self {
        InterfaceError::driver(error).into()
    }
}

impl Task {
    /// Whether the machine can only be switched by its agent.
    ///
    /// # Errors
    ///
    /// [`Error::Unresolved`].
    pub fn is_switched_by_agent(&self) -> Result<bool, Error> {
        Ok(self.host.hardware().power(&self.node)?.in_band().is_some())
    }

    /// Sees that there is an agent which can switch the machine, where nothing else can.
    ///
    /// # Errors
    ///
    /// [`Error::Unresolved`], [`Error::Interface`].
    pub async fn check_switchable(&self) -> Result<(), Error> {
        let power = self.host.hardware().power(&self.node)?;
        match power.in_band() {
            Some(_) => Ok(power.validate(&self.node).await?),
            None => Ok(()),
        }
    }

    /// Sees that an agent can do what is ordered of its machine.
    pub(super) fn check_in_band(&self, action: PowerAction) -> Result<(), Error> {
        match action {
            PowerAction::Reboot | PowerAction::SoftReboot => Ok(()),
            PowerAction::On | PowerAction::Off | PowerAction::SoftOff => {
                Ok(InterfaceError::unsupported(InterfaceKind::Power, action.as_str())?)
            }
        }
    }

    /// The machine stays on, and is rebooted when it is to be on: the agent is kept for that.
    ///
    /// # Errors
    ///
    /// [`AgentError::NotConnected`] where none has called yet, so that a step can wait for it; [`Error::Interface`]
    /// where it does not answer.
    pub(super) async fn stay_on(&mut self) -> Result<(), Error> {
        match self.agent_has_left().await {
            Err(Error::Agent(AgentError::Unreachable { .. })) => {
                return Err(NotSwitched::NoAgent(self.node.label()).into());
            }
            has_left => drop(has_left?),
        }
        self.resets_when_on = true;
        Ok(())
    }

    /// Whether the agent, which answers otherwise, was told to reboot its machine, and is gone: a conductor stopped
    /// before it could say so.
    ///
    /// # Errors
    ///
    /// [`Error::Agent`] where it does not answer and nobody told it, [`Error::Host`].
    pub(crate) async fn agent_has_left(&self) -> Result<bool, Error> {
        match self.agent().await?.commands().await {
            Err(AgentError::Unreachable { .. }) if self.session.agent_told_to_reboot => Ok(true),
            answer => Ok(answer.map(|_| false)?),
        }
    }

    /// Powers a machine on that has stayed on: it is rebooted.
    pub(super) async fn power_on_in_band(
        &mut self,
        power: &dyn InBandPower,
        limit: Duration,
    ) -> Result<(), Error> {
        match std::mem::take(&mut self.resets_when_on) {
            true => self.reboot_in_band(power, limit).await,
            false => self.check_in_band(PowerAction::On),
        }
    }

    /// Has the agent reboot its machine, waits until it is gone, and forgets it, which is saved at once. One that
    /// cannot be told, or stays, is forgotten too: when an operator restarts the machine by hand, its next agent gets
    /// a token. One that refuses or fails is there still, and can be told again.
    ///
    /// # Errors
    ///
    /// [`Error::Interface`] where no agent answers, or it stays; [`Error::Agent`] where it refuses or fails;
    /// [`Error::Host`].
    pub(super) async fn reboot_in_band(
        &mut self,
        power: &dyn InBandPower,
        limit: Duration,
    ) -> Result<(), Error> {
        let deadline = Instant::now() + limit;
        let rebooted = async {
            self.order_reboot(power).await?;
            self.sees_off(deadline, limit).await
        };
        match rebooted.await {
            Ok(()) => {
                self.node.power_state = Some(PowerState::On);
                self.forget_agent().await
            }
            Err(Error::Agent(AgentError::NotConnected | AgentError::Unreachable { .. })) => {
                self.node.power_state = None;
                self.forget_agent().await?;
                Err(NotSwitched::NoAgent(self.node.label()).into())
            }
            Err(error @ Error::Agent(_)) => {
                self.learn(|session| session.agent_told_to_reboot = false);
                self.save().await?;
                Err(error)
            }
            Err(error @ Error::Host(_)) => Err(error),
            Err(error) => {
                self.forget_agent().await?;
                Err(error)
            }
        }
    }

    /// Tells the agent, unless it has left with that order already. One that answered a moment ago and does not say
    /// that it has the order has left with it: the answer of a machine that stops may be lost.
    async fn order_reboot(&mut self, power: &dyn InBandPower) -> Result<(), Error> {
        if self.agent_has_left().await? {
            return Ok(());
        }
        self.learn(|session| session.agent_told_to_reboot = true);
        self.save().await?;
        match power.order_reboot(&self.agent().await?).await {
            Ok(()) | Err(AgentError::Unreachable { .. }) => Ok(()),
            Err(error) => Err(error.into()),
        }
    }

    /// Waits until an agent is gone that was told to reboot its machine.
    async fn sees_off(&self, deadline: Instant, limit: Duration) -> Result<(), Error> {
        // Of one that is gone nobody has to be sure three times.
        let once = AgentSettings { max_command_attempts: 1, ..self.settings().agent.clone() };
        let agent = AgentClient::new(&self.session, &once)?;
        loop {
            self.hold().await?;
            match agent.commands().await {
                Err(AgentError::Unreachable { .. }) => return Ok(()),
                Ok(commands) => match commands.last() {
                    Some(last) if last.command_status == CommandStatus::Failed => {
                        let reason = failure_text(&last.command_name, last);
                        return Err(AgentError::Failed { reason }.into());
                    }
                    _ => {}
                },
                // It is there, and cannot serve: it is about to leave.
                Err(_) => {}
            }
            if Instant::now() >= deadline {
                return Err(NotSwitched::Stays { url: agent.url().to_owned(), limit }.into());
            }
            tokio::time::sleep(self.settings().power_poll_interval).await;
        }
    }
}
