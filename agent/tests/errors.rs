//! The errors of the program, each with its code.

#![allow(clippy::unwrap_used)]

use std::process::Command;

/// Whether the process ended with this status, and the last line on standard error with this code.
fn assert_ends(arguments: &[&str], status: i32, text: &str, code: &str) {
    let output = Command::new(env!("CARGO_BIN_EXE_farrier-agent")).args(arguments).output().unwrap();
    let complaint = String::from_utf8(output.stderr).unwrap();
    let last = complaint.trim_end();
    assert_eq!(output.status.code(), Some(status), "{arguments:?}: {complaint}");
    assert!(last.contains(text) && last.ends_with(&format!(" [{code}]")), "{arguments:?}: {complaint}");
}

#[test]
fn process_each_command_of_the_agent_that_fails_prints_the_code_of_its_error() {
    let docs = "/proc/self/none";
    for (arguments, status, text, code) in [
        (&["--no-such-option"][..], 2, "--no-such-option", "FAR-0709"),
        (&["plan", "--root-device", "size=10"], 1, "--root-device must be JSON", "FAR-0709"),
        (&["plan", "--root-device", r#"{"serial": "none"}"#], 1, "correct the hints", "FAR-0428"),
        (&["init"], 1, "init works as PID 1 only", "FAR-0709"),
        (&["reference", docs], 1, docs, "FAR-0710"),
        (&["check-manager", "/absent"], 1, "/absent breaks", "FAR-0712"),
    ] {
        assert_ends(arguments, status, text, code);
    }
}
