//! Secrets that a command is given: in a file, on standard input, or on the terminal. They are never arguments, which every
//! user of the host can read.

use crate::failure::{INVALID_OPTION, WithCode};
use anyhow::{Context, bail};
use nix::sys::termios::{LocalFlags, SetArg, Termios, tcgetattr, tcsetattr};
use std::io::{self, BufRead, IsTerminal, Read, StdinLock, Write};
use std::path::Path;

/// Most bytes of a secret.
const MOST: u64 = 4096;

/// A secret of one line: that of a file, of standard input where the file is `-`, or else what is typed at the terminal,
/// or comes on standard input. It is asked for as `what`.
pub(crate) fn read(file: Option<&Path>, what: &str) -> anyhow::Result<String> {
    let text = match file {
        Some(file) if file.as_os_str() != "-" => std::fs::read_to_string(file)
            .with_context(|| format!("the password file {} cannot be read", file.display()))?,
        None if io::stdin().is_terminal() => ask(what)?,
        Some(_) | None => {
            let mut text = String::new();
            io::stdin().lock().take(MOST).read_to_string(&mut text)?;
            text
        }
    };
    one_line(&text).code(INVALID_OPTION)
}

fn one_line(text: &str) -> anyhow::Result<String> {
    let mut lines = text.lines();
    match (lines.next(), lines.next()) {
        (Some(password), None) if !password.is_empty() => Ok(password.to_owned()),
        (None | Some(_), None) => bail!("the password is empty"),
        _ => bail!("the password must be on one line"),
    }
}

/// Asks on the terminal, which does not show what is typed.
fn ask(what: &str) -> anyhow::Result<String> {
    let mut input = io::stdin().lock();
    eprint!("{what}: ");
    io::stderr().flush()?;
    let silence = Silence::begin(&input)?;
    let mut typed = String::new();
    let read = input.by_ref().take(MOST).read_line(&mut typed);
    silence.end(&input)?;
    eprintln!();
    read?;
    Ok(typed)
}

/// A terminal that shows nothing.
struct Silence(Termios);

impl Silence {
    fn begin(terminal: &StdinLock<'_>) -> nix::Result<Self> {
        let before = tcgetattr(terminal)?;
        let mut silent = before.clone();
        silent.local_flags.remove(LocalFlags::ECHO);
        tcsetattr(terminal, SetArg::TCSAFLUSH, &silent)?;
        Ok(Self(before))
    }

    fn end(self, terminal: &StdinLock<'_>) -> nix::Result<()> {
        tcsetattr(terminal, SetArg::TCSAFLUSH, &self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_password_is_one_line() {
        for (text, expected) in [
            ("oats and barley\n", Some("oats and barley")),
            ("oats", Some("oats")),
            (" o \r\n", Some(" o ")),
            ("", None),
            ("\n", None),
            ("oats\nbarley\n", None),
        ] {
            assert_eq!(one_line(text).ok().as_deref(), expected, "{text:?}");
        }
    }
}
