//! The figures of `cargo xtask bench boot`, beside each other and beside the budget.

use std::fmt;

use anyhow::{Result, bail, ensure};
use serde::{Deserialize, Serialize};

use super::super::{HEARTBEAT, field};
use crate::book::page::in_milliseconds;

/// What the agent prints when it starts as the first process.
const USERLAND: &str = "userland started";
/// How many times faster than the Python agent's the way to the first heartbeat must be.
const FASTER: f64 = 10.0;
/// What part of the Python agent's size and memory may be taken.
const PART: f64 = 0.2;

/// Seconds that user space may take to the first heartbeat, also in the emulated machine.
const USERLAND_SECONDS: f64 = 1.0;
/// Resident memory of the idle agent, in bytes.
const IDLE_BYTES: u64 = 16 << 20;

/// What was measured of a ramdisk.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Figures {
    /// Seconds from the kernel's first line to the heartbeat.
    pub kernel_to_heartbeat_s: f64,
    /// Seconds from the start of the first process to the heartbeat.
    pub init_to_heartbeat_s: f64,
    /// Size of the kernel.
    pub vmlinuz_bytes: u64,
    /// Size of the ramdisk.
    pub initramfs_bytes: u64,
    /// Memory of the smallest machine that sent a heartbeat.
    pub smallest_memory_mib: u32,
}

/// What only Farrier tells of itself.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct OwnFigures {
    userland_to_heartbeat_s: f64,
    agent_rss_bytes: u64,
}

/// Farrier's figures as parts of the Python agent's.
#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
pub struct Comparison {
    times_faster: f64,
    times_faster_from_init: f64,
    part_of_size: f64,
    part_of_memory: f64,
}

/// What is printed and written.
#[derive(Debug, Serialize, Deserialize)]
pub struct BootReport {
    /// Farrier's figures.
    #[serde(flatten)]
    pub farrier: Figures,
    /// Those that it tells itself.
    #[serde(flatten)]
    pub own: OwnFigures,
    /// The other's, where that was measured.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub python_agent: Option<Figures>,
    /// The ones by the others.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub comparison: Option<Comparison>,
    /// What the machine ran on.
    pub accelerator: String,
    /// Memory of the machine in which the time was measured.
    pub memory_mib: u32,
    /// How often the time was measured.
    pub runs: u32,
}

/// Reads the agent's own measurements off the console.
///
/// # Errors
///
/// A line is not there.
pub fn own_figures(console: &str) -> Result<OwnFigures> {
    let started: f64 = field(console, USERLAND, "uptime")?;
    let heartbeat: f64 = field(console, HEARTBEAT, "uptime")?;
    Ok(OwnFigures {
        userland_to_heartbeat_s: in_milliseconds(heartbeat - started),
        agent_rss_bytes: field(console, HEARTBEAT, "rss_bytes")?,
    })
}

impl Figures {
    /// Size of kernel and ramdisk.
    pub fn bytes(&self) -> u64 {
        self.vmlinuz_bytes + self.initramfs_bytes
    }

    /// These figures by another ramdisk's.
    pub fn beside(&self, other: &Self) -> Comparison {
        Comparison {
            times_faster: in_milliseconds(other.kernel_to_heartbeat_s / self.kernel_to_heartbeat_s),
            times_faster_from_init: in_milliseconds(other.init_to_heartbeat_s / self.init_to_heartbeat_s),
            part_of_size: in_milliseconds(self.bytes() as f64 / other.bytes() as f64),
            part_of_memory: in_milliseconds(
                f64::from(self.smallest_memory_mib) / f64::from(other.smallest_memory_mib),
            ),
        }
    }
}

impl Comparison {
    /// Holds the comparison to its budget.
    ///
    /// # Errors
    ///
    /// It is exceeded.
    pub fn check(self) -> Result<()> {
        if self.times_faster < FASTER || self.part_of_size > PART || self.part_of_memory > PART {
            bail!("the budget is {FASTER} times faster, {PART} of the size and {PART} of the memory");
        }
        Ok(())
    }
}

