//! Error shapes of the REST interface (sections 1.4, 1.5 and 1.9).

use crate::step::Phase;
use serde::{Deserialize, Serialize};

/// Body of every reply with HTTP status 400 or above (section 1.4).
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Fault {
    /// `Client` below status 500, `Server` from 500 on.
    pub faultcode: String,
    /// One line of text; conductors search it for fixed phrases, so it is always a string.
    pub faultstring: String,
}

impl Fault {
    /// The fault for an HTTP status.
    pub fn new(status: u16, faultstring: impl Into<String>) -> Self {
        let faultcode = if status >= 500 { "Server" } else { "Client" };
        Self { faultcode: faultcode.to_owned(), faultstring: shortened(faultstring.into()) }
    }
}

/// The `command_error` of a failed command (section 1.4).
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct CommandError {
    /// Name of the error class, one of [`ErrorKind`]'s.
    #[serde(rename = "type")]
    pub kind: String,
    /// HTTP-like code of the class.
    pub code: u16,
    /// Fixed text of the class, without a final period.
    pub message: String,
    /// What happened, to which device or URL, and what to do next.
    pub details: String,
}

impl CommandError {
    /// An error of a known class. Details that are too long, because of a name that was given or
    /// the output of a program, lose their middle.
    pub fn new(kind: ErrorKind, details: impl Into<String>) -> Self {
        let details = shortened(details.into());
        // This class has no text of its own (section 1.9).
        let message = if kind == ErrorKind::ProtectedDeviceError { &details } else { kind.message() };
        Self { kind: kind.name().to_owned(), code: kind.code(), message: message.to_owned(), details }
    }

    /// The text an operator reads: the details, or the class text where there are none.
    pub fn text(&self) -> &str {
        if self.details.is_empty() { &self.message } else { &self.details }
    }
}

/// Most bytes of an error's text: it is kept, logged, sent to clients, and stored by the conductor.
pub const MOST_TEXT: usize = 4096;

/// A text without its middle if it is too long. Errors begin with what happened, and end with what to do.
fn shortened(text: String) -> String {
    if text.len() <= MOST_TEXT {
        return text;
    }
    let (start, end) =
        (text.floor_char_boundary(MOST_TEXT / 2), text.ceil_char_boundary(text.len() - MOST_TEXT / 4));
    format!("{} [{} bytes left out] {}", &text[..start], end - start, &text[end..])
}

macro_rules! error_kinds {
    ($($variant:ident, $code:literal, $message:literal;)*) => {
        /// Error classes of the contract (section 1.9).
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        pub enum ErrorKind {
            $(#[doc = $message] $variant,)*
        }

        impl ErrorKind {
            /// Every class, in the order of the contract's table.
            pub const ALL: &'static [Self] = &[$(Self::$variant),*];

            /// The class name on the wire.
            pub fn name(self) -> &'static str {
                match self { $(Self::$variant => stringify!($variant),)* }
            }

            /// The code on the wire.
            pub fn code(self) -> u16 {
                match self { $(Self::$variant => $code,)* }
            }

            /// The class text on the wire.
            pub fn message(self) -> &'static str {
                match self { $(Self::$variant => $message,)* }
            }
        }
    };
}

error_kinds! {
    InvalidContentError, 400, "Invalid request body";
    InvalidCommandError, 400, "Invalid command";
    InvalidCommandParamsError, 400, "Invalid command parameters";
    NotFound, 404, "Not found";
    RequestedObjectNotFoundError, 404, "Not found";
    CommandExecutionError, 500, "Command execution failed";
    AgentIsBusy, 409, "Agent is busy";
    ContainerNotPermittedError, 500, "Container image not permitted";
    ImageDownloadError, 500, "Error downloading image";
    ImageChecksumError, 500, "Error verifying image checksum";
    ImageWriteError, 500, "Error writing image to device";
    InvalidImage, 500, "The provided image is not valid for use";
    TypeError, 500, "Invalid parameter names";
    SystemRebootError, 500, "Error rebooting system";
    ClockSyncError, 500, "Error syncing system clock";
    BlockDeviceEraseError, 500, "Error erasing block device";
    BlockDeviceError, 500, "Block device caused unknown error";
    ProtectedDeviceError, 500, "Device is protected";
    FileSystemNotSupported, 500, "Failed to create a file system";
    HardwareManagerMethodNotFound, 500, "No HardwareManager found to handle method";
    HardwareManagerConfigurationError, 500, "Hardware manager configuration error";
    VersionMismatch, 409, "Hardware managers version mismatch, reload agent with correct version";
    CleaningError, 500, "Clean step failed";
    DeploymentError, 500, "Deploy step failed";
    ServicingError, 500, "Service step failed";
    SoftwareRAIDError, 500, "Software RAID caused unknown error";
    ISCSIError, 500, "Error starting iSCSI target";
    DeviceNotFound, 404, "Error finding the disk or partition device to deploy the image onto";
}

impl ErrorKind {
    /// The class of a step that failed (section 4.1).
    pub fn of_phase(phase: Phase) -> Self {
        match phase {
            Phase::Clean => Self::CleaningError,
            Phase::Deploy => Self::DeploymentError,
            Phase::Service => Self::ServicingError,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_never_end_with_a_period() {
        for kind in ErrorKind::ALL {
            assert!(!kind.message().ends_with('.'), "{}", kind.name());
        }
    }

    #[test]
    fn x45_texts_that_are_too_long_lose_their_middle() {
        for name in ["x", "ü", "€"] {
            let given = format!("step {} is unknown: list the steps", name.repeat(1 << 20));
            let error = CommandError::new(ErrorKind::CleaningError, given.clone());
            for text in [error.details, Fault::new(400, given).faultstring] {
                assert!(text.len() <= MOST_TEXT, "{}", text.len());
                assert!(text.starts_with("step ") && text.ends_with(" is unknown: list the steps"));
                assert!(text.contains(" bytes left out] "));
            }
        }
        let longest = "x".repeat(MOST_TEXT);
        assert_eq!(CommandError::new(ErrorKind::CleaningError, longest.clone()).details, longest);
    }

    #[test]
    fn the_code_of_a_fault_follows_the_status() {
        for (status, code) in
            [(400, "Client"), (401, "Client"), (409, "Client"), (500, "Server"), (503, "Server")]
        {
            assert_eq!(Fault::new(status, "x").faultcode, code, "{status}");
        }
    }

    #[test]
    fn x37_a_protected_device_is_named_in_message_and_details() {
        let error = CommandError::new(ErrorKind::ProtectedDeviceError, "/dev/sda carries VMFS");
        assert_eq!((error.kind.as_str(), error.code), ("ProtectedDeviceError", 500));
        assert_eq!(error.message, error.details);
    }

    #[test]
    fn command_error_has_the_four_keys_of_the_contract() {
        let error = CommandError::new(ErrorKind::ImageWriteError, "/dev/vda: no space");
        assert_eq!(
            serde_json::to_value(&error).unwrap(),
            serde_json::json!({
                "type": "ImageWriteError",
                "code": 500,
                "message": "Error writing image to device",
                "details": "/dev/vda: no space",
            })
        );
    }
}
