//! The configuration of `farrier serve`: one table of options, which is the command line itself. A value comes, in this
//! order, from the command line, from the environment (`FARRIER_` and the name of the option), from the configuration
//! files, or from the default.
//!
//! A configuration file is TOML. A key is the name of an option with `_` for `-`, as Ironic writes it; the heading under
//! which the help shows the option is the table of the key. [`files`] reads the files and checks each value by the parser
//! of its option; [`command_line`] puts the values before the arguments that the operator gave, so that the rules between
//! options hold for files, too. [`pages`] writes the default file and the JSON schema, and [`effective`] each value with
//! its source.

mod command_line;
pub(crate) mod effective;
mod error;
mod file;
pub(crate) mod files;
pub(crate) mod ironic;
mod option;
pub(crate) mod pages;
mod reload;
#[cfg(test)]
mod tests;

pub(crate) use command_line::{arguments, with_environment};
pub(crate) use error::ConfigurationError;
pub(crate) use reload::changes;
