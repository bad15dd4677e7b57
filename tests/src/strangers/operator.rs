//! An operator's command that a stranger answers in place of the conductor.

use super::Row;
use super::peer::{Peer, Reply};
use super::shape::Shape;
use anyhow::{Context, Result};
use std::net::Ipv4Addr;
use std::path::Path;
use std::process::Command;
use std::sync::Arc;
use std::time::Instant;

/// The longest answer that a command reads, in bytes.
const ANSWER: usize = 16 << 20;
/// How many KiB it may take for that.
const ALLOWED: u64 = 64 << 10;

/// How long it may take, in milliseconds.
const LIMIT_MS: f64 = 30_000.0;

/// Runs a program and tells the most memory that it had, in KiB, which the kernel keeps of children that have ended.
const MEASURED: &str = "import resource, subprocess, sys
ended = subprocess.run(sys.argv[1:], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
print(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss, ended.stderr.strip()[:200])";

/// One row for each shape.
///
/// # Errors
///
/// The command or Python cannot be run.
pub fn rows(program: &Path, shapes: &[Shape]) -> Result<Vec<Row>> {
    let row = |shape: &Shape| {
        let value = Arc::new(format!("{{\"nodes\":[],\"x\":{}}}", shape.value(ANSWER - 400)));
        let nothing = Arc::new("{\"nodes\":[]}".to_owned());
        let (before_kib, _, alone_ms) = listed(program, nothing)?;
        let (after_kib, answer, honest_ms) = listed(program, value)?;
        let stranger = format!("answer of 16 MiB to farrier node list: {}", shape.name());
        Ok(Row {
            process: "operator's command".to_owned(),
            stranger,
            answer,
            before_kib,
            after_kib,
            allowed_kib: ALLOWED,
            alone_ms,
            honest_ms,
            honest_limit_ms: LIMIT_MS,
            error: None,
        })
    };
    shapes.iter().map(row).collect()
}

/// The memory of a command that lists nodes, what it complains about, and how long it took, in milliseconds.
fn listed(program: &Path, body: Arc<String>) -> Result<(u64, String, f64)> {
    let peer = Peer::start(Ipv4Addr::LOCALHOST, move |_, _| Reply::new(200, &body))?;
    let begin = Instant::now();
    let mut command = Command::new("python3");
    command.args(["-c", MEASURED]).arg(program).args(["node", "list", "--url", &peer.url()]);
    let output = command.output().context("cannot start python3")?;
    let said = String::from_utf8_lossy(&output.stdout).trim().to_owned();
    let (kib, complaint) = said.split_once(' ').unwrap_or((&said, ""));
    let kib = kib
        .parse()
        .with_context(|| format!("python3: {said} {}", String::from_utf8_lossy(&output.stderr)))?;
    Ok((kib, complaint.to_owned(), begin.elapsed().as_secs_f64() * 1000.0))
}
