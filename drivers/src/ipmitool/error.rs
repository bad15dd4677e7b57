//! What goes wrong with a BMC that speaks IPMI. Every text names the BMC, and none holds a secret.

use farrier_conductor::interfaces::InterfaceError;
use std::time::Duration;

/// A BMC could not be asked, or would not do what it was asked for.
#[derive(Debug, Clone, thiserror::Error)]
pub enum IpmiError {
    /// The program cannot be run.
    #[error(
        "{program} cannot be run: {reason}; install ipmitool, and see that there is room for small files"
    )]
    Program {
        /// The program.
        program: String,
        /// What the system says.
        reason: String,
    },
    /// It knows no such user, or the password is another one.
    #[error("BMC {bmc} refuses the user or the password ({reason}); change ipmi_username and ipmi_password (it is not \
             asked again with them for {} s, so that the BMC does not lock the user out)", .pause.as_secs())]
    Credentials {
        /// Its address.
        bmc: String,
        /// What ipmitool says.
        reason: String,
        /// How long it is left alone.
        pause: Duration,
        /// Whether the BMC was asked now; else it has refused the same before.
        is_asked: bool,
    },
    /// A command failed.
    #[error(
        "BMC {bmc} does not carry out {command:?}: {reason}; look at its address, its network and its log"
    )]
    Failed {
        /// Its address.
        bmc: String,
        /// The command.
        command: String,
        /// What ipmitool says.
        reason: String,
    },
    /// It says something else than it should.
    #[error("BMC {bmc} answers {command:?} with {answer:?}; look at its firmware")]
    Nonsense {
        /// Its address.
        bmc: String,
        /// The command.
        command: String,
        /// The answer.
        answer: String,
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
}

impl IpmiError {
    /// Whether it is no use to ask for the same again soon.
    pub(super) fn is_final(&self) -> bool {
        matches!(self, Self::Program { .. } | Self::Credentials { .. })
    }
}

impl From<IpmiError> for InterfaceError {
    fn from(error: IpmiError) -> Self {
        match error {
            IpmiError::Credentials { is_asked: false, .. } => Self::not_asked(error),
            _ => Self::driver(error),
        }
    }
}