impl OwnFigures {
    /// Holds what Farrier tells of itself to its budget.
    ///
    /// # Errors
    ///
    /// It is exceeded.
    pub fn check(self) -> Result<()> {
        let Self { userland_to_heartbeat_s, agent_rss_bytes } = self;
        ensure!(
            userland_to_heartbeat_s <= USERLAND_SECONDS,
            "user space takes {userland_to_heartbeat_s} s to the first heartbeat, the budget is {USERLAND_SECONDS} s"
        );
        ensure!(
            agent_rss_bytes <= IDLE_BYTES,
            "the idle agent takes {agent_rss_bytes} bytes of memory, the budget is {IDLE_BYTES}"
        );
        Ok(())
    }
}

impl fmt::Display for Comparison {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{:.1} times faster", self.times_faster)?;
        write!(out, " ({:.1} times from the first process on)", self.times_faster_from_init)?;
        writeln!(out, ", {:.3} of the size, {:.3} of the memory", self.part_of_size, self.part_of_memory)
    }
}

impl BootReport {
    /// Holds everything that was measured to its budget.
    ///
    /// # Errors
    ///
    /// Some of it is exceeded.
    pub fn check(&self) -> Result<()> {
        self.own.check()?;
        self.comparison.map_or(Ok(()), Comparison::check)
    }

    /// The rows of the page, each beside its budget; nothing without a rival.
    pub fn comparison_table(&self) -> Option<String> {
        let (own, rival, parts) = (&self.farrier, self.python_agent.as_ref()?, self.comparison?);
        let mebibytes = |bytes: u64| bytes as f64 / f64::from(1 << 20);
        let rows = [
            format!(
                "kernel + ramdisk | {:.1} MiB | {:.1} MiB | {:.3} | ≤ {PART}",
                mebibytes(own.bytes()),
                mebibytes(rival.bytes()),
                parts.part_of_size
            ),
            format!(
                "smallest machine | {} MiB | {} MiB | {:.3} | ≤ {PART}",
                own.smallest_memory_mib, rival.smallest_memory_mib, parts.part_of_memory
            ),
            format!(
                "kernel's start to first heartbeat | {:.2} s | {:.2} s | **{:.1} times faster** | ≥ {FASTER}",
                own.kernel_to_heartbeat_s, rival.kernel_to_heartbeat_s, parts.times_faster
            ),
            format!(
                "first process to first heartbeat | {:.2} s | {:.2} s | {:.1} times faster |",
                own.init_to_heartbeat_s, rival.init_to_heartbeat_s, parts.times_faster_from_init
            ),
            format!(
                "user space to first heartbeat | {:.2} s | | | ≤ {USERLAND_SECONDS} s",
                self.own.userland_to_heartbeat_s
            ),
            format!(
                "memory of the idle agent | {:.1} MiB | | | ≤ {} MiB",
                mebibytes(self.own.agent_rss_bytes),
                IDLE_BYTES >> 20
            ),
        ];
        let rows = rows.map(|row| format!("| {row} |\n")).concat();
        Some(format!("| | Farrier | Python agent | | budget |\n|---|---|---|---|---|\n{rows}"))
    }

