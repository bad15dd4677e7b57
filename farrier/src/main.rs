//! `farrier`: a small reference conductor and its operator's commands, built only on the public interfaces of
//! `farrier-conductor`, `farrier-node-api` and `farrier-drivers`.

mod access;
mod auth;
mod client;
mod commands;
mod failure;
mod network;
mod provisioning;
mod reference;
mod serve;
mod state;
mod view;

use clap::Parser;
use clap::error::ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand;
use commands::wait::GaveUp;
use commands::{Cli, run};
use failure::INVALID_OPTION;
use std::io::{self, IsTerminal};
use std::process::ExitCode;

fn main() -> ExitCode {
    let cli = match Cli::try_parse() {
        Ok(cli) => cli,
        Err(error) if error.use_stderr() && error.kind() != DisplayHelpOnMissingArgumentOrSubcommand => {
            let text = error.render();
            let text = if io::stderr().is_terminal() { text.ansi().to_string() } else { text.to_string() };
            eprintln!("{}", INVALID_OPTION.after(text.trim_end()));
            return ExitCode::from(2);
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
