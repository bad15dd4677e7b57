//! The values of configuration files as arguments of `farrier serve`.

use super::error::ConfigurationError;
use super::file::Setting;
use super::files::ConfigurationFiles;
use super::option::ServeOption;
use clap::parser::ValueSource;
use clap::{Arg, ArgMatches, Command, FromArgMatches};
use std::ffi::OsString;

/// The command that reads configuration files.
const SERVE: &str = "serve";

/// Gives each option of `farrier serve` an environment variable.
pub(crate) fn with_environment(cli: Command) -> Command {
    cli.mut_subcommands(|command| match command.get_name() {
        SERVE => command.mut_args(with_variable),
        _ => command,
    })
}

fn with_variable(argument: Arg) -> Arg {
    match argument.get_env() {
        Some(_) => argument,
        None => {
            let name = argument.get_id().as_str().to_ascii_uppercase();
            argument.env(format!("FARRIER_{name}")).hide_env(true)
        }
    }
}

/// The command `farrier serve` of a command line.
pub(super) fn serve_of(cli: &Command) -> Command {
    let mut cli = cli.clone();
    cli.build();
    cli.find_subcommand(SERVE).cloned().unwrap_or_default()
}

/// The arguments with which a program was started, and what its configuration files set. Nothing is added where the command
/// is not `farrier serve`, or where the arguments are not valid: the parser says so then.
///
/// # Errors
///
/// [`ConfigurationError`] if a file cannot be used.
pub(crate) fn arguments(cli: &Command, given: Vec<OsString>) -> Result<Vec<OsString>, ConfigurationError> {
    let Some(place) = given.iter().position(|argument| argument == SERVE) else { return Ok(given) };
    let Ok(matches) = cli.clone().ignore_errors(true).try_get_matches_from(&given) else { return Ok(given) };
    let Some((SERVE, matches)) = matches.subcommand() else { return Ok(given) };
    let Ok(files) = ConfigurationFiles::from_arg_matches(matches) else { return Ok(given) };
    let serve = serve_of(cli);
    let mut arguments = given;
    let settings = overridden_removed(files.read(&serve)?, matches);
    let added: Vec<_> = settings.iter().flat_map(|setting| as_arguments(&serve, setting)).collect();
    arguments.splice(place + 1..place + 1, added);
    Ok(arguments)
}

/// The settings of files that neither command line nor environment overrides.
pub(super) fn overridden_removed(mut settings: Vec<Setting>, matches: &ArgMatches) -> Vec<Setting> {
    settings.retain(|setting| {
        !matches!(
            matches.value_source(&setting.id),
            Some(ValueSource::CommandLine | ValueSource::EnvVariable)
        )
    });
    settings
}

/// A setting as arguments.
pub(super) fn as_arguments(serve: &Command, setting: &Setting) -> Vec<OsString> {
    let option = ServeOption::all(serve).find(|option| option.id() == setting.id);
    let argument = |value: &String| option.map(|option| option.argument(value).into());
    setting.values.iter().filter_map(argument).collect()
}
