//! The figures of `cargo xtask bench api`.

use serde::{Deserialize, Serialize};

use farrier_load::Figures;

/// Nodes of a list, which are as many as both give in one answer.
pub const LISTED: u64 = 1000;
/// Nodes of the list that is served page by page.
pub const MANY: u64 = 10_000;
/// Nodes of the mix.
pub const MIXED: u64 = 2000;
/// Clients of the mix, each with a connection.
pub const CONNECTIONS: usize = 20;
/// Requests of the mix in a second.
pub const PER_SECOND: u32 = 200;
/// The two lists.
pub const FOUR_FIELDS: &str = "list 1,000 with four fields";
pub const IN_DETAIL: &str = "list 1,000 in detail";

/// How many times as fast Farrier must be.
const TIMES: f64 = 20.0;
/// What the conductor may take of memory for the long list, in KiB.
const MEMORY_KIB: u64 = 64 << 10;
/// What the list with four fields may take of the processor time of the one in detail.
const PART: f64 = 0.5;
/// What 99 of 100 changes of the mix must keep to, in milliseconds.
const P99_MS: f64 = 20.0;
/// What of the requests of the mix must have been asked in time.
const ASKED: f64 = 0.95;

/// How one kind of request was answered.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Kind {
    /// What is asked.
    pub name: String,
    /// By Farrier.
    pub farrier: Figures,
    /// Processor time of Farrier for each request, in milliseconds.
    pub processor_ms: f64,
    /// By Ironic.
    pub ironic: Option<Figures>,
}

impl Kind {
    /// How many times as fast Farrier is.
    pub fn times(&self) -> Option<f64> {
        self.ironic.map(|ironic| ironic.mean_ms / self.farrier.mean_ms)
    }
}

/// How one kind of request of the mix was answered.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Mixed {
    /// What is asked.
    pub name: String,
    /// How many of a hundred requests are of it.
    pub percent: u64,
    /// How they were answered.
    pub figures: Figures,
}

/// What is printed and written.
#[derive(Debug, Serialize, Deserialize)]
pub struct ApiReport {
    /// Where it was measured.
    pub machine: String,
    /// One client, one request after the other.
    pub kinds: Vec<Kind>,
    /// The most memory of Farrier while it served the long list, in KiB.
    pub peak_kib: u64,
    /// Many clients at a time.
    pub mix: Vec<Mixed>,
}

impl ApiReport {
    /// What is outside of the budget.
    pub fn faults(&self) -> Vec<String> {
        let slow = self.kinds.iter().filter_map(|kind| Some((&kind.name, kind.times()?)));
        let slow = slow.filter(|(_, times)| *times < TIMES);
        let mut faults: Vec<_> =
            slow.map(|(name, times)| format!("{name}: {times:.1} times as fast, not {TIMES}")).collect();
        if let Some(part) = self.part().filter(|part| *part > PART) {
            faults
                .push(format!("{FOUR_FIELDS}: {part:.2} of the processor time of one in detail, not {PART}"));
        }
        if self.peak_kib > MEMORY_KIB {
            faults.push(format!("a list of {MANY} takes {} KiB of memory, not {MEMORY_KIB}", self.peak_kib));
        }
        for mixed in
            self.mix.iter().filter(|mixed| mixed.name.starts_with("change") && mixed.figures.p99_ms > P99_MS)
        {
            faults
                .push(format!("{} in the mix: p99 {:.1} ms, not {P99_MS}", mixed.name, mixed.figures.p99_ms));
        }
        let asked: f64 = self.mix.iter().map(|mixed| mixed.figures.per_second).sum();
        if asked < f64::from(PER_SECOND) * ASKED {
            faults.push(format!("{asked:.0} requests of the mix in a second, not {PER_SECOND}"));
        }
        faults
    }

    /// What the list with four fields takes of the processor time of the one in detail.
    pub fn part(&self) -> Option<f64> {
        let of = |name: &str| self.kinds.iter().find(|kind| kind.name == name).map(|kind| kind.processor_ms);
        Some(of(FOUR_FIELDS)? / of(IN_DETAIL)?)
    }

    /// The figures as text.
    pub fn table(&self) -> String {
        let mut text = format!("{:<34}{:>26}{:>26}\n", "one client", "Farrier", "Ironic");
        let shown = |figures: Figures| format!("{:.2} ms, p99 {:.2} ms", figures.mean_ms, figures.p99_ms);
        for kind in &self.kinds {
            let times = kind.times().map_or_else(String::new, |times| format!("  {times:.1} times"));
            let ironic = kind.ironic.map_or_else(String::new, shown);
            let processor = format!("  {:.2} ms of a processor", kind.processor_ms);
            text += &format!("{:<34}{:>26}{ironic:>26}{times}{processor}\n", kind.name, shown(kind.farrier));
        }
        text +=
            &format!("a list of {MANY} in detail, page by page: {} KiB of memory at most\n", self.peak_kib);
        text += &format!("{CONNECTIONS} clients, {PER_SECOND} requests a second, {MIXED} nodes\n");
        for Mixed { name, percent, figures } in &self.mix {
            text += &format!("{name:<34}{percent:>3} % {:>26}\n", shown(*figures));
        }
        text
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    /// A report whose figures are all alike.
    pub(in crate::measure::bench::api) fn report(
        farrier: f64,
        ironic: Option<f64>,
        peak_kib: u64,
    ) -> ApiReport {
        let figures = |mean_ms| Figures {
            per_second: 200.0,
            mean_ms,
            p50_ms: mean_ms,
            p99_ms: mean_ms,
            turned_away: 0,
        };
        let kind = |name: &str, processor_ms| Kind {
            name: name.to_owned(),
            farrier: figures(farrier),
            processor_ms,
            ironic: ironic.map(figures),
        };
        let mixed = Mixed { name: "change a node".to_owned(), percent: 30, figures: figures(farrier) };
        let kinds = vec![kind(FOUR_FIELDS, farrier), kind(IN_DETAIL, 2.0)];
        ApiReport { machine: "a machine".to_owned(), kinds, peak_kib, mix: vec![mixed] }
    }

    #[test]
    fn every_budget_can_be_missed() {
        assert_eq!(report(1.0, Some(20.0), 64 << 10).faults(), Vec::<String>::new());
        assert_eq!(report(1.0, None, 1).faults(), Vec::<String>::new());
        let mut slow = report(20.1, Some(400.0), (64 << 10) + 1);
        slow.mix[0].figures.per_second = 189.0;
        let missed = slow.faults();
        assert_eq!(missed.len(), 6, "{missed:?}");
        assert_eq!(missed[0], "list 1,000 with four fields: 19.9 times as fast, not 20");
    }

    #[test]
    fn k43_changes_of_which_one_in_a_hundred_takes_too_long_are_outside_of_the_budget() {
        let mut mixed = report(1.0, Some(20.0), 1);
        mixed.mix[0].figures.p99_ms = 20.1;
        assert_eq!(mixed.faults(), ["change a node in the mix: p99 20.1 ms, not 20"]);
        // Only changes have this budget.
        mixed.mix[0].name = "list all nodes in detail".to_owned();
        assert_eq!(mixed.faults(), Vec::<String>::new());
    }

    #[test]
    fn the_table_shows_both_and_how_they_differ() {
        let table = report(2.0, Some(50.0), 7).table();
        let row = "2.00 ms, p99 2.00 ms    50.00 ms, p99 50.00 ms  25.0 times";
        assert!(table.lines().nth(1).is_some_and(|line| line.starts_with("list ")), "{table}");
        assert!(table.contains(row) && table.contains("change a node"), "{table}");
    }
}
