//! What is known of the agent that runs now (section 1.8).

use crate::model::steps::step::StepKind;
use farrier_protocol::heartbeat::AgentStatus;
use farrier_protocol::step::{HardwareManagerVersions, StepDescription};
use serde::{Deserialize, Serialize};
use std::fmt;
use time::OffsetDateTime;

/// The session of the current agent. It ends with the agent's memory: every power action
/// and the end of an operation drop it, as [`SessionEnd`](crate::heartbeat::SessionEnd) decides (lessons F39 and F41).
#[derive(Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct AgentSession {
    /// Where the agent listens.
    pub agent_url: Option<String>,
    /// The agent's version, as of the last heartbeat.
    pub agent_version: Option<String>,
    /// When the last heartbeat came.
    #[serde(with = "time::serde::rfc3339::option")]
    pub agent_last_heartbeat: Option<OffsetDateTime>,
    /// When it posted its inventory, where it stayed after that; it calls later.
    #[serde(with = "time::serde::rfc3339::option", skip_serializing_if = "Option::is_none")]
    pub agent_posted_at: Option<OffsetDateTime>,
    /// The agent's certificate as PEM text, the only one trusted for it.
    pub agent_verify_ca: Option<String>,
    /// Last status text of an installer that is no agent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub agent_status: Option<AgentStatus>,
    /// The words that came with it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub agent_status_message: Option<String>,
    /// The token both sides share.
    pub agent_secret_token: Option<String>,
    /// Whether the token is on the media that the machine boots from, so that it outlives a reboot.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub agent_secret_token_pregenerated: bool,
    /// Whether it has the order to reboot its machine, which only it can, and has not left yet.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub agent_told_to_reboot: bool,
    /// Clean steps the agent offers; nothing until it was asked.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub agent_cached_clean_steps: Option<Vec<StepDescription>>,
    /// Deploy steps the agent offers; nothing until it was asked.
    pub agent_cached_deploy_steps: Option<Vec<StepDescription>>,
    /// Service steps the agent offers; nothing until it was asked.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub agent_cached_service_steps: Option<Vec<StepDescription>>,
    /// Versions of the agent's hardware managers, sent back with each step.
    pub hardware_manager_version: Option<HardwareManagerVersions>,
}

impl AgentSession {
    /// The steps of a kind that the agent offers; nothing until it was asked.
    pub fn cached_steps(&self, kind: StepKind) -> Option<&[StepDescription]> {
        let cached = match kind {
            StepKind::Clean => &self.agent_cached_clean_steps,
            StepKind::Deploy => &self.agent_cached_deploy_steps,
            StepKind::Service => &self.agent_cached_service_steps,
        };
        cached.as_deref()
    }

    /// Takes note of the steps of a kind that the agent offers.
    pub fn cache_steps(&mut self, kind: StepKind, steps: Vec<StepDescription>) {
        let cached = match kind {
            StepKind::Clean => &mut self.agent_cached_clean_steps,
            StepKind::Deploy => &mut self.agent_cached_deploy_steps,
            StepKind::Service => &mut self.agent_cached_service_steps,
        };
        *cached = Some(steps);
    }
}

/// Neither token nor certificate is shown.
impl fmt::Debug for AgentSession {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("AgentSession")
            .field("agent_url", &self.agent_url)
            .field("agent_version", &self.agent_version)
            .finish_non_exhaustive()
    }
}
