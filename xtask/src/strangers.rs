//! `cargo xtask strangers`: what clients without credentials, or with those of one agent, can take from a conductor.

use std::fs;
use std::path::PathBuf;

use anyhow::{Result, bail};
use clap::Args;
use farrier_tests::strangers::{self, Extent, Row};
use serde::{Deserialize, Serialize};

use crate::page::machine;
use crate::workspace::{Workspace, write_json};

/// The page of the book.
const PAGE: &str = "docs/src/strangers.md";

/// Lets strangers take what they can get from farrier serve, and measures its memory and the wait of others.
#[derive(Debug, Args)]
pub struct StrangersArguments {
    /// Runs one stranger of each kind only.
    #[arg(long, conflicts_with = "page")]
    quick: bool,
    /// Writes the result as JSON.
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
    /// Writes the page of the book with the result.
    #[arg(long)]
    page: bool,
}

/// What was measured.
#[derive(Debug, Serialize, Deserialize)]
struct Report {
    machine: String,
    rows: Vec<Row>,
}

/// Runs the command. A stranger that takes too much is an error.
pub fn strangers(arguments: &StrangersArguments) -> Result<()> {
    let workspace = Workspace::find()?;
    let program = workspace.build_conductor()?;
    let folder = workspace.cache().join(format!("strangers-{}", std::process::id()));
    fs::create_dir_all(&folder)?;
    let extent = if arguments.quick { Extent::Quick } else { Extent::Whole };
    let rows = strangers::rows(&program, &folder, extent);
    fs::remove_dir_all(&folder)?;
    let report = Report { machine: machine(), rows: rows? };
    let table = table(&report.rows);
    print!("{table}");
    write_json(arguments.json.as_deref(), &report)?;
    if arguments.page {
        workspace.write_page(PAGE, &page(&report.machine, &table))?;
    }
    let faults: Vec<_> = report.rows.iter().filter_map(Row::fault).collect();
    match faults[..] {
        [] => Ok(()),
        ref faults => bail!("strangers take too much: {}", faults.join("; ")),
    }
}

fn page(machine: &str, table: &str) -> String {
    format!(
        "# Strangers\n\n\
         Anybody who reaches the ramdisk API can send requests, and whoever has a machine of the site has the token of its \
         agent. `cargo xtask strangers --page` measures what such clients take from `farrier serve` (a debug build): the \
         most memory of its process (`VmHWM`) before and after, and the longest time that an honest client waited \
         meanwhile. A client without credentials may add 16 MiB, one with an agent's token 64 MiB.\n\n\
         Before values were limited by number and memory, one report of 16 MiB took the conductor from 41 to 2,075 MiB, one \
         heartbeat of 1 MiB from 41 to 169 MiB, and one answer of an agent of 16 MiB from 254 to 3,024 MiB.\n\n\
         Measured on {machine}.\n\n{table}"
    )
}

fn table(rows: &[Row]) -> String {
    let mut text = String::from(
        "| stranger | answer | MiB before | MiB after | may add | honest client waits at most |\n|---|---|---|---|---|---|\n",
    );
    let mib = |kib: u64| format!("{:.1}", kib as f64 / 1024.0);
    for row in rows {
        text += &format!(
            "| {} | {} | {} | {} | {} | {:.0} ms |\n",
            row.stranger,
            row.answer,
            mib(row.before_kib),
            mib(row.after_kib),
            mib(row.allowed_kib),
            row.honest_ms
        );
    }
    text
}
