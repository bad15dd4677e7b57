//! Who may call what, and who sees what.

mod authorization;
mod secrets;
