//! The codes of what can go wrong with a task.

use super::Error;
use crate::agent::AgentError;
use crate::hardware_type::Unresolved;
use crate::interfaces::base::InterfaceError;
use crate::model::ErrorCode;
use farrier_protocol::error_codes;

error_codes! {
    /// Errors of requests, of hardware types and of drivers.
    TASK_ERRORS:
    INVALID_STATE = 201, "The provision state of the node does not allow the request.",
        "Wait for the current operation or abort it; the text lists the allowed states.";
    OTHER_INSTANCE = 202, "The node already belongs to an instance.", "Undeploy the node first.";
    INVALID_FIELD = 203, "A field of the request or of the node has an invalid value.",
        "Correct the field that the text names.";
    REFUSED_HEARTBEAT = 204, "A heartbeat does not come from the agent of the node.",
        "Power-cycle the server through the conductor, so that its agent gets a new token.";
    STEP_FAILED = 205, "A step of an operation failed.", "See the text and `farrier logs NODE`.";
    IMPOSSIBLE_HARDWARE = 206, "The drivers of the conductor do not fit together.",
        "Correct the hardware types of the conductor; this is an error of its author.";
    UNKNOWN_DRIVER = 207, "The `driver` of the node is not an enabled hardware type.",
        "Enable the hardware type with `--enabled-hardware-types`, or change `driver`.";
    UNKNOWN_INTERFACE = 208, "An interface of the node is not enabled, or not supported by its hardware type.",
        "Set one of the interfaces that the text lists.";
    NO_INTERFACE = 209, "The hardware type of the node has no interface of this kind.",
        "Use another hardware type.";
    INTERFACES_CONFLICT = 210, "The deploy interface of the node needs another boot interface.",
        "Change one of the two interfaces.";
    NO_CONFIG_DRIVE = 211, "The boot interface cannot present a config drive to a ramdisk instance.",
        "Leave the config drive out, or choose another boot interface.";
    INSTANCE_INFO = 212, "A value of `instance_info` is not valid.", "Correct the value that the text names.";
    DRIVER_INFO = 213, "A value of `driver_info` is missing or not valid.",
        "Correct the value; `farrier validate NODE` lists all of them.";
    INVALID_NODE = 214, "A field of the node is missing or not valid for one of its interfaces.",
        "Correct the field that the text names.";
    INTERFACE_IN_USE = 215, "The change is not possible, because something else uses the object.",
        "Do what the text says first.";
    UNSUPPORTED = 216, "The interface of the node does not support the request.",
        "Choose another interface of this kind.";
    DRIVER_FAILED = 217, "A driver could not control the server, for example its BMC.",
        "Check the BMC or the service that the text names.";
    DRIVER_PAUSES = 218, "A driver sends no requests to the BMC for a while, because it rejected the password.",
        "Correct the password; a changed password is tried at once.";
    HOST_FAILED = 219, "The conductor could not read or write its records.", "See the log of the conductor.";
}

error_codes! {
    /// Errors of the connection to an agent.
    CONNECTION_ERRORS:
    NOT_CONNECTED = 301, "The agent has not called since power on.", "Wait for its heartbeat; see `farrier explain NODE`.";
    BAD_CERTIFICATE = 302, "The agent sent a certificate that is not valid.",
        "Power-cycle the server; check its clock and the version of the agent.";
    AGENT_BUSY = 303, "The agent runs another command.", "Wait until that command has ended, then retry.";
    AGENT_REFUSED = 304, "The agent refused a request.", "See the text and `farrier logs NODE`.";
    AGENT_UNEXPECTED = 305, "The agent sent a response that the contract does not allow.",
        "Check that conductor and agent have compatible versions.";
    AGENT_UNREACHABLE = 306, "The conductor cannot connect to the agent.",
        "Check the network between conductor and server, and firewalls for the port of the agent.";
    AGENT_LACKS = 307, "The agent does not support a command.", "Use a newer ramdisk.";
    AGENT_TIMEOUT = 308, "A command of the agent did not end in time.",
        "See `farrier console NODE`; raise the timeout if the server is slow.";
    AGENT_FAILED = 309, "A command of the agent failed.", "See the text and `farrier logs NODE`.";
}

impl Error {
    /// The code of the error. A step that failed has the code of its cause in its text.
    pub fn code(&self) -> &'static ErrorCode {
        match self {
            Self::InvalidState { .. } => INVALID_STATE,
            Self::OtherInstance(_) => OTHER_INSTANCE,
            Self::Invalid { .. } => INVALID_FIELD,
            Self::Heartbeat(_) => REFUSED_HEARTBEAT,
            Self::StepFailed { .. } => STEP_FAILED,
            Self::Hardware(_) => IMPOSSIBLE_HARDWARE,
            Self::Unresolved(error) => of_unresolved(error),
            Self::Interface(error) => of_interface(error),
            Self::Agent(error) => of_agent(error),
            Self::Host(_) => HOST_FAILED,
        }
    }

    /// The text of the error with its code, as an operator sees it in `last_error`.
    pub fn coded(&self) -> String {
        self.code().after(&self.to_string())
    }
}

fn of_unresolved(error: &Unresolved) -> &'static ErrorCode {
    match error {
        Unresolved::HardwareType { .. } => UNKNOWN_DRIVER,
        Unresolved::Interface { .. } => UNKNOWN_INTERFACE,
        Unresolved::None { .. } => NO_INTERFACE,
        Unresolved::Combination { .. } => INTERFACES_CONFLICT,
        Unresolved::ConfigDrive(_) => NO_CONFIG_DRIVE,
        Unresolved::InstanceInfo(_) => INSTANCE_INFO,
    }
}

/// The code of what an interface could not do.
pub(crate) fn of_interface(error: &InterfaceError) -> &'static ErrorCode {
    match error {
        InterfaceError::DriverInfo { .. } => DRIVER_INFO,
        InterfaceError::Invalid { .. } => INVALID_NODE,
        InterfaceError::InUse { .. } => INTERFACE_IN_USE,
        InterfaceError::Unsupported { .. } => UNSUPPORTED,
        InterfaceError::Driver(_) => DRIVER_FAILED,
        InterfaceError::NotAsked(_) => DRIVER_PAUSES,
    }
}

fn of_agent(error: &AgentError) -> &'static ErrorCode {
    match error {
        AgentError::NotConnected => NOT_CONNECTED,
        AgentError::Certificate { .. } => BAD_CERTIFICATE,
        AgentError::Busy { .. } => AGENT_BUSY,
        AgentError::Refused { .. } => AGENT_REFUSED,
        AgentError::Unexpected { .. } => AGENT_UNEXPECTED,
        AgentError::Unreachable { .. } => AGENT_UNREACHABLE,
        AgentError::NotOffered { .. } => AGENT_LACKS,
        AgentError::Timeout { .. } => AGENT_TIMEOUT,
        AgentError::Failed { .. } => AGENT_FAILED,
    }
}
