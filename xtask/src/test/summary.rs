//! Reads what Rust's test programs print.

use std::ops::AddAssign;

use serde::Serialize;

/// What tests print, alone on a line, before they end early because the machine lacks something.
const SKIPPED: &str = "skipped: ";

/// How many tests had which result.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct Summary {
    /// Tests that ran and found nothing wrong.
    pub passed: usize,
    /// Tests that found something wrong or could not be run to the end.
    pub failed: usize,
    /// Tests that did not run, or said that they could not.
    pub skipped: usize,
}

impl Summary {
    /// One failure of something that should have become tests.
    pub const FAILURE: Self = Self { passed: 0, failed: 1, skipped: 0 };

    /// Adds up the output of test programs. A program that was cut short counts as one failure.
    pub fn of_output<'a>(lines: impl IntoIterator<Item = &'a str>) -> Self {
        let (mut summary, mut said_skipped, mut unfinished) = (Self::default(), 0, 0);
        for line in lines {
            if line.starts_with("running ") && (line.ends_with(" tests") || line.ends_with(" test")) {
                unfinished += 1;
            } else if line.starts_with(SKIPPED) {
                said_skipped += 1;
            } else if let Some(result) = parse_result(line) {
                unfinished -= 1;
                summary += result;
            }
        }
        // The harness counts tests that ended early as passed.
        let moved = summary.passed.min(said_skipped);
        summary += Self { passed: 0, failed: usize::try_from(unfinished).unwrap_or(0), skipped: moved };
        summary.passed -= moved;
        summary
    }
}

impl AddAssign for Summary {
    fn add_assign(&mut self, other: Self) {
        self.passed += other.passed;
        self.failed += other.failed;
        self.skipped += other.skipped;
    }
}

impl std::fmt::Display for Summary {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { passed, failed, skipped } = self;
        write!(out, "{passed} passed, {failed} failed, {skipped} skipped")
    }
}

/// Reads `test result: ok. 3 passed; 0 failed; 1 ignored; ...`.
fn parse_result(line: &str) -> Option<Summary> {
    let (_, counts) = line.strip_prefix("test result: ")?.split_once(". ")?;
    let count = |label: &str| {
        counts
            .split("; ")
            .find_map(|part| part.strip_suffix(label))
            .and_then(|number| number.trim().parse().ok())
    };
    Some(Summary { passed: count("passed")?, failed: count("failed")?, skipped: count("ignored")? })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn results_are_added_up() {
        for (output, expected) in [
            ("", (0, 0, 0)),
            (
                "running 1 test\ntest result: ok. 1 passed; 0 failed; 0 ignored; 0 measured; 2 filtered out; finished in 0.00s",
                (1, 0, 0),
            ),
            (
                "running 5 tests\nnoise\ntest result: FAILED. 2 passed; 1 failed; 2 ignored; 0 measured; 0 filtered out\n\
                 running 0 tests\ntest result: ok. 0 passed; 0 failed; 0 ignored; 0 measured",
                (2, 1, 2),
            ),
            (
                "running 2 tests\n---- loop_wipe stdout ----\nskipped: needs root\n\
                 test result: ok. 2 passed; 0 failed; 0 ignored; 0 measured",
                (1, 0, 1),
            ),
            ("running 2 tests\nthread panicked, SIGABRT", (0, 1, 0)),
            ("running late\ntest result: nonsense", (0, 0, 0)),
        ] {
            let (passed, failed, skipped) = expected;
            assert_eq!(Summary::of_output(output.lines()), Summary { passed, failed, skipped }, "{output}");
        }
    }

    #[test]
    fn the_closing_line_is_fixed() {
        let summary = Summary { passed: 3, failed: 0, skipped: 1 };
        assert_eq!(summary.to_string(), "3 passed, 0 failed, 1 skipped");
    }
}
