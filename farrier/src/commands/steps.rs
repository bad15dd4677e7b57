//! Steps on the command line.

use crate::commands::json_argument;
use clap::Args;
use serde_json::Value;
use std::str::FromStr;

/// A list of steps as JSON, or read from the file with this name.
#[derive(Debug, Clone)]
pub(crate) struct Steps(pub(crate) Vec<Value>);

impl FromStr for Steps {
    type Err = String;

    fn from_str(argument: &str) -> Result<Self, Self::Err> {
        let steps = serde_json::from_str(&json_argument::text(argument, '[')?);
        steps.map(Self).map_err(|error| format!("must be a JSON list of steps: {error}"))
    }
}

/// The steps of a cleaning or service.
#[derive(Debug, Args)]
#[group(required = true, multiple = false)]
pub(crate) struct ChosenSteps {
    /// Steps: a JSON list, or a file with one. Example: '[{"interface": "deploy", "step": "erase_devices"}]'.
    #[arg(long, value_name = "FILE|JSON")]
    steps: Option<Steps>,
    /// Name or UUID of a runbook.
    #[arg(long, value_name = "RUNBOOK")]
    runbook: Option<String>,
}

impl ChosenSteps {
    /// The steps, or the runbook.
    pub(crate) fn taken(self) -> (Option<Vec<Value>>, Option<String>) {
        (self.steps.map(|steps| steps.0), self.runbook)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn steps_are_a_list_or_a_file_with_one() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("steps.json");
        std::fs::write(&file, r#"[{"interface": "deploy", "step": "erase_devices"}]"#).unwrap();
        let of_file = file.to_str().unwrap().parse::<Steps>().unwrap();
        let of_text = r#" [{"interface": "deploy", "step": "erase_devices"}]"#.parse::<Steps>().unwrap();
        assert_eq!(of_file.0, of_text.0);
        for wrong in ["[", "no-such-file", "[1", ""] {
            assert!(wrong.parse::<Steps>().is_err(), "{wrong}");
        }
    }
}
