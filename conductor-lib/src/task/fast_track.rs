//! Agents that stay from one operation to the next (section 2.3).

use super::Task;
use crate::error::Error;
use crate::heartbeat::{SessionEnd, fast_track};
use crate::model::{Family, PowerState};

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

    /// Whether an agent has stayed from the operation before, and is there: it was heard of lately, the machine says
    /// that it is on, and the agent answers. An address alone proves nothing (pitfall 13.21).
    ///
    /// # Errors
    ///
    /// [`Error::Store`].
    pub(crate) async fn has_agent_that_stayed(&self) -> Result<bool, Error> {
        let (now, window) = (self.services.now(), self.services.settings.fast_track_window());
        let inspected = self.node.inspection_finished_at;
        if !self.services.is_fast_track_able(&self.node)
            || !fast_track::is_alive(&self.session, self.node.provision_state, inspected, now, window)
        {
            return Ok(false);
        }
        self.has_agent().await
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
