//! What libiscsi's tests found, as a page of the book.

use std::fmt::{self, Display, Write};

use anyhow::{Result, ensure};
use serde::Serialize;

use crate::host::workspace::Workspace;

const PAGE: &str = "docs/src/iscsi-conformance.md";

/// What suites of tests are about, in the order of the page; the others come last.
const SUBJECTS: &[(&str, &[&str])] = &[
    (
        "reading",
        &[
            "Read6",
            "Read10",
            "Read12",
            "Read16",
            "ReadCapacity10",
            "ReadCapacity16",
            "Prefetch10",
            "Prefetch16",
        ],
    ),
    (
        "writing",
        &[
            "Write10",
            "Write12",
            "Write16",
            "WriteVerify10",
            "WriteVerify12",
            "WriteVerify16",
            "OrWrite",
            "CompareAndWrite",
            "WriteAtomic16",
        ],
    ),
    ("verifying", &["Verify10", "Verify12", "Verify16"]),
    ("unmapping", &["Unmap", "GetLBAStatus"]),
    ("writing the same", &["WriteSame10", "WriteSame16"]),
    (
        "reservations",
        &[
            "Reserve6",
            "PrinReadKeys",
            "PrinServiceactionRange",
            "PrinReportCapabilities",
            "ProutRegister",
            "ProutReserve",
            "ProutClear",
            "ProutPreempt",
        ],
    ),
    ("iSCSI itself", &["iSCSIcmdsn", "iSCSIdatasn", "iSCSIResiduals", "iSCSITMF"]),
];
/// What the others are about.
const OTHERS: &str = "other commands";

/// Tests, by how their names begin, that fail against the kernel's target or may do so, and why.
const KNOWN: &[(&str, &str)] = &[
    (
        "ALL.CompareAndWrite.",
        "more blocks than LIO compares at once are refused, but with another sense code",
    ),
    ("ALL.Inquiry.BlockLimits", "the disk unmaps more blocks at once than the test believes"),
    ("ALL.ReceiveCopyResults.CopyStatus", "LIO returns the parameters of copies only, not their result"),
    ("ALL.Reserve6.Logout", "by chance: the reservation seems to go a moment after the logout was answered"),
    ("ALL.Verify10.VerifyProtect", PROTECTION),
    ("ALL.Verify16.VerifyProtect", PROTECTION),
    ("ALL.Verify10.Mismatch", VERIFY),
    ("ALL.Verify16.Mismatch", VERIFY),
    ("ALL.iSCSIdatasn.iSCSIDataSnInvalid", "a write with a wrong number in its data seems to be taken"),
    (
        "ALL.iSCSIResiduals.",
        "a length on the wire that is not that of the command seems to be refused in some forms",
    ),
    ("ALL.iSCSITMF.LUNResetSimpleAsync", "seen; cause not investigated"),
];
const PROTECTION: &str = "LIO does not look at the protection that is asked for";
const VERIFY: &str = "LIO compares nothing on VERIFY: who wants to know reads back";

/// All tests of a run.
#[derive(Debug, Serialize)]
pub struct Report {
    /// Release of the kernel that exported the disk.
    pub kernel: String,
    /// The tests.
    pub tests: Vec<Test>,
}

/// One test.
#[derive(Debug, Serialize)]
pub struct Test {
    /// Its name: family, suite and test.
    pub name: String,
    /// What came of it.
    pub outcome: Outcome,
}

/// What came of a test.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Outcome {
    /// The target did as it should.
    Passed,
    /// The target does not have what is tested, and says so.
    Skipped,
    /// It did something else.
    Failed(String),
}

impl Outcome {
    /// Reads what a single test wrote.
    pub fn read(words: &str) -> Self {
        // Before the suite it tells what it found out about the target.
        let (_, words) = words.split_once("Suite:").unwrap_or_default();
        let is_skipped = words.contains("[SKIPPED]");
        let counts = words.lines().find_map(|line| line.trim().strip_prefix("tests "));
        let mut counts = counts.into_iter().flat_map(str::split_whitespace).map(str::parse::<u32>);
        // In all, run, passed, failed.
        let (_, run, _, failed) = (counts.next(), counts.next(), counts.next(), counts.next());
        match (run, failed) {
            (Some(Ok(1)), Some(Ok(0))) if is_skipped => Self::Skipped,
            (Some(Ok(1)), Some(Ok(0))) => Self::Passed,
            _ => Self::Failed(reason(words)),
        }
    }
}

/// The first complaint.
fn reason(words: &str) -> String {
    let complaint = words.lines().find_map(|line| line.split_once("[FAILED]"));
    let assertion = || words.lines().map(str::trim).find(|line| line.starts_with("1. "));
    let text = complaint.map(|(_, text)| text.trim()).or_else(assertion).unwrap_or("it told nothing");
    text.replace('|', "/")
}

impl Display for Outcome {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Passed => f.write_str("passed"),
            Self::Skipped => f.write_str("skipped"),
            Self::Failed(reason) => write!(f, "FAILED: {reason}"),
        }
    }
}

impl Test {
    fn suite(&self) -> &str {
        self.name.split('.').nth(1).unwrap_or_default()
    }

