//! `farrier completions`.

use clap::{Args, Command, ValueEnum};
use clap_complete::{Shell as Generator, generate};

/// A shell.
#[derive(Debug, Clone, Copy, ValueEnum)]
enum Shell {
    Bash,
    Zsh,
    Fish,
}

/// Options of `farrier completions`.
#[derive(Debug, Args)]
pub(crate) struct Completions {
    /// Shell. For bash, write the output to ~/.local/share/bash-completion/completions/farrier.
    shell: Shell,
}

impl Completions {
    pub(crate) fn print(&self, mut command: Command) -> anyhow::Result<()> {
        let shell = match self.shell {
            Shell::Bash => Generator::Bash,
            Shell::Zsh => Generator::Zsh,
            Shell::Fish => Generator::Fish,
        };
        let name = command.get_name().to_owned();
        generate(shell, &mut command, name, &mut std::io::stdout());
        Ok(())
    }
}
