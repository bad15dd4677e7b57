//! The figures of `cargo xtask bench iscsi`.

use serde::{Deserialize, Serialize};

use crate::book::page::in_milliseconds;

/// How long one machine took, in seconds: the medians of all rounds, and the least and the most.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Figures {
    /// Where the agent wrote the image.
    pub direct_s: f64,
    /// The least and the most of these.
    pub direct_range_s: (f64, f64),
    /// Where the disk was exported.
    pub exported_s: f64,
    /// The least and the most of these.
    pub exported_range_s: (f64, f64),
}

/// What is printed and written.
#[derive(Debug, Serialize, Deserialize)]
pub struct IscsiReport {
    /// Where it was measured.
    pub machine: String,
    /// Size of the image.
    pub image_mib: u64,
    /// How many rounds there were.
    pub rounds: u32,
    /// The machine whose agent exports by the kernel's target.
    pub kernel: Figures,
    /// The machine whose agent exports by tgtd.
    pub tgtd: Figures,
}

impl Figures {
    /// Those of some rounds, at least one.
    pub fn median(direct: Vec<f64>, exported: Vec<f64>) -> Self {
        let ((direct_s, direct_range_s), (exported_s, exported_range_s)) = (middle(direct), middle(exported));
        Self { direct_s, direct_range_s, exported_s, exported_range_s }
    }

    /// Throughput by the export, in units of that of the agent.
    pub fn ratio(&self) -> f64 {
        self.direct_s / self.exported_s
    }
}

/// The median, of two the larger one, and the range.
fn middle(mut seconds: Vec<f64>) -> (f64, (f64, f64)) {
    seconds.sort_by(f64::total_cmp);
    let at = |index: usize| in_milliseconds(seconds.get(index).copied().unwrap_or(f64::NAN));
    (at(seconds.len() / 2), (at(0), at(seconds.len().saturating_sub(1))))
}

impl IscsiReport {
    /// MiB a second of a write that took so long.
    pub fn throughput(&self, seconds: f64) -> f64 {
        self.image_mib as f64 / seconds
    }

    /// All figures, in the markdown of the book.
    pub fn table(&self) -> String {
        let row = |name: &str, seconds: f64, (least, most): (f64, f64), ratio: f64| {
            let throughput = self.throughput(seconds);
            format!("| {name} | {seconds:.1} ({least:.1}–{most:.1}) | {throughput:.1} | {ratio:.2} |\n")
        };
        let machine = |agent: &str, export: &str, figures: &Figures| {
            row(agent, figures.direct_s, figures.direct_range_s, 1.0)
                + &row(export, figures.exported_s, figures.exported_range_s, figures.ratio())
        };
        "| who writes | seconds | MiB/s | of the agent's |\n|---|---|---|---|\n".to_owned()
            + &machine(
                "the agent, first machine",
                "the conductor, by the kernel's target (LIO)",
                &self.kernel,
            )
            + &machine("the agent, second machine", "the conductor, by tgtd", &self.tgtd)
    }
}
