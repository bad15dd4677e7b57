//! The figures of `cargo xtask bench netboot`, beside each other.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::clients::Figures;
use super::serving::Round;
use super::way::{Leader, Way, Went};
use crate::book::page::in_milliseconds;

const MIB: f64 = 1048576.0;

/// How a machine booted on one way: the median of all runs.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Boot {
    /// Who led it.
    pub leader: Leader,
    /// The boot interface.
    pub method: String,
    /// How its firmware boots.
    pub mode: String,
    /// Seconds from power on to the kernel's first line.
    pub to_kernel_s: f64,
    /// Seconds from power on to the first heartbeat.
    pub to_heartbeat_s: f64,
    /// The least and the most of all runs.
    pub range_s: (f64, f64),
    /// Bytes that the machine received.
    pub received_bytes: u64,
    /// Bytes that it sent.
    pub sent_bytes: u64,
}

/// How a server sent a file to all clients: the median of all runs.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Load {
    /// How it was asked for.
    pub protocol: String,
    /// Who sent it.
    pub server: String,
    /// What the clients saw.
    #[serde(flatten)]
    pub figures: Figures,
    /// The most memory that the server ever had, in KiB.
    pub peak_kib: u64,
}

/// What is printed and written.
#[derive(Debug, Serialize, Deserialize)]
pub struct NetbootReport {
    /// Where it was measured.
    pub machine: String,
    /// The release of Ironic.
    pub ironic: String,
    /// How many rounds there were.
    pub runs: u32,
    /// How many clients loaded a file at once.
    pub clients: u16,
    /// Size of the kernel.
    pub vmlinuz_bytes: u64,
    /// Size of the ramdisk, which clients load by HTTP.
    pub ramdisk_bytes: u64,
    /// Size of the loader, which they load by TFTP.
    pub loader_bytes: u64,
    /// How the machine booted.
    pub boots: Vec<Boot>,
    /// How files were sent.
    pub loads: Vec<Load>,
}

impl Boot {
    /// That of some runs; nothing of none.
    pub fn median(way: Way, mut went: Vec<Went>) -> Option<Self> {
        let seconds = |took: Duration| in_milliseconds(took.as_secs_f64());
        went.sort_by_key(|went| went.to_heartbeat);
        let (first, last) = (went.first()?, went.last()?);
        let median = went.get(went.len() / 2)?;
        Some(Self {
            leader: way.leader,
            method: way.method.to_owned(),
            mode: way.mode().to_owned(),
            to_kernel_s: seconds(median.to_kernel),
            to_heartbeat_s: seconds(median.to_heartbeat),
            range_s: (seconds(first.to_heartbeat), seconds(last.to_heartbeat)),
            received_bytes: median.received,
            sent_bytes: median.sent,
        })
    }
}

impl Load {
    /// That of some rounds; nothing of none.
    pub fn median(protocol: &str, server: &str, mut rounds: Vec<Round>) -> Option<Self> {
        rounds.sort_by(|one, other| one.figures.mib_per_second.total_cmp(&other.figures.mib_per_second));
        let Round { figures, peak_kib } = *rounds.get(rounds.len() / 2)?;
        let figures = Figures {
            mib_per_second: in_milliseconds(figures.mib_per_second),
            p99_s: in_milliseconds(figures.p99_s),
            ..figures
        };
        Some(Self { protocol: protocol.to_owned(), server: server.to_owned(), figures, peak_kib })
    }
}

impl NetbootReport {
    /// How the same machine booted by Ironic.
    fn rival(&self, boot: &Boot) -> Option<&Boot> {
        let is_rival = |other: &&Boot| {
            other.leader == Leader::Ironic && (&other.method, &other.mode) == (&boot.method, &boot.mode)
        };
        self.boots.iter().find(is_rival).filter(|_| boot.leader == Leader::Farrier)
    }

    /// How another server sent the same.
    fn beside(&self, load: &Load) -> Option<&Load> {
        let mut others = self.loads.iter().skip_while(|other| *other != load).skip(1);
        others.find(|other| other.protocol == load.protocol)
    }

