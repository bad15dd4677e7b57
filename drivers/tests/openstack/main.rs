//! Networks by Neutron, against Keystone and Neutron of OpenStack, unmodified from PyPI, on SQLite. Neutron binds ports by
//! networking-generic-switch, whose switch here takes down what it is told.
//!
//! `cargo xtask test openstack` installs them and says where they are.

// Only functions marked as tests may unwrap by default; here everything is test code.
#![allow(clippy::unwrap_used)]

mod access;
mod cloud;
mod configuration;
mod dhcp;
mod ports;
mod stage;
mod vifs;
