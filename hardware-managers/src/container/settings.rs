//! What the operator allows and prefers.

use serde::Deserialize;
use serde_json::Value;
use std::path::PathBuf;

/// The options of the section `[container]` (section 3.3).
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Settings {
    /// Whether a step may choose any image and options.
    pub allow_arbitrary: bool,
    /// Images that may be chosen beside those of the steps file.
    pub allowed: Vec<String>,
    /// File with further steps.
    pub steps_file: PathBuf,
    /// The program that runs containers.
    pub runner: RunnerKind,
    /// Options of `pull` where a step has none of its own.
    pub pull_options: Words,
    /// Options of `run` where a step has none of its own.
    pub run_options: Words,
}

/// A program that runs containers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum RunnerKind {
    /// Podman.
    #[default]
    Podman,
    /// Docker, with its service running.
    Docker,
}

impl RunnerKind {
    /// Its name in the option.
    pub fn name(self) -> &'static str {
        match self {
            Self::Podman => "podman",
            Self::Docker => "docker",
        }
    }

    /// Reads its name.
    pub fn parse(name: &str) -> Option<Self> {
        [Self::Podman, Self::Docker].into_iter().find(|kind| kind.name() == name)
    }
}

/// Words of a command line.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(from = "Spelling")]
pub struct Words(Vec<String>);

/// How words are written.
#[derive(Deserialize)]
#[serde(untagged)]
enum Spelling {
    Text(String),
    List(Vec<String>),
}

impl From<Spelling> for Words {
    fn from(spelling: Spelling) -> Self {
        match spelling {
            Spelling::Text(text) => Self::parse(&text),
            Spelling::List(list) => Self(list.iter().flat_map(|text| Self::parse(text).0).collect()),
        }
    }
}

impl Words {
    /// Reads words that are separated by blanks, or by commas in front of a dash (F51): other commas belong
    /// to the word, as in `--mount type=tmpfs,dst=/x`.
    pub fn parse(text: &str) -> Self {
        Self(text.replace(",-", " -").split_whitespace().map(str::to_owned).collect())
    }

    /// Reads a text, or a list of texts; nothing when it is neither.
    pub fn from_json(value: &Value) -> Option<Self> {
        serde_json::from_value(value.clone()).ok()
    }

    /// The words in their order.
    pub fn as_slice(&self) -> &[String] {
        &self.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn f51_options_are_read_however_they_are_written() {
        for given in [
            json!("--rm --network=host"),
            json!("  --rm\t--network=host "),
            json!("--rm,--network=host"),
            json!(["--rm", "--network=host"]),
            json!(["--rm --network=host"]),
            json!(["--rm,--network=host", ""]),
        ] {
            assert_eq!(Words::from_json(&given).unwrap().as_slice(), ["--rm", "--network=host"], "{given}");
        }
        let mount = "--mount type=tmpfs,dst=/x --rm";
        assert_eq!(Words::parse(mount).as_slice(), ["--mount", "type=tmpfs,dst=/x", "--rm"]);
        assert_eq!(Words::parse("").as_slice(), [] as [&str; 0]);
        for odd in [json!(7), json!([1]), json!({"--rm": true}), json!(null)] {
            assert_eq!(Words::from_json(&odd), None, "{odd}");
        }
    }
}
