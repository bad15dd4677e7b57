//! The heartbeat (section 2.4) and the API versions it depends on (section 2.2).

use serde::{Deserialize, Serialize};
use std::fmt;
use std::str::FromStr;

/// Header that carries the API version of a request and of a reply.
pub const VERSION_HEADER: &str = "X-OpenStack-Ironic-API-Version";

/// Body of `POST /v1/heartbeat/<node uuid>`.
#[derive(Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Heartbeat {
    /// Where the agent listens: `<protocol>://<host>:<port>`, IPv6 hosts in brackets, no path.
    pub callback_url: String,
    /// The token both sides share, from API 1.62 on.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub agent_token: Option<String>,
    /// Version of the agent, from API 1.36 on.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub agent_version: Option<String>,
    /// The agent's self-signed certificate as PEM text, from API 1.68 on.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub agent_verify_ca: Option<String>,
    /// How an installer that is no agent gets on, from API 1.72 on.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub agent_status: Option<AgentStatus>,
    /// The words that go with it, from API 1.72 on.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub agent_status_message: Option<String>,
}

/// How an installer that is no agent gets on. An agent does not send it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum AgentStatus {
    /// It has begun.
    Start,
    /// It is done.
    End,
    /// It failed.
    Error,
}

impl fmt::Debug for Heartbeat {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Heartbeat")
            .field("callback_url", &self.callback_url)
            .field("agent_version", &self.agent_version)
            .finish_non_exhaustive()
    }
}

/// A version of the conductor's API, `major.minor`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct ApiVersion {
    /// Always 1 so far.
    pub major: u16,
    /// Grows with each feature.
    pub minor: u16,
}

impl ApiVersion {
    /// First version with lookup and heartbeat endpoints.
    pub const LOOKUP: Self = Self::v1(22);
    /// Assumed when the version cannot be detected.
    pub const FALLBACK: Self = Self::v1(31);
    /// First version with `agent_version` in heartbeats.
    pub const AGENT_VERSION: Self = Self::v1(36);
    /// First version with agent tokens; the lookup header.
    pub const AGENT_TOKEN: Self = Self::v1(62);
    /// First version with `agent_verify_ca`; the heartbeat header.
    pub const AGENT_VERIFY_CA: Self = Self::v1(68);

    /// Version `1.minor`.
    pub const fn v1(minor: u16) -> Self {
        Self { major: 1, minor }
    }
}

impl fmt::Display for ApiVersion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}", self.major, self.minor)
    }
}

/// The text is not `major.minor`.
#[derive(Debug, thiserror::Error)]
#[error("API version {0:?} is not of the form MAJOR.MINOR")]
pub struct ParseApiVersionError(String);

impl FromStr for ApiVersion {
    type Err = ParseApiVersionError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let parts = text
            .trim()
            .split_once('.')
            .and_then(|(major, minor)| Some(Self { major: major.parse().ok()?, minor: minor.parse().ok()? }));
        parts.ok_or_else(|| ParseApiVersionError(text.to_owned()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_compare_by_number_not_by_text() {
        let parse = |text: &str| text.parse::<ApiVersion>().unwrap();
        assert!(parse("1.115") > parse("1.68"));
        assert!(parse("1.9") < parse("1.10"));
        for bad in ["", "1", "1.x", "latest", "1.2.3"] {
            assert!(bad.parse::<ApiVersion>().is_err(), "{bad}");
        }
    }

    #[test]
    fn absent_fields_are_left_out() {
        let heartbeat = Heartbeat {
            callback_url: "https://192.0.2.20:9999".into(),
            agent_version: Some("0.1.0".into()),
            ..Heartbeat::default()
        };
        assert_eq!(
            serde_json::to_value(&heartbeat).unwrap(),
            serde_json::json!({"callback_url": "https://192.0.2.20:9999", "agent_version": "0.1.0"})
        );
    }

    #[test]
    fn debug_output_shows_no_token() {
        let heartbeat = Heartbeat { agent_token: Some("secret".into()), ..Heartbeat::default() };
        assert!(!format!("{heartbeat:?}").contains("secret"));
    }
}
