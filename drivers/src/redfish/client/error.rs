//! What goes wrong with a BMC that speaks Redfish. Every text names the BMC, and none holds a secret.

use super::message::Refusal;
use farrier_conductor::interfaces::InterfaceError;
use std::path::PathBuf;
use std::time::Duration;

/// A BMC could not be asked, or would not do what it was asked for.
#[derive(Debug, Clone, thiserror::Error)]
pub enum RedfishError {
    /// No answer from its address, a late one, or a part of one.
    #[error(
        "BMC {bmc} does not answer {request}: {reason}; look at its address, its network and its certificate"
    )]
    Unreachable {
        /// Its address.
        bmc: String,
        /// Method and path.
        request: String,
        /// What happened.
        reason: String,
        /// Whether the request may have reached it.
        is_sent: bool,
    },
    /// Its certificate is not trusted.
    #[error(
        "BMC {bmc} has a certificate that is not trusted ({reason}); set redfish_verify_ca to a file with that of \
             its authority"
    )]
    Untrusted {
        /// Its address.
        bmc: String,
        /// Why not.
        reason: String,
    },
    /// It knows no such user, or the password is another one.
    #[error("BMC {bmc} refuses user {user:?} and the password; change redfish_username and redfish_password (it is not \
             asked again with them for {} s, so that the BMC does not lock the user out)", .pause.as_secs())]
    Credentials {
        /// Its address.
        bmc: String,
        /// The user.
        user: String,
        /// How long it is left alone.
        pause: Duration,
        /// Whether the BMC was asked now; else it has refused the same before.
        is_asked: bool,
    },
    /// It begins no session now, and takes the password in no other way.
    #[error(
        "BMC {bmc} begins no session for user {user:?}: it answers {request} with {why}; look at the sessions that \
             are open there, and at the rights of the user"
    )]
    NoSession {
        /// Its address.
        bmc: String,
        /// The user.
        user: String,
        /// Method and path.
        request: String,
        /// What it says.
        why: String,
    },
    /// It sends to another host, which would get the credentials.
    #[error(
        "BMC {bmc} sends {request} to {target:?}, and the conductor sends no credentials there; set redfish_address to the new address"
    )]
    Redirected {
        /// Its address.
        bmc: String,
        /// Method and path.
        request: String,
        /// Where to.
        target: String,
    },
    /// Its answer is longer than any that makes sense.
    #[error(
        "BMC {bmc} answers {request} with more than {limit} bytes; check which service answers at redfish_address"
    )]
    TooLong {
        /// Its address.
        bmc: String,
        /// Method and path.
        request: String,
        /// How many would have been read.
        limit: usize,
    },
    /// Its answer is not what Redfish has there.
    #[error(
        "BMC {bmc} answers {request} with {what}; check which service answers at redfish_address, and the firmware of the BMC"
    )]
    Nonsense {
        /// Its address.
        bmc: String,
        /// Method and path.
        request: String,
        /// What it is.
        what: String,
    },
    /// It will not.
    #[error("BMC {bmc} answers {request} with {refusal}")]
    Refused {
        /// Its address.
        bmc: String,
        /// Method and path.
        request: String,
        /// What it says.
        refusal: Refusal,
    },
    /// A task of it has failed.
    #[error("BMC {bmc} began {request}, and its task ended with {state}: {reason}")]
    TaskFailed {
        /// Its address.
        bmc: String,
        /// Method and path of what began it.
        request: String,
        /// How the task ended.
        state: String,
        /// What it says.
        reason: String,
    },
    /// A task of it does not end.
    #[error("BMC {bmc} began {request}, and its task {monitor} has not ended after {} s; look at the tasks of the BMC", .limit.as_secs())]
    TaskEndless {
        /// Its address.
        bmc: String,
        /// Method and path of what began it.
        request: String,
        /// The task.
        monitor: String,
        /// How long it was waited for.
        limit: Duration,
    },
    /// It has something that machines usually have not, or the other way round.
    #[error("BMC {bmc} has {what}; {advice}")]
    Lacks {
        /// Its address.
        bmc: String,
        /// What it has, or has not.
        what: String,
        /// What to do.
        advice: &'static str,
    },
    /// It has taken an order, and nothing has come of it.
    #[error("BMC {bmc} accepted the order {order}, and reports {says} after {} s; check the machine", .limit.as_secs())]
    NotDone {
        /// Its address.
        bmc: String,
        /// The order.
        order: String,
        /// What it says now.
        says: String,
        /// How long it was waited for.
        limit: Duration,
    },
    /// A file with certificates is none.
    #[error(
        "redfish_verify_ca: {file} cannot be used: {reason}; give a file, or a folder of files, with certificates as PEM text"
    )]
    CaFile {
        /// The file or folder.
        file: PathBuf,
        /// Why not.
        reason: String,
    },
}

impl RedfishError {
    /// What the BMC said, where it refused something.
    pub(in crate::redfish) fn refusal(&self) -> Option<&Refusal> {
        match self {
            Self::Refused { refusal, .. } => Some(refusal),
            _ => None,
        }
    }

    /// Whether the password is refused, now or before.
    pub(in crate::redfish) fn is_about_password(&self) -> bool {
        matches!(self, Self::Credentials { .. })
    }

    /// Whether the BMC has certainly done nothing of what it was asked for.
    pub(in crate::redfish) fn is_without_effect(&self) -> bool {
        match self {
            Self::Unreachable { is_sent, .. } => !is_sent,
            Self::Refused { refusal, .. } => refusal.is_out_of_service(),
            Self::NoSession { .. } => true,
            _ => false,
        }
    }

    /// Whether it would be no use to ask for the same again soon.
    pub(in crate::redfish) fn is_final(&self) -> bool {
        match self {
            Self::Unreachable { .. }
            | Self::Nonsense { .. }
            | Self::NoSession { .. }
            | Self::TaskEndless { .. }
            | Self::TaskFailed { .. } => false,
            Self::Refused { refusal, .. } => refusal.is_final(),
            _ => true,
        }
    }
}

impl From<RedfishError> for InterfaceError {
    fn from(error: RedfishError) -> Self {
        match error {
            RedfishError::Credentials { is_asked: false, .. } => Self::not_asked(error),
            _ => Self::driver(error),
        }
    }
}
