//! What may stand in kernel parameters, for media and conductors alike (section 6.3).

use serde::{Deserialize, Serialize};
use std::fmt;
use std::str::FromStr;

/// Longest kernel command line in bytes, without the zero byte at its end (`COMMAND_LINE_SIZE` of x86).
const LONGEST: usize = 2047;
/// Characters with a meaning of their own to GRUB, iPXE or isolinux.
const INTERPRETED: &str = "\"'\\$;|&<>{}#`";

/// Words for the kernel command line that every boot loader passes on as they are (S43).
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct KernelParameters(String);

/// Kernel parameters that cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum KernelParameterError {
    /// A character that ends the line, or that a boot loader interprets.
    #[error("kernel parameters cannot hold {0:?}, which boot loaders interpret; leave it out")]
    Character(char),
    /// A value with a blank would become several parameters.
    #[error("the value {0:?} of a kernel parameter cannot hold blanks; leave them out")]
    Blank(String),
    /// The line is too long.
    #[error("kernel parameters of {0} bytes exceed the kernel's line of {LONGEST}; shorten them")]
    Length(usize),
}

impl FromStr for KernelParameters {
    type Err = KernelParameterError;

    /// Reads parameters as an operator writes them, separated by blanks, with a line feed at most at the end.
    fn from_str(text: &str) -> Result<Self, KernelParameterError> {
        Self::checked(text.trim().split(' ').filter(|word| !word.is_empty()).collect::<Vec<_>>().join(" "))
    }
}

impl TryFrom<String> for KernelParameters {
    type Error = KernelParameterError;

    fn try_from(text: String) -> Result<Self, KernelParameterError> {
        text.parse()
    }
}

impl From<KernelParameters> for String {
    fn from(parameters: KernelParameters) -> Self {
        parameters.0
    }
}

impl KernelParameters {
    /// These parameters with `name=value` after them.
    ///
    /// # Errors
    ///
    /// [`KernelParameterError`] when the value would not stay one parameter, or the line grows too long.
    pub fn with(self, name: &str, value: &str) -> Result<Self, KernelParameterError> {
        if value.contains(' ') {
            return Err(KernelParameterError::Blank(value.to_owned()));
        }
        Self::checked(format!("{self} {name}={value}").trim_start().to_owned())
    }

    /// These parameters with `others` after them: where one is given twice, the kernel and the agent take the
    /// last.
    ///
    /// # Errors
    ///
    /// [`KernelParameterError::Length`].
    pub fn followed_by(self, others: &Self) -> Result<Self, KernelParameterError> {
        Self::checked(format!("{self} {others}").trim().to_owned())
    }

    fn checked(line: String) -> Result<Self, KernelParameterError> {
        let is_bad = |character: &char| {
            INTERPRETED.contains(*character) || !(*character == ' ' || character.is_ascii_graphic())
        };
        if let Some(character) = line.chars().find(is_bad) {
            return Err(KernelParameterError::Character(character));
        }
        if line.len() > LONGEST {
            return Err(KernelParameterError::Length(line.len()));
        }
        Ok(Self(line))
    }
}

impl fmt::Display for KernelParameters {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(text: &str) -> Result<String, KernelParameterError> {
        text.parse::<KernelParameters>().map(|parameters| parameters.to_string())
    }

    #[test]
    fn s43_only_what_boot_loaders_pass_on_is_accepted() {
        for (text, line) in [
            ("", ""),
            ("console=ttyS0  ipa-debug=1", "console=ttyS0 ipa-debug=1"),
            (
                " ipa-api-url=http://192.0.2.5:6385/v1?a=b,c  quiet\n",
                "ipa-api-url=http://192.0.2.5:6385/v1?a=b,c quiet",
            ),
            ("a=[fe80::1%eth0]", "a=[fe80::1%eth0]"),
        ] {
            assert_eq!(parse(text).as_deref(), Ok(line));
        }
        for character in INTERPRETED.chars().chain(['\n', '\r', '\t', '\0', '\u{1b}', 'é']) {
            assert_eq!(parse(&format!("a={character}b")), Err(KernelParameterError::Character(character)));
        }
        for text in ["a=${net0/mac}", "a;reboot", "a || shell", "a=`id`", "dyndbg=\"file drivers/net/* +p\""]
        {
            assert!(matches!(parse(text), Err(KernelParameterError::Character(_))), "{text}");
        }
    }

    #[test]
    fn values_stay_one_parameter() {
        let url = KernelParameters::default().with("ipa-api-url", "http://10.0.2.2:6385").unwrap();
        let line = url.followed_by(&"quiet".parse().unwrap()).unwrap();
        assert_eq!(line.to_string(), "ipa-api-url=http://10.0.2.2:6385 quiet");
        for bad in ["a b", "a\"b", "a\nb", "a$b"] {
            assert!(line.clone().with("x", bad).is_err(), "{bad:?}");
        }
    }

    #[test]
    fn a_line_is_no_longer_than_the_kernel_keeps() {
        assert_eq!(parse(&"x".repeat(2048)), Err(KernelParameterError::Length(2048)));
        let long: KernelParameters = "x".repeat(2046).parse().unwrap();
        assert_eq!(long.clone().with("a", "b"), Err(KernelParameterError::Length(2050)));
        assert!(long.followed_by(&"y".parse().unwrap()).is_err());
    }
}
