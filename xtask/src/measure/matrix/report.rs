//! What came of the combinations, in a line, as JSON and as a page.

use std::collections::BTreeMap;
use std::fmt::{self, Write as _};

use anyhow::Result;
use farrier_tests::cells::boot::{Cell, Seconds};
use serde::{Deserialize, Serialize};

use crate::book::page::Measured;
use crate::book::plot::{Arrangement, Bar, Plot, Row};

/// What came of one combination.
#[derive(Debug, Serialize, Deserialize)]
pub struct Outcome {
    name: String,
    deploy_seconds: f64,
    boot_seconds: f64,
    /// Why it does not boot.
    failure: Option<String>,
}

/// What came of all.
#[derive(Debug, Serialize, Deserialize)]
pub struct MatrixReport {
    outcomes: Vec<Outcome>,
    /// The combinations that cannot be, with the reasons.
    illegal: BTreeMap<String, String>,
}

impl Measured for MatrixReport {
    const NAME: &'static str = "boot-matrix";

    fn text(&self) -> Result<String> {
        Ok(self.page())
    }

    fn plots(&self) -> Vec<(String, Plot)> {
        let row = |outcome: &Outcome| Row {
            name: outcome.name.clone(),
            bars: [outcome.deploy_seconds, outcome.boot_seconds]
                .map(|seconds| Some(Bar::of(seconds, 0)))
                .to_vec(),
        };
        let plot = Plot {
            title: "Duration of each combination".to_owned(),
            axis: "seconds, with emulated processors".to_owned(),
            series: vec!["deployed", "booted"],
            arrangement: Arrangement::Stacked,
            rows: self.outcomes.iter().filter(|outcome| outcome.is_good()).map(row).collect(),
        };
        vec![(Self::NAME.to_owned(), plot)]
    }
}

impl Outcome {
    /// What came of running `cell`.
    pub fn new(cell: Cell, result: Result<Seconds>) -> Self {
        let (seconds, failure) = match result {
            Ok(seconds) => (seconds, None),
            Err(error) => (Seconds { deploy: 0.0, boot: 0.0 }, Some(format!("{error:#}"))),
        };
        let (deploy_seconds, boot_seconds) = (seconds.deploy, seconds.boot);
        Self { name: cell.to_string(), deploy_seconds, boot_seconds, failure }
    }

    /// Whether it boots.
    pub fn is_good(&self) -> bool {
        self.failure.is_none()
    }

    /// Whether it came of this combination.
    pub fn is_of(&self, cell: &Cell) -> bool {
        self.name == cell.to_string()
    }
}

impl fmt::Display for Outcome {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.failure {
            Some(reason) => write!(f, "{}: FAILED: {reason}", self.name),
            None => write!(
                f,
                "{}: boots (deployed in {:.0} s, booted in {:.0} s)",
                self.name, self.deploy_seconds, self.boot_seconds
            ),
        }
    }
}

impl MatrixReport {
    /// The report about those of `cells` that were run, and those that cannot be.
    pub fn new(mut outcomes: Vec<Outcome>, cells: &[Cell]) -> Self {
        outcomes.sort_by(|one, other| one.name.cmp(&other.name));
        let illegal =
            cells.iter().filter_map(|cell| Some((cell.to_string(), cell.obstacle()?.to_owned()))).collect();
        Self { outcomes, illegal }
    }

    /// Whether all boot.
    pub fn is_good(&self) -> bool {
        self.outcomes.iter().all(Outcome::is_good)
    }

    /// The result in a line.
    pub fn line(&self) -> String {
        let good = self.outcomes.iter().filter(|outcome| outcome.is_good()).count();
        format!(
            "{good} of {} legal combinations boot, {} are not legal",
            self.outcomes.len(),
            self.illegal.len()
        )
    }

    fn page(&self) -> String {
        let mut page = format!(
            "# What boots

This page is written by `cargo xtask matrix --page`.

A virtual machine with the real ramdisk deploys Debian 12, commanded as a conductor commands it, and then boots
from its disk to the login prompt. The host name in the prompt shows a used or a missing config drive. The machines have 256 MiB of memory for the deployment, 512 MiB for Debian, and an emulated processor: the seconds are
those of the run, and no measure of Farrier.

The name of a combination is firmware, disk, image, table and config drive. A disk `scsi4kn` has sectors of 4096
bytes. A `whole` image has table and boot loaders. A `partition` image is a root file system with the packages of GRUB: the
agent creates the table and runs the system's own GRUB (`enable_bios_bootloader_install`).

{}.

![Seconds of deployment and boot of each combination](boot-matrix.svg)

| combination | boots | deployed in s | booted in s |
|---|---|---|---|
",
            self.line()
        );
        // Writing to a string cannot fail.
        for Outcome { name, deploy_seconds, boot_seconds, failure } in &self.outcomes {
            let verdict = if failure.is_none() { "yes" } else { "**no**" };
            writeln!(page, "| {name} | {verdict} | {deploy_seconds:.0} | {boot_seconds:.0} |").ok();
        }
        page.push_str("\n## Not legal\n\n| combination | reason |\n|---|---|\n");
        for (name, reason) in &self.illegal {
            writeln!(page, "| {name} | {reason} |").ok();
        }
        page
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_page_tells_what_boots_what_does_not_and_what_cannot_be() {
        let cells = Cell::all();
        let legal = cells.iter().find(|cell| cell.obstacle().is_none()).unwrap();
        let good = Outcome::new(*legal, Ok(Seconds { deploy: 40.4, boot: 61.0 }));
        let report = MatrixReport::new(vec![good], &cells);
        assert!(report.is_good());
        let page = report.page();
        for part in [
            "1 of 1 legal combinations boot, 16 are not legal.",
            "| bios-virtio-whole-gpt-plain | yes | 40 | 61 |",
            "| uefi-sata-partition-mbr-drive | UEFI implies GPT",
        ] {
            assert!(page.contains(part), "{part:?} is not in {page}");
        }
        let bad = MatrixReport::new(vec![Outcome::new(*legal, Err(anyhow::anyhow!("no prompt")))], &cells);
        assert!(!bad.is_good() && bad.page().contains("**no**"));
    }
}
