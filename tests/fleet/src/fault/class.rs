//! Kinds of faults, as fleet files name them.

use crate::life::Operation;
use serde::{Deserialize, Serialize};
use std::fmt;

/// What goes wrong. Each class has a rate of its own in a fleet file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Class {
    /// The BMC is out of service, does not answer, does not do what it took, or forgets its sessions.
    Bmc,
    /// A disk, or the network card, appears long after the machine has started.
    DeviceLate,
    /// No address is given to the ramdisk, so the agent calls late.
    DhcpLost,
    /// The image server is slow, or its answer is cut off.
    ImageServer,
    /// The image has another digest than it should have.
    ImageDigest,
    /// The agent ends while it runs a step, or between two.
    AgentCrash,
    /// Power fails.
    PowerCut,
    /// The machine starts something else than it was told to.
    BootsOther,
    /// A conductor is killed, stands still for longer than its lease, has no network, or a wrong clock.
    Conductor,
    /// PostgreSQL, where the site has it: it restarts, is promoted, has no connections left, or is slow.
    Database,
}

/// What of a class it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Kind {
    /// The BMC answers 503.
    Unavailable,
    /// The BMC takes requests and does not answer.
    Hangs,
    /// The BMC takes an order to switch the machine and does not carry it out.
    ForgetsPower,
    /// The same with an order to put a medium into a drive, or out of it.
    ForgetsMedium,
    /// The same with an order to change the boot device.
    ForgetsBootDevice,
    /// The BMC forgets its sessions.
    SessionLost,
    /// A disk appears late.
    Disk,
    /// The network card appears late, so that nothing has an address.
    Card,
    /// The conductor ends without a word, and starts again.
    Killed,
    /// The conductor stands still, and goes on.
    Paused,
    /// Nothing reaches the conductor, and it reaches nothing.
    CutOff,
    /// The conductor's clock is an hour ahead or behind.
    ClockOff,
    /// The database ends and starts again.
    Restarts,
    /// Its standby takes over.
    Promoted,
    /// It takes no more connections.
    OutOfConnections,
    /// It answers late.
    Slow,
    /// The only kind of its class.
    Usual,
}

/// What is to be known of a class.
struct Row {
    class: Class,
    name: &'static str,
    kinds: &'static [Kind],
    strikes: &'static [Operation],
    /// Whether it passes, where that is no choice: the contract, or what a site wants, never lets an operation go on after
    /// some, and no life could begin after others.
    always_passes: Option<bool>,
}

use Operation::{Clean, Deploy, Inspect, Rebuild, Undeploy};

const ROWS: &[Row] = &[
    Row {
        class: Class::Bmc,
        name: "bmc",
        kinds: &[
            Kind::Unavailable,
            Kind::Hangs,
            Kind::ForgetsPower,
            Kind::ForgetsMedium,
            Kind::ForgetsBootDevice,
            Kind::SessionLost,
        ],
        strikes: &[Inspect, Clean, Deploy, Rebuild, Undeploy],
        always_passes: None,
    },
    Row {
        class: Class::DeviceLate,
        name: "device-late",
        kinds: &[Kind::Disk, Kind::Card],
        strikes: &[Clean, Deploy, Rebuild, Undeploy],
        always_passes: None,
    },
    Row {
        class: Class::DhcpLost,
        name: "dhcp-lost",
        kinds: &[Kind::Usual],
        strikes: &[Inspect, Clean, Deploy, Rebuild, Undeploy],
        always_passes: None,
    },
    Row {
        class: Class::ImageServer,
        name: "image-server",
        kinds: &[Kind::Usual],
        strikes: &[Deploy, Rebuild],
        always_passes: None,
    },
    Row {
        class: Class::ImageDigest,
        name: "image-digest",
        kinds: &[Kind::Usual],
        strikes: &[Deploy, Rebuild],
        always_passes: Some(false),
    },
    Row {
        class: Class::AgentCrash,
        name: "agent-crash",
        kinds: &[Kind::Usual],
        strikes: &[Clean, Deploy, Rebuild, Undeploy],
        always_passes: None,
    },
    Row {
        class: Class::PowerCut,
        name: "power-cut",
        kinds: &[Kind::Usual],
        strikes: &[Clean, Deploy, Rebuild, Undeploy],
        always_passes: None,
    },
    Row {
        class: Class::BootsOther,
        name: "boots-other",
        kinds: &[Kind::Usual],
        strikes: &[Inspect, Clean, Deploy, Rebuild, Undeploy],
        always_passes: None,
    },
    Row {
        class: Class::Conductor,
        name: "conductor",
        kinds: &[Kind::Killed, Kind::Paused, Kind::CutOff, Kind::ClockOff],
        strikes: &[Inspect, Clean, Deploy, Rebuild, Undeploy],
        always_passes: Some(true),
    },
    Row {
        class: Class::Database,
        name: "database",
        kinds: &[Kind::Restarts, Kind::Promoted, Kind::OutOfConnections, Kind::Slow],
        strikes: &[Inspect, Clean, Deploy, Rebuild, Undeploy],
        always_passes: Some(true),
    },
];

impl Class {
    /// All of them.
    pub fn all() -> impl Iterator<Item = Self> {
        ROWS.iter().map(|row| row.class)
    }

    /// Its name in fleet files.
    pub fn name(self) -> &'static str {
        self.row().name
    }

    /// What it may be.
    pub fn kinds(self) -> &'static [Kind] {
        self.row().kinds
    }

    /// The operations in which it strikes.
    pub fn strikes(self) -> &'static [Operation] {
        self.row().strikes
    }

    /// Whether it passes, where that is no choice of a fleet file.
    pub fn always_passes(self) -> Option<bool> {
        self.row().always_passes
    }

    fn row(self) -> &'static Row {
        ROWS.iter().find(|row| row.class == self).unwrap_or(&ROWS[0])
    }
}

impl fmt::Display for Class {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_class_has_its_row_and_is_read_by_its_name() {
        for row in ROWS {
            assert_eq!(row.class.name(), row.name);
            assert_eq!(serde_json::from_str::<Class>(&format!("\"{}\"", row.name)).unwrap(), row.class);
            assert!(!row.kinds.is_empty() && !row.strikes.is_empty(), "{}", row.name);
        }
        assert_eq!(Class::all().count(), ROWS.len());
    }
}
