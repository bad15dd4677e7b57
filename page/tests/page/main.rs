//! The page from outside: HTTP to a conductor whose machine is not there. Most browsers here run no script, but ask for what the script of the page asks for;
//! `cargo xtask test browser` runs the tests with Chromium.

// Only functions marked as tests may unwrap by default; here everything is test code.
#![allow(clippy::unwrap_used)]

mod bad_input;
mod browser;
mod chromium;
mod estate;
mod forms;
mod list;
mod live;
mod many;
mod markup;
mod nodes;
mod orders;
mod sign_in;
mod stage;
