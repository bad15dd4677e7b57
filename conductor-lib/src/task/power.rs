//! What a task does to the power of its machine, each act with its deadline (section 9.1). The lease lasts while it is
//! done.

use super::Task;
use super::act::{Call, act};
use crate::error::Error;
use crate::heartbeat::SessionEnd;
use crate::interfaces::InterfaceError;
use crate::interfaces::power::PowerInterface;
use crate::model::{InterfaceKind, PowerAction, PowerState};
use crate::task::power_reading::power_state;
use std::sync::Arc;
use std::time::Duration;
use tokio::time::Instant;

/// The system of a machine did not shut down in time.
#[derive(Debug, thiserror::Error)]
#[error("the machine's system did not shut down within {} s; power it off hard, or look at its console", .0.as_secs_f64())]
struct StaysOn(Duration);

impl Task {
    /// The power state that the machine reports now.
    ///
    /// # Errors
    ///
    /// [`Error::Unresolved`], [`Error::Interface`], [`Error::Host`].
    pub async fn power_state(&self) -> Result<PowerState, Error> {
        self.hold().await?;
        power_state(self.host.hardware(), &self.node, self.settings().power_read_timeout).await
    }

    /// Whether the driver can tell the power state of the machine, and not an operator alone.
    ///
    /// # Errors
    ///
    /// [`Error::Unresolved`], [`Error::Host`].
    pub(crate) async fn sees_power(&self) -> Result<bool, Error> {
        Ok(self.power()?.supports_power_sync(&self.node))
    }

    /// How long an action that was ordered may take.
    pub fn power_action_limit(&self, action: PowerAction) -> Duration {
        let settings = self.settings();
        let usual = if action.is_soft() {
            settings.soft_power_off_timeout
        } else {
            settings.power_state_change_timeout
        };
        self.node.driver_internal_info.power_action_timeout.map_or(usual, Duration::from_secs)
    }

    /// Powers the machine on, which counts once saved.
    ///
    /// # Errors
    ///
    /// [`Error::Unresolved`], [`Error::Interface`], [`Error::Host`].
    pub async fn power_on(&mut self) -> Result<(), Error> {
        self.power_on_within(self.settings().power_state_change_timeout).await
    }

    /// Powers the machine off, which counts once saved. The agent is forgotten before, so that no late heartbeat of it
    /// is taken for one of the next boot (pitfall 13.6). A machine that only its agent can switch stays on, with its
    /// agent, until its power on is ordered.
    ///
    /// # Errors
    ///
    /// [`Error::Unresolved`], [`Error::Interface`], [`Error::Host`].
    pub async fn power_off(&mut self) -> Result<(), Error> {
        self.power_off_within(self.settings().power_state_change_timeout).await
    }

    /// Powers the machine off and on, which counts once saved. The agent is forgotten before, as by
    /// [`Self::power_off`], unless it is the one that reboots the machine.
    ///
    /// # Errors
    ///
    /// [`Error::Unresolved`], [`Error::Interface`], [`Error::Host`].
    pub async fn reboot(&mut self) -> Result<(), Error> {
        self.reboot_within(self.settings().power_state_change_timeout).await
    }

    /// As [`Self::power_on`], within another time.
    pub async fn power_on_within(&mut self, limit: Duration) -> Result<(), Error> {
        let power = self.power()?;
        if let Some(in_band) = power.in_band() {
            return self.power_on_in_band(in_band, limit).await;
        }
        self.prepare_waiting_instance().await?;
        match std::mem::take(&mut self.resets_when_on) {
            true => self.within(limit, "reset", power.reset(&self.node)).await?,
            false => self.within(limit, "power_on", power.power_on(&self.node)).await?,
        }
        self.node.power_state = Some(PowerState::On);
        Ok(())
    }

    /// As [`Self::power_off`], within another time.
    pub async fn power_off_within(&mut self, limit: Duration) -> Result<(), Error> {
        let power = self.power()?;
        if power.in_band().is_some() {
            return self.stay_on().await;
        }
        self.forget_agent().await?;
        if self.node.disable_power_off {
            return self.postpone_power_off().await;
        }
        self.within(limit, "power_off", power.power_off(&self.node)).await?;
        self.forget_last_heartbeat().await?;
        self.node.power_state = Some(PowerState::Off);
        Ok(())
    }

    /// A machine that must never be powered off stays on, and is reset when it is to be on.
    async fn postpone_power_off(&mut self) -> Result<(), Error> {
        let state = self.power_state().await?;
        self.resets_when_on = state == PowerState::On;
        self.node.power_state = Some(state);
        Ok(())
    }

