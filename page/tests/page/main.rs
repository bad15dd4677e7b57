//! The page from outside: HTTP to a conductor whose machine is not there, by browsers that run no script, but ask for what the script of the page asks for.

// Only functions marked as tests may unwrap by default; here everything is test code.
#![allow(clippy::unwrap_used)]

mod bad_input;
mod browser;
mod forms;
mod list;
mod live;
mod many;
mod markup;
mod nodes;
mod orders;
mod sign_in;
mod stage;
