//! One configuration file.

use super::error::{ConfigurationError, Place};
use super::option::ServeOption;
use clap::Command;
use clap::error::{ContextKind, ContextValue};
use std::error::Error;
use std::fs;
use std::io;
use std::ops::Range;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use toml::Spanned;
use toml::de::{DeTable, DeValue};

/// The bits of a mode by which group and others may write.
const WRITABLE: u32 = 0o022;

/// An option that a file sets.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Setting {
    /// The name of the option as clap has it.
    pub(crate) id: String,
    /// The key with its table.
    pub(crate) key: String,
    /// The values, as the command line has them. None for a switch that is off.
    pub(crate) values: Vec<String>,
    /// Where.
    pub(crate) place: Place,
}

/// Reads a file, and checks each of its values.
///
/// # Errors
///
/// [`ConfigurationError`], at the first line that cannot be used.
pub(super) fn read(serve: &Command, file: &Path) -> Result<Vec<Setting>, ConfigurationError> {
    let unreadable = |source: io::Error| ConfigurationError::Unreadable { file: file.to_owned(), source };
    let metadata = fs::metadata(file).map_err(unreadable)?;
    if metadata.mode() & WRITABLE != 0 {
        return Err(ConfigurationError::Writable(file.to_owned()));
    }
    let own = nix::unistd::geteuid().as_raw();
    if metadata.uid() != 0 && metadata.uid() != own {
        return Err(ConfigurationError::Owner { file: file.to_owned(), owner: metadata.uid() });
    }
    let text = fs::read_to_string(file).map_err(unreadable)?;
    parse(serve, file, &text)
}

/// Reads the text of a file.
pub(super) fn parse(serve: &Command, file: &Path, text: &str) -> Result<Vec<Setting>, ConfigurationError> {
    let reader = Reader { serve, file: Arc::new(file.to_owned()), text };
    let document = DeTable::parse(text).map_err(|error| ConfigurationError::Syntax {
        place: reader.place(error.span().unwrap_or_default()),
        reason: error.message().to_owned(),
    })?;
    let mut settings = Vec::new();
    for (name, value) in document.get_ref() {
        match value.get_ref() {
            DeValue::Table(table) => {
                for (key, value) in table {
                    settings.push(reader.setting(name.get_ref(), key, value)?);
                }
            }
            _ => settings.push(reader.setting("", name, value)?),
        }
    }
    Ok(settings)
}

struct Reader<'a> {
    serve: &'a Command,
    file: Arc<PathBuf>,
    text: &'a str,
}

impl Reader<'_> {
    fn place(&self, span: Range<usize>) -> Place {
        let before = self.text.as_bytes().get(..span.start).unwrap_or_default();
        Place { file: Arc::clone(&self.file), line: before.split(|byte| *byte == b'\n').count() }
    }

    fn setting(
        &self,
        table: &str,
        key: &Spanned<std::borrow::Cow<'_, str>>,
        value: &Spanned<DeValue<'_>>,
    ) -> Result<Setting, ConfigurationError> {
        let place = self.place(key.span());
        let Some(option) = ServeOption::find(self.serve, table, key.get_ref()) else {
            let given = if table.is_empty() {
                key.get_ref().to_string()
            } else {
                format!("[{table}] {}", key.get_ref())
            };
            let nearest = ServeOption::nearest(self.serve, table, key.get_ref()).unwrap_or_default();
            return Err(ConfigurationError::UnknownKey { place, key: given, nearest });
        };
        let wrong = |reason: String| ConfigurationError::Value {
            place: place.clone(),
            key: option.full_key(),
            reason,
        };
        let values = values(option, value.get_ref()).map_err(wrong)?;
        for value in &values {
            check(self.serve, option, value).map_err(wrong)?;
        }
        Ok(Setting { id: option.id().to_owned(), key: option.full_key(), values, place: place.clone() })
    }
}

/// The values of an option as the command line has them.
fn values(option: ServeOption<'_>, value: &DeValue<'_>) -> Result<Vec<String>, String> {
    match value {
        DeValue::Boolean(is_on) if option.is_switch() => {
            Ok(if *is_on { vec![true.to_string()] } else { Vec::new() })
        }
        _ if option.is_switch() => Err("it takes true or false".to_owned()),
        DeValue::Array(values) if option.is_list() => {
            values.iter().map(|value| single(option, value.get_ref())).collect()
        }
        value => Ok(vec![single(option, value)?]),
    }
}

fn single(option: ServeOption<'_>, value: &DeValue<'_>) -> Result<String, String> {
    match value {
        DeValue::String(text) => Ok(text.to_string()),
        DeValue::Integer(number) => Ok(number.to_string()),
        DeValue::Boolean(is_on) => Ok(is_on.to_string()),
        _ if option.is_list() => Err("it takes a list of texts".to_owned()),
        _ => Err(format!("it takes one {}", option.value_name().unwrap_or("value"))),
    }
}

/// Has the parser of the option look at a value.
pub(super) fn check(serve: &Command, option: ServeOption<'_>, value: &str) -> Result<(), String> {
    let arguments = [option.argument(value)];
    let Err(error) = serve.clone().no_binary_name(true).try_get_matches_from(arguments) else {
        return Ok(());
    };
    // Rules between options are checked when all values are known.
    let name = option.0.to_string();
    let is_of_value = matches!(error.get(ContextKind::InvalidArg), Some(ContextValue::String(of)) if *of == name)
        && error.get(ContextKind::InvalidValue).is_some();
    if !is_of_value {
        return Ok(());
    }
    let valid = match error.get(ContextKind::ValidValue) {
        Some(ContextValue::Strings(values)) if !values.is_empty() => {
            format!("; use one of: {}", values.join(", "))
        }
        _ => error.source().map_or_else(String::new, |source| format!(": {source}")),
    };
    let unit = option.value_name().map(|name| format!(" for {name}")).unwrap_or_default();
    Err(format!("invalid value {value:?}{unit}{valid}"))
}