    fn subject(&self) -> &'static str {
        let subject = SUBJECTS.iter().find(|(_, suites)| suites.contains(&self.suite()));
        subject.map_or(OTHERS, |(subject, _)| subject)
    }

    fn why_known(&self) -> Option<&'static str> {
        KNOWN.iter().find(|(name, _)| self.name.starts_with(name)).map(|(_, why)| *why)
    }
}

impl Report {
    /// The sums.
    pub fn line(&self) -> String {
        let [all, passed, skipped, failed] = counts(self.tests.iter());
        format!("{all} tests: {passed} passed, {skipped} skipped, {failed} failed")
    }

    /// Fails when a test does that is not known to.
    pub fn require_known_failures(&self) -> Result<()> {
        let unknown = self.failed().filter(|(test, _)| test.why_known().is_none());
        let unknown: Vec<_> = unknown.map(|(test, reason)| format!("{}: {reason}", test.name)).collect();
        ensure!(unknown.is_empty(), "not known to fail:\n{}", unknown.join("\n"));
        Ok(())
    }

    /// Writes the page.
    pub fn write_page(&self, workspace: &Workspace) -> Result<()> {
        workspace.write_page(PAGE, &self.page())
    }

    fn failed(&self) -> impl Iterator<Item = (&Test, &str)> {
        self.tests.iter().filter_map(|test| match &test.outcome {
            Outcome::Failed(reason) => Some((test, reason.as_str())),
            _ => None,
        })
    }

    fn page(&self) -> String {
        let mut page = format!(
            "# The iSCSI export, tested by others

This page is written by `cargo xtask iscsi-conformance --page`.

An emulated machine boots the ramdisk, its agent [exports the disk](iscsi.md), and libiscsi's `iscsi-test-cu` runs each
of its tests from this side of the network. The target is that of the kernel, {kernel}. A test is skipped when the
target does not have what is tested, and says so.

{line}.

| what is tested | tests | passed | skipped | failed |
|---|---|---|---|---|
",
            kernel = self.kernel,
            line = self.line(),
        );
        for subject in SUBJECTS.iter().map(|(subject, _)| *subject).chain([OTHERS]) {
            let [all, passed, skipped, failed] =
                counts(self.tests.iter().filter(|test| test.subject() == subject));
            // Writing to a string cannot fail.
            writeln!(page, "| {subject} | {all} | {passed} | {skipped} | {failed} |").ok();
        }
        if self.failed().next().is_some() {
            page +=
                "\n## What fails\n\n| test | what it found | why, as far as it is known |\n|---|---|---|\n";
        }
        for (test, reason) in self.failed() {
            writeln!(page, "| `{}` | {reason} | {} |", test.name, test.why_known().unwrap_or("not known"))
                .ok();
        }
        page
    }
}

/// All, passed, skipped, failed.
fn counts<'a>(tests: impl Iterator<Item = &'a Test>) -> [usize; 4] {
    tests.fold([0; 4], |mut counts, test| {
        counts[0] += 1;
        counts[match test.outcome {
            Outcome::Passed => 1,
            Outcome::Skipped => 2,
            Outcome::Failed(_) => 3,
        }] += 1;
        counts
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(inside: &str, run: u32, failed: u32) -> String {
        format!(
            "    [SKIPPED] REPORT_SUPPORTED_OPCODES is not implemented.\nSuite: Read10\n  Test: Simple ...{inside}\n\nRun Summary:    Type  Total    Ran Passed Failed Inactive\n\
             \x20             suites     41      1    n/a      0        0\n\
             \x20              tests    180      {run}      1      {failed}        0\n"
        )
    }

    #[test]
    fn outcomes_are_read_from_the_summary() {
        for (words, expected) in [
            (words("passed", 1, 0), Outcome::Passed),
            (words("    [SKIPPED] READ6 is not implemented.\npassed", 1, 0), Outcome::Skipped),
            (
                words("    [FAILED] READ10 failed | again\nFAILED", 1, 1),
                Outcome::Failed("READ10 failed / again".into()),
            ),
            (
                words("FAILED\n    1. test_read.c:41  - CU_FAIL", 1, 1),
                Outcome::Failed("1. test_read.c:41  - CU_FAIL".into()),
            ),
            (words("", 0, 0), Outcome::Failed("it told nothing".into())),
            ("cannot log in".into(), Outcome::Failed("it told nothing".into())),
        ] {
            assert_eq!(Outcome::read(&words), expected, "{words}");
        }
    }

    #[test]
    fn the_page_has_every_test_once_and_names_what_fails() {
        let test = |name: &str, outcome| Test { name: name.into(), outcome };
        let report = Report {
            kernel: "6.1".into(),
            tests: vec![
                test("ALL.Read10.Simple", Outcome::Passed),
                test("ALL.Unmap.VPD", Outcome::Skipped),
                test("ALL.Inquiry.Standard", Outcome::Failed("no version".into())),
            ],
        };
        let page = report.page();
        for line in [
            "3 tests: 1 passed, 1 skipped, 1 failed.",
            "| reading | 1 | 1 | 0 | 0 |",
            "| unmapping | 1 | 0 | 1 | 0 |",
            "| other commands | 1 | 0 | 0 | 1 |",
            "| `ALL.Inquiry.Standard` | no version | not known |",
        ] {
            assert!(page.contains(line), "{line}: {page}");
        }
        let error = report.require_known_failures().unwrap_err().to_string();
        assert!(error.contains("ALL.Inquiry.Standard: no version") && !error.contains("Unmap"), "{error}");
    }
}
