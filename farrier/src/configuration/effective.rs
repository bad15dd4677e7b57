//! Each option of `farrier serve` with its value, and with the source of the value.

use super::command_line::{as_arguments, overridden_removed, serve_of};
use super::error::ConfigurationError;
use super::file::Setting;
use super::files::ConfigurationFiles;
use super::option::ServeOption;
use super::pages::{by_table, literal};
use clap::parser::ValueSource;
use clap::{ArgMatches, Command};
use reqwest::Url;
use std::fmt::Write;

/// The configuration cannot be used.
#[derive(Debug, thiserror::Error)]
pub(crate) enum CheckError {
    /// A file.
    #[error(transparent)]
    Configuration(#[from] ConfigurationError),
    /// A variable of the environment, or a rule between options.
    #[error("{}", .0.to_string().trim_start_matches("error: ").trim_end())]
    Options(#[from] clap::Error),
}

/// The configuration as `farrier serve` would use it.
#[derive(Debug)]
pub(crate) struct Effective {
    serve: Command,
    matches: ArgMatches,
    settings: Vec<Setting>,
}

impl Effective {
    /// Reads files and environment, and checks all values and the rules between them.
    ///
    /// # Errors
    ///
    /// [`CheckError`].
    pub(crate) fn read(cli: &Command, files: &ConfigurationFiles) -> Result<Self, CheckError> {
        let serve = serve_of(cli).no_binary_name(true);
        let environment = serve.clone().ignore_errors(true).try_get_matches_from([""; 0])?;
        let settings = overridden_removed(files.read(&serve)?, &environment);
        let arguments: Vec<_> = settings.iter().flat_map(|setting| as_arguments(&serve, setting)).collect();
        let matches = serve.clone().try_get_matches_from(arguments)?;
        Ok(Self { serve, matches, settings })
    }

    /// The options as a configuration file, each with its source: all of them, or those alone that have another value than
    /// the default.
    pub(crate) fn show(&self, all: bool) -> String {
        let mut text = String::new();
        for (table, options) in by_table(&self.serve) {
            let lines: Vec<_> = options.into_iter().filter_map(|option| self.line(option, all)).collect();
            if !table.is_empty() && !lines.is_empty() {
                let _ = writeln!(text, "\n[{table}]");
            }
            lines.iter().for_each(|line| text += line);
        }
        text
    }

    fn line(&self, option: ServeOption<'_>, all: bool) -> Option<String> {
        let (key, source) = (option.key(), self.source(option));
        let Some(source) = source else {
            return all.then(|| format!("# {key} =  # not set\n"));
        };
        (all || source != DEFAULT).then(|| format!("{key} = {}  # {source}\n", self.value(option)))
    }

    fn source(&self, option: ServeOption<'_>) -> Option<String> {
        if let Some(setting) = self.settings.iter().find(|setting| setting.id == option.id()) {
            return Some(setting.place.to_string());
        }
        match self.matches.value_source(option.id())? {
            ValueSource::EnvVariable => {
                let name = option.0.get_env().unwrap_or_default();
                Some(format!("environment {}", name.display()))
            }
            _ => Some(DEFAULT.to_owned()),
        }
    }

    fn value(&self, option: ServeOption<'_>) -> String {
        if option.is_switch() {
            return self.matches.get_flag(option.id()).to_string();
        }
        let raw = self.matches.get_raw(option.id()).into_iter().flatten();
        let values: Vec<_> = raw.map(|value| without_password(&value.to_string_lossy())).collect();
        literal(option, &values)
    }
}

/// The source of values that nobody set.
const DEFAULT: &str = "default";

/// A value without the password of a URL.
fn without_password(value: &str) -> String {
    match Url::parse(value) {
        Ok(mut url) if url.password().is_some() => {
            // A URL with a password has a host, so it takes another one.
            let _ = url.set_password(Some("***"));
            url.to_string()
        }
        _ => value.to_owned(),
    }
}
