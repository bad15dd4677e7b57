//! The flags of the agent, made from the table of options (section 3.2).

use crate::settings::config_files::Settings;
use crate::settings::options::{self, DEFAULT_SECTION, OptionSpec};
use clap::{Arg, ArgAction, ArgMatches, value_parser};
use std::path::PathBuf;

/// Flags for config files, and one for each option; a switch has a second one that turns it off.
pub fn arguments() -> Vec<Arg> {
    let file = path("config-file", "Config file to read; may be given several times");
    let directory = path("config-dir", "Folder whose *.conf files are read; may be given several times");
    let options = flagged().flat_map(|spec| [Some(flag(spec)), spec.off_flag.map(off)]);
    [file, directory].into_iter().chain(options.flatten()).collect()
}

/// What config files and flags say; flags win.
pub fn settings(matches: &ArgMatches) -> Settings {
    let paths = |name| -> Vec<PathBuf> { matches.get_many(name).into_iter().flatten().cloned().collect() };
    let mut settings = Settings::read(&paths("config-file"), &paths("config-dir"));
    for spec in flagged() {
        if spec.off_flag.is_some_and(|name| matches.get_flag(name)) {
            settings.values.insert(spec.key(), "false".to_owned());
        } else if let Some(text) = matches.get_one::<String>(spec.name) {
            settings.values.insert(spec.key(), text.clone());
        }
    }
    settings
}

/// Options that are flags too.
fn flagged() -> impl Iterator<Item = &'static OptionSpec> {
    options::specs().filter(|spec| spec.section == DEFAULT_SECTION)
}

fn path(name: &'static str, help: &'static str) -> Arg {
    Arg::new(name)
        .long(name)
        .value_name("PATH")
        .help(help)
        .value_parser(value_parser!(PathBuf))
        .action(ArgAction::Append)
        .global(true)
}

fn flag(spec: &OptionSpec) -> Arg {
    let help = match spec.kernel_parameter {
        Some(parameter) => format!("{} [kernel parameter: {parameter}]", spec.help.trim()),
        None => spec.help.trim().to_owned(),
    };
    let argument = Arg::new(spec.name).long(spec.name).value_name("VALUE").help(help).global(true);
    if spec.off_flag.is_some() {
        argument.num_args(0..=1).require_equals(true).default_missing_value("true")
    } else {
        argument
    }
}

fn off(name: &'static str) -> Arg {
    Arg::new(name).long(name).action(ArgAction::SetTrue).hide(true).global(true)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_command_and_each_option_has_a_help_text() {
        let cli = crate::command_line();
        for command in [&cli].into_iter().chain(cli.get_subcommands().filter(|one| !one.is_hide_set())) {
            assert!(command.get_about().is_some(), "{}", command.get_name());
            for option in command.get_arguments().filter(|one| !one.is_hide_set()) {
                assert!(option.get_help().is_some(), "{} {}", command.get_name(), option.get_id());
            }
        }
    }
    use clap::Command;
    use std::fs;

    fn command() -> Command {
        Command::new("agent").args(arguments()).subcommand(Command::new("run"))
    }

    #[test]
    fn flags_win_over_files_and_switches_turn_on_and_off() {
        let directory = tempfile::tempdir().unwrap();
        let file = directory.path().join("x.conf");
        fs::write(&file, "insecure = true\ndebug = true\nlisten_port = 1\n").unwrap();
        let config = format!("--config-file={}", file.display());
        for (flags, name, expected) in [
            (vec![], "listen_port", Some("1")),
            (vec!["--listen_port", "2"], "listen_port", Some("2")),
            (vec!["--noinsecure"], "insecure", Some("false")),
            (vec!["--insecure"], "insecure", Some("true")),
            (vec!["--debug=false"], "debug", Some("false")),
            (vec!["--insecure", "run"], "insecure", Some("true")),
            (vec!["run", "--advertise_port", "3"], "advertise_port", Some("3")),
            (vec![], "advertise_port", None),
        ] {
            let line = ["agent", &config].into_iter().chain(flags.iter().copied());
            let settings = settings(&command().get_matches_from(line));
            let found = settings.values.get(&(DEFAULT_SECTION, name));
            assert_eq!(found.map(String::as_str), expected, "{flags:?}");
            assert_eq!(settings.problems, Vec::<String>::new());
        }
    }

    #[test]
    fn the_help_names_every_option_and_its_kernel_parameter() {
        let help = command().render_long_help().to_string();
        for spec in flagged() {
            assert!(help.contains(&format!("--{}", spec.name)), "{}", spec.name);
            assert!(spec.kernel_parameter.is_none_or(|name| help.contains(name)), "{}", spec.name);
        }
    }
}
