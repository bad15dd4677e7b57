//! `farrier`: a small reference conductor and its operator's commands, built only on the public interfaces of
//! `farrier-conductor`, `farrier-node-api` and `farrier-drivers`.

mod access;
mod auth;
mod client;
mod commands;
mod configuration;
mod failure;
mod network;
mod provisioning;
mod reference;
mod serve;
mod state;
mod view;

use clap::FromArgMatches;
use clap::error::ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand;
use commands::wait::GaveUp;
use commands::{Cli, command_line, run};
use failure::INVALID_OPTION;
use std::io::{self, IsTerminal};
use std::process::ExitCode;

/// The exit status of a usage error.
const USAGE: u8 = 2;

fn main() -> ExitCode {
    let arguments = match configuration::arguments(&command_line(), std::env::args_os().collect()) {
        Ok(arguments) => arguments,
        Err(error) => {
            eprintln!("{}", INVALID_OPTION.after(&error.to_string()));
            return ExitCode::from(USAGE);
        }
    };
    let parsed = command_line()
        .try_get_matches_from(arguments)
        .and_then(|mut matches| Cli::from_arg_matches_mut(&mut matches));
    let cli = match parsed {
        Ok(cli) => cli,
        Err(error) if error.use_stderr() && error.kind() != DisplayHelpOnMissingArgumentOrSubcommand => {
            let text = error.render();
            let text = if io::stderr().is_terminal() { text.ansi().to_string() } else { text.to_string() };
            eprintln!("{}", INVALID_OPTION.after(text.trim_end()));
            return ExitCode::from(USAGE);
        }
        Err(help) => help.exit(),
    };
    match run(cli) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("farrier: {}", failure::line(&error));
            if error.is::<GaveUp>() { ExitCode::from(3) } else { ExitCode::FAILURE }
        }
    }
}
