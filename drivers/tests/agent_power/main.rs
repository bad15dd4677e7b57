//! Machines that have no BMC, and that their agents reboot.

// Only functions marked as tests may unwrap by default; here everything is test code.
#![allow(clippy::unwrap_used)]

mod lives;
mod machine;
mod refusals;
mod stage;
