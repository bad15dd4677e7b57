//! When what is known of an agent is dropped (section 2.10).

use crate::model::AgentSession;

/// What ends the session of an agent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SessionEnd {
    /// The machine is powered off or rebooted, even when it was off already.
    PowerAction,
    /// A step wants the machine rebooted, and continues in the next agent.
    StepReboot,
    /// A deployment, cleaning or service begins or ends.
    Operation {
        /// The agent stays for the operation that comes next (fast track).
        keeps_agent: bool,
    },
    /// An inspection begins.
    Inspection,
}

impl SessionEnd {
    /// What is still known afterwards.
    ///
    /// ```
    /// use farrier_conductor::heartbeat::SessionEnd;
    /// use farrier_conductor::model::AgentSession;
    ///
    /// let session = AgentSession { agent_url: Some("https://192.0.2.20:9999".into()), ..AgentSession::default() };
    /// // The agent that boots next may have another address, certificate and token.
    /// assert_eq!(SessionEnd::PowerAction.after(&session), AgentSession::default());
    /// ```
    ///
    /// A token that is on the boot media outlives reboots, since the same media boots again; it ends with the
    /// operation. Nothing else outlives the memory of the agent: Ironic forgets to drop the service steps, which are
    /// dropped here like the others.
    pub fn after(self, session: &AgentSession) -> AgentSession {
        match self {
            Self::Operation { keeps_agent: true } => session.clone(),
            Self::PowerAction | Self::StepReboot if session.agent_secret_token_pregenerated => AgentSession {
                agent_secret_token: session.agent_secret_token.clone(),
                agent_secret_token_pregenerated: true,
                ..AgentSession::default()
            },
            Self::PowerAction | Self::StepReboot | Self::Operation { .. } | Self::Inspection => {
                AgentSession::default()
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use farrier_protocol::heartbeat::AgentStatus;
    use time::OffsetDateTime;

    /// A session of which everything is known.
    fn session(agent_secret_token_pregenerated: bool) -> AgentSession {
        AgentSession {
            agent_url: Some("https://192.0.2.20:9999".into()),
            agent_version: Some("0.1.0".into()),
            agent_last_heartbeat: Some(OffsetDateTime::UNIX_EPOCH),
            agent_posted_at: Some(OffsetDateTime::UNIX_EPOCH),
            agent_verify_ca: Some("PEM".into()),
            agent_status: Some(AgentStatus::Start),
            agent_status_message: Some("begun".into()),
            agent_secret_token: Some("token".into()),
            agent_secret_token_pregenerated,
            agent_told_to_reboot: true,
            agent_cached_clean_steps: Some(Vec::new()),
            agent_cached_deploy_steps: Some(Vec::new()),
            agent_cached_service_steps: Some(Vec::new()),
            hardware_manager_version: Some([("generic".to_owned(), "1".to_owned())].into_iter().collect()),
        }
    }

    #[test]
    fn f39_f41_every_end_drops_what_the_contract_says() {
        let token_alone = AgentSession {
            agent_secret_token: Some("token".into()),
            agent_secret_token_pregenerated: true,
            ..AgentSession::default()
        };
        let nothing = AgentSession::default();
        for (end, of_issued, of_pregenerated) in [
            (SessionEnd::PowerAction, &nothing, &token_alone),
            (SessionEnd::StepReboot, &nothing, &token_alone),
            (SessionEnd::Operation { keeps_agent: false }, &nothing, &nothing),
            (SessionEnd::Operation { keeps_agent: true }, &session(false), &session(true)),
            (SessionEnd::Inspection, &nothing, &nothing),
        ] {
            assert_eq!(end.after(&session(false)), *of_issued, "{end:?}");
            assert_eq!(end.after(&session(true)), *of_pregenerated, "{end:?}, pregenerated");
        }
    }
}
