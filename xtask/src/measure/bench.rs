//! `cargo xtask bench`: measures instead of believing.

mod api;
mod bmcs;
mod boot;
mod commands;
mod conductors;
mod dense_image;
mod estate;
mod first_pass;
mod fleet;
mod heartbeat;
mod iscsi;
mod netboot;
mod write;

pub use api::ApiReport;
pub use boot::BootReport;
pub use estate::EstateReport;
pub use first_pass::FirstPassReport;
pub use fleet::FleetReport;
pub use iscsi::IscsiReport;
pub use netboot::NetbootReport;
pub use write::WriteReport;

use anyhow::{Context, Result};
use clap::{Args, Subcommand};
use farrier_tests::agent::stub_conductor::NODE;
use serde_json::{Value, json};

const MAC: &str = "52:54:00:fa:00:03";
/// A disk that the default rule for the root disk accepts.
const DISK_BYTES: u64 = 8 << 30;
/// What the agent prints when the conductor knows it.
const HEARTBEAT: &str = "first heartbeat accepted";

/// Measures Farrier.
#[derive(Debug, Args)]
pub struct BenchArguments {
    #[command(subcommand)]
    bench: Bench,
}

#[derive(Debug, Subcommand)]
enum Bench {
    Api(api::ApiArguments),
    Bmcs(bmcs::BmcsArguments),
    Boot(boot::BootArguments),
    Commands(commands::CommandsArguments),
    FirstPass(first_pass::FirstPassArguments),
    Fleet(fleet::FleetArguments),
    Estate(estate::EstateArguments),
    Heartbeat(heartbeat::HeartbeatArguments),
    Iscsi(iscsi::IscsiArguments),
    Netboot(netboot::NetbootArguments),
    Write(write::WriteArguments),
}

/// Runs the command.
pub fn bench(arguments: &BenchArguments) -> Result<()> {
    match &arguments.bench {
        Bench::Api(arguments) => api::bench(arguments),
        Bench::Bmcs(arguments) => bmcs::bench(arguments),
        Bench::Boot(arguments) => boot::bench(arguments),
        Bench::Commands(arguments) => commands::bench(arguments),
        Bench::FirstPass(arguments) => first_pass::bench(arguments),
        Bench::Fleet(arguments) => fleet::bench(arguments),
        Bench::Estate(arguments) => estate::bench(arguments),
        Bench::Heartbeat(arguments) => heartbeat::bench(arguments),
        Bench::Iscsi(arguments) => iscsi::bench(arguments),
        Bench::Netboot(arguments) => netboot::bench(arguments),
        Bench::Write(arguments) => write::bench_write(arguments),
    }
}

/// What an agent is told that is to write an image.
fn write_image(image_info: &Value) -> Value {
    let step = json!({"interface": "deploy", "step": "write_image", "args": {"image_info": image_info}});
    let node = json!({"uuid": NODE, "properties": {}, "instance_info": {}});
    json!({"step": step, "node": node, "ports": []})
}

/// The value of `name=VALUE` in the line with `message`.
fn field<T: std::str::FromStr>(console: &str, message: &str, name: &str) -> Result<T> {
    let value = console.lines().find_map(|line| {
        let (_, fields) = line.split_once(message)?;
        fields.split_whitespace().find_map(|pair| pair.strip_prefix(name)?.strip_prefix('=')?.parse().ok())
    });
    value.with_context(|| format!("the console has no line \"{message}\" with {name}"))
}
