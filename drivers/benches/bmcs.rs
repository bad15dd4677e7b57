//! Whether power sync reads a thousand machines within its interval, of which a hundred are of no use.

// It is one with the tests, which use more of what they share.
#![allow(dead_code, clippy::unwrap_used)]

#[path = "../tests/redfish/many.rs"]
mod many;
#[path = "../tests/redfish/stage.rs"]
mod stage;
#[path = "../tests/redfish/stand_in/mod.rs"]
mod stand_in;
#[path = "../tests/wrong_answers/mod.rs"]
mod wrong_answers;

use std::process::ExitCode;
use std::time::Duration;

const MACHINES: usize = 1000;

/// The interval of rounds that sites have.
const INTERVAL: Duration = Duration::from_secs(120);

#[tokio::main]
async fn main() -> ExitCode {
    let reading = many::read(MACHINES, INTERVAL).await;
    println!("healthy ones of {MACHINES} machines: {reading}");
    println!("budget: {} s, {} KiB", INTERVAL.as_secs(), many::MEMORY_KIB);
    match reading.memory_kib < many::MEMORY_KIB {
        true => ExitCode::SUCCESS,
        false => ExitCode::FAILURE,
    }
}
