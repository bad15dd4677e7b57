//! Agents that stay from one operation to the next (section 2.3).

use super::Task;
use crate::error::Error;
use crate::heartbeat::{SessionEnd, fast_track};
use crate::model::{Family, PowerState};

/// What has become of the agent of the operation before.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Stayed {
    /// It is there, and answers.
    Answers,
    /// It has posted its inventory, and is about to call.
    WillCall,
    /// It is gone, or nothing proves that it is not.
    Gone,
}

impl Task {
    /// Forgets the agent of the operation before, unless it may stay for the one that the node has entered.
    pub(crate) fn begin_session(&mut self) {
        let keeps_agent = self.services.is_fast_track_able(&self.node);
        self.end_session(SessionEnd::Operation { keeps_agent });
    }

    /// Whether the agent stays when the operation ends that the node is in: where an instance starts, it does not.
    pub(crate) fn keeps_agent(&self) -> bool {
        let ends_in_ramdisk =
            matches!(self.node.provision_state.family(), Some(Family::Clean | Family::Inspect));
        ends_in_ramdisk && self.services.is_fast_track_able(&self.node)
    }

    /// Takes note that the agent has posted its inventory, and stays: it calls later, and counts as heard of meanwhile.
    pub(crate) fn agent_has_posted(&mut self) {
        let now = self.services.now();
        self.learn(|session| session.agent_posted_at = Some(now));
    }

    /// What has become of the agent of the operation before. It is there when it was heard of lately, the machine says
    /// that it is on, and the agent answers, unless it has not told its address yet. An address alone proves nothing
    /// (pitfall 13.21).
    ///
    /// # Errors
    ///
    /// [`Error::Store`].
    pub(crate) async fn agent_that_stayed(&self) -> Result<Stayed, Error> {
        let (now, window) = (self.services.now(), self.services.settings.fast_track_window());
        if !self.services.is_fast_track_able(&self.node)
            || !fast_track::is_alive(&self.session, self.node.provision_state, now, window)
        {
            return Ok(Stayed::Gone);
        }
        if self.session.agent_url.is_none() {
            return match self.power_state().await {
                Ok(PowerState::On) => Ok(Stayed::WillCall),
                Err(error @ Error::Store(_)) => Err(error),
                Ok(PowerState::Off) | Err(_) => Ok(Stayed::Gone),
            };
        }
        Ok(if self.has_agent().await? { Stayed::Answers } else { Stayed::Gone })
    }

    /// Whether an agent is there: its address is known, the machine says that it is on, and the agent answers.
    ///
    /// # Errors
    ///
    /// [`Error::Store`].
    pub(crate) async fn has_agent(&self) -> Result<bool, Error> {
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
            Err(error @ Error::Store(_)) => Err(error),
            Err(error) => {
                tracing::info!(node = %self.node.label(), "the agent has not stayed: {error}");
                Ok(false)
            }
            Ok(is_there) => Ok(is_there),
        }
    }
}
