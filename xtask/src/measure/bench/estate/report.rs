//! The figures of `cargo xtask bench estate`.

use serde::{Deserialize, Serialize};

/// What the conductor may take of one processor.
const PROCESSORS: f64 = 0.5;
/// What it may take of memory, in KiB.
const MEMORY_KIB: u64 = 300 << 10;
/// Statements that are told.
pub const TOLD: usize = 12;

/// What one statement of the store cost.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Statement {
    /// The statement, in short.
    pub text: String,
    /// How often it ran.
    pub count: u64,
    /// From the statement to its last row, all of them together, in milliseconds.
    pub total_ms: f64,
}

/// What is printed and written.
#[derive(Debug, Serialize, Deserialize)]
pub struct EstateReport {
    /// Where it was measured.
    pub machine: String,
    /// Nodes at rest.
    pub resting: u64,
    /// Nodes in work.
    pub working: u64,
    /// How long it was measured.
    pub seconds: u64,
    /// Processor time by time.
    pub processors: f64,
    /// The most memory, in KiB.
    pub peak_kib: u64,
    /// Those that cost most first.
    pub statements: Vec<Statement>,
}

impl EstateReport {
    /// What is outside of the budget.
    pub fn faults(&self) -> Vec<String> {
        let mut faults = Vec::new();
        if self.processors > PROCESSORS {
            faults.push(format!("{:.2} of a processor, not {PROCESSORS}", self.processors));
        }
        if self.peak_kib > MEMORY_KIB {
            faults.push(format!("{} KiB of memory, not {MEMORY_KIB}", self.peak_kib));
        }
        faults
    }

    /// How often a statement ran in a second, and what it took of each second in milliseconds.
    pub fn each_second(&self, statement: &Statement) -> (f64, f64) {
        let seconds = self.seconds.max(1) as f64;
        (statement.count as f64 / seconds, statement.total_ms / seconds)
    }

    /// The figures as text.
    pub fn table(&self) -> String {
        let mut text = format!(
            "{} nodes at rest, {} in work: {:.3} of a processor, {} KiB of memory at most\n",
            self.resting, self.working, self.processors, self.peak_kib
        );
        text += &format!("{:>12}{:>12}  statement\n", "a second", "ms");
        for statement in self.statements.iter().take(TOLD) {
            let (count, ms) = self.each_second(statement);
            text += &format!("{count:>12.2}{ms:>12.3}  {}\n", statement.text);
        }
        text
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    /// A report with one statement.
    pub(in crate::measure::bench::estate) fn report(processors: f64, peak_kib: u64) -> EstateReport {
        let statement = Statement { text: "SELECT | 1".to_owned(), count: 20, total_ms: 5.0 };
        EstateReport {
            machine: "a machine".to_owned(),
            resting: 100_000,
            working: 3000,
            seconds: 10,
            processors,
            peak_kib,
            statements: vec![statement],
        }
    }

    #[test]
    fn every_budget_can_be_missed() {
        assert_eq!(report(0.5, 300 << 10).faults(), Vec::<String>::new());
        assert_eq!(report(0.51, (300 << 10) + 1).faults().len(), 2);
        let table = report(0.25, 1024).table();
        assert!(
            table.contains("0.250 of a processor") && table.contains("2.00       0.500  SELECT | 1"),
            "{table}"
        );
    }
}