    /// All figures, for people.
    pub fn table(&self) -> String {
        let mut table = format!("{:<34} {:>10}", "", "Farrier");
        let columns: Vec<_> =
            [Some(&self.farrier), self.python_agent.as_ref()].into_iter().flatten().collect();
        table += if self.python_agent.is_some() { "  Python agent\n" } else { "\n" };
        let mebibytes = |bytes: u64| format!("{:.1} MiB", bytes as f64 / f64::from(1 << 20));
        let mut row = |name: &str, value: &dyn Fn(&Figures) -> String| {
            table += &format!("{name:<34}");
            for (figures, width) in columns.iter().zip([10, 13]) {
                table += &format!(" {:>width$}", value(figures));
            }
            table.push('\n');
        };
        row("kernel + ramdisk", &|figures| mebibytes(figures.bytes()));
        row("smallest machine", &|figures| format!("{} MiB", figures.smallest_memory_mib));
        for (name, seconds) in [
            (
                "kernel's start to first heartbeat",
                (|figures| figures.kernel_to_heartbeat_s) as fn(&Figures) -> f64,
            ),
            ("first process to first heartbeat", |figures| figures.init_to_heartbeat_s),
        ] {
            row(name, &|figures| format!("{:.2} s", seconds(figures)));
        }
        let own = &self.own;
        table += &format!(
            "Farrier's user space takes {:.2} s, its agent {} KiB\n",
            own.userland_to_heartbeat_s,
            own.agent_rss_bytes >> 10
        );
        if let Some(comparison) = self.comparison {
            table += &comparison.to_string();
        }
        table
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_agents_measurements_are_read_off_the_console() {
        let console = "[    1.0] Linux version 6.1\r\n\
                       farrier: 0.01s  INFO userland started uptime=1.250\r\n\
                       farrier: 1.26s  INFO first heartbeat accepted uptime=2.500 rss_bytes=8388608\r\n";
        let expected = OwnFigures { userland_to_heartbeat_s: 1.25, agent_rss_bytes: 8_388_608 };
        assert_eq!(own_figures(console).unwrap(), expected);
        let error = own_figures("farrier: userland started uptime=1\n").unwrap_err();
        assert_eq!(error.to_string(), "the console has no line \"first heartbeat accepted\" with uptime");
    }

    #[test]
    fn x35_idle_memory_and_user_space_are_held_to_their_budgets() {
        for (userland_to_heartbeat_s, agent_rss_bytes, is_met) in
            [(1.0, 16 << 20, true), (1.01, 6 << 20, false), (0.7, (16 << 20) + 4096, false)]
        {
            let own = OwnFigures { userland_to_heartbeat_s, agent_rss_bytes };
            assert_eq!(own.check().is_ok(), is_met, "{own:?}");
        }
    }

    #[test]
    fn x35_the_page_puts_every_figure_beside_its_budget() {
        let figures = |seconds| Figures {
            kernel_to_heartbeat_s: seconds,
            init_to_heartbeat_s: seconds / 2.0,
            vmlinuz_bytes: 8 << 20,
            initramfs_bytes: 32 << 20,
            smallest_memory_mib: 256,
        };
        let (farrier, rival) = (figures(4.0), figures(50.0));
        let report = BootReport {
            comparison: Some(farrier.beside(&rival)),
            own: OwnFigures { userland_to_heartbeat_s: 0.7, agent_rss_bytes: 7 << 20 },
            farrier,
            python_agent: Some(rival),
            accelerator: "tcg".to_owned(),
            memory_mib: 3072,
            runs: 3,
        };
        let table = report.comparison_table().expect("a rival");
        for row in [
            "| kernel's start to first heartbeat | 4.00 s | 50.00 s | **12.5 times faster** | ≥ 10 |",
            "| user space to first heartbeat | 0.70 s | | | ≤ 1 s |",
            "| memory of the idle agent | 7.0 MiB | | | ≤ 16 MiB |",
        ] {
            assert!(table.contains(row), "{row}: {table}");
        }
        assert_eq!(BootReport { python_agent: None, ..report }.comparison_table(), None);
    }

    #[test]
    fn each_budget_counts() {
        let figures = |seconds, bytes, memory| Figures {
            kernel_to_heartbeat_s: seconds,
            init_to_heartbeat_s: seconds,
            vmlinuz_bytes: 0,
            initramfs_bytes: bytes,
            smallest_memory_mib: memory,
        };
        let rival = figures(100.0, 500, 2000);
        for (own, is_met) in [
            (figures(10.0, 100, 400), true),
            (figures(10.1, 100, 400), false),
            (figures(10.0, 101, 400), false),
            (figures(10.0, 100, 448), false),
        ] {
            assert_eq!(own.beside(&rival).check().is_ok(), is_met, "{own:?}");
        }
    }
}