    /// The rows about boots, in Markdown.
    pub fn boot_table(&self) -> String {
        let row = |boot: &Boot| {
            let beside = self.rival(boot).map_or_else(String::new, |rival| {
                format!(
                    "**{:.2}** of its time, {:.2} of its bytes",
                    boot.to_heartbeat_s / rival.to_heartbeat_s,
                    boot.received_bytes as f64 / rival.received_bytes as f64
                )
            });
            format!(
                "| `{}` | {} | {:?} | {:.1} | {:.1} ({:.1}–{:.1}) | {:.1} | {:.2} | {beside} |\n",
                boot.method,
                boot.mode,
                boot.leader,
                boot.to_kernel_s,
                boot.to_heartbeat_s,
                boot.range_s.0,
                boot.range_s.1,
                boot.received_bytes as f64 / MIB,
                boot.sent_bytes as f64 / MIB,
            )
        };
        let head = "| boot interface | firmware | conductor | to the kernel, s | to the heartbeat, s (all runs) \
                    | to the machine, MiB | from it, MiB | beside Ironic |\n|---|---|---|---|---|---|---|---|\n";
        head.to_owned() + &self.boots.iter().map(row).collect::<String>()
    }

    /// The rows about servers, in Markdown.
    pub fn load_table(&self) -> String {
        let row = |load: &Load| {
            let Figures { mib_per_second, p99_s, failed, repeats } = load.figures;
            let beside = self.beside(load).map_or_else(String::new, |other| {
                format!(
                    "**{:.2}** of {}'s MiB/s",
                    mib_per_second / other.figures.mib_per_second,
                    other.server
                )
            });
            format!(
                "| {} | {} | {mib_per_second:.0} | {p99_s:.2} | {failed} | {repeats} | {:.1} | {beside} |\n",
                load.protocol,
                load.server,
                load.peak_kib as f64 / 1024.0
            )
        };
        let head = "| protocol | server | MiB/s | p99 of a transfer, s | clients without the file | asked again \
                    | memory, MiB | |\n|---|---|---|---|---|---|---|---|\n";
        head.to_owned() + &self.loads.iter().map(row).collect::<String>()
    }

    /// All figures, for people.
    pub fn table(&self) -> String {
        format!("{}\n{}", self.boot_table(), self.load_table())
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    /// One with a way and a protocol that both have.
    pub fn report() -> NetbootReport {
        let went = |seconds: u64| Went {
            to_kernel: Duration::from_secs(seconds - 10),
            to_heartbeat: Duration::from_secs(seconds),
            received: seconds << 20,
            sent: 1 << 19,
        };
        let boot = |leader, runs: &[u64]| {
            let way = Way { leader, method: "ipxe", ..Way::ALL[0] };
            Boot::median(way, runs.iter().map(|seconds| went(*seconds)).collect()).unwrap()
        };
        let load = |server, speeds: &[f64]| {
            let round = |speed: &f64| {
                let figures = Figures { mib_per_second: *speed, p99_s: 1.0 / speed, failed: 1, repeats: 2 };
                Round { figures, peak_kib: 2048 }
            };
            Load::median("HTTP", server, speeds.iter().map(round).collect()).unwrap()
        };
        NetbootReport {
            machine: "2 processors".to_owned(),
            ironic: "39.0.0".to_owned(),
            runs: 3,
            clients: 200,
            vmlinuz_bytes: 8 << 20,
            ramdisk_bytes: 32 << 20,
            loader_bytes: 1 << 20,
            boots: vec![boot(Leader::Farrier, &[40, 30, 20]), boot(Leader::Ironic, &[60, 70])],
            loads: vec![load("farrier serve", &[300.0, 100.0, 500.0]), load("nginx", &[600.0])],
        }
    }

    #[test]
    fn of_all_runs_the_median_is_told_beside_the_others() {
        let report = report();
        for row in [
            "| `ipxe` | bios | Farrier | 20.0 | 30.0 (20.0–40.0) | 30.0 | 0.50 | **0.43** of its time, 0.43 of its bytes |\n",
            "| `ipxe` | bios | Ironic | 60.0 | 70.0 (60.0–70.0) | 70.0 | 0.50 |  |\n",
        ] {
            assert!(report.boot_table().contains(row), "{}", report.boot_table());
        }
        for row in [
            "| HTTP | farrier serve | 300 | 0.00 | 1 | 2 | 2.0 | **0.50** of nginx's MiB/s |\n",
            "| HTTP | nginx | 600 | 0.00 | 1 | 2 | 2.0 |  |\n",
        ] {
            assert!(report.load_table().contains(row), "{}", report.load_table());
        }
    }

    #[test]
    fn what_was_not_measured_is_nothing() {
        assert_eq!(Boot::median(Way::ALL[0], Vec::new()), None);
        assert_eq!(Load::median("HTTP", "nginx", Vec::new()), None);
        let mut report = report();
        report.boots.pop();
        report.loads.pop();
        assert_eq!((report.rival(&report.boots[0]), report.beside(&report.loads[0])), (None, None));
    }
}
