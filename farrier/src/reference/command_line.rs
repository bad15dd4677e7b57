//! The page of the command line.

use clap::{Arg, Command};
use std::fmt::Write;

/// The page of the book.
pub(super) fn page(mut cli: Command) -> String {
    cli.build();
    let mut page = String::from(
        "# Commands and options of `farrier`\n\n\
         `farrier COMMAND --help` shows the same. Options of the connection to the conductor are options of each command \
         that calls it, and are listed [once](#connection-to-the-conductor).\n",
    );
    let usual = usual(&cli);
    for command in commands(&cli) {
        describe(&mut page, command, &usual);
    }
    page += "\n## Connection to the conductor\n\n";
    table(&mut page, usual.iter());
    if let Some(statuses) = cli.get_after_help() {
        let _ = write!(page, "\n## Exit status\n\n{statuses}\n");
    }
    page
}

/// The columns of a table of options.
const COLUMNS: [&str; 4] = ["option", "environment", "default", "meaning"];

/// The command that no other one has more options of the connection than.
const CALLS_THE_CONDUCTOR: &str = "watch";

/// The options by which a command calls the conductor.
fn usual(cli: &Command) -> Vec<Arg> {
    let caller = cli.find_subcommand(CALLS_THE_CONDUCTOR);
    let global =
        caller.into_iter().flat_map(Command::get_arguments).filter(|argument| argument.is_global_set());
    global.filter(|argument| is_shown(argument)).cloned().collect()
}

/// All commands that do something, each behind the one that it belongs to.
fn commands(command: &Command) -> Vec<&Command> {
    let below =
        command.get_subcommands().filter(|command| !command.is_hide_set() && command.get_name() != "help");
    below.flat_map(|command| [vec![command], commands(command)].concat()).collect()
}

fn describe(page: &mut String, command: &Command, usual: &[Arg]) {
    let name = command.get_bin_name().unwrap_or(command.get_name());
    let about = command.get_about().map(ToString::to_string).unwrap_or_default();
    let _ = write!(page, "\n## `{name}`\n\n{about}.\n");
    let own: Vec<_> = command
        .get_arguments()
        .filter(|argument| is_shown(argument) && !usual.iter().any(|one| one.get_id() == argument.get_id()))
        .collect();
    let mut headings: Vec<Option<&str>> = own.iter().map(|argument| argument.get_help_heading()).collect();
    headings.dedup();
    for heading in headings {
        let title = heading.map_or_else(String::new, |heading| format!("**{heading}**\n\n"));
        let _ = write!(page, "\n{title}");
        table(page, own.iter().copied().filter(|argument| argument.get_help_heading() == heading));
    }
}

fn is_shown(argument: &Arg) -> bool {
    !argument.is_hide_set() && !["help", "version"].contains(&argument.get_id().as_str())
}

/// A table of options without the columns that are empty in all rows.
fn table<'a>(page: &mut String, arguments: impl Iterator<Item = &'a Arg>) {
    let rows: Vec<_> = arguments.map(cells).collect();
    let is_used = |column: &usize| rows.iter().any(|cells| !cells[*column].is_empty());
    let used: Vec<_> = (0..COLUMNS.len()).filter(is_used).collect();
    let rule = COLUMNS.map(|_| "---".to_owned());
    for cells in [COLUMNS.map(str::to_owned), rule].iter().chain(&rows) {
        let cells: Vec<_> = used.iter().map(|column| cells[*column].as_str()).collect();
        let _ = writeln!(page, "| {} |", cells.join(" | "));
    }
}

/// The cells of an option in the order of the columns.
fn cells(argument: &Arg) -> [String; COLUMNS.len()] {
    let values: Vec<_> = argument.get_value_names().into_iter().flatten().map(ToString::to_string).collect();
    let takes_values = argument.get_num_args().is_some_and(|number| number.takes_values());
    let values = if takes_values { values.join(" ") } else { String::new() };
    let name = match argument.get_long() {
        Some(long) => format!("--{long} {values}"),
        None => values,
    };
    let environment = argument.get_env().map(|name| format!("`{}`", name.display())).unwrap_or_default();
    let default: Vec<_> =
        argument.get_default_values().iter().map(|value| value.to_string_lossy().into_owned()).collect();
    let default = match default.as_slice() {
        [] => String::new(),
        _ if !takes_values => String::new(),
        values => format!("`{}`", values.join(",")),
    };
    let help = argument.get_help().map(ToString::to_string).unwrap_or_default().replace('\n', " ");
    let possible: Vec<_> = match takes_values {
        true => argument.get_possible_values(),
        false => Vec::new(),
    };
    let possible: Vec<_> = possible.iter().map(|value| format!("`{}`", value.get_name())).collect();
    let possible = match possible.is_empty() || argument.is_hide_possible_values_set() {
        true => String::new(),
        false => format!(" One of: {}.", possible.join(", ")),
    };
    let help = help.trim_end_matches('.').replace('|', "\\|").replace('<', "&lt;");
    [format!("`{}`", name.trim().replace('|', "\\|")), environment, default, format!("{help}.{possible}")]
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Each command and each option without a help text.
    fn without_help(cli: &Command) -> Vec<String> {
        let named = |command: &Command, what: &str| format!("{} {what}", command.get_name());
        let mut found = Vec::new();
        for command in commands(cli) {
            if command.get_about().is_none() {
                found.push(named(command, ""));
            }
            let silent = command.get_arguments().filter(|one| is_shown(one) && one.get_help().is_none());
            found.extend(silent.map(|argument| named(command, argument.get_id().as_str())));
        }
        found
    }

    #[test]
    fn each_command_and_each_option_has_a_help_text() {
        let mut cli = crate::commands::command_line();
        cli.build();
        assert_eq!(without_help(&cli), Vec::<String>::new());
        let mute = Command::new("x").subcommand(Command::new("y").about("Does").arg(Arg::new("z").long("z")));
        assert_eq!(without_help(&mute), ["y z"]);
    }
}
