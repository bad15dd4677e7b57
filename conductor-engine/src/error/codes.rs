//! The codes of requests to the conductor that fail, and of operations that end without an error of a task.

use super::Error;
use crate::records::Forbidden;
use crate::store::StoreError;
#[cfg(any(feature = "sqlite", feature = "postgres"))]
use crate::store::TransferError;
use farrier_conductor::model::ErrorCode;
use farrier_protocol::error_codes;
use std::fmt;

error_codes! {
    /// Errors of requests about records.
    RECORD_ERRORS:
    NODE_NOT_FOUND = 101, "No node has this name or UUID.", "See `farrier node list`.";
    PORT_NOT_FOUND = 102, "No port has this UUID or address.", "See `baremetal port list`.";
    ALLOCATION_NOT_FOUND = 103, "No allocation has this name or UUID.", "See `baremetal allocation list`.";
    RESOURCE_NOT_FOUND = 104, "No resource of this kind has this name or UUID.", "List the resources of this kind.";
    LOOKUP_FAILED = 105, "No node that waits for an agent has one of these MAC addresses.",
        "Enroll the server with its MAC addresses, and start an operation; or power off the server.";
    IN_MAINTENANCE = 106, "The node is in maintenance.",
        "End the maintenance with `farrier node maintenance NODE off`.";
    PROTECTED = 107, "The node is protected against undeploy and rebuild.", "Clear `protected` of the node.";
    DISK_EXPORTED = 108, "The disk of the node is exported over iSCSI.", "Run `farrier disk release NODE`.";
    RETIRED = 109, "The node is retired and gets no further instance.", "Clear `retired` of the node.";
    POWERED_ON = 110, "The change needs a server that is powered off.", "Power the server off first.";
    IN_USE = 111, "Something else uses the object that should be changed.", "Do what the text says first.";
    LOGS_UNREADABLE = 112, "The log files of ramdisks could not be read.",
        "Check the log folder in the state directory.";
    NAME_TAKEN = 113, "Another process that runs has the name of the conductor.",
        "Stop that process, or start this one with another `--conductor-name`.";
    UNSERVED = 114, "No conductor has the conductor group, hardware type and interfaces of the node.",
        "Start a conductor that has them, or change the node; see `farrier explain NODE`.";
    LED_ELSEWHERE = 115, "Another conductor leads the node, and only that one can do this.",
        "Send the request to the conductor that the text names.";
    STOPPING = 116, "The conductor stops and takes no orders.", "Try again when it runs, or ask another conductor.";
    NO_MATCHING_NODE = 117, "No available node has the resource class and the traits of the allocation.",
        "Free a node, or change the request.";
}

error_codes! {
    /// Operations that ended without an answer of driver or agent.
    ENDED_OPERATIONS:
    ENDED_BY_MAINTENANCE = 501, "The operation ended, because an operator set maintenance.",
        "End the maintenance, and start the operation again.";
    NO_AGENT_CALLED = 502, "No agent called before the timeout.",
        "See `farrier explain NODE`: it shows how far the server booted.";
    AGENT_SILENT = 503, "The agent called, and then sent no heartbeat before the timeout.",
        "See `farrier explain NODE` and `farrier console NODE`.";
    MACHINE_OFF = 504, "The server powered off while the conductor waited for its agent.",
        "See the event log of the BMC and `farrier console NODE`.";
    DRIVER_LOST = 505, "The conductor no longer has the driver of the node.",
        "Enable the hardware type with `--enabled-hardware-types`.";
    CONDUCTOR_STOPPED = 506, "The conductor stopped several times during the order.",
        "See the log of the conductor, and report the crash.";
    UNKNOWN_OPERATION = 507, "The conductor cannot resume an operation that it does not support.",
        "Start a conductor of the version that began the operation.";
    WORKER_FAILED = 508, "The conductor itself failed during the operation.",
        "See the log of the conductor, and report the error.";
    CLEANUP_FAILED = 509, "The server could not be reset after a failed operation.",
        "Check power and network of the server before the next operation.";
    ABORTED = 510, "An operator aborted the operation.", "Start the operation again when it is needed.";
}

