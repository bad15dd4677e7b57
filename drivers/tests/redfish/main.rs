//! Machines by Redfish, against a BMC of our own that can be as odd and as broken as real ones.

// Only functions marked as tests may unwrap by default; here everything is test code.
#![allow(clippy::unwrap_used)]

mod access;
mod answers;
mod boot;
mod event_log;
mod ilo;
mod many;
mod media;
mod metal3;
mod power;
mod quirks;
mod recorded;
mod screenshot;
mod stage;
mod stand_in;
#[path = "../wrong_answers/mod.rs"]
mod wrong_answers;
