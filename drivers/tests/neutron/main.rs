//! Networks by Neutron, against a Keystone and a Neutron of our own that can be as slow and as broken as real ones.

// Only functions marked as tests may unwrap by default; here everything is test code.
#![allow(clippy::unwrap_used)]

mod access;
mod answers;
mod dhcp;
mod groups;
mod operations;
mod ports;
mod stage;
mod stand_in;
mod vifs;
#[path = "../wrong_answers/mod.rs"]
mod wrong_answers;
