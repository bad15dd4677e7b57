//! The conductor from outside: real HTTP to it, a fake agent with real TLS, and fake machines.

// Only functions marked as tests may unwrap by default; here everything is test code.
#![allow(clippy::unwrap_used)]

mod access;
mod bmc;
mod clean;
mod crash;
mod deploy;
mod inspection;
mod instance;
mod interfaces;
mod networks;
mod operations;
mod ramdisk;
mod records;
mod rest;
mod sharing;
mod stand_ins;
