//! Which tests failed, and what they said, from what Rust's test programs print.

use std::fmt;

use serde::Serialize;

/// What stands before the names of tests that failed.
const INDENTATION: &str = "    ";
/// How many lines of what a test said are shown where the report ends.
const SHOWN_LINES: usize = 6;
/// How many characters of each: a console in one line is long.
const SHOWN_CHARACTERS: usize = 400;

/// A test that failed, or something that should have become tests.
#[derive(Debug, PartialEq, Eq, Serialize)]
pub struct Failure {
    /// The test by its path.
    name: String,
    /// The beginning of what it panicked with.
    said: Vec<String>,
}

impl Failure {
    /// Of something that said nothing.
    pub fn new(name: impl Into<String>) -> Self {
        Self { name: name.into(), said: Vec::new() }
    }

    /// Those that the harness names at the end of what it prints.
    pub fn of_output(lines: &[String]) -> Vec<Self> {
        let mut is_list = false;
        let mut failures = Vec::new();
        for line in lines {
            is_list = line == "failures:" || is_list && line.starts_with(INDENTATION);
            if let Some(name) = line.strip_prefix(INDENTATION).filter(|_| is_list) {
                failures.push(Self { name: name.to_owned(), said: said(name, lines) });
            }
        }
        failures
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "failed: {}", self.name)?;
        self.said.iter().try_for_each(|line| write!(out, "\n{INDENTATION}{line}"))
    }
}

/// What a test panicked with: what follows the place of the panic, without the stack.
fn said(test: &str, lines: &[String]) -> Vec<String> {
    let heading = format!("---- {test} stdout ----");
    let own = lines.iter().skip_while(|line| **line != heading).skip(1);
    let own = own.take_while(|line| !(line.starts_with("---- ") && line.ends_with(" stdout ----")));
    let message =
        own.skip_while(|line| !(line.starts_with("thread '") && line.contains(" panicked at "))).skip(1);
    let message =
        message.take_while(|line| *line != "stack backtrace:" && !line.starts_with("note: run with"));
    message.take(SHOWN_LINES).map(|line| line.chars().take(SHOWN_CHARACTERS).collect()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn failures(output: &str) -> Vec<Failure> {
        Failure::of_output(&output.lines().map(str::to_owned).collect::<Vec<_>>())
    }

    #[test]
    fn those_that_failed_are_named_whatever_they_print() {
        let output = "running 3 tests\ntest a ... ok\ntest b::c ... FAILED\n\nsuccesses:\n\n---- a stdout ----\n    noise\n\n\
                      successes:\n    a\n\nfailures:\n\n---- b::c stdout ----\nfailures of a disk:\n    noise\n\nfailures:\n    b::c\n    d\n\n\
                      test result: FAILED. 1 passed; 2 failed; 0 ignored; 0 measured\n";
        assert_eq!(failures(output), [Failure::new("b::c"), Failure::new("d")]);
        assert_eq!(failures(""), []);
    }

    #[test]
    fn what_they_said_is_shown_without_the_stack() {
        let long = "x".repeat(500);
        let output = format!(
            "---- a stdout ----\nnoise\nthread 'a' (7) panicked at tests/a.rs:1:2:\nassertion failed\n  left: {long}\n\
             stack backtrace:\n   0: rust_begin_unwind\n\n---- b stdout ----\nthread 'b' (8) panicked at tests/b.rs:3:4:\n\
             six\nlines\nof\nthis\nare\nenough\nfor all\n\nfailures:\n    a\n    b\n"
        );
        let shown: Vec<_> = failures(&output).iter().map(ToString::to_string).collect();
        let cut = "x".repeat(SHOWN_CHARACTERS - "  left: ".len());
        assert_eq!(
            shown,
            [
                format!("failed: a\n    assertion failed\n      left: {cut}"),
                "failed: b\n    six\n    lines\n    of\n    this\n    are\n    enough".to_owned(),
            ]
        );
    }
}
