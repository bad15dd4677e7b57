//! Clean, deploy and service steps (sections 4.1 and 4.2).

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use std::collections::BTreeMap;

/// Operation that a step belongs to. A priority counts in one of them only (F52).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Phase {
    /// Between two users of a machine.
    Clean,
    /// When a machine is given to a user.
    Deploy,
    /// While a user has the machine.
    Service,
}

impl Phase {
    /// Every phase.
    pub const ALL: &'static [Self] = &[Self::Clean, Self::Deploy, Self::Service];

    /// The word in the names of commands and of their parameters and results.
    pub fn name(self) -> &'static str {
        match self {
            Self::Clean => "clean",
            Self::Deploy => "deploy",
            Self::Service => "service",
        }
    }
}

/// A step as an agent lists it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct StepDescription {
    /// Name of the step.
    pub step: String,
    /// Interface it belongs to; with the name it is the identity.
    pub interface: String,
    /// Place in an automatic run, highest first; 0 is never automatic.
    pub priority: i64,
    /// Whether the conductor must reboot the machine afterwards.
    #[serde(default)]
    pub reboot_requested: bool,
    /// Whether an operator may abort it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub abortable: Option<bool>,
    /// Arguments by name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub argsinfo: Option<BTreeMap<String, ArgumentInfo>>,
}

/// What an argument of a step is for.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ArgumentInfo {
    /// Help text.
    pub description: String,
    /// Whether the step refuses to run without it.
    #[serde(default)]
    pub required: bool,
}

/// A step as a conductor orders it. Keys beyond these are kept and echoed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Step {
    /// Interface of the step.
    #[serde(default)]
    pub interface: String,
    /// Name of the step.
    pub step: String,
    /// Arguments; absent, null and empty mean the same.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub args: Option<Map<String, Value>>,
    /// Whatever else came with it.
    #[serde(flatten)]
    pub other: Map<String, Value>,
}

/// Versions of the loaded hardware managers, by manager name (section 9.1).
pub type HardwareManagerVersions = BTreeMap<String, String>;

/// Result of `deploy.get_deploy_steps`: steps by class name of the manager.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub struct DeploySteps {
    /// Steps by manager class name.
    pub deploy_steps: BTreeMap<String, Vec<StepDescription>>,
    /// Versions to send back with each step.
    pub hardware_manager_version: HardwareManagerVersions,
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_step_is_echoed_with_every_key_it_came_with() {
        for value in [
            json!({"interface": "deploy", "step": "write_image", "args": {"a": 1}, "priority": 80}),
            json!({"interface": "deploy", "step": "write_image"}),
            json!({"interface": "raid", "step": "x", "abort_after": true, "argsinfo": null}),
        ] {
            let step: Step = serde_json::from_value(value.clone()).unwrap();
            assert_eq!(serde_json::to_value(&step).unwrap(), value);
        }
    }

    #[test]
    fn null_arguments_are_no_arguments() {
        let step: Step = serde_json::from_value(json!({"step": "x", "args": null})).unwrap();
        assert_eq!(step.args, None);
    }
}
