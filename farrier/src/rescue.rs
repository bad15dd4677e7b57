//! The password of a rescue. It is never an argument, which every user of the host could read.

use anyhow::{Context, bail};
use clap::Args;
use nix::sys::termios::{LocalFlags, SetArg, Termios, tcgetattr, tcsetattr};
use std::io::{self, BufRead, IsTerminal, Read, StdinLock, Write};
use std::path::PathBuf;

/// Options of `farrier node rescue`.
#[derive(Debug, Args)]
pub(crate) struct RescuePassword {
    /// File with the password of the user `rescue`, on one line; - reads standard input [default: asked for on a
    /// terminal, else standard input].
    #[arg(long, value_name = "FILE")]
    password_file: Option<PathBuf>,
}

impl RescuePassword {
    /// The password, from where it is given.
    pub(crate) fn read(self) -> anyhow::Result<String> {
        let text = match self.password_file {
            Some(file) if file.as_os_str() != "-" => std::fs::read_to_string(&file)
                .with_context(|| format!("the password file {} cannot be read", file.display()))?,
            None if io::stdin().is_terminal() => ask()?,
            Some(_) | None => io::read_to_string(io::stdin().lock())?,
        };
        one_line(&text)
    }
}

fn one_line(text: &str) -> anyhow::Result<String> {
    let mut lines = text.lines();
    match (lines.next(), lines.next()) {
        (Some(password), None) if !password.is_empty() => Ok(password.to_owned()),
        (None | Some(_), None) => bail!("the password is empty"),
        _ => bail!("the password has more than one line"),
    }
}

/// Asks on the terminal, which does not show what is typed.
fn ask() -> anyhow::Result<String> {
    let mut input = io::stdin().lock();
    eprint!("Password of the user rescue: ");
    io::stderr().flush()?;
    let silence = Silence::begin(&input)?;
    let mut typed = String::new();
    let read = input.by_ref().take(4096).read_line(&mut typed);
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

    #[test]
    fn a_password_comes_from_a_file() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("password");
        let read = || RescuePassword { password_file: Some(file.clone()) }.read();
        assert!(read().unwrap_err().to_string().contains("cannot be read"));
        std::fs::write(&file, "oats\n").unwrap();
        assert_eq!(read().unwrap(), "oats");
    }
}