error_codes! {
    /// Errors of the database.
    STORE_ERRORS:
    TAKEN = 601, "Another record already has this name, UUID or MAC address.",
        "Choose another value, or delete the other record.";
    GONE = 602, "The record was deleted during the request.", "List the records.";
    LOCKED = 603, "The node is locked: a conductor works on it.", "Retry when the work has ended.";
    TAKEN_OVER = 604, "Another conductor took over the node, so this one wrote nothing.",
        "Check load and clocks of the conductors if this happens often.";
    STORE_FULL = 605, "The disk of the database is full.", "Free space; the conductor continues by itself.";
    STORE_FAILED = 606, "The database could not be read or written.", "Check the file, its permissions and its disk, or the PostgreSQL server.";
    STORE_BUSY = 607, "Another process has had the database locked for too long.",
        "Try again later, and see whether a conductor on the same database hangs.";
    NUL_CHARACTER = 608, "A text has the character NUL, which the database does not keep.",
        "Remove the character from the text.";
    NOT_EMPTY = 609, "An import needs a database without records and without conductors.",
        "Stop the conductors, and import into a new database.";
    EXPORT_UNUSABLE = 610, "The export is damaged, incomplete, or of a later version of farrier.",
        "Export the database again, or import with the version that exported it.";
    STORE_UNREACHABLE = 611, "The database cannot be reached.",
        "Start the database, or mend the network; the conductor continues by itself.";
}

impl Error {
    /// The code of the error.
    pub fn code(&self) -> &'static ErrorCode {
        match self {
            Self::NodeNotFound(_) => NODE_NOT_FOUND,
            Self::PortNotFound(_) => PORT_NOT_FOUND,
            Self::AllocationNotFound(_) => ALLOCATION_NOT_FOUND,
            Self::ResourceNotFound { .. } => RESOURCE_NOT_FOUND,
            Self::LookupFailed => LOOKUP_FAILED,
            Self::Forbidden(Forbidden::Maintenance { .. }) => IN_MAINTENANCE,
            Self::Forbidden(Forbidden::Protected { .. }) => PROTECTED,
            Self::Forbidden(Forbidden::Exported { .. }) => DISK_EXPORTED,
            Self::Forbidden(Forbidden::Retired { .. }) => RETIRED,
            Self::PoweredOn { .. } => POWERED_ON,
            Self::InUse { .. } => IN_USE,
            Self::Logs(_) => LOGS_UNREADABLE,
            Self::NameTaken(_) => NAME_TAKEN,
            Self::Unserved { .. } => UNSERVED,
            Self::LedElsewhere { .. } => LED_ELSEWHERE,
            Self::Stopping(_) => STOPPING,
            Self::Store(error) => of_store(error),
            Self::Task(error) => error.code(),
        }
    }
}

impl StoreError {
    /// The code of the error.
    pub fn code(&self) -> &'static ErrorCode {
        of_store(self)
    }
}

#[cfg(any(feature = "sqlite", feature = "postgres"))]
impl TransferError {
    /// The code of the error.
    pub fn code(&self) -> &'static ErrorCode {
        match self {
            Self::Store(error) => error.code(),
            Self::Table { .. } | Self::File(_) => STORE_FAILED,
            Self::NotEmpty { .. } | Self::InUse { .. } => NOT_EMPTY,
            Self::Damaged { .. } | Self::LaterLayout { .. } => EXPORT_UNUSABLE,
        }
    }
}

fn of_store(error: &StoreError) -> &'static ErrorCode {
    match error {
        StoreError::Taken { .. } => TAKEN,
        StoreError::Gone(_) => GONE,
        StoreError::Held { .. } => LOCKED,
        StoreError::Overtaken(_) => TAKEN_OVER,
        StoreError::Full { .. } => STORE_FULL,
        StoreError::Busy { .. } => STORE_BUSY,
        StoreError::NulCharacter => NUL_CHARACTER,
        StoreError::Unreachable { .. } => STORE_UNREACHABLE,
        StoreError::Failed { .. } => STORE_FAILED,
    }
}

/// Why an operation or an order failed, as `last_error` has it: a text and its code.
#[derive(Debug, Clone)]
pub(crate) struct Reason {
    text: String,
    code: &'static ErrorCode,
}

impl Reason {
    pub(crate) fn new(code: &'static ErrorCode, text: impl Into<String>) -> Self {
        Self { text: text.into(), code }
    }

    /// The same with more at the end of the text.
    pub(crate) fn with(mut self, more: &str) -> Self {
        self.text += more;
        self
    }
}

impl From<&Error> for Reason {
    fn from(error: &Error) -> Self {
        Self::new(error.code(), error.to_string())
    }
}

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.code.after(&self.text))
    }
}
