//! Fast track: an agent stays between operations, so that the next one needs no boot (section 2.3).

use crate::model::{AgentSession, Family, ProvisionState};
use std::time::Duration;
use time::OffsetDateTime;

/// What of a node decides whether its agent may stay.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Candidate {
    /// Whether fast track is on: `driver_info.fast_track`, else the conductor's setting.
    pub is_enabled: bool,
    /// Whether the operation writes an image: nodes that boot from a volume need no agent.
    pub writes_image: bool,
    /// Whether the last operation failed.
    pub has_failed: bool,
    /// Whether firmware waits for a reboot.
    pub awaits_firmware: bool,
    /// Where the node is in its life.
    pub state: ProvisionState,
}

/// Whether the agent of a node may stay between operations.
pub fn is_able(candidate: &Candidate) -> bool {
    candidate.is_enabled
        && candidate.writes_image
        && !candidate.has_failed
        && !candidate.awaits_firmware
        && candidate.state.family() != Some(Family::Service)
}

/// Whether an agent was heard of within `timeout`, by a heartbeat or by the inventory that it posted, which needs no
/// address.
///
/// The machine must have been read to be on: an address outlives an unnoticed power loss (pitfall 13.21). That
/// an inspection has ended lately proves nothing either: the machine may have been switched since, which ends the
/// session.
pub fn is_alive(
    session: &AgentSession,
    state: ProvisionState,
    now: OffsetDateTime,
    timeout: Duration,
) -> bool {
    // What lies ahead of a clock that was set back is no more recent than what lies as far behind.
    let is_recent = |heard: Option<OffsetDateTime>| heard.is_some_and(|heard| (now - heard).abs() < timeout);
    let is_inspected = matches!(state, ProvisionState::Inspecting | ProvisionState::InspectWait);
    is_recent(session.agent_posted_at)
        || (session.agent_url.is_some() || is_inspected) && is_recent(session.agent_last_heartbeat)
}

#[cfg(test)]
mod tests {
    use super::*;
    use time::Duration as Span;

    const ABLE: Candidate = Candidate {
        is_enabled: true,
        writes_image: true,
        has_failed: false,
        awaits_firmware: false,
        state: ProvisionState::Available,
    };

    #[test]
    fn an_agent_stays_only_where_nothing_speaks_against_it() {
        assert!(is_able(&ABLE));
        for spoilt in [
            Candidate { is_enabled: false, ..ABLE },
            Candidate { writes_image: false, ..ABLE },
            Candidate { has_failed: true, ..ABLE },
            Candidate { awaits_firmware: true, ..ABLE },
            Candidate { state: ProvisionState::ServiceWait, ..ABLE },
            Candidate { state: ProvisionState::ServiceFailed, ..ABLE },
        ] {
            assert!(!is_able(&spoilt), "{spoilt:?}");
        }
    }

    #[test]
    fn an_agent_is_alive_that_was_heard_of_lately() {
        let now = OffsetDateTime::UNIX_EPOCH + Span::hours(1);
        let ago = |seconds| Some(now - Span::seconds(seconds));
        let url = Some("https://192.0.2.20:9999".to_owned());
        for (agent_url, heard, posted, state, expected) in [
            (&url, ago(299), None, ProvisionState::Available, true),
            (&url, ago(300), None, ProvisionState::Available, false),
            (&url, None, None, ProvisionState::Available, false),
            (&None, ago(1), None, ProvisionState::Available, false),
            (&None, ago(1), None, ProvisionState::InspectWait, true),
            (&None, None, ago(299), ProvisionState::Manageable, true),
            (&None, None, ago(300), ProvisionState::Manageable, false),
        ] {
            let session = AgentSession {
                agent_url: agent_url.clone(),
                agent_last_heartbeat: heard,
                agent_posted_at: posted,
                ..AgentSession::default()
            };
            let alive = is_alive(&session, state, now, Duration::from_secs(300));
            assert_eq!(alive, expected, "{state} {heard:?} {posted:?}");
        }
    }
}
