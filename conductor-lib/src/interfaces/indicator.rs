//! Lights by which somebody finds a machine in its rack (section 9.2).

use serde::{Deserialize, Serialize};
use std::fmt;

/// What a light does.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum IndicatorState {
    /// It is lit.
    On,
    /// It is dark.
    Off,
    /// It blinks.
    Blinking,
    /// The BMC does not tell.
    Unknown,
}

impl IndicatorState {
    /// Its name in the API.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::On => "on",
            Self::Off => "off",
            Self::Blinking => "blinking",
            Self::Unknown => "unknown",
        }
    }
}

impl fmt::Display for IndicatorState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// A light.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Indicator {
    /// On what it is, such as `system` or `chassis`.
    pub component: String,
    /// What the BMC calls that.
    pub name: String,
    /// The states that it can be set to; none where it is read-only.
    pub states: Vec<IndicatorState>,
}
