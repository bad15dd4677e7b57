//! Times and addresses that a conductor works with; the defaults are Ironic's.

use std::time::Duration;

/// How a conductor talks to agents (conductor contract 4.1 to 4.3).
#[derive(Debug, Clone)]
pub struct AgentSettings {
    /// Longest time for one request.
    pub command_timeout: Duration,
    /// Attempts per request when the agent cannot be reached.
    pub max_command_attempts: u32,
    /// Mean pause between two attempts.
    pub command_retry_pause: Duration,
    /// How often a command whose result is needed in place is looked at.
    pub command_wait_attempts: u32,
    /// Pause between two looks.
    pub command_wait_interval: Duration,
    /// Refuses agents that do not serve HTTPS.
    pub require_tls: bool,
}

impl Default for AgentSettings {
    fn default() -> Self {
        Self {
            command_timeout: Duration::from_secs(60),
            max_command_attempts: 3,
            command_retry_pause: Duration::from_secs(1),
            command_wait_attempts: 600,
            command_wait_interval: Duration::from_secs(1),
            require_tls: true,
        }
    }
}

/// Times and addresses that a conductor works with.
#[derive(Debug, Clone)]
pub struct Settings {
    /// URL of the ramdisk API as seen on the conductor's own host, without a trailing slash.
    pub api_url: String,
    /// Base of the heartbeat interval that agents are told, whole seconds.
    pub heartbeat_timeout: Duration,
    /// Formats that agents may write, as they name them.
    pub permitted_image_formats: Vec<String>,
    /// Lets agents run programs of the deployed image, as root, where it needs a boot loader that only they can
    /// install.
    pub enable_bios_bootloader_install: bool,
    /// Longest silence of an agent before its deployment fails.
    pub deploy_callback_timeout: Duration,
    /// Name by which other conductors know this one; two that run at the same time need two.
    pub conductor_name: String,
    /// How long the lease of a node lasts whose conductor is heard of no more.
    pub lease: Duration,
    /// How often waiting nodes are checked for silence and lost power.
    pub check_interval: Duration,
    /// How often a running step is asked for its progress.
    pub progress_interval: Duration,
    /// How long an agent may take to power its machine off before it is forced.
    pub power_off_timeout: Duration,
    /// How often the power state is read meanwhile.
    pub power_poll_interval: Duration,
    /// Attempts of an operator's request to lock a node.
    pub node_locked_attempts: u32,
    /// Pause between two such attempts.
    pub node_locked_pause: Duration,
    /// How agents are talked to.
    pub agent: AgentSettings,
}

impl Settings {
    /// The defaults, for a ramdisk API at `api_url`.
    pub fn new(api_url: impl Into<String>) -> Self {
        Self {
            api_url: api_url.into().trim_end_matches('/').to_owned(),
            heartbeat_timeout: Duration::from_secs(300),
            permitted_image_formats: ["raw", "gpt", "qcow2"].map(str::to_owned).to_vec(),
            enable_bios_bootloader_install: false,
            deploy_callback_timeout: Duration::from_secs(1800),
            conductor_name: "farrier".to_owned(),
            lease: Duration::from_secs(60),
            check_interval: Duration::from_secs(5),
            progress_interval: Duration::from_secs(1),
            power_off_timeout: Duration::from_secs(35),
            power_poll_interval: Duration::from_millis(500),
            node_locked_attempts: 3,
            node_locked_pause: Duration::from_secs(1),
            agent: AgentSettings::default(),
        }
    }
}
