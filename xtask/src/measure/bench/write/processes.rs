//! Programs under measurement.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use anyhow::{Context, Result, bail};

use crate::host::command::{command, shown};

/// Processes whose memory and processor time are measured.
pub struct Timed<'a> {
    /// For what is measured.
    pub folder: &'a Path,
    /// Where the measurements are.
    pub files: Vec<PathBuf>,
}

impl Timed<'_> {
    /// A program whose memory and processor time count.
    pub fn command(&mut self, program: &Path) -> Command {
        let file = self.folder.join(format!("time-{}", self.files.len()));
        let mut timed = command("time");
        timed.args(["-f", "%U %S %M", "-o"]).arg(&file).arg(program);
        self.files.push(file);
        timed
    }

    /// Seconds of processor time, and bytes of memory.
    pub fn read(&self) -> Result<(f64, u64)> {
        let (mut seconds, mut kib) = (0.0, 0.0);
        for file in &self.files {
            let text = fs::read_to_string(file)?;
            let numbers: Vec<f64> = text.split_whitespace().flat_map(str::parse).collect();
            let [user, system, memory] = numbers.as_slice() else { bail!("time printed {text:?}") };
            seconds += user + system;
            kib += memory;
        }
        Ok((seconds, (kib * 1024.0) as u64))
    }
}

/// Runs programs of which each reads what the one before writes.
pub fn pipe(stages: Vec<Command>) -> Result<()> {
    let mut running: Vec<(String, Child)> = Vec::new();
    let count = stages.len();
    for (number, mut stage) in stages.into_iter().enumerate() {
        match running.last_mut().and_then(|(_, child)| child.stdout.take()) {
            Some(output) => stage.stdin(output),
            None => stage.stdin(Stdio::null()),
        };
        if number + 1 < count {
            stage.stdout(Stdio::piped());
        }
        let child = stage.spawn().with_context(|| format!("cannot start {}", shown(&stage)))?;
        running.push((shown(&stage), child));
    }
    for (name, child) in &mut running {
        let status = child.wait()?;
        if !status.success() {
            bail!("{name} ended with {status}");
        }
    }
    Ok(())
}
