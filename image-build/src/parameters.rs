//! Default kernel parameters.

use std::fmt;
use std::str::FromStr;

/// Longest kernel command line, without the zero byte at its end (`COMMAND_LINE_SIZE`).
const LONGEST: usize = 2047;
/// Characters with a meaning of their own to GRUB, iPXE or isolinux (S43).
const SPECIAL: &str = "\"'\\$;|&<>{}#`";

/// Words for the kernel command line that every boot loader passes on as they are.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Parameters(String);

/// Kernel parameters that cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ParameterError {
    /// A character that a boot loader would interpret.
    #[error("kernel parameters cannot hold {0:?}, which boot loaders interpret; leave it out")]
    Character(char),
    /// The line is too long.
    #[error("kernel parameters of {0} bytes exceed the kernel's line of {LONGEST}; shorten them")]
    Length(usize),
}

impl FromStr for Parameters {
    type Err = ParameterError;

    fn from_str(text: &str) -> Result<Self, ParameterError> {
        let line = text.split_ascii_whitespace().collect::<Vec<_>>().join(" ");
        let is_bad = |character: char| {
            SPECIAL.contains(character) || !(character == ' ' || character.is_ascii_graphic())
        };
        if let Some(character) = line.chars().find(|character| is_bad(*character)) {
            return Err(ParameterError::Character(character));
        }
        if line.len() > LONGEST {
            return Err(ParameterError::Length(line.len()));
        }
        Ok(Self(line))
    }
}

impl fmt::Display for Parameters {
    fn fmt(&self, formatter: &mut fmt::Formatter) -> fmt::Result {
        formatter.write_str(&self.0)
    }
}

impl Parameters {
    /// The consoles a server may have, then these parameters. The last console is the main one.
    pub fn with_consoles(&self, architecture: &str) -> String {
        let serial = if architecture == "x86_64" { "ttyS0,115200" } else { "ttyAMA0,115200" };
        format!("console=tty0 console={serial} {self}").trim_end().to_owned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn f63_no_medium_turns_mode_setting_off() {
        for (architecture, line) in [
            ("x86_64", "console=tty0 console=ttyS0,115200"),
            ("aarch64", "console=tty0 console=ttyAMA0,115200"),
        ] {
            assert_eq!(Parameters::default().with_consoles(architecture), line);
        }
    }

    #[test]
    fn s43_only_what_boot_loaders_pass_on_is_accepted() {
        let parse = str::parse::<Parameters>;
        for (text, line) in [
            ("", ""),
            (
                " ipa-api-url=http://192.0.2.5:6385/v1?a=b,c  quiet\n",
                "ipa-api-url=http://192.0.2.5:6385/v1?a=b,c quiet",
            ),
            ("a=[fe80::1%eth0]", "a=[fe80::1%eth0]"),
        ] {
            assert_eq!(parse(text).unwrap().to_string(), line);
        }
        for character in SPECIAL.chars().chain(['\u{7}', 'é']) {
            assert_eq!(parse(&format!("a={character}b")), Err(ParameterError::Character(character)));
        }
        assert_eq!(parse(&"x".repeat(2048)), Err(ParameterError::Length(2048)));
    }
}
