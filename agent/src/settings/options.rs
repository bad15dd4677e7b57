//! Every option of the agent, declared once (section 3.3).
//!
//! The rows in [`table`] feed the kernel command line, config files, the command-line flags, the help
//! and the reference page. Kernel parameters act as defaults; config files win over them, flags over
//! both, and what a lookup says over all ([`lookup`]). A value that cannot be used leaves the default
//! in place and a warning behind, because a typing error must not keep a machine from answering.

mod lookup;
mod of_init;
mod table;
mod values;

pub use of_init::of_init;
pub use table::{Options, specs};
use values::OptionValue;
pub use values::{Curve, Destination, NameList, Protocol, SuiteList, TlsVersion, UrlList};

use farrier_linux::kernel_line::Parameters;
use std::collections::BTreeMap;

/// The section of options that have no other.
pub const DEFAULT_SECTION: &str = "DEFAULT";
/// What logs show instead of a secret.
const HIDDEN: &str = "…";

/// An option as tables, help and documentation need it.
#[derive(Debug, Clone, Copy)]
pub struct OptionSpec {
    /// Section of the config file.
    pub section: &'static str,
    /// Name in the section; in [`DEFAULT_SECTION`] also that of the flag.
    pub name: &'static str,
    /// Kernel parameter, where there is one.
    pub kernel_parameter: Option<&'static str>,
    /// Name of the flag that turns it off; only switches of [`DEFAULT_SECTION`] have one.
    pub off_flag: Option<&'static str>,
    /// What a value has to be.
    pub kind: &'static str,
    /// The value without any source, as text; empty when there is none.
    pub default: fn() -> String,
    /// What it does.
    pub help: &'static str,
    /// Whether a text is a value.
    accepts: fn(&str) -> bool,
}

/// Texts of options by section and name.
pub type Named = BTreeMap<(&'static str, &'static str), String>;

/// A value that could not be used; the default stays.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
#[error("{parameter}={value} ignored: expected {expected}; correct it or leave it out")]
pub struct OptionError {
    parameter: String,
    value: String,
    expected: &'static str,
}

impl OptionSpec {
    /// The option of a section.
    pub fn find(section: &str, name: &str) -> Option<&'static Self> {
        specs().find(|spec| spec.section == section && spec.name == name)
    }

    /// Section and name, by which [`Named`] goes.
    pub fn key(&self) -> (&'static str, &'static str) {
        (self.section, self.name)
    }

    /// Whether logs must not show it. Options for containers may hold credentials.
    pub fn is_secret(&self) -> bool {
        ["token", "password", "pull_options", "run_options"].iter().any(|word| self.name.contains(word))
    }

    /// Name as reports write it.
    pub fn title(&self) -> String {
        match self.section {
            DEFAULT_SECTION => self.name.to_owned(),
            section => format!("[{section}]{}", self.name),
        }
    }

    fn error(&self, given: &str, text: &str) -> OptionError {
        OptionError {
            parameter: given.to_owned(),
            value: if self.is_secret() { HIDDEN.to_owned() } else { text.to_owned() },
            expected: self.kind,
        }
    }
}

impl Options {
    /// Settings from kernel parameters and from texts by name, with what could not be used.
    pub fn load(kernel: &Parameters, named: &Named) -> (Self, Vec<OptionError>) {
        let mut options = Self::default();
        let mut errors = Vec::new();
        let parameters = specs().filter_map(|spec| {
            let parameter = spec.kernel_parameter?;
            Some((spec, parameter.to_owned(), kernel.get(parameter)?))
        });
        let named = specs().filter_map(|spec| Some((spec, spec.title(), named.get(&spec.key())?)));
        for (spec, given, text) in parameters.chain(named) {
            if !options.set(spec, text.trim()) {
                errors.push(spec.error(&given, text));
            }
        }
        (options, errors)
    }

    /// Sets one option by its name in [`DEFAULT_SECTION`].
    ///
    /// # Errors
    ///
    /// [`OptionError`] when there is no such option, or the text is no value of it.
    pub fn set_by_name(&mut self, name: &str, text: &str) -> Result<(), OptionError> {
        let Some(spec) = OptionSpec::find(DEFAULT_SECTION, name) else {
            let (parameter, value) = (name.to_owned(), HIDDEN.to_owned());
            return Err(OptionError { parameter, value, expected: "the name of an option" });
        };
        if self.set(spec, text.trim()) { Ok(()) } else { Err(spec.error(name, text)) }
    }

    /// Every option that differs from its default, for the log.
    pub fn describe(&self) -> String {
        let changed = self.values().into_iter().filter(|(spec, value)| *value != (spec.default)());
        let show = |(spec, value): (&OptionSpec, String)| {
            let value = if spec.is_secret() { HIDDEN.to_owned() } else { value };
            format!("{}={value}", spec.title())
        };
        changed.map(show).collect::<Vec<_>>().join(" ")
    }
}

#[cfg(test)]
mod tests;
