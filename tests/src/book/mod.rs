//! Pages of the book whose commands a test runs as its reader does.

pub mod commands;
pub mod shell;