    /// As [`Self::reboot`], within another time, which off and on have each.
    pub async fn reboot_within(&mut self, limit: Duration) -> Result<(), Error> {
        let power = self.power()?;
        if let Some(in_band) = power.in_band() {
            return self.reboot_in_band(in_band, limit).await;
        }
        self.forget_agent().await?;
        let is_split = self.session.agent_secret_token_pregenerated
            || self.node.driver_internal_info.instance_waits_for_agent;
        match self.node.disable_power_off {
            true => {
                self.prepare_waiting_instance().await?;
                self.within(limit, "reset", power.reset(&self.node)).await?;
                self.forget_last_heartbeat().await?;
            }
            // What has to be done while the machine is off.
            false if is_split => {
                self.within(limit, "power_off", power.power_off(&self.node)).await?;
                self.forget_last_heartbeat().await?;
                self.prepare_waiting_instance().await?;
                self.within(limit, "power_on", power.power_on(&self.node)).await?;
            }
            false => self.within(limit * 2, "reboot", power.reboot(&self.node)).await?,
        }
        self.node.power_state = Some(PowerState::On);
        Ok(())
    }

    /// Has the machine's system shut down, and waits until the machine is off, which counts once saved. The agent is
    /// forgotten before, as by [`Self::power_off`].
    ///
    /// # Errors
    ///
    /// [`Error::Unresolved`], [`Error::Interface`], also when it stays on, [`Error::Host`].
    pub async fn soft_power_off(&mut self, limit: Duration) -> Result<(), Error> {
        self.forget_agent().await?;
        let (power, deadline) = (self.power()?, Instant::now() + limit);
        self.within(limit, "soft_power_off", power.soft_power_off(&self.node)).await?;
        if !self.goes_off(deadline).await? {
            return Err(InterfaceError::driver(StaysOn(limit)).into());
        }
        self.forget_last_heartbeat().await?;
        self.node.power_state = Some(PowerState::Off);
        Ok(())
    }

    /// Whether the machine goes off before a moment. That it cannot be read now and then proves nothing.
    ///
    /// # Errors
    ///
    /// [`Error::Host`].
    pub async fn goes_off(&self, deadline: Instant) -> Result<bool, Error> {
        loop {
            match self.power_state().await {
                Ok(PowerState::Off) => return Ok(true),
                Err(error @ Error::Host(_)) => return Err(error),
                Ok(PowerState::On) | Err(_) if Instant::now() >= deadline => return Ok(false),
                Ok(PowerState::On) | Err(_) => {}
            }
            tokio::time::sleep(self.settings().power_poll_interval).await;
        }
    }

    /// Takes note of what the machine says: it is where it was wanted already. An agent that is off has no memory.
    pub async fn note_power(&mut self, state: PowerState) -> Result<(), Error> {
        if state == PowerState::Off {
            self.forget_agent().await?;
        }
        self.node.power_state = Some(state);
        Ok(())
    }

    /// Verifies that the driver supports the order, and that no flag of the node forbids it.
    pub fn check_power_action(&self, action: PowerAction) -> Result<(), Error> {
        if self.node.disable_power_off && action.target() == PowerState::Off {
            let reason = "the machine must never be powered off; reboot it, or change the field first";
            return Err(Error::invalid("disable_power_off", reason));
        }
        if self.is_switched_by_agent()? {
            return self.check_in_band(action);
        }
        if self.node.disable_power_off {
            return self.check_reset();
        }
        let power = self.host.hardware().power(&self.node)?;
        if action.is_soft() && !power.supports_soft_power_off(&self.node) {
            return Ok(InterfaceError::unsupported(InterfaceKind::Power, action.as_str())?);
        }
        Ok(())
    }

    /// Sees that a machine which must never be powered off can be reset.
    pub(super) fn check_reset(&self) -> Result<(), Error> {
        let power = self.host.hardware().power(&self.node)?;
        let can_be_reset = power.in_band().is_some() || power.supports_reset(&self.node);
        match self.node.disable_power_off && !can_be_reset {
            true => Ok(InterfaceError::unsupported(
                InterfaceKind::Power,
                "a reset, which disable_power_off needs,",
            )?),
            false => Ok(()),
        }
    }

    async fn within(
        &self,
        limit: Duration,
        method: &'static str,
        work: impl Future<Output = Result<(), InterfaceError>>,
    ) -> Result<(), Error> {
        act(&self.host, Call::of(&self.node, InterfaceKind::Power, method), limit, work).await
    }

    pub(super) fn power(&self) -> Result<Arc<dyn PowerInterface>, Error> {
        Ok(self.host.hardware().power(&self.node)?)
    }

    /// Forgets what an agent told while it went down. A token that is on the medium of its boot is that of the next
    /// agent, too, which has another certificate (E10); any other was forgotten before.
    async fn forget_last_heartbeat(&mut self) -> Result<(), Error> {
        match self.session.agent_secret_token_pregenerated {
            true => self.forget_agent().await,
            false => Ok(()),
        }
    }

    pub(super) async fn forget_agent(&mut self) -> Result<(), Error> {
        self.end_session(SessionEnd::PowerAction);
        self.save().await
    }
}
