//! The errors of the program, each with its code.

#![allow(clippy::unwrap_used)]

use std::process::{Command, Stdio};

/// Whether the process ended with this status, and the last line on standard error with this code.
fn assert_ends(command: &mut Command, status: i32, text: &str, code: &str) {
    let output = command.output().unwrap();
    let complaint = String::from_utf8(output.stderr).unwrap();
    let last = complaint.trim_end();
    assert_eq!(output.status.code(), Some(status), "{complaint}");
    assert!(last.contains(text) && last.ends_with(&format!(" [{code}]")), "{complaint}");
}

fn farrier_image(arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_farrier-image"));
    command.args(arguments).stdout(Stdio::piped());
    command
}

#[test]
fn process_each_build_that_fails_prints_the_code_of_its_error() {
    let folder = tempfile::tempdir().unwrap();
    let here = folder.path().to_str().unwrap();
    std::fs::write(folder.path().join("manifest.json"), "{}").unwrap();
    let build =
        |agent: &'static str| vec!["build", "--kernel", "/absent", "--modules", "/absent", "--agent", agent];
    for (arguments, status, text, code) in [
        (vec!["build", "--format", "cd"], 2, "cd", "FAR-1018"),
        (vec!["media", "--dist", here, "--output", here], 1, "run farrier-image build", "FAR-1015"),
        (build("/absent"), 1, "cannot read /absent", "FAR-1001"),
        (build("/bin/true"), 1, "/bin/true is linked dynamically", "FAR-1004"),
    ] {
        assert_ends(&mut farrier_image(&arguments), status, text, code);
    }
}
