//! Tests that a package from PyPI comes with.

use farrier_tests::environment;
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Prints what came of each test.
const RUNNER: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/client/run_tests.py");

/// What came of tests, each by its class and function.
#[derive(Debug)]
pub struct Outcomes {
    pub passed: BTreeSet<String>,
    pub skipped: BTreeSet<String>,
    /// Those that were not run too.
    pub failed: BTreeSet<String>,
    /// What the tests complained of.
    pub complaints: String,
}

impl Outcomes {
    /// How many there are.
    pub fn count(&self) -> usize {
        self.passed.len() + self.skipped.len() + self.failed.len()
    }
}

/// Runs the tests in a folder below that of all packages, with further variables.
pub fn run(tests: &str, environment: &[(&str, &Path)]) -> Outcomes {
    let clients = environment::path("FARRIER_CLIENTS");
    let output = Command::new(clients.join("bin/python"))
        .args([RUNNER, tests])
        .current_dir(packages(&clients))
        .envs(environment.iter().copied())
        // In seconds, for each test: clients wait between their attempts.
        .env("OS_TEST_TIMEOUT", "60")
        .output()
        .unwrap();
    let (printed, complaints) =
        (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    let of = |wanted: &[&str]| {
        let name = |line: &str| {
            let (outcome, name) = line.strip_prefix("came of it: ")?.split_once(" of ")?;
            wanted.contains(&outcome).then(|| name.to_owned())
        };
        printed.lines().filter_map(name).collect()
    };
    Outcomes {
        passed: of(&["passed"]),
        skipped: of(&["skipped"]),
        failed: of(&["failed", "was not run"]),
        complaints: complaints.into_owned(),
    }
}

/// Where the packages of a Python environment are.
fn packages(environment: &Path) -> PathBuf {
    let libraries = environment.join("lib").read_dir().unwrap().next().unwrap().unwrap().path();
    libraries.join("site-packages")
}
