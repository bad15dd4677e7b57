//! What an operator sets of the agent: the table of [`options`], and the places where their values come from.

pub mod cipher_suites;
pub mod command_line;
pub mod config_files;
pub mod options;
pub mod revisable;
