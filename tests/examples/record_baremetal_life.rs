//! Writes down what `baremetal` prints through a node's whole life under an Ironic: `cargo xtask record --clients`.

use anyhow::{Context, Result};
use farrier_tests::conductor::baremetal_life;
use farrier_tests::conductor::ironic::Ironic;
use farrier_tests::environment;
use std::path::Path;

fn main() -> Result<()> {
    let recording = std::env::args().nth(1).context("name the file that is written")?;
    let folder = tempfile::tempdir()?;
    let ironic = Ironic::start_with_fake_hardware(&environment::path("FARRIER_IRONIC"), folder.path())?;
    let printed = baremetal_life::live(&environment::path("FARRIER_CLIENTS"), &ironic)?;
    std::fs::write(Path::new(&recording), printed).with_context(|| format!("cannot write {recording}"))
}
