//! Kernel parameters for the ramdisk (conductor contract 6.3).

use std::fmt;

/// Characters that a boot loader on the way (iPXE, GRUB) would interpret.
const INTERPRETED: &[char] = &['$', '`', ';', '|', '&', '<', '>', '\\', '{', '}', '\'', '#'];

/// Kernel parameters that are safe to hand to any boot loader (lesson S43).
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct KernelLine(Vec<String>);

/// A text cannot be used as kernel parameters.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum KernelLineError {
    /// A character that ends the line or that a boot loader interprets.
    #[error("character {0:?} is not allowed in kernel parameters; remove it")]
    Character(char),
    /// A quote that is never closed.
    #[error("the double quotes in {0:?} are not balanced; close them")]
    Quotes(String),
    /// A value with a blank would become several parameters.
    #[error("the value {0:?} of a kernel parameter must not hold blanks or quotes")]
    Blank(String),
}

impl KernelLine {
    /// Reads parameters as an operator writes them, separated by blanks.
    ///
    /// # Errors
    ///
    /// [`KernelLineError`] for control characters, characters that a boot loader interprets and
    /// open quotes.
    pub fn parse(text: &str) -> Result<Self, KernelLineError> {
        let text = text.trim_matches(' ');
        check_characters(text)?;
        if text.matches('"').count() % 2 == 1 {
            return Err(KernelLineError::Quotes(text.to_owned()));
        }
        Ok(if text.is_empty() { Self::default() } else { Self(vec![text.to_owned()]) })
    }

    /// Adds `name=value`.
    ///
    /// # Errors
    ///
    /// [`KernelLineError`] when the value would not stay one parameter.
    pub fn push(&mut self, name: &str, value: &str) -> Result<(), KernelLineError> {
        check_characters(value)?;
        if value.contains([' ', '"']) {
            return Err(KernelLineError::Blank(value.to_owned()));
        }
        self.0.push(format!("{name}={value}"));
        Ok(())
    }

    /// Adds the parameters of `other` after these.
    pub fn extend(&mut self, other: Self) {
        self.0.extend(other.0);
    }
}

impl fmt::Display for KernelLine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0.join(" "))
    }
}

fn check_characters(text: &str) -> Result<(), KernelLineError> {
    let bad = |c: &char| !(' '..='~').contains(c) || INTERPRETED.contains(c);
    text.chars().find(bad).map_or(Ok(()), |c| Err(KernelLineError::Character(c)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn s43_only_plain_parameters_pass() {
        for (text, expected) in [
            ("console=ttyS0  ipa-debug=1", Ok("console=ttyS0  ipa-debug=1")),
            ("  ", Ok("")),
            (r#"dyndbg="file drivers/net/* +p""#, Ok(r#"dyndbg="file drivers/net/* +p""#)),
            ("a=1\nb=2", Err(KernelLineError::Character('\n'))),
            ("a=1\rb", Err(KernelLineError::Character('\r'))),
            ("a\0", Err(KernelLineError::Character('\0'))),
            ("a\tb", Err(KernelLineError::Character('\t'))),
            ("a=\u{1b}[0m", Err(KernelLineError::Character('\u{1b}'))),
            ("a=${net0/mac}", Err(KernelLineError::Character('$'))),
            ("a;reboot", Err(KernelLineError::Character(';'))),
            ("a || shell", Err(KernelLineError::Character('|'))),
            ("a=`id`", Err(KernelLineError::Character('`'))),
            ("a=ü", Err(KernelLineError::Character('ü'))),
            ("a=\"b", Err(KernelLineError::Quotes("a=\"b".into()))),
        ] {
            let line = KernelLine::parse(text).map(|line| line.to_string());
            assert_eq!(line, expected.map(str::to_owned), "{text:?}");
        }
    }

    #[test]
    fn values_stay_one_parameter() {
        let mut line = KernelLine::default();
        line.push("ipa-api-url", "http://10.0.2.2:6385").unwrap();
        line.extend(KernelLine::parse("quiet").unwrap());
        assert_eq!(line.to_string(), "ipa-api-url=http://10.0.2.2:6385 quiet");
        for bad in ["a b", "a\"b", "a\nb", "a$b"] {
            assert!(line.push("x", bad).is_err(), "{bad:?}");
        }
    }
}
