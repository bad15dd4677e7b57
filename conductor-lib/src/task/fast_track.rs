//! Agents that stay from one operation to the next (section 2.3).

use super::Task;
use crate::error::Error;
use crate::hardware_type::Hardware;
use crate::heartbeat::fast_track::Candidate;
use crate::heartbeat::{SessionEnd, fast_track};
use crate::model::{Family, Node, PowerState};
use crate::settings::Settings;

/// What has become of the agent of the operation before.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AgentReuse {
    /// It is there, and answers.
    Answers,
    /// It has posted its inventory, and is about to call.
    WillCall,
    /// It is gone, or nothing proves that it is not.
    Gone,
}

/// Whether the agent of a node may stay between operations. Where nothing else can switch the machine, the agent stays
/// also after an operation that failed: without it no agent would be left.
pub fn is_fast_track_able(node: &Node, hardware: &Hardware, settings: &Settings) -> bool {
    let (storage, power) = (hardware.storage(node), hardware.power(node));
    let has_only_agent = power.is_ok_and(|power| power.in_band().is_some());
    fast_track::is_able(&Candidate {
        is_enabled: settings.has_fast_track(node).unwrap_or(false),
        writes_image: storage.is_ok_and(|storage| storage.should_write_image(node)),
        has_failed: node.last_error.is_some() && !has_only_agent,
        awaits_firmware: node.driver_internal_info.awaits_firmware(),
        state: node.provision_state,
    })
}

impl Task {
    fn is_fast_track_able(&self) -> bool {
        is_fast_track_able(&self.node, self.host.hardware(), self.settings())
    }

    /// Forgets the agent of the operation before, unless it may stay for the one that the node has entered.
    pub fn begin_session(&mut self) {
        let keeps_agent = self.is_fast_track_able();
        self.end_session(SessionEnd::Operation { keeps_agent });
    }

    /// Whether the agent stays when the operation ends that the node is in: where an instance starts, it does not.
    pub fn keeps_agent(&self) -> bool {
        let ends_in_ramdisk =
            matches!(self.node.provision_state.family(), Some(Family::Clean | Family::Inspect));
        ends_in_ramdisk && self.is_fast_track_able()
    }

    /// Takes note that the agent has posted its inventory, and stays: it calls later, and counts as heard of meanwhile.
    pub fn agent_has_posted(&mut self) {
        let now = self.host.now();
        self.learn(|session| session.agent_posted_at = Some(now));
    }

    /// What has become of the agent of the operation before. It is there when it was heard of lately, the machine says
    /// that it is on, and the agent answers, unless it has not told its address yet. An address alone proves nothing
    /// (pitfall 13.21).
    ///
    /// # Errors
    ///
    /// [`Error::Host`].
    pub(crate) async fn agent_that_stayed(&self) -> Result<AgentReuse, Error> {
        let (now, window) = (self.host.now(), self.settings().fast_track_window());
        if !self.is_fast_track_able()
            || !fast_track::is_alive(&self.session, self.node.provision_state, now, window)
        {
            return Ok(AgentReuse::Gone);
        }
        if self.session.agent_url.is_none() {
            return match self.power_state().await {
                Ok(PowerState::On) => Ok(AgentReuse::WillCall),
                Err(error @ Error::Host(_)) => Err(error),
                Ok(PowerState::Off) | Err(_) => Ok(AgentReuse::Gone),
            };
        }
        Ok(if self.has_agent().await? { AgentReuse::Answers } else { AgentReuse::Gone })
    }

    /// Whether an agent is there: its address is known, the machine says that it is on, and the agent answers.
    ///
    /// # Errors
    ///
    /// [`Error::Host`].
    pub async fn has_agent(&self) -> Result<bool, Error> {
        if self.session.agent_url.is_none() {
            return Ok(false);
        }
        let asked = async {
            if self.power_state().await? != PowerState::On {
                return Ok(false);
            }
            self.agent().await?.commands().await?;
            Ok(true)
        };
        match asked.await {
            Err(error @ Error::Host(_)) => Err(error),
            Err(error) => {
                tracing::info!(node = %self.node.label(), "the agent has not stayed: {error}");
                Ok(false)
            }
            Ok(is_there) => Ok(is_there),
        }
    }
}
