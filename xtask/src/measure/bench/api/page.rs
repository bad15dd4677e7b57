//! The page of the book with the figures.

use anyhow::{Context, Result};

use super::report::{
    ApiReport, CONNECTIONS, FOUR_FIELDS, IN_DETAIL, Kind, LISTED, MANY, MIXED, Mixed, PER_SECOND,
};
use crate::book::page::Measured;
use crate::book::plot::{Arrangement, Bar, Plot, Row};
use crate::measure::bench::conductors::RIVAL;

impl Measured for ApiReport {
    const NAME: &'static str = "api-benchmark";

    fn text(&self) -> Result<String> {
        let rows = self.kinds.iter().map(row).collect::<Result<String>>()?;
        let part = self.part().context("a list was not measured")?;
        let mix: String = self.mix.iter().map(mixed).collect();
        Ok(format!(
            "# Benchmark: the node API

This page is written by `cargo xtask bench api --page`.

Machine: {machine}. `farrier` and Ironic {RIVAL} run on it one after the other, with the same {LISTED} nodes in SQLite.

One client sends one request after the other. A time is the mean from the request to the whole answer; p99 is the time that
99 of 100 requests keep to.

| request | `farrier` | p99 | Ironic {RIVAL} | p99 | factor |
|---|---|---|---|---|---|
{rows}
![How many times as fast as Ironic](api-benchmark.svg)

The budget is a factor of 20 in each row. A list with four fields reads only these: it takes {part:.2} of the processor time
of a list in detail. For a detailed list of {MANY} nodes, page by page, `farrier` needs up to {peak} MiB of memory, because it
reads and sends the list in pieces.

## Many clients

{CONNECTIONS} clients, each with one connection, together send {PER_SECOND} requests a second to `farrier` with {MIXED} nodes. A
request that is late because its client was busy counts from the time at which it was due.

| request | share | mean | p99 |
|---|---|---|---|
{mix}
The budget is 20 ms for 99 of 100 changes.

```console
$ cargo xtask bench api            # with Ironic
$ cargo xtask bench api --alone    # farrier alone
```
",
            machine = self.machine,
            peak = self.peak_kib.div_ceil(1024),
        ))
    }

    fn plots(&self) -> Vec<(String, Plot)> {
        let rows = self.kinds.iter().map(|kind| Row {
            name: kind.name.clone(),
            bars: vec![kind.times().map(|times| Bar::of(times, 1))],
        });
        let plot = Plot {
            title: format!("How many times as fast as Ironic {RIVAL}"),
            axis: "mean time of Ironic by that of farrier".to_owned(),
            series: vec!["farrier"],
            arrangement: Arrangement::Grouped,
            rows: rows.collect(),
        };
        vec![(Self::NAME.to_owned(), plot)]
    }
}

fn row(kind: &Kind) -> Result<String> {
    let (ironic, times) = (kind.ironic.context("Ironic was not measured")?, kind.times().unwrap_or_default());
    let farrier = kind.farrier;
    let name = match kind.name.as_str() {
        FOUR_FIELDS => "list 1,000 nodes with four fields",
        IN_DETAIL => "list 1,000 nodes in detail",
        name => name,
    };
    Ok(format!(
        "| {name} | {:.2} ms | {:.2} ms | {:.1} ms | {:.1} ms | {times:.1} |\n",
        farrier.mean_ms, farrier.p99_ms, ironic.mean_ms, ironic.p99_ms
    ))
}

fn mixed(Mixed { name, percent, figures }: &Mixed) -> String {
    format!("| {name} | {percent} % | {:.2} ms | {:.2} ms |\n", figures.mean_ms, figures.p99_ms)
}

#[cfg(test)]
mod tests {
    use super::super::report::tests::report;
    use super::*;

    #[test]
    fn the_page_tells_both_and_wants_both() {
        let text = report(2.0, Some(50.0), 2048).text().unwrap();
        assert!(
            text.contains("| list 1,000 nodes in detail | 2.00 ms | 2.00 ms | 50.0 ms | 50.0 ms | 25.0 |"),
            "{text}"
        );
        assert!(text.contains("| change a node | 30 % | 2.00 ms | 2.00 ms |"), "{text}");
        assert!(report(2.0, None, 2048).text().is_err());
    }
}
