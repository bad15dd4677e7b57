//! What goes wrong with services of OpenStack. Every text names the URL, and none holds a secret.

use farrier_conductor::interfaces::InterfaceError;
use reqwest::StatusCode;
use std::path::PathBuf;
use std::time::Duration;

/// A service could not be asked, or would not do what it was asked for.
#[derive(Debug, Clone, thiserror::Error)]
pub enum OpenStackError {
    /// The file of clouds says not what is needed.
    #[error("{file}: {reason}")]
    CloudsFile {
        /// The file.
        file: PathBuf,
        /// What is wrong, and what would be right.
        reason: String,
    },
    /// A file with certificates is none.
    #[error("cacert {file} cannot be used: {reason}; give a file with certificates as PEM text")]
    CaFile {
        /// The file.
        file: PathBuf,
        /// Why not.
        reason: String,
    },
    /// No answer, a late one, or a part of one.
    #[error(
        "{request} is not answered: {reason}; look at the service, the network to it, and its certificate"
    )]
    Unreachable {
        /// Method and URL.
        request: String,
        /// What happened.
        reason: String,
        /// Whether the request may have reached it.
        is_sent: bool,
    },
    /// Keystone does not know who asks.
    #[error("Keystone refuses the credentials of {who} ({request}: {reason}); look at clouds.yaml (it is not asked \
             again with them for {} s)", .pause.as_secs())]
    Credentials {
        /// Who asks.
        who: String,
        /// Method and URL.
        request: String,
        /// What it says.
        reason: String,
        /// How long it is left alone.
        pause: Duration,
        /// Whether it was asked now; else it has refused the same before.
        is_asked: bool,
    },
    /// The catalog has no such service.
    #[error(
        "the catalog of {auth_url} has no endpoint of type network with interface {interface}{region}; it has: {known}; set \
         interface, region_name or network_endpoint_override in clouds.yaml"
    )]
    NoEndpoint {
        /// Keystone.
        auth_url: String,
        /// The interface that was looked for.
        interface: String,
        /// The region that was looked for, as a part of the sentence.
        region: String,
        /// What there is.
        known: String,
    },
    /// Its answer is longer than any that makes sense.
    #[error("the response to {request} has more than {limit} bytes; check which service answers at that URL")]
    TooLong {
        /// Method and URL.
        request: String,
        /// How many would have been read.
        limit: usize,
    },
    /// Its answer is not what the API has there.
    #[error("the response to {request} is {what}; check which service answers at that URL")]
    Nonsense {
        /// Method and URL.
        request: String,
        /// What it is.
        what: String,
    },
    /// It will not.
    #[error("{request} is answered with {status}: {reason}")]
    Refused {
        /// Method and URL.
        request: String,
        /// The status.
        status: StatusCode,
        /// What it says.
        reason: String,
    },
    /// A network is missing, or there are several.
    #[error("network {network:?} is known to Neutron {count} times; name one by its UUID")]
    NoSuchNetwork {
        /// Name or UUID.
        network: String,
        /// How many there are.
        count: usize,
    },
    /// An id would lead elsewhere in a URL.
    #[error("{0:?} is no identity that Neutron gives; give the UUID")]
    NoIdentity(String),
    /// The agent on a smart NIC does not run.
    #[error("no agent of Neutron is alive on host {host} after {} s; look at the agent on that smart NIC", .limit.as_secs())]
    NoAgent {
        /// The host, as its port names it.
        host: String,
        /// How long it was waited for.
        limit: Duration,
    },
    /// A port is not connected.
    #[error(
        "port {port} of Neutron has {what}; look at the log of neutron-server, and at the agents and mechanism drivers \
             that bind ports of host {host}"
    )]
    NotBound {
        /// The port.
        port: String,
        /// The host that it is for.
        host: String,
        /// The state of the port instead of a binding.
        what: String,
    },
}

impl OpenStackError {
    /// The status of a refusal.
    pub fn status(&self) -> Option<StatusCode> {
        match self {
            Self::Refused { status, .. } => Some(*status),
            _ => None,
        }
    }

    /// Whether what was asked for is not there.
    pub fn is_not_found(&self) -> bool {
        self.status() == Some(StatusCode::NOT_FOUND)
    }
}

impl From<OpenStackError> for InterfaceError {
    fn from(error: OpenStackError) -> Self {
        match error {
            OpenStackError::Credentials { is_asked: false, .. } => Self::not_asked(error),
            _ => Self::driver(error),
        }
    }
}
