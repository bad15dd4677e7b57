//! `farrier`: a small reference conductor and its operator's commands, built only on the public interfaces of
//! `farrier-conductor`, `farrier-node-api` and `farrier-drivers`.

mod access;
mod auth;
mod client;
mod commands;
mod network;
mod provisioning;
mod reference;
mod serve;
mod state;
mod view;

use clap::Parser;
use commands::wait::GaveUp;
use commands::{Cli, run};
use std::process::ExitCode;

fn main() -> ExitCode {
    let cli = Cli::parse();
    match run(cli) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("farrier: {}", format!("{error:#}").replace('\n', " "));
            if error.is::<GaveUp>() { ExitCode::from(3) } else { ExitCode::FAILURE }
        }
    }
}
