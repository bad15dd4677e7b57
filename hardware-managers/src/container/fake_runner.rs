//! A stand-in for podman: a script that notes how it was called.

use super::{Runner, RunnerKind};
use crate::inventory::fake_program::install;
use std::fs;
use std::path::Path;
use tempfile::TempDir;

/// A folder that looks like the root of a ramdisk with podman.
pub struct FakeRunner(TempDir);

impl FakeRunner {
    /// A podman that does what `script` says, with the root's folder in `$ROOT`.
    pub fn new(script: &str) -> Self {
        let root = tempfile::tempdir().unwrap();
        for folder in ["usr/bin", "run"] {
            fs::create_dir_all(root.path().join(folder)).unwrap();
        }
        let program = root.path().join("usr/bin/podman");
        let path = root.path().display();
        let text = format!("#!/bin/sh\nROOT={path}\necho \"$*\" >> \"$ROOT/calls\"\n{script}\n");
        install(&program, &text);
        Self(root)
    }

    pub fn root(&self) -> &Path {
        self.0.path()
    }

    pub fn runner(&self) -> Runner {
        Runner::new(RunnerKind::Podman, self.root())
    }

    /// Each call's arguments.
    pub fn calls(&self) -> Vec<String> {
        let calls = fs::read_to_string(self.root().join("calls")).unwrap_or_default();
        calls.lines().map(str::to_owned).collect()
    }
}
