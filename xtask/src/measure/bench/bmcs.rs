//! `cargo xtask bench bmcs`: whether power sync reads a thousand machines within its interval, of which fifty hang and
//! fifty are out of service.
//!
//! The BMCs are stand-ins for Redfish in the process that reads them, so that its memory is theirs too.

use anyhow::Result;
use clap::Args;

use crate::host::command::run;
use crate::host::workspace::{Workspace, cargo};

/// Reads the power of 1,000 machines by Redfish, of which 50 hang and 50 are out of service.
#[derive(Debug, Args)]
pub struct BmcsArguments {}

/// Runs the benchmark.
pub fn bench(_: &BmcsArguments) -> Result<()> {
    let root = Workspace::find()?.root;
    // As tests are built: what holds without optimisation holds with it.
    let bench = ["bench", "--profile", "dev", "-p", "farrier-drivers", "--bench", "bmcs"];
    run(cargo().args(bench).current_dir(root))
}
