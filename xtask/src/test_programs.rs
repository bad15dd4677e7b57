//! Builds the test programs, finds out which tests they hold, and runs some of these.

use std::io::{BufRead, BufReader};
use std::path::PathBuf;
use std::process::{Command, Stdio};

use anyhow::{Context, Result, bail};
use clap::ValueEnum;
use serde::Deserialize;

use crate::command::{as_root, command, run_quietly, shown};
use crate::test_summary::Summary;
use crate::workspace::{Workspace, cargo};

/// What a test needs, told by how its name starts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Tier {
    /// Needs nothing.
    Unit,
    /// `loop_`: writes to loop devices, as root.
    Disk,
    /// `vm_`: boots the ramdisk in virtual machines.
    Vm,
    /// `ironic_`: the same, driven by a real Ironic from PyPI.
    Ironic,
}

/// A program with tests.
#[derive(Debug)]
pub struct TestProgram {
    executable: PathBuf,
    package_folder: PathBuf,
    tests: Vec<(Tier, String)>,
}

#[derive(Deserialize)]
struct CargoMessage {
    executable: Option<PathBuf>,
    manifest_path: Option<PathBuf>,
    #[serde(default)]
    profile: CargoProfile,
}

#[derive(Default, Deserialize)]
struct CargoProfile {
    test: bool,
}

impl Tier {
    /// The tier of a test by its path, such as `wipe::tests::loop_wipes_all`. Modules may be called
    /// anything: only the function's own name counts.
    fn of(test: &str) -> Self {
        let name = test.rsplit("::").next().unwrap_or(test);
        if name.starts_with("loop_") {
            Self::Disk
        } else if name.starts_with("vm_") {
            Self::Vm
        } else if name.starts_with("ironic_") {
            Self::Ironic
        } else {
            Self::Unit
        }
    }

    /// How many tests run at a time: each machine gets a processor, and one that Ironic leads another for
    /// Ironic; disks get all of them.
    fn threads(self) -> usize {
        let processors = std::thread::available_parallelism().map_or(1, usize::from);
        match self {
            Self::Unit | Self::Vm => processors,
            Self::Disk => 1,
            Self::Ironic => (processors / 2).max(1),
        }
    }
}

/// Builds all test programs of the workspace.
pub fn build(workspace: &Workspace) -> Result<Vec<TestProgram>> {
    let mut build = cargo();
    build.args(["test", "--workspace", "--no-run", "--message-format", "json-render-diagnostics"]);
    let output = build.current_dir(&workspace.root).stdin(Stdio::null()).stderr(Stdio::inherit()).output()?;
    if !output.status.success() {
        bail!("the tests cannot be built");
    }
    let mut programs = Vec::new();
    for line in String::from_utf8_lossy(&output.stdout).lines() {
        let message: CargoMessage =
            serde_json::from_str(line).with_context(|| format!("cargo printed {line}"))?;
        let (Some(executable), Some(manifest), true) =
            (message.executable, message.manifest_path, message.profile.test)
        else {
            continue;
        };
        let list = run_quietly(command(&executable).args(["--list", "--format", "terse"]))?;
        let names = list.lines().filter_map(|line| line.strip_suffix(": test"));
        let tests = names.map(|name| (Tier::of(name), name.to_owned())).collect();
        let package_folder = manifest.parent().context("a package without a folder")?.to_owned();
        programs.push(TestProgram { executable, package_folder, tests });
    }
    Ok(programs)
}

impl TestProgram {
    /// Runs the tests of one tier with `environment`, showing what they print.
    pub fn run(&self, tier: Tier, environment: &[(&str, String)]) -> Result<Summary> {
        let names: Vec<_> = self.tests.iter().filter(|(of, _)| *of == tier).map(|(_, name)| name).collect();
        if names.is_empty() {
            return Ok(Summary::default());
        }
        let mut program = if tier == Tier::Disk { as_root("env") } else { command("env") };
        program.args(environment.iter().map(|(name, value)| format!("{name}={value}")));
        // As cargo itself does it.
        program.arg(format!("CARGO_MANIFEST_DIR={}", self.package_folder.display())).arg(&self.executable);
        program
            .arg(format!("--test-threads={}", tier.threads()))
            .args(["--show-output", "--exact"])
            .args(names);
        run_and_count(program.current_dir(&self.package_folder))
    }
}

/// Runs the examples in the documentation.
pub fn run_documentation(workspace: &Workspace) -> Result<Summary> {
    run_and_count(cargo().args(["test", "--quiet", "--workspace", "--doc"]).current_dir(&workspace.root))
}

fn run_and_count(command: &mut Command) -> Result<Summary> {
    let mut child = command
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .spawn()
        .with_context(|| format!("cannot start {}", shown(command)))?;
    let mut lines = Vec::new();
    for line in child.stdout.take().into_iter().flat_map(|output| BufReader::new(output).split(b'\n')) {
        let line = String::from_utf8_lossy(&line?).into_owned();
        println!("{line}");
        lines.push(line);
    }
    let is_success = child.wait()?.success();
    let summary = Summary::of_output(lines.iter().map(String::as_str));
    Ok(if !is_success && summary.failed == 0 { Summary { failed: 1, ..summary } } else { summary })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_functions_name_tells_the_tier() {
        for (test, tier) in [
            ("loop_device::tests::sizes_are_read", Tier::Unit),
            ("wipe::tests::loop_wipes_all", Tier::Disk),
            ("vm_deploys", Tier::Vm),
            ("vm_image::plain", Tier::Unit),
            ("ironic_deploys", Tier::Ironic),
            ("ironic::api::tests::answers_are_read", Tier::Unit),
        ] {
            assert_eq!(Tier::of(test), tier, "{test}");
        }
    }
}
