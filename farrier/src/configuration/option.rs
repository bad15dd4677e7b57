//! The options of `farrier serve` as the keys of configuration files.

use clap::{Arg, ArgAction, Command};

/// Options that say where configuration files are: they stand in none.
const NOT_IN_FILES: [&str; 2] = ["config_file", "config_dir"];

/// An option.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ServeOption<'a>(pub(crate) &'a Arg);

impl<'a> ServeOption<'a> {
    /// The options of a command that may stand in files, in the order of its help.
    pub(crate) fn all(serve: &'a Command) -> impl Iterator<Item = Self> {
        serve.get_arguments().filter(|argument| is_in_files(argument)).map(Self)
    }

    /// The option that a key in a table means. The top level is the table without a name.
    pub(crate) fn find(serve: &'a Command, table: &str, key: &str) -> Option<Self> {
        Self::all(serve).find(|option| option.table() == table && option.is_called(key))
    }

    /// The most similar key, with its table.
    pub(crate) fn nearest(serve: &'a Command, table: &str, key: &str) -> Option<String> {
        let wanted = full_key(table, key);
        let likeness = |option: &Self| {
            // Who has forgotten the table means the key.
            let of_key = strsim::normalized_damerau_levenshtein(&option.key(), key);
            of_key + strsim::normalized_damerau_levenshtein(&option.full_key(), &wanted)
        };
        let nearest = Self::all(serve).max_by(|one, other| likeness(one).total_cmp(&likeness(other)))?;
        Some(nearest.full_key())
    }

    /// The name of the option as clap has it.
    pub(crate) fn id(self) -> &'a str {
        self.0.get_id().as_str()
    }

    /// The name of the option on the command line, without hyphens before it.
    pub(crate) fn long(self) -> &'a str {
        self.0.get_long().unwrap_or_else(|| self.id())
    }

    /// The key in configuration files.
    pub(crate) fn key(self) -> String {
        self.long().replace('-', "_")
    }

    /// Whether a key means the option: its own one, or that of another name of the option.
    pub(crate) fn is_called(self, key: &str) -> bool {
        let others = self.0.get_all_aliases().unwrap_or_default();
        self.key() == key || others.iter().any(|name| name.replace('-', "_") == key)
    }

    /// The table of the key: the heading of the option in the help. Empty for the top level.
    pub(crate) fn table(self) -> String {
        self.0.get_help_heading().unwrap_or_default().to_ascii_lowercase()
    }

    /// The key with its table, as errors name it.
    pub(crate) fn full_key(self) -> String {
        full_key(&self.table(), &self.key())
    }

    /// Whether the option is a switch: without a value on the command line, `true` or `false` in files.
    pub(crate) fn is_switch(self) -> bool {
        matches!(self.0.get_action(), ArgAction::SetTrue)
    }

    /// Whether the option takes a list.
    pub(crate) fn is_list(self) -> bool {
        matches!(self.0.get_action(), ArgAction::Append)
    }

    /// What stands for the value in the help.
    pub(crate) fn value_name(self) -> Option<&'a str> {
        self.0.get_value_names().and_then(<[_]>::first).map(AsRef::as_ref)
    }

    /// The argument that gives the option a value.
    pub(crate) fn argument(self, value: &str) -> String {
        match self.is_switch() {
            true => format!("--{}", self.long()),
            false => format!("--{}={value}", self.long()),
        }
    }
}

fn is_in_files(argument: &Arg) -> bool {
    argument.get_long().is_some()
        && !argument.is_hide_set()
        && ![NOT_IN_FILES.as_slice(), &["help", "version"]].concat().contains(&argument.get_id().as_str())
}

fn full_key(table: &str, key: &str) -> String {
    match table {
        "" => key.to_owned(),
        table => format!("[{table}] {key}"),
    }
}
