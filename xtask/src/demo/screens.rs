//! The pictures of the README, taken while the demonstration runs.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use farrier_tests::conductor::lab::Event;
use farrier_tests::machine::monitor::Monitor;
use serde_json::json;

use super::terminal;
use crate::host::workspace::Workspace;

/// What is done when the picture of the machine is taken, and after which part of it.
const MOMENT: (&str, f64) = ("writing", 0.4);

/// Takes the pictures.
#[derive(Debug)]
pub struct Screens {
    /// Where the machine's monitor listens.
    monitor: PathBuf,
    /// Where the pictures go.
    folder: PathBuf,
    is_taken: bool,
}

impl Screens {
    /// Takes pictures of the machine whose monitor is in `machine`.
    pub fn new(workspace: &Workspace, machine: &Path) -> Self {
        let folder = workspace.root.join("docs/src/screens");
        Self { monitor: machine.join("monitor"), folder, is_taken: false }
    }

    /// What the machine needs beside what every one has: a graphics card, and somebody to photograph it.
    pub fn driver_info(&self) -> Vec<String> {
        let arguments = Monitor::arguments(&self.monitor).join(" ");
        vec![
            format!("qemu_extra_args=-vga std {arguments}"),
            // The last one named is where the ramdisk's own messages go.
            "kernel_append_params=console=tty0 console=ttyS0".to_owned(),
        ]
    }

    /// Takes the picture of the machine when the moment has come.
    pub fn look(&mut self, event: &Event) -> Result<()> {
        let done = event.bytes as f64 / event.total_bytes.unwrap_or(u64::MAX).max(1) as f64;
        if self.is_taken || event.phase != MOMENT.0 || done < MOMENT.1 {
            return Ok(());
        }
        self.is_taken = true;
        let file = self.folder.join("machine.png");
        let order = json!({"filename": file, "format": "png"});
        Monitor::connect(&self.monitor)?.execute("screendump", &order).map(drop)
    }

    /// Draws what the demonstration printed.
    pub fn draw(&self, lines: &[String]) -> Result<()> {
        let file = self.folder.join("demonstration.svg");
        fs::write(&file, terminal::picture("cargo xtask demo", lines))
            .with_context(|| format!("cannot write {}", file.display()))
    }
}
