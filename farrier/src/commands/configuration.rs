//! `farrier config`.

use crate::configuration::ConfigurationError;
use crate::configuration::effective::{CheckError, Effective};
use crate::configuration::files::ConfigurationFiles;
use crate::configuration::{ironic, pages};
use crate::failure::{FILE_FAILED, INVALID_OPTION, WithCode};
use anyhow::Context;
use clap::{Command, Subcommand};
use std::fs;
use std::io::Write;
use std::path::PathBuf;

/// The commands for the configuration of `farrier serve`.
#[derive(Debug, Subcommand)]
pub(crate) enum ConfigurationCommand {
    /// Check the configuration files and the environment: each value, and the rules between options.
    Check {
        #[command(flatten)]
        files: ConfigurationFiles,
    },
    /// Show the options that a file or the environment sets, as a configuration file, each with its source.
    Show {
        #[command(flatten)]
        files: ConfigurationFiles,
        /// Show all options, also those with their defaults.
        #[arg(long)]
        effective: bool,
    },
    /// Print a configuration file in which each option is a comment with its help and its default.
    Default,
    /// Print the JSON schema of configuration files.
    Schema,
    /// Print the configuration file for the options of an ironic.conf that `farrier serve` has; the others follow as comments.
    ImportIronic {
        /// File of Ironic, for example /etc/ironic/ironic.conf.
        #[arg(value_name = "FILE")]
        file: PathBuf,
    },
}

impl ConfigurationCommand {
    pub(crate) fn run(&self, cli: &Command) -> anyhow::Result<()> {
        let text = match self {
            Self::Check { files } => {
                read(cli, files)?;
                "The configuration is valid.\n".to_owned()
            }
            Self::Show { files, effective } => read(cli, files)?.show(*effective),
            Self::Default => pages::default_file(cli),
            Self::ImportIronic { file } => {
                let text = fs::read_to_string(file);
                let text =
                    text.with_context(|| format!("{} cannot be read", file.display())).code(FILE_FAILED)?;
                let imported = ironic::import(cli, &text);
                imported.with_context(|| file.display().to_string()).code(INVALID_OPTION)?
            }
            Self::Schema => format!("{:#}\n", pages::schema(cli)),
        };
        let written = std::io::stdout().write_all(text.as_bytes());
        written.context("standard output cannot be written").code(FILE_FAILED)
    }
}

fn read(cli: &Command, files: &ConfigurationFiles) -> anyhow::Result<Effective> {
    let code = |error: &CheckError| match error {
        CheckError::Configuration(ConfigurationError::Unreadable { .. }) => FILE_FAILED,
        _ => INVALID_OPTION,
    };
    Effective::read(cli, files).or_else(|error| {
        let code = code(&error);
        Err(error).code(code)
    })
}
