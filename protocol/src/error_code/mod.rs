//! Codes of errors, by which operators find an error in the book.
//!
//! A code never changes its meaning, and is never used again. It is in brackets at the end of a text, and alone in a
//! header of HTTP; no text of the contract depends on it.

pub mod agent;
pub mod image_build;

use std::fmt;

/// The code of a kind of error, with its row in the book.
#[derive(Debug, PartialEq, Eq)]
pub struct ErrorCode {
    /// The number, from 1 to 9999.
    pub number: u16,
    /// The cause, as a sentence.
    pub meaning: &'static str,
    /// What an operator does about it, as a sentence.
    pub action: &'static str,
}

/// The header of a refused HTTP request with the code of the error. The body stays as Ironic's.
pub const HEADER: &str = "farrier-error-code";

/// The begin of each code.
const PREFIX: &str = "FAR-";

impl fmt::Display for ErrorCode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{PREFIX}{:04}", self.number)
    }
}

impl ErrorCode {
    /// The text with this code at its end. A text that has a code keeps it: the cause is more precise than what it
    /// caused.
    ///
    /// ```
    /// use farrier_protocol::error_code::ErrorCode;
    ///
    /// const CODE: ErrorCode = ErrorCode { number: 12, meaning: "The disk is full.", action: "Make room." };
    /// assert_eq!(CODE.after("disk full"), "disk full [FAR-0012]");
    /// assert_eq!(CODE.after("step failed: no link [FAR-0007]"), "step failed: no link [FAR-0007]");
    /// ```
    pub fn after(&self, text: &str) -> String {
        match split_code(text) {
            (_, Some(_)) => text.to_owned(),
            (text, None) => format!("{text} [{self}]"),
        }
    }
}

/// A text and the code at its end.
pub fn split_code(text: &str) -> (&str, Option<&str>) {
    let code = text.strip_suffix(']').and_then(|text| text.rsplit_once(" ["));
    match code {
        Some((text, code)) if is_code(code) => (text, Some(code)),
        _ => (text, None),
    }
}

fn is_code(text: &str) -> bool {
    text.strip_prefix(PREFIX)
        .is_some_and(|number| number.len() == 4 && number.bytes().all(|digit| digit.is_ascii_digit()))
}

/// Declares codes, and a table of them for the book.
#[macro_export]
#[doc(hidden)]
macro_rules! error_codes {
    ($(#[$about:meta])* $table:ident: $($name:ident = $number:literal, $meaning:literal, $action:literal;)*) => {
        $(
            #[doc = $meaning]
            pub const $name: &$crate::error_code::ErrorCode =
                &$crate::error_code::ErrorCode { number: $number, meaning: $meaning, action: $action };
        )*
        $(#[$about])*
        pub const $table: &[&$crate::error_code::ErrorCode] = &[$($name),*];
    };
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_code_at_the_end_of_a_text_is_one() {
        for (text, expected) in [
            ("disk full [FAR-0012]", ("disk full", Some("FAR-0012"))),
            ("disk full [FAR-12]", ("disk full [FAR-12]", None)),
            ("disk [FAR-0012] full", ("disk [FAR-0012] full", None)),
            ("disk full [sda]", ("disk full [sda]", None)),
            ("[FAR-0012]", ("[FAR-0012]", None)),
            ("", ("", None)),
        ] {
            assert_eq!(split_code(text), expected, "{text}");
        }
    }
}
