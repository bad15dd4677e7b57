//! The codes of errors of the command line, and the line that `farrier` prints about an error.

use farrier_conductor::model::{ErrorCode, split_code};
use farrier_engine::store::{StoreError, TransferError};
use farrier_protocol::error_codes;
use std::error::Error;
use std::fmt;
use std::io;

error_codes! {
    /// Errors at the start of a conductor.
    START_ERRORS:
    LISTEN_FAILED = 801, "The conductor cannot listen on an address.",
        "Stop the program that uses the port, or choose another address.";
    CERTIFICATE_UNUSABLE = 802, "A TLS certificate or its key cannot be used.",
        "Correct or replace the file that the text names.";
    OPERATORS_FILE = 803, "The operators file cannot be read or written.",
        "Correct the file or the line that the text names.";
    DNSMASQ_FAILED = 804, "The conductor cannot start dnsmasq.",
        "Install it, stop the program that uses its ports, or correct the options `--dhcp-…`.";
}

error_codes! {
    /// Errors of commands.
    COMMAND_ERRORS:
    INVALID_OPTION = 906, "An option, an argument or an environment variable is not valid.",
        "Correct the value that the text names; see `farrier COMMAND --help`.";
    FILE_FAILED = 907, "A file, a folder or the terminal cannot be read or written.",
        "Check the path that the text names, its permissions and its disk.";
    STILL_RUNNING = 908, "The operation did not end in time, and continues.", "See `farrier explain NODE`.";
    UNREADABLE_RESPONSE = 909, "`farrier` cannot read the response of the conductor.",
        "Check that the URL is that of a conductor, and that both have the same version.";
    NO_NODE_FREE = 910, "No matching node became free in time.", "Retry, or see `farrier watch`.";
    NOT_CONTROLLABLE = 911, "An interface for power, management or boot is not valid for the node.",
        "Correct the field that the reason names.";
    NOT_PROVEN = 912, "The erasure of the disks is not proven.", "Clean the node again.";
    NOT_AVAILABLE = 913, "The server or its record does not have the requested object.",
        "List the objects, or choose another action.";
    LEFT_OPERATION = 914, "The node left the deployment before it was active.", "See `farrier history NODE`.";
    FAILED = 999, "The command failed for the reason in the text.", "See the text, and the log of the conductor.";
}

/// An error with its code.
#[derive(Debug)]
struct CodedError {
    code: &'static ErrorCode,
    error: anyhow::Error,
}

impl fmt::Display for CodedError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.error)
    }
}

impl Error for CodedError {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        self.error.source()
    }
}

/// An error with this code and this text.
pub(crate) fn coded(code: &'static ErrorCode, text: impl fmt::Display) -> anyhow::Error {
    CodedError { code, error: anyhow::anyhow!("{text}") }.into()
}

/// Gives errors codes.
pub(crate) trait WithCode<T> {
    /// The same result. Its error has this code, unless a more precise one was given before.
    fn code(self, code: &'static ErrorCode) -> anyhow::Result<T>;
}

impl<T, E: Into<anyhow::Error>> WithCode<T> for Result<T, E> {
    fn code(self, code: &'static ErrorCode) -> anyhow::Result<T> {
        self.map_err(|error| {
            let error = error.into();
            match given(&error) {
                Some(_) => error,
                None => CodedError { code, error }.into(),
            }
        })
    }
}

/// The code that was given to an error, or to its cause.
fn given(error: &anyhow::Error) -> Option<&'static ErrorCode> {
    error.chain().find_map(|cause| {
        let own = cause.downcast_ref::<CodedError>().map(|coded| coded.code);
        let of_engine = || cause.downcast_ref::<farrier_engine::Error>().map(farrier_engine::Error::code);
        let of_library =
            || cause.downcast_ref::<farrier_conductor::Error>().map(farrier_conductor::Error::code);
        let of_store = || cause.downcast_ref::<StoreError>().map(StoreError::code);
        let of_transfer = || cause.downcast_ref::<TransferError>().map(TransferError::code);
        own.or_else(of_engine).or_else(of_library).or_else(of_store).or_else(of_transfer)
    })
}

/// The line about an error: the error with its causes, and its code at the end.
pub(crate) fn line(error: &anyhow::Error) -> String {
    let mut text = String::new();
    for cause in error.chain().map(ToString::to_string) {
        match text.is_empty() {
            true => text = cause,
            // Some errors end with their cause.
            false if text.ends_with(&cause) => {}
            false => text = format!("{text}: {cause}"),
        }
    }
    let text = text.replace('\n', " ");
    if split_code(&text).1.is_some() {
        return text;
    }
    let is_of_file = error.chain().any(|cause| cause.is::<io::Error>() || cause.is::<nix::Error>());
    let code = given(error).unwrap_or(if is_of_file { FILE_FAILED } else { FAILED });
    code.after(&text)
}

#[cfg(test)]
mod tests {
    use super::*;
    use anyhow::{Context, anyhow};

    #[test]
    fn each_error_has_the_most_precise_code_at_the_end_of_its_line() {
        let io = || io::Error::from(io::ErrorKind::NotFound);
        let unknown = || farrier_engine::Error::NodeNotFound("horse".to_owned());
        for (error, expected) in [
            (anyhow!("no\nroom [FAR-0605]"), "no room [FAR-0605]"),
            (anyhow!("strange"), "strange [FAR-0999]"),
            (anyhow!(io()).context("cannot read a"), "cannot read a: entity not found [FAR-0907]"),
            (
                anyhow!(io()).context("no port").context("start"),
                "start: no port: entity not found [FAR-0907]",
            ),
            (anyhow!(io()).context("cannot read a: entity not found"), "read a: entity not found [FAR-0907]"),
            (coded(NO_NODE_FREE, "none"), "none [FAR-0910]"),
            (coded(NO_NODE_FREE, "none").context("deploy"), "deploy: none [FAR-0910]"),
            (anyhow!(StoreError::Gone(uuid::Uuid::nil())).context("start"), " [FAR-0602]"),
            (anyhow!(unknown()), " [FAR-0101]"),
        ] {
            let line = line(&error);
            assert!(line.ends_with(expected), "{line}");
        }
    }

    #[test]
    fn a_code_replaces_that_of_a_file_and_no_other_one() {
        let of_file = || Err::<(), _>(io::Error::from(io::ErrorKind::AddrInUse)).context("--listen");
        let line_of = |result: anyhow::Result<()>| line(&result.unwrap_err());
        assert_eq!(line_of(of_file().code(LISTEN_FAILED)), "--listen: address in use [FAR-0801]");
        assert_eq!(
            line_of(of_file().code(LISTEN_FAILED).code(FAILED)),
            "--listen: address in use [FAR-0801]"
        );
    }
}
