//! What the fuzz targets ran, as a page of the book.

use std::fmt::{self, Display, Write};

use anyhow::{Result, ensure};

use crate::host::workspace::Workspace;

const PAGE: &str = "docs/src/fuzzing.md";

/// All targets of a run, none of which found anything.
#[derive(Debug)]
pub struct Report {
    seconds: u64,
    pub runs: Vec<Run>,
}

/// Inputs that a target has to try in a second of one processor; fewer find nothing.
const FLOOR: u64 = 1000;
/// The same for those that write each input to a disk and look at what is there then: at an image that was written in
/// two ways, at the signatures that libblkid finds, at megabytes that must be zeros.
const WRITERS: &[(&str, u64)] = &[("qcow2", 300), ("partition_image", 150), ("wipe", 150)];

/// One target to the end of its time.
#[derive(Debug, PartialEq, Eq)]
pub struct Run {
    target: String,
    subject: String,
    executions: u64,
    /// Inputs in a second of one processor.
    rate: u64,
    peak_mib: u64,
}

impl Run {
    /// Reads the figures that libFuzzer ends with, for a run that took so many seconds of a processor; nothing
    /// when one is missing.
    pub fn read(target: &str, subject: String, words: &str, seconds: f64) -> Option<Self> {
        let figure = |name: &str| {
            let mut figures = words.lines().filter_map(|line| line.strip_prefix("stat::")?.split_once(':'));
            figures.find(|(found, _)| *found == name)?.1.trim().parse().ok()
        };
        let executions = figure("number_of_executed_units")?;
        Some(Self {
            target: target.to_owned(),
            subject,
            executions,
            rate: (executions as f64 / seconds.max(1.0)) as u64,
            peak_mib: figure("peak_rss_mb")?,
        })
    }

    fn floor(&self) -> u64 {
        WRITERS.iter().find(|(writer, _)| *writer == self.target).map_or(FLOOR, |(_, floor)| *floor)
    }
}

impl Display for Run {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { target, executions, rate, .. } = self;
        write!(formatter, "{target}: {executions} inputs, {rate} a second, at least {} wanted", self.floor())
    }
}

impl Report {
    /// `seconds` is the time of each target.
    pub fn new(seconds: u64) -> Self {
        Self { seconds, runs: Vec::new() }
    }

    /// Fails when a target is so slow that it shows little.
    pub fn require_speed(&self) -> Result<()> {
        let slow = self.runs.iter().filter(|run| run.rate < run.floor());
        let slow: Vec<_> = slow.map(ToString::to_string).collect();
        ensure!(slow.is_empty(), "too slow, and no page is written:\n{}", slow.join("\n"));
        Ok(())
    }

    /// Writes the page.
    pub fn write_page(&self, workspace: &Workspace) -> Result<()> {
        workspace.write_page(PAGE, &self.page())
    }

    fn page(&self) -> String {
        let mut page = format!(
            "# Hostile input

This page is written by `cargo xtask fuzz --page --seconds {seconds}`.

Every target is given {seconds} seconds with the address sanitizer, at most 1 GiB of memory and 20 seconds for an
input. Its first inputs are in `fuzz/seeds`. A panic, a failed assertion, an access outside of allocated memory, or an
exceeded limit ends the run without a page. There is also no page if a target tries fewer than {FLOOR} inputs in a second of one processor, or one that writes every input to a disk, in memory, and
looks at what is there then, fewer than is said here: {writers}.

No target found anything.

| target | what it reads | inputs tried | in a second of one processor | memory at most, MiB |
|---|---|---|---|---|
",
            seconds = self.seconds,
            writers =
                WRITERS.iter().map(|(writer, floor)| format!("`{writer}` {floor}")).collect::<Vec<_>>().join(", ")
        );
        for Run { target, subject, executions, rate, peak_mib } in &self.runs {
            // Writing to a string cannot fail.
            writeln!(page, "| `{target}` | {subject} | {executions} | {rate} | {peak_mib} |").ok();
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
        let run = Run::read("hints", "Root device hints.".into(), WORDS, 2.0).expect("figures");
        let page = Report { seconds: 900, runs: vec![run] }.page();
        assert!(page.contains("| `hints` | Root device hints. | 812 | 406 | 61 |"), "{page}");
        assert!(page.contains("--seconds 900"), "{page}");
    }

    #[test]
    fn a_run_without_figures_is_none() {
        let words = WORDS.replace("peak_rss_mb", "peak");
        assert_eq!(Run::read("hints", String::new(), &words, 2.0), None);
    }

    #[test]
    fn x32_a_target_that_is_too_slow_fails_the_page() {
        for (target, seconds, expected) in
            [("hints", 0.8, true), ("hints", 1.2, false), ("qcow2", 2.5, true), ("qcow2", 3.1, false)]
        {
            let words = WORDS.replace("812", "900");
            let mut run = Run::read(target, String::new(), &words, 1.0).expect("figures");
            run.rate = (run.executions as f64 / seconds) as u64;
            let report = Report { seconds: 1, runs: vec![run] };
            assert_eq!(report.require_speed().is_ok(), expected, "{target} {seconds}");
        }
    }
}
