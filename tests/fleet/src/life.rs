//! The life of a machine: from its enrolment until it is given back.

use serde::{Deserialize, Serialize};
use std::fmt;

/// What is done to a machine, in the order of its life.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Operation {
    /// Its inventory is taken.
    Inspect,
    /// It is cleaned and becomes available.
    Clean,
    /// An image is deployed.
    Deploy,
    /// It is deployed again.
    Rebuild,
    /// The instance is removed and the machine cleaned.
    Undeploy,
}

impl Operation {
    /// All of them, in the order of a life.
    pub const ALL: [Self; 5] = [Self::Inspect, Self::Clean, Self::Deploy, Self::Rebuild, Self::Undeploy];

    /// Its name.
    pub fn name(self) -> &'static str {
        match self {
            Self::Inspect => "inspect",
            Self::Clean => "clean",
            Self::Deploy => "deploy",
            Self::Rebuild => "rebuild",
            Self::Undeploy => "undeploy",
        }
    }
}

impl fmt::Display for Operation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}
