//! Conductors that are killed, stopped or overtaken while they work.

mod clean;
mod deploy;
mod instance;
mod lost;
mod orders;
mod site;
