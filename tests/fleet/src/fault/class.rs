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
    /// A disk appears long after the agent has started.
    DiskLate,
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
    /// The only kind of its class.
    Usual,
}

/// What is to be known of a class.
struct Row {
    class: Class,
    name: &'static str,
    kinds: &'static [Kind],
    strikes: &'static [Operation],
    /// Whether the contract, or what a site wants, never lets an operation go on after it.
    is_final: bool,
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
        is_final: false,
    },
    Row {
        class: Class::DiskLate,
        name: "disk-late",
        kinds: &[Kind::Usual],
        strikes: &[Clean, Deploy, Rebuild, Undeploy],
        is_final: false,
    },
    Row {
        class: Class::DhcpLost,
        name: "dhcp-lost",
        kinds: &[Kind::Usual],
        strikes: &[Inspect, Clean, Deploy, Rebuild, Undeploy],
        is_final: false,
    },
    Row {
        class: Class::ImageServer,
        name: "image-server",
        kinds: &[Kind::Usual],
        strikes: &[Deploy, Rebuild],
        is_final: false,
    },
    Row {
        class: Class::ImageDigest,
        name: "image-digest",
        kinds: &[Kind::Usual],
        strikes: &[Deploy, Rebuild],
        is_final: true,
    },
    Row {
        class: Class::AgentCrash,
        name: "agent-crash",
        kinds: &[Kind::Usual],
        strikes: &[Clean, Deploy, Rebuild, Undeploy],
        is_final: false,
    },
    Row {
        class: Class::PowerCut,
        name: "power-cut",
        kinds: &[Kind::Usual],
        strikes: &[Clean, Deploy, Rebuild, Undeploy],
        is_final: false,
    },
    Row {
        class: Class::BootsOther,
        name: "boots-other",
        kinds: &[Kind::Usual],
        strikes: &[Inspect, Clean, Deploy, Rebuild, Undeploy],
        is_final: false,
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

    /// Whether nothing may recover from it, as the contract has it.
    pub fn is_final(self) -> bool {
        self.row().is_final
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
