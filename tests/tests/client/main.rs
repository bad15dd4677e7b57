//! The clients that operators have, unmodified from PyPI and Debian, against `farrier` with hardware that is not there.
//!
//! `cargo xtask test client` installs them and says where they are.

#![allow(clippy::unwrap_used)]

mod ansible;
mod baremetal;
mod gophercloud;
mod keystone;
mod openstacksdk;
mod page;
mod python_tests;
mod tempest;

use farrier_tests::conductor::farrier::Farrier;
use farrier_tests::environment;
use tempfile::TempDir;

/// A conductor that leads nothing yet, and its folder.
fn conductor() -> (Farrier, TempDir) {
    let folder = TempDir::new().unwrap();
    let conductor = Farrier::start_with_fake_hardware(&environment::path("FARRIER_BIN"), folder.path());
    (conductor.unwrap(), folder)
}
