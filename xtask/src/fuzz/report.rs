//! What the fuzz targets ran, as a page of the book.

use std::fmt::Write;

use anyhow::Result;

use crate::workspace::Workspace;

const PAGE: &str = "docs/src/fuzzing.md";

/// All targets of a run, none of which found anything.
#[derive(Debug)]
pub struct Report {
    minutes: u64,
    pub runs: Vec<Run>,
}

/// One target to the end of its time.
#[derive(Debug, PartialEq, Eq)]
pub struct Run {
    target: String,
    subject: String,
    executions: u64,
    peak_mib: u64,
}

impl Run {
    /// Reads the figures that libFuzzer ends with; nothing when one is missing.
    pub fn read(target: &str, subject: String, words: &str) -> Option<Self> {
        let figure = |name: &str| {
            let mut figures = words.lines().filter_map(|line| line.strip_prefix("stat::")?.split_once(':'));
            figures.find(|(found, _)| *found == name)?.1.trim().parse().ok()
        };
        Some(Self {
            target: target.to_owned(),
            subject,
            executions: figure("number_of_executed_units")?,
            peak_mib: figure("peak_rss_mb")?,
        })
    }
}

impl Report {
    /// `minutes` is the time of each target.
    pub fn new(minutes: u64) -> Self {
        Self { minutes, runs: Vec::new() }
    }

    /// Writes the page.
    pub fn write_page(&self, workspace: &Workspace) -> Result<()> {
        workspace.write_page(PAGE, &self.page())
    }

    fn page(&self) -> String {
        let mut page = format!(
            "# Hostile input

This page is written by `cargo xtask fuzz --page --minutes {minutes}`.

Every target is given {minutes} minutes of one processor with the address sanitizer, at most 1 GiB of memory and
20 seconds for an input. The inputs it starts from are in `fuzz/seeds`; a panic, a failed assertion, an access
outside of what was allocated, or a limit that is passed ends the run, and no page is written.

No target found anything.

| target | what it reads | inputs tried | memory at most, MiB |
|---|---|---|---|
",
            minutes = self.minutes
        );
        for Run { target, subject, executions, peak_mib } in &self.runs {
            // Writing to a string cannot fail.
            writeln!(page, "| `{target}` | {subject} | {executions} | {peak_mib} |").ok();
        }
        page
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const WORDS: &str = "Done 812 runs in 3 second(s)
stat::number_of_executed_units: 812
stat::average_exec_per_sec:     270
stat::new_units_added:          4
stat::slowest_unit_time_sec:    0
stat::peak_rss_mb:              61
";

    #[test]
    fn the_page_tells_what_was_tried() {
        let run = Run::read("hints", "Root device hints.".into(), WORDS).expect("figures");
        let page = Report { minutes: 15, runs: vec![run] }.page();
        assert!(page.contains("| `hints` | Root device hints. | 812 | 61 |"), "{page}");
        assert!(page.contains("--minutes 15"), "{page}");
    }

    #[test]
    fn a_run_without_figures_is_none() {
        let words = WORDS.replace("peak_rss_mb", "peak");
        assert_eq!(Run::read("hints", String::new(), &words), None);
    }
}
