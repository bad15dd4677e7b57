//! Times that BMCs are given; the defaults are Ironic's where it has such (section 9.3).

use crate::client::rate_limit::RateLimit;
use crate::redfish::quirks::Quirks;
use farrier_conductor::agent::UserAgent;
use std::path::PathBuf;
use std::time::Duration;

/// How BMCs that speak Redfish are asked.
#[derive(Debug, Clone)]
pub struct RedfishSettings {
    /// The name of the conductor in its requests.
    pub user_agent: UserAgent,
    /// How often each is asked.
    pub rate_limit: RateLimit,
    /// Longest time to connect.
    pub connect_timeout: Duration,
    /// Longest time for a request and its answer.
    pub request_timeout: Duration,
    /// How often a BMC is asked that does not answer (`[redfish]connection_attempts`).
    pub connection_attempts: u32,
    /// Pause before a BMC is asked again that is busy, growing with each.
    pub busy_pause: Duration,
    /// Longest time for a task of a BMC.
    pub task_timeout: Duration,
    /// Pause between two questions about a task, unless the BMC asks for one.
    pub task_poll: Duration,
    /// How long the power may take to change. It has to be shorter than the conductor's time for a power action, so that
    /// the error has the BMC's own words.
    pub power_wait: Duration,
    /// Pause between two readings of the power meanwhile.
    pub power_poll: Duration,
    /// The pause before an unfinished order is repeated.
    pub power_retry: Duration,
    /// How long a virtual drive may take to say what is in it.
    pub media_wait: Duration,
    /// How long a screenshot may take to be made. It has to be shorter than the conductor's time for last words, so that the
    /// error has the BMC's own words.
    pub screen_wait: Duration,
    /// Pause before what was refused and may be granted the next time is asked for again: a password, a session, a drive.
    pub refusal_pause: Duration,
    /// How long a password that was refused again is not tried any more, and a user without a session is known by the
    /// password.
    pub credentials_pause: Duration,
    /// What of BMCs is put up with.
    pub quirks: Quirks,
    /// Folders that records may name certificates in (`redfish_verify_ca`).
    pub ca_folders: Vec<PathBuf>,
}

/// Where distributions keep certificates of authorities.
const CA_FOLDERS: [&str; 4] =
    ["/etc/pki/ca-trust", "/etc/ssl/certs", "/usr/local/share/ca-certificates", "/usr/share/ca-certificates"];

impl Default for RedfishSettings {
    fn default() -> Self {
        Self {
            user_agent: UserAgent::default(),
            rate_limit: RateLimit::default(),
            connect_timeout: Duration::from_secs(30),
            request_timeout: Duration::from_secs(60),
            connection_attempts: 5,
            busy_pause: Duration::from_secs(5),
            task_timeout: Duration::from_secs(60),
            task_poll: Duration::from_secs(1),
            power_wait: Duration::from_secs(50),
            power_poll: Duration::from_secs(1),
            power_retry: Duration::from_secs(10),
            media_wait: Duration::from_secs(15),
            screen_wait: Duration::from_secs(10),
            refusal_pause: Duration::from_secs(5),
            credentials_pause: Duration::from_secs(300),
            quirks: Quirks::all(),
            ca_folders: CA_FOLDERS.map(PathBuf::from).to_vec(),
        }
    }
}
