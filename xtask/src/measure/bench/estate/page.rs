//! The page of the book with the figures.

use anyhow::Result;

use super::report::{EstateReport, TOLD};
use crate::book::page::Measured;
use crate::book::plot::{Arrangement, Bar, Plot, Row};

/// Letters of a statement in the plot.
const SHORT: usize = 48;

impl Measured for EstateReport {
    const NAME: &'static str = "estate-benchmark";

    fn text(&self) -> Result<String> {
        let rows = self.statements.iter().take(TOLD).map(|statement| {
            let (count, ms) = self.each_second(statement);
            format!("| `{}` | {count:.2} | {ms:.3} ms |\n", statement.text.replace('|', "\\|"))
        });
        Ok(format!(
            "# Benchmark: a large estate

This page is written by `cargo xtask bench estate --page`.

Machine: {machine}. `farrier` has {resting} nodes at rest and {working} nodes that wait in an operation, all of `fake-hardware`,
in SQLite. Power sync reads the power state of each node at rest every 120 s. The nodes in work have a worker each. What BMCs,
agents and images cost is not within these figures.

In {seconds} s, `farrier` took **{processors:.2} of one processor** and at most **{peak} MiB of memory**. The budget is half a
processor and 300 MiB.

![Milliseconds of each second, by statement](estate-benchmark.svg)

In a second run the log has each statement of the store. The time of a statement ends with its last row.

| statement | runs a second | time of each second |
|---|---|---|
{rows}
```console
$ cargo xtask bench estate
$ cargo xtask bench estate --resting 10000 --working 300    # a smaller one
```
",
            machine = self.machine,
            resting = self.resting,
            working = self.working,
            seconds = self.seconds,
            processors = self.processors,
            peak = self.peak_kib.div_ceil(1024),
            rows = rows.collect::<String>(),
        ))
    }

    fn plots(&self) -> Vec<(String, Plot)> {
        let rows = self.statements.iter().take(TOLD).map(|statement| Row {
            name: statement.text.chars().take(SHORT).collect(),
            bars: vec![Some(Bar::of(self.each_second(statement).1, 2))],
        });
        let plot = Plot {
            title: format!("{} nodes at rest and {} in work", self.resting, self.working),
            axis: "ms of each second".to_owned(),
            series: vec!["statements of the store"],
            arrangement: Arrangement::Grouped,
            rows: rows.collect(),
        };
        vec![(Self::NAME.to_owned(), plot)]
    }
}

#[cfg(test)]
mod tests {
    use super::super::report::tests::report;
    use super::*;

    #[test]
    fn the_page_tells_the_cost_and_the_statements() {
        let text = report(0.123, 2048).text().unwrap();
        assert!(text.contains("**0.12 of one processor** and at most **2 MiB of memory**"), "{text}");
        assert!(text.contains("| `SELECT \\| 1` | 2.00 | 0.500 ms |"), "{text}");
    }
}
